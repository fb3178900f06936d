//! Suggests names that are similar to a mistyped name.

use strsim::levenshtein;

/// Maximum number of suggestions.
const SUGGESTIONS_MAX: usize = 3;

/// Returns the names most similar to `wanted`, best first. Omits names that are not similar.
pub fn closest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted = wanted.to_lowercase();
    let allowed = (wanted.chars().count() / 3).max(2);
    let mut near: Vec<(usize, &str)> = Vec::new();
    for name in names {
        let lower = name.to_lowercase();
        let part = !wanted.is_empty() && (lower.contains(&wanted) || wanted.contains(&lower));
        let distance = if part { 0 } else { levenshtein(&wanted, &lower) };
        if distance <= allowed {
            near.push((distance, name));
        }
    }
    near.sort_unstable();
    near.into_iter().take(SUGGESTIONS_MAX).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_and_parts_of_names_are_suggested() {
        let names = ["xgb-1", "xgb-2", "resnet-large", "a-very-long-name"];
        assert_eq!(closest("XGB1", names), ["xgb-1", "xgb-2"]);
        assert_eq!(closest("resnet", names), ["resnet-large"]);
        assert!(closest("completely-different", names).is_empty());
    }
}
