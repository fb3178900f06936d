//! The evidence of a level, and the median rule.

use super::*;
use crate::log::Verdict;

/// Trials that were compared at levels 1 and 4.
fn compared(early: &[f64], late: &[f64]) -> Rungs {
    let mut rungs = Rungs::default();
    for (trial, (early, late)) in (0..).zip(early.iter().zip(late)) {
        rungs.passed.insert(trial, BTreeMap::from([(1, *early), (4, *late)]));
        rungs.passages.entry(0).or_default().push(trial);
    }
    rungs
}

#[test]
fn a_level_predicts_while_its_order_is_that_of_the_last_comparison() {
    let late = [1.0, 2.0, 3.0, 4.0, 5.0];
    for (early, expected) in [
        (&[1.0, 2.0, 3.0, 4.0, 5.0][..], true),
        (&[5.0, 4.0, 3.0, 2.0, 1.0], false),
        // Three pairs in order, three against it.
        (&[2.0, 3.0, 4.0, 1.0], false),
        (&[1.0, 4.0, 3.0, 2.0], false),
        (&[1.0, 2.0, 4.0, 3.0], true),
        // Too few trials show nothing.
        (&[3.0, 2.0, 1.0], true),
    ] {
        assert_eq!(compared(early, &late).predicts(0, 1, Some(4)), expected, "{early:?}");
    }
    // Ten pairs, of which one more is in order than against it.
    let tied = compared(&[1.0, 1.0, 1.0, 1.0, 2.0], &[1.0, 2.0, 3.0, 5.0, 4.0]);
    assert!(tied.predicts(0, 1, Some(4)));
    let opposite = compared(&[5.0, 4.0, 3.0, 2.0, 1.0], &late);
    assert!(opposite.predicts(0, 4, Some(4)) && opposite.predicts(1, 1, Some(4)));
}

#[test]
fn the_latest_trials_show_whether_a_level_predicts() {
    let early: Vec<f64> = (0..40).map(|n| f64::from(if n < 20 { -n } else { n })).collect();
    let late: Vec<f64> = (0..40).map(f64::from).collect();
    assert!(compared(&early, &late).predicts(0, 1, Some(4)));
    let reversed: Vec<f64> = early.iter().map(|value| -value).collect();
    assert!(!compared(&reversed, &late).predicts(0, 1, Some(4)));
}

/// Judges a trial by the median of the averages of the trials before it. Returns the violations.
fn by_median(before: &[Option<f64>], value: Option<f64>, verdict: Verdict, maximize: bool) -> usize {
    let mut rungs = Rungs::default();
    rungs.judged.insert((0, 3), (0..).zip(before.iter().copied()).collect());
    let mut findings = Findings::default();
    let judged = Judged { trial: 90, bracket: 0, rung: 0, level: 3, value, average: Some(2.5), verdict };
    rungs.judge_by_median(&Ground::by_median(maximize), &judged, 0, &mut findings);
    assert_eq!(rungs.judged[&(0, 3)].last(), Some(&(90, Some(2.5))));
    assert_eq!(rungs.losers.contains_key(&90), !verdict.continues);
    usize::try_from(findings.count).unwrap()
}

#[test]
fn the_median_rule_counts_the_better_averages() {
    let five = [Some(1.0), Some(2.0), Some(3.0), Some(4.0), None];
    let verdict = |rank, seen, allowed, continues| Verdict { rank, seen, allowed, continues };
    assert_eq!(by_median(&five, Some(3.5), verdict(1, 6, 3, true), true), 0);
    assert_eq!(by_median(&five, Some(1.5), verdict(3, 6, 3, false), true), 0);
    assert_eq!(by_median(&five, Some(1.5), verdict(1, 6, 3, true), false), 0);
    assert_eq!(by_median(&five, None, verdict(4, 6, 3, false), true), 0);
    assert_eq!(by_median(&five[..4], Some(0.5), verdict(4, 5, 5, true), true), 0);
    for wrong in
        [verdict(0, 6, 3, true), verdict(1, 5, 3, true), verdict(1, 6, 4, true), verdict(1, 6, 3, false)]
    {
        assert_eq!(by_median(&five, Some(3.5), wrong, true), 1, "{wrong:?}");
    }
    assert_eq!(by_median(&five, Some(3.0), verdict(1, 6, 3, true), true), 0);
    assert_eq!(by_median(&five, Some(3.0), verdict(2, 6, 3, true), false), 0);
}

#[test]
fn a_level_that_does_not_predict_stops_no_trial_where_the_plan_asks_for_evidence() {
    let plan = |by_evidence| {
        let plan =
            serde_json::json!({"min_resource": 1, "max_resource": 8, "eta": 2, "by_evidence": by_evidence});
        Ground::of_plan(serde_json::from_value(plan).unwrap())
    };
    let opposite = || {
        let mut rungs = compared(&[5.0, 4.0, 3.0, 2.0, 1.0], &[1.0, 2.0, 3.0, 4.0, 5.0]);
        rungs.judged.insert((0, 1), vec![(0, Some(5.0)), (1, Some(4.0))]);
        rungs
    };
    for (by_evidence, allowed, continues) in [(true, 3, true), (false, 1, false)] {
        let (mut rungs, mut findings) = (opposite(), Findings::default());
        let verdict = Verdict { rank: 2, seen: 3, allowed, continues };
        let (value, average) = (Some(1.0), None);
        let judged = Judged { trial: 9, bracket: 0, rung: 0, level: 1, value, average, verdict };
        let mut ground = plan(by_evidence);
        ground.log(9, 1.0);
        rungs.judge(&ground, &judged, &mut findings);
        assert_eq!(findings.count, 0, "{findings:?}");
    }
}
