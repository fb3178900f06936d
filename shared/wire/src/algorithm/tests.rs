//! Tests every row on log lines as the algorithms print them.

use std::collections::BTreeSet;

use super::*;
use crate::events::logs::{Explanation, MetricPattern};
use crate::request::compile_pattern;

/// SageMaker's limits: characters of a `Regex`, and number of metric definitions.
const REGEX_CHARS_MAX: usize = 500;
const DEFINITIONS_MAX: usize = 40;

/// Algorithm, metric, line, value, epoch.
const LINES: &[(&str, &str, &str, f64, Option<u64>)] = &[
    ("xgboost", "validation:auc", "[36]#011train-auc:0.91429#011validation-auc:0.80998", 0.80998, Some(36)),
    ("sagemaker-xgboost", "validation:auc", "[0]\ttrain-auc:0.5\tvalidation-auc:1e-3", 1e-3, Some(0)),
    ("xgboost", "validation:auc", "[07:01:02] [3]\tvalidation-auc:0.7\tvalidation-aucpr:0.6", 0.7, Some(3)),
    ("xgboost", "validation:aucpr", "[07:01:02] [3]\tvalidation-auc:0.7\tvalidation-aucpr:0.6", 0.6, Some(3)),
    (
        "image-classification",
        "validation:accuracy",
        "[10/31/2017] Epoch[3] Validation-accuracy=0.81",
        0.81,
        Some(3),
    ),
    (
        "image-classification",
        "validation:accuracy",
        "#quality_metric: host=algo-1, epoch=9, validation accuracy <score>=(0.5)",
        0.5,
        Some(9),
    ),
    (
        "object-detection",
        "validation:mAP",
        "[01/01/2026 10:00:00 INFO 1] #quality_metric: host=algo-1, epoch=0, validation mAP <score>=(0.0123)",
        0.0123,
        Some(0),
    ),
    (
        "semantic-segmentation",
        "validation:mIOU",
        "#quality_metric: host=algo-1, epoch=4, validation mIOU <score>=0.4",
        0.4,
        Some(4),
    ),
    (
        "linear-learner",
        "validation:objective_loss",
        "#quality_metric: host=algo-1, epoch=2, validation binary_classification_cross_entropy_objective <loss>=0.3",
        0.3,
        Some(2),
    ),
    (
        "linear-learner",
        "validation:mse",
        "#quality_metric: host=algo-1, validation mse <loss>=12.5",
        12.5,
        None,
    ),
    ("kmeans", "test:msd", "#quality_metric: host=algo-1, test msd <loss>=120.25", 120.25, None),
    ("factorization-machines", "test:rmse", "#quality_metric: host=algo-2, test rmse <loss>=1.5", 1.5, None),
    ("blazingtext", "train:mean_rho", "mean_rho: 0.61", 0.61, None),
    ("blazingtext", "validation:accuracy", "#validation_accuracy: 0.97", 0.97, None),
    ("blazingtext", "validation:accuracy", "Validation accuracy: 0.965", 0.965, None),
    ("forecasting-deepar", "test:RMSE", "#quality_metric: host=algo-1, test RMSE <loss>=14.4", 14.4, None),
    (
        "forecasting-deepar",
        "train:loss",
        "#quality_metric: host=algo-1, epoch=0, train loss <loss>=5.1",
        5.1,
        Some(0),
    ),
    (
        "ntm",
        "validation:total_loss",
        "#quality_metric: host=algo-1, epoch=11, validation total_loss <loss>=7.25",
        7.25,
        Some(11),
    ),
    ("seq2seq", "validation:perplexity", "Epoch[0] Validation-perplexity=31.5", 31.5, None),
    (
        "ipinsights",
        "validation:discriminator_auc",
        "#quality_metric: host=algo-1, epoch=1, validation discriminator_auc <score>=0.98",
        0.98,
        Some(1),
    ),
    (
        "object2vec",
        "validation:mean_squared_error",
        "#quality_metric: host=algo-1, epoch=3, validation mean_squared_error <loss>=0.9",
        0.9,
        Some(3),
    ),
    ("lda", "test:pwll", "#quality_metric: host=algo-1, test pwll <score>=-9.5", -9.5, None),
    ("knn", "test:accuracy", "#quality_metric: host=algo-1, test accuracy <score>=0.9", 0.9, None),
    ("randomcutforest", "test:f1", "#quality_metric: host=algo-1, test f1 <score>=0.8", 0.8, None),
    ("pca", "test:throughput", "#quality_metric: host=algo-1, test throughput <score>=500", 500.0, None),
    ("lightgbm", "auc", "[12] valid's auc: 0.93", 0.93, Some(12)),
    ("catboost", "RMSE", "bestTest = 0.3311", 0.3311, None),
    ("tabtransformer", "r2", "metrics={'r2': 0.7, 'mse': 2.5}", 0.7, None),
    ("tabtransformer", "mse", "metrics={'r2': 0.7, 'mse': 2.5}", 2.5, None),
    ("image-classification-tensorflow", "validation:accuracy", "loss=0.1 val_accuracy=0.9", 0.9, None),
    ("text-classification-tensorflow", "validation:accuracy", "val_accuracy=0.8", 0.8, None),
    ("object-detection-tensorflow", "validation:localization_loss", "Val_localization=0.02", 0.02, None),
];

fn read(algorithm: &Algorithm, metric: &Metric, line: &str) -> Explanation {
    let epochs = algorithm.epochs.map(|epochs| epochs.pattern);
    MetricPattern::new(&metric.pattern(), epochs).unwrap().explain(line)
}

#[test]
fn each_algorithm_reads_its_own_log_lines() {
    let mut seen = BTreeSet::new();
    for (name, metric, line, value, epoch) in LINES {
        let algorithm = named(name).unwrap_or_else(|| panic!("{name}"));
        let metric = algorithm.metric(metric).unwrap_or_else(|| panic!("{name} {metric}"));
        let read = read(algorithm, metric, line);
        let Explanation::Value { value: found, index, .. } = read else { panic!("{line}: {read:?}") };
        assert_eq!((found, index), (Some(*value), *epoch), "{line}");
        seen.insert(algorithm.title);
    }
    for algorithm in ALGORITHMS.iter().filter(|algorithm| !algorithm.metrics.is_empty()) {
        assert!(seen.contains(algorithm.title), "{algorithm} has no sample line");
    }
}

#[test]
fn a_metric_does_not_match_the_line_of_another() {
    for (name, metric, line) in [
        ("xgboost", "validation:auc", "[3]\ttrain-auc:0.5\tvalidation-aucpr:0.4"),
        ("xgboost", "validation:error", "[3]\tvalidation-merror:0.4"),
        (
            "object-detection",
            "validation:mAP",
            "#quality_metric: host=algo-1, epoch=0, train mAP <score>=(0.1)",
        ),
        ("forecasting-deepar", "train:loss", "#quality_metric: host=algo-1, train final_loss <loss>=5"),
        ("lightgbm", "auc", "[12] valid's auc_mu: 0.93"),
        ("lightgbm", "l1", "[12] valid's xl1: 0.93"),
    ] {
        let algorithm = named(name).unwrap();
        let metric = algorithm.metric(metric).unwrap();
        assert_eq!(read(algorithm, metric, line), Explanation::NoMatch, "{line}");
    }
}

#[test]
fn each_metric_reads_numbers_of_every_form_whole() {
    for metric in ALGORITHMS.iter().flat_map(|algorithm| algorithm.metrics) {
        let pattern = MetricPattern::new(&metric.pattern(), None).unwrap();
        for (number, value) in [
            ("1e-11", Some(1e-11)),
            ("1.e-05", Some(1e-5)),
            ("-2.5E+3", Some(-2500.0)),
            ("12.", Some(12.0)),
            ("NaN", None),
        ] {
            let line = metric.sample().replace(&SAMPLE.0.to_string(), number);
            let found = pattern.read(&line);
            let expected = Explanation::Value { captured: number.to_owned(), value, index: None };
            assert_eq!((found.shown, found.cut), (vec![expected], None), "{line}");
        }
    }
}

/// The controller tries a user's metric definition on these samples.
#[test]
fn each_metric_reads_its_own_sample() {
    for algorithm in ALGORITHMS {
        for metric in algorithm.metrics {
            let sample = metric.sample();
            let Explanation::Value { value, index, .. } = read(algorithm, metric, &sample) else {
                panic!("{sample}");
            };
            assert_eq!(value, Some(SAMPLE.0), "{sample}");
            let captured = algorithm.epochs.is_some() && metric.emission != Emission::AtEnd;
            assert_eq!(index, captured.then_some(SAMPLE.1), "{sample}");
        }
    }
}

#[test]
fn patterns_fit_a_metric_definition() {
    for algorithm in ALGORITHMS {
        for metric in algorithm.metrics {
            let pattern = metric.pattern();
            assert!(pattern.chars().count() <= REGEX_CHARS_MAX, "{pattern}");
            assert_eq!(compile_pattern(&pattern).unwrap().captures_len(), 2, "{pattern}");
        }
        // Describe shows all definitions and repeats that of the objective.
        assert!(algorithm.metrics.len() < DEFINITIONS_MAX, "{algorithm}");
        let groups = algorithm.epochs.map(|epochs| compile_pattern(epochs.pattern).unwrap().captures_len());
        assert!(groups.is_none_or(|groups| groups == 2), "{algorithm}");
    }
}

#[test]
fn titles_names_and_metrics_are_unique() {
    let mut titles = BTreeSet::new();
    let mut names = BTreeSet::new();
    for algorithm in ALGORITHMS {
        assert!(!algorithm.names.is_empty() && titles.insert(algorithm.title), "{algorithm}");
        assert!(algorithm.names.iter().all(|name| names.insert(*name)), "{algorithm}");
        let metrics: BTreeSet<_> = algorithm.metrics.iter().map(|metric| metric.name).collect();
        assert_eq!(metrics.len(), algorithm.metrics.len(), "{algorithm}");
    }
}

/// Derives the direction from the name, so that a wrong row fails the test.
#[test]
fn losses_are_minimized_and_scores_maximized() {
    let losses =
        ["loss", "error", "mse", "mae", "mape", "entropy", "nloglik", "deviance", "perplexity", "msd", "ssd"];
    let scores = ["auc", "accuracy", "f1", "precision", "recall", "map", "miou", "bleu", "ndcg", "r2"];
    for metric in ALGORITHMS.iter().flat_map(|algorithm| algorithm.metrics) {
        let name = metric.name.to_lowercase();
        let is = |words: &[&str]| words.iter().any(|word| name.contains(word));
        if is(&losses) && !is(&scores) {
            assert_eq!(metric.objective, Objective::Minimize, "{name}");
        }
        if is(&scores) && !is(&losses) && name != "validation:interval-regression-accuracy" {
            assert_eq!(metric.objective, Objective::Maximize, "{name}");
        }
    }
}

#[test]
fn an_algorithm_that_logs_only_at_the_end_has_no_epochs() {
    for algorithm in ALGORITHMS.iter().filter(|algorithm| !algorithm.emits_while_running()) {
        assert_eq!(algorithm.epochs, None, "{algorithm}");
    }
    let final_only: Vec<_> =
        ALGORITHMS.iter().filter(|row| !row.emits_while_running()).map(|row| row.names[0]).collect();
    assert_eq!(
        final_only,
        ["kmeans", "factorization-machines", "lda", "knn", "randomcutforest", "pca", "catboost", "autogluon",]
    );
}

#[test]
fn an_algorithm_is_identified_by_name_image_or_script() {
    let title = |found: Option<&Algorithm>| found.map(|algorithm| algorithm.title);
    for image in [
        "683313688378.dkr.ecr.us-east-1.amazonaws.com/sagemaker-xgboost:1.7-1",
        "811284229777.dkr.ecr.us-east-1.amazonaws.com/xgboost@sha256:00",
        "xgboost",
    ] {
        assert_eq!(title(of_image(image)), Some("XGBoost"), "{image}");
    }
    assert_eq!(title(of_image("h.example/my-xgboost:1")), None);
    assert_eq!(title(named("arn:aws:sagemaker:us-east-1:111122223333:algorithm/knn")), Some("k-NN"));
    assert_eq!(title(named("my-own")), None);
    let script = "s3://jumpstart-cache-prod-us-west-2/source-directory-tarballs/lightgbm/transfer_learning/classification/v1.1.2/sourcedir.tar.gz";
    assert_eq!(title(of_script(script)), Some("LightGBM"));
    assert_eq!(title(of_script("s3://my-bucket/lightgbm/sourcedir.tar.gz")), None);
}
