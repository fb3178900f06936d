//! Tests of the plan.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;

fn table(min: u32, max: u32, eta: u32) -> Vec<Vec<(u32, u32)>> {
    let plan = Plan::hyperband(min, max, eta).unwrap();
    plan.brackets().iter().map(|b| b.rungs().iter().map(|r| (r.slots, r.resource)).collect()).collect()
}

#[test]
fn the_plan_for_1_to_30_epochs_matches_the_article() {
    let expected: Vec<Vec<(u32, u32)>> = vec![
        vec![(27, 1), (9, 3), (3, 10), (1, 30)],
        vec![(12, 3), (4, 10), (1, 30)],
        vec![(6, 10), (2, 30)],
        vec![(4, 30)],
    ];
    assert_eq!(table(1, 30, 3), expected);
}

#[test]
fn a_plan_returns_its_parts() {
    let plan = Plan::hyperband(2, 81, 3).unwrap();
    assert_eq!((plan.min_resource(), plan.max_resource(), plan.eta()), (2, 81, 3));
    assert_eq!([0, 1, 2, 3, 9].map(|rung| plan.level(0, rung)), [3, 9, 27, 81, 81]);
    assert_eq!((plan.is_median(), plan.is_by_evidence(), plan.strictness()), (false, true, 0));
    assert!(Plan::median().is_median() && !plan.clone().without_evidence().is_by_evidence());
    assert_eq!(plan.with_strictness(40).strictness(), 40);
}

#[test]
fn powers_with_an_inexact_float_logarithm_keep_their_bracket() {
    assert_eq!(Plan::hyperband(1, 243, 3).unwrap().brackets().len(), 6);
    assert_eq!(Plan::hyperband(1, 19_683, 3).unwrap().brackets().len(), 10);
}

#[test]
fn a_min_resource_above_one_raises_the_first_rung() {
    assert_eq!(table(3, 30, 3)[0], [(9, 3), (3, 10), (1, 30)]);
    assert_eq!(table(30, 30, 3), [[(1, 30)]]);
}

#[test]
fn a_plan_fits_the_number_of_jobs() {
    let plan = Plan::hyperband(1, 81, 3).unwrap();
    let chosen = |jobs, promotes| plan.fitting(jobs, promotes).chosen();
    assert_eq!(chosen(80, false), 1..3);
    assert_eq!(chosen(81, false), 0..2);
    assert_eq!((chosen(142, false), chosen(143, false)), (0..2, 0..5));
    assert_eq!((chosen(143, true), chosen(plan.jobs(), true)), (0..2, 0..5));
    assert_eq!((chosen(9, false), chosen(8, false), chosen(1, false)), (2..4, 3..4, 4..5));
    // A plan without comparisons has one bracket, whatever the number of jobs.
    assert_eq!(Plan::hyperband(9, 9, 3).unwrap().fitting(1, false).chosen(), 0..1);
}

#[test]
fn a_part_of_a_part_counts_from_the_whole_plan() {
    let plan = Plan::hyperband(1, 81, 3).unwrap();
    let part = plan.part(1..4).and_then(|part| part.part(1..2)).unwrap();
    assert_eq!((part.chosen(), part.brackets()), (2..3, &plan.brackets()[2..3]));
    assert_eq!((plan.part(2..2), plan.part(4..6)), (None, None));
}

#[test]
fn the_maximum_resource_is_allowed() {
    let plan = Plan::hyperband(1, MAX_RESOURCE, 3).unwrap();
    assert_eq!(plan.brackets()[0].rungs().last().unwrap().resource, 20_000);
}

#[test]
fn an_error_message_names_the_limit() {
    let refusal = |min, max, eta| Plan::hyperband(min, max, eta).unwrap_err().to_string();
    assert_eq!(refusal(0, 9, 3), "MinResource must be at least 1");
    assert_eq!(refusal(10, 9, 3), "MaxResource must not be below MinResource");
    assert_eq!(refusal(1, 20_001, 3), "MaxResource must not be above 20000");
    assert_eq!(refusal(1, 9, 1), "the reduction factor must be at least 2");
}

#[test]
fn a_plan_without_stopping_has_one_rung_at_the_end() {
    let plan = Plan::without_stopping();
    assert_eq!(plan.max_resource(), u32::MAX);
    assert_eq!(plan.brackets().len(), 1);
    assert_eq!(plan.brackets()[0].rungs(), [RungPlan { resource: u32::MAX, slots: 1 }]);
}

#[test]
fn the_plan_of_the_median_rule_compares_at_powers_of_two() {
    let plan = Plan::median();
    let levels: Vec<_> = plan.brackets()[0].rungs().iter().map(|rung| rung.resource).collect();
    assert_eq!((&levels[..4], levels[13], levels[14]), (&[2, 4, 8, 16][..], 16_384, u32::MAX));
    assert_eq!((levels.len(), plan.max_resource(), plan.rule(0, 3)), (15, u32::MAX, Rule::Median));
}

#[test]
fn the_next_bracket_is_an_open_one() {
    let plan = Plan::hyperband(1, 9, 3).unwrap();
    assert_eq!(plan.next_bracket_of(&[0, 0, 0], |bracket| bracket > 0), Some(1));
    assert_eq!(plan.next_bracket_of(&[0, 5, 2], |bracket| bracket > 0), Some(2));
    assert_eq!(plan.next_bracket_of(&[0, 0, 0], |_| false), None);
}

#[test]
fn a_tie_between_brackets_goes_to_the_one_that_explores_most() {
    // 9, 5 and 3 trials: one short of the plan in each, then all complete.
    let plan = Plan::hyperband(1, 9, 3).unwrap();
    assert_eq!(plan.next_bracket(&[8, 4, 2]), 0);
    assert_eq!(plan.next_bracket(&[9, 4, 2]), 1);
    assert_eq!(plan.next_bracket(&[9, 5, 2]), 2);
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

    /// A naive version of Algorithm 1, by repeated multiplication, gives the same table.
    #[test]
    fn plan_equals_a_naive_version(min in 1_u32..50, factor in 1_u32..400, eta in 2_u32..6) {
        let max = min * factor;
        let mut s_max = 0_u32;
        let mut power = u64::from(eta);
        while power <= u64::from(max / min) {
            s_max += 1;
            power *= u64::from(eta);
        }
        let plan = Plan::hyperband(min, max, eta).unwrap();
        prop_assert_eq!(plan.brackets().len(), usize::try_from(s_max).unwrap() + 1);
        for (bracket, s) in plan.brackets().iter().zip((0..=s_max).rev()) {
            let eta_s = (0..s).fold(1_u64, |product, _| product * u64::from(eta));
            let numerator = u64::from(s_max + 1) * eta_s;
            let n = numerator / u64::from(s + 1) + u64::from(numerator % u64::from(s + 1) != 0);
            prop_assert_eq!(u64::from(bracket.trials()), n);
            let mut previous = 0;
            for rung in bracket.rungs() {
                prop_assert!(rung.resource > previous, "levels rise: {:?}", bracket);
                prop_assert!(rung.resource >= min);
                previous = rung.resource;
            }
            prop_assert_eq!(previous, max);
        }
    }

    /// After any number of trials, no bracket is a whole trial ahead of the share of another.
    #[test]
    fn brackets_fill_in_proportion(max in 1_u32..300, eta in 2_u32..5, trials in 1_u32..500) {
        let plan = Plan::hyperband(1, max, eta).unwrap();
        let mut started = vec![0_u32; plan.brackets().len()];
        for _ in 0..trials {
            let next = plan.next_bracket(&started);
            started[next] += 1;
        }
        for (count, bracket) in started.iter().zip(plan.brackets()) {
            for (other_count, other) in started.iter().zip(plan.brackets()) {
                prop_assert!(count * other.trials() <= (other_count + 1) * bracket.trials());
            }
        }
    }
}
