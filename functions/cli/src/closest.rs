//! Names that a mistyped one may have meant.

/// Most names to offer.
const OFFERED_MAX: usize = 3;

/// The names closest to `wanted`, best first; none that is not close at all.
pub(crate) fn closest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted = wanted.to_lowercase();
    let allowed = (wanted.chars().count() / 3).max(2);
    let mut near: Vec<(usize, &str)> = Vec::new();
    for name in names {
        let lower = name.to_lowercase();
        let part = !wanted.is_empty() && (lower.contains(&wanted) || wanted.contains(&lower));
        let distance = if part { 0 } else { edits(&wanted, &lower) };
        if distance <= allowed {
            near.push((distance, name));
        }
    }
    near.sort_unstable();
    near.into_iter().take(OFFERED_MAX).map(|(_, name)| name).collect()
}

/// Insertions, deletions and replacements that make one text the other (Levenshtein).
fn edits(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, letter) in one.chars().enumerate() {
        let mut next = vec![i + 1];
        for (j, (pair, against)) in row.windows(2).zip(&other).enumerate() {
            let &[diagonal, above] = pair else { continue };
            let left = next.get(j).copied().unwrap_or(usize::MAX);
            next.push((diagonal + usize::from(letter != *against)).min(above + 1).min(left + 1));
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted() {
        for (one, other, expected) in
            [("", "", 0), ("a", "", 1), ("kitten", "sitting", 3), ("xgb-1", "xbg-1", 2)]
        {
            assert_eq!(edits(one, other), expected, "{one} {other}");
        }
    }

    #[test]
    fn close_names_and_parts_of_names_are_offered() {
        let names = ["xgb-1", "xgb-2", "resnet-large", "a-very-long-name"];
        assert_eq!(closest("XGB1", names), ["xgb-1", "xgb-2"]);
        assert_eq!(closest("resnet", names), ["resnet-large"]);
        assert!(closest("completely-different", names).is_empty());
    }
}
