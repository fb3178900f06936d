//! The levels of a plan.

use super::*;

#[test]
fn the_levels_of_a_bracket_are_those_of_the_paper() {
    let levels = |min_resource, max_resource, eta, part: Option<(usize, usize)>| {
        let brackets = part.map(|(start, end)| Brackets { start, end });
        Plan { min_resource, max_resource, eta, brackets, strictness: 0, by_evidence: false }.levels()
    };
    // Table 1 of the paper (Li et al. 2018): R = 81, eta = 3.
    assert_eq!(
        levels(1, 81, 3, None),
        [vec![1, 3, 9, 27, 81], vec![3, 9, 27, 81], vec![9, 27, 81], vec![27, 81], vec![81]]
    );
    assert_eq!(levels(3, 30, 3, None), [vec![3, 10, 30], vec![10, 30], vec![30]]);
    assert_eq!(levels(1, 8, 2, Some((1, 3))), [vec![2, 4, 8], vec![4, 8]]);
    assert_eq!(levels(5, 5, 3, None), [vec![5]]);
}
