//! The direction of a metric, from its name.

use crate::arguments::Goal;

const MINIMIZE: &str = "\
    loss logloss error err rmse mse mae mape rmsle nll perplexity ppl wer cer deviance brier";
const MAXIMIZE: &str = "\
    accuracy acc auc aucpr auroc f1 r2 precision recall map ndcg bleu rouge iou dice score reward kappa mcc";
/// Words that count within a longer word, such as `mlogloss` and `balancedaccuracy`.
const WITHIN: &[&str] = &["loss", "error", "rmse", "accuracy", "score"];
const VALIDATION: &[&str] = &["val", "valid", "validation", "dev", "eval", "test", "holdout"];

/// Returns the direction of a metric; `None` if its name does not show it.
pub(super) fn guess(metric: &str) -> Option<Goal> {
    let words = words(metric);
    let has = |known: &str| {
        known.split(' ').any(|known| {
            words.iter().any(|word| word == known || (WITHIN.contains(&known) && word.contains(known)))
        })
    };
    match (has(MINIMIZE), has(MAXIMIZE)) {
        (true, false) => Some(Goal::Minimize),
        (false, true) => Some(Goal::Maximize),
        (true, true) | (false, false) => None,
    }
}

/// Returns whether a name is that of a metric on validation data.
pub(super) fn is_validation(metric: &str) -> bool {
    words(metric).iter().any(|word| VALIDATION.contains(&word.as_str()))
}

/// Returns the words of a name in lower case.
pub(super) fn words(name: &str) -> Vec<String> {
    let words = name.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_metric_shows_its_direction() {
        for (name, expected) in [
            ("loss", Some(Goal::Minimize)),
            ("val_loss", Some(Goal::Minimize)),
            ("validation-mlogloss", Some(Goal::Minimize)),
            ("eval/merror", Some(Goal::Minimize)),
            ("test RMSE", Some(Goal::Minimize)),
            ("val_accuracy", Some(Goal::Maximize)),
            ("validation:auc", Some(Goal::Maximize)),
            ("F1", Some(Goal::Maximize)),
            ("r2_score", Some(Goal::Maximize)),
            ("error_score", None),
            ("speed", None),
            ("", None),
        ] {
            assert_eq!(guess(name), expected, "{name}");
        }
    }
}
