//! Rungs: which trials continue, which are stopped, and which values are compared.

use hyperband::plan::Plan;
use tuning::definition::{Definition, RungExecution, Scheduling, Strategy};
use tuning::log::fact::JobEnd::{AlgorithmError, CapacityError, Completed, Stopped};
use tuning::log::fact::{Fact, Recorded};
use tuning::log::ruling::{Ruling, SearchRuling};
use tuning::trial::Trial;
use tuning::unit::epochs::Epochs;
use tuning::unit::ids::BracketId;

use crate::support::build::*;
use crate::support::run::Run;
use crate::support::{check, check_next};

/// Returns four trials: 0, 2 and 3 are in bracket 0 (rungs at 1, 3, 9), trial 1 is in bracket 1 (3, 9).
fn four() -> Definition {
    jobs(4, 4)
}

/// Returns the facts after which trial 0 has continued at rung 0.0.
fn given() -> Vec<Recorded> {
    vec![submitted(), logged(10, job(0), 1, 0.5)]
}

#[test]
fn the_first_trial_at_a_rung_continues() {
    let expect = ["trial 0 continues at rung 0.0, epoch 1: 1 of 1"];
    check(&four(), &[submitted()], &[logged(10, job(0), 1, 0.5)], &expect);
}

#[test]
fn a_better_trial_continues() {
    let expect = ["trial 2 continues at rung 0.0, epoch 1: 1 of 2"];
    check(&four(), &given(), &[logged(11, job(2), 1, 0.6)], &expect);
}

#[test]
fn a_worse_trial_is_stopped_at_once() {
    let expect = ["trial 2 is out at rung 0.0, epoch 1: 2 of 2", "stop 2-0-1: rung 0"];
    check(&four(), &given(), &[logged(11, job(2), 1, 0.4)], &expect);
}

#[test]
fn a_smaller_value_is_better_when_the_objective_is_minimized() {
    let mut definition = four();
    definition.objective = tuning::definition::Objective::Minimize;
    let expect = ["trial 2 continues at rung 0.0, epoch 1: 1 of 2"];
    check(&definition, &given(), &[logged(11, job(2), 1, 0.4)], &expect);
}

#[test]
fn a_tie_goes_to_the_earlier_trial() {
    let expect = ["trial 2 is out at rung 0.0, epoch 1: 2 of 2", "stop 2-0-1: rung 0"];
    check(&four(), &given(), &[logged(11, job(2), 1, 0.5)], &expect);
}

#[test]
fn a_trial_below_its_first_level_is_not_judged() {
    check(&four(), &given(), &[logged(11, job(1), 1, 0.0), logged(12, job(1), 2, 0.0)], &[]);
}

#[test]
fn brackets_share_the_arrivals_at_a_level() {
    let given = [submitted(), logged(10, job(0), 3, 0.9)];
    let expect = ["trial 1 is out at rung 1.0, epoch 3: 2 of 2", "stop 1-0-1: rung 0"];
    check(&four(), &given, &[logged(11, job(1), 3, 0.1)], &expect);
}

#[test]
fn a_missing_value_at_the_level_is_replaced_by_the_first_above_it() {
    let expect = ["trial 0 continues at rung 0.0, epoch 2: 1 of 1"];
    let run = check(&four(), &[submitted()], &[logged(10, job(0), 2, 0.5)], &expect);
    assert!(matches!(
        run.rulings.last(),
        Some(Ruling::Search(SearchRuling::TrialJudged { level: Epochs(1), resource: Epochs(2), .. }))
    ));
}

#[test]
fn one_value_above_several_levels_is_judged_at_each() {
    let expect =
        ["trial 0 continues at rung 0.0, epoch 5: 1 of 1", "trial 0 continues at rung 0.1, epoch 5: 1 of 1"];
    check(&four(), &[submitted()], &[logged(10, job(0), 5, 0.5)], &expect);
}

#[test]
fn a_job_that_ended_well_below_a_level_competes_with_its_last_value() {
    let given = [submitted(), logged(10, job(1), 2, 0.5), ended(60, job(1), Completed)];
    let expect = ["trial 1 continues at rung 1.0, epoch 2: 1 of 1", "trial 1 completed"];
    check(&four(), &given, &[described(60, job(1), Completed, 50)], &expect);
}

#[test]
fn a_job_that_failed_below_a_level_never_enters_the_rung() {
    let given = [submitted(), logged(10, job(1), 2, 0.5), ended(60, job(1), AlgorithmError)];
    let expect = ["trial 1 failed: exit code 1"];
    check(&four(), &given, &[described(60, job(1), AlgorithmError, 50)], &expect);
}

/// Returns lines without a finite value, from the first epoch to `last`.
fn nan_up_to(number: u32, last: u64) -> Vec<Recorded> {
    (1..=last).map(|epoch| logged_nan(10, job(number), epoch)).collect()
}

#[test]
fn a_trial_without_a_finite_value_never_continues() {
    let expect = ["trial 0 is out at rung 0.0, epoch 3: 1 of 1", "stop 0-0-1: rung 0"];
    check(&four(), &[submitted()], &nan_up_to(0, 3), &expect);
}

#[test]
fn a_number_ranks_before_a_trial_without_a_finite_value() {
    let given = [&[submitted()][..], &nan_up_to(0, 3)].concat();
    let expect = ["trial 2 continues at rung 0.0, epoch 1: 1 of 2"];
    check(&four(), &given, &[logged(11, job(2), 1, -1e9)], &expect);
}

/// The best learning rates printed one NaN at the epoch of a rung, and were stopped there.
#[test]
fn regression_one_value_that_is_not_finite_at_a_rung_is_a_glitch() {
    for most in [0, 3] {
        let definition = set(four(), |settings| settings.max_diverged_epochs = most);
        let given = [submitted(), logged(10, job(0), 1, 0.5), logged(11, job(0), 2, 0.4)];
        let run = &mut check(&definition, &given, &[logged_nan(12, job(0), 3)], &[]);
        let expect = ["trial 0 continues at rung 0.1, epoch 4: 1 of 1"];
        check_next(&mut run.clone(), &[logged(13, job(0), 4, 0.6)], &expect);
        // As many in a row as stop a trial are no glitch.
        check_next(run, &[logged_nan(13, job(0), 4)], &[]);
        let expect: &[&str] = match most {
            0 => &["trial 0 is out at rung 0.1, epoch 5: 1 of 1", "stop 0-0-1: rung 1"],
            _ => &["stop 0-0-1: diverged for 3 epochs"],
        };
        check_next(run, &[logged_nan(14, job(0), 5)], expect);
    }
}

/// With promotion, the job ends at its level: the last finite value counts.
#[test]
fn regression_a_promotable_trial_with_one_nan_at_its_level_waits_with_its_last_finite_value() {
    let mut definition = promoting(jobs(40, 1), Scheduling::Asynchronous);
    definition.strategy = comparing(3, 9, 3);
    let definition = promoting(definition, Scheduling::Asynchronous);
    let given = [submitted(), logged(10, job(0), 1, 0.5), logged(11, job(0), 2, 0.4)];
    let end = described(20, job(0), Completed, 9);
    let waits = |epoch| format!("trial 0 waits at rung 0.0, epoch {epoch}");
    let expect = [&waits(2)[..], "start 1-0-1 to 9"];
    check(&definition, &given, &[logged_nan(12, job(0), 3), end.clone()], &expect);
    let given = [&[submitted()][..], &nan_up_to(0, 3)].concat();
    let expect = [&waits(3)[..], "trial 0 stopped: rung 0", "start 1-0-1 to 9"];
    check(&definition, &given, &[end], &expect);
}

#[test]
fn a_job_that_trains_beyond_its_last_epoch_is_stopped() {
    let given = [submitted(), logged(10, job(0), 3, 0.5), logged(90, job(0), 9, 0.9)];
    check(&four(), &given, &[logged(100, job(0), 10, 0.9)], &["stop 0-0-1: max resource"]);
}

#[test]
fn a_job_that_a_user_stops_ends_its_trial_alone() {
    let stop = |seconds, number| recorded(seconds, Fact::JobStopRequested { job: job(number) });
    let given = [submitted(), logged(10, job(1), 1, 0.9)];
    let run = &mut check(&jobs(9, 2), &given, &[stop(20, 1)], &["stop 1-0-1: requested"]);
    // A second request, and one for a job that does not exist, change nothing.
    check_next(run, &[stop(21, 1), stop(21, 8)], &[]);
    let expect = ["trial 1 stopped: requested", "start 2-0-1"];
    check_next(run, &[described(30, job(1), Stopped, 25)], &expect);
    check_next(run, &[stop(31, 1)], &[]);
}

/// Five trials without a value end a tuning, because the pattern of its metric must be wrong.
#[test]
fn regression_stops_by_a_user_show_nothing_about_the_search() {
    let stop = |seconds, number| recorded(seconds, Fact::JobStopRequested { job: job(number) });
    let run = &mut check(&jobs(9, 5), &[submitted()], &[], &[]);
    for trial in 0..5 {
        let seconds = 10 + i64::from(trial);
        check_next(run, &[stop(seconds, trial)], &[&format!("stop {trial}-0-1: requested")]);
    }
    for trial in 0..5 {
        let expect = [format!("trial {trial} stopped: requested"), format!("start {}-0-1", trial + 5)];
        let expect: Vec<&str> =
            expect.iter().map(String::as_str).take(if trial < 4 { 2 } else { 1 }).collect();
        check_next(run, &[described(60, job(trial), Stopped, 50)], &expect);
    }
    assert_eq!((run.state.results.fruitless.trials, run.state.search.since_improved), (0, 0));
}

#[test]
fn regression_a_stop_by_a_user_counts_also_when_the_job_has_just_failed_for_lack_of_capacity() {
    let stop = |seconds, number| recorded(seconds, Fact::JobStopRequested { job: job(number) });
    let run = &mut check(
        &jobs(9, 2),
        &[submitted()],
        &[ended(20, job(1), CapacityError), stop(21, 1)],
        &["bill 1-0-1"],
    );
    // The next start waits for capacity.
    check_next(run, &[described(22, job(1), CapacityError, 0)], &["trial 1 stopped: requested"]);
}

#[test]
fn a_trial_stopped_with_all_its_epochs_ends_at_its_max_resource() {
    let given = [submitted(), logged(10, job(0), 10, 0.5), ended(90, job(0), Stopped)];
    let run =
        check(&four(), &given, &[described(90, job(0), Stopped, 80)], &["trial 0 stopped: max resource"]);
    assert_eq!(run.state.results.best.as_ref().map(|best| best.job), Some(job(0)));
}

#[test]
fn a_job_that_completed_before_its_stop_is_completed() {
    let mut given = given();
    given.extend([logged(11, job(2), 1, 0.4), ended(12, job(2), Completed)]);
    check(&four(), &given, &[described(12, job(2), Completed, 10)], &["trial 2 completed"]);
}

#[test]
fn a_value_after_the_stop_counts_for_the_incumbent_but_not_for_the_rung() {
    let mut given = given();
    given.push(logged(11, job(2), 1, 0.4));
    let run = check(&four(), &given, &[logged(12, job(2), 3, 0.9)], &[]);
    let incumbent = run.state.search.incumbent.as_ref().unwrap();
    assert_eq!((incumbent.trial, incumbent.resource), (TrialId(2), Epochs(3)));
    assert_eq!(run.state.search.rung(place(0, 0, 1)).unwrap().arrivals, []);
}

#[test]
fn a_verdict_is_never_revised() {
    // Trial 0 has continued at rung 0.0 and then falls behind.
    let mut given = given();
    given.push(logged(11, job(2), 1, 0.6));
    let run = &mut check(
        &four(),
        &given,
        &[logged(12, job(3), 1, 0.7)],
        &["trial 3 continues at rung 0.0, epoch 1: 1 of 3"],
    );
    check_next(run, &[logged(13, job(0), 2, 0.1)], &[]);
    assert_eq!(run.state.search.rung(place(0, 0, 0)).unwrap().continued, 3);
}

#[test]
fn without_early_stopping_no_trial_is_judged_or_stopped() {
    let given = [submitted(), logged(10, job(0), 1, 0.9)];
    check(&random(4, 4), &given, &[logged(11, job(1), 500, 0.1)], &[]);
}

#[test]
fn a_job_stopped_from_outside_is_not_retried() {
    let given = [submitted(), ended(60, job(0), Stopped)];
    check(&four(), &given, &[described(60, job(0), Stopped, 50)], &["trial 0 stopped outside"]);
}

/// A value that peaked and fell is judged by its best so far.
#[test]
fn a_trial_competes_with_its_best_value_up_to_the_level() {
    let given = [submitted(), logged(10, job(0), 1, 0.5), logged(11, job(2), 1, 0.4)];
    let given = [&given[..], &[logged(12, job(0), 2, 0.9), logged(13, job(0), 3, 0.2)]].concat();
    let run = check(
        &four(),
        &given,
        &[logged(14, job(1), 3, 0.8)],
        &["trial 1 is out at rung 1.0, epoch 3: 2 of 2", "stop 1-0-1: rung 0"],
    );
    let judged = run.rulings.iter().find(|ruling| {
        matches!(
            ruling,
            Ruling::Search(SearchRuling::TrialJudged { trial: TrialId(0), level: Epochs(3), .. })
        )
    });
    let Some(Ruling::Search(SearchRuling::TrialJudged { resource, value, verdict, .. })) = judged else {
        panic!("{judged:?}")
    };
    assert_eq!((*resource, *value, verdict.rank), (Epochs(2), Some(0.9), 0));
}

/// Returns the facts of four trials, of which the better ones begin worse, and a fifth trial of their bracket.
fn slow_starters(definition: &Definition) -> (Vec<Recorded>, u32) {
    let mut started = Run::new(definition);
    started.take(&[submitted()]);
    let in_first = |trial: &Trial| trial.place().unwrap().cohort.bracket == BracketId(0);
    let live = started.state.trials.iter().filter(|(_, trial)| in_first(trial));
    let trials: Vec<u32> = live.map(|(number, _)| number.0).take(5).collect();
    let mut given = vec![submitted()];
    for (index, trial) in (0_u32..).zip(&trials[..4]) {
        let (first, last) = (0.1 + 0.1 * f64::from(index), 0.9 - 0.1 * f64::from(index));
        let seconds = i64::from(10 * index);
        given.push(logged(seconds + 10, job(*trial), 1, first));
        given.push(logged(seconds + 13, job(*trial), 3, last));
    }
    (given, trials[4])
}

/// Slow starters: the better a trial begins, the worse it ends. A rule that ranks their first epochs keeps the wrong ones.
#[test]
fn a_level_that_orders_trials_oppositely_to_the_last_one_stops_no_trial() {
    let definition = jobs(40, 40);
    let (given, fifth) = slow_starters(&definition);
    let low = [logged(90, job(fifth), 1, 0.05)];
    let continues = format!("trial {fifth} continues at rung 0.0, epoch 1: 5 of 5");
    check(&definition, &given, &low, &[&continues]);
    // Three trials prove nothing.
    let out = |epoch: u32, seen: u32| {
        let verdict = format!("trial {fifth} is out at rung 0.0, epoch {epoch}: {seen} of {seen}");
        [verdict, format!("stop {fifth}-0-1: rung 0")]
    };
    let [verdict, stop] = out(1, 4);
    check(&definition, &given[..7], &low, &[&verdict, &stop]);
    // A trial without a value never continues.
    let [verdict, stop] = out(3, 5);
    check(&definition, &given, &nan_up_to(fifth, 3), &[&verdict, &stop]);
}

/// A plan that an earlier release stored has neither field. Its tuning keeps the rules that it was submitted under.
#[test]
fn a_stored_plan_without_strictness_and_evidence_keeps_its_rules() {
    let late = Plan::hyperband(1, 81, 2).unwrap().highest(30, 50);
    let with = |plan: &Plan| {
        let strategy = Strategy::Hyperband { plan: plan.clone(), rungs: RungExecution::Stop };
        Definition { strategy, ..jobs(40, 40) }
    };
    let mut stored = serde_json::to_value(with(&late)).unwrap();
    assert_eq!(serde_json::from_value::<Definition>(stored.clone()).unwrap().plan(), &late);
    let plan = stored.pointer_mut("/strategy/Hyperband/plan").unwrap().as_object_mut().unwrap();
    assert!(plan.remove("strictness").is_some() && plan.remove("by_evidence").is_some());
    let kept: Definition = serde_json::from_value(stored).unwrap();
    assert_eq!(kept.plan(), &late.with_strictness(0).without_evidence());

    let all = Plan::hyperband(1, 9, 3).unwrap().without_evidence();
    let definition = with(&all);
    let (given, fifth) = slow_starters(&definition);
    let low = [logged(90, job(fifth), 1, 0.05)];
    let verdict = format!("trial {fifth} is out at rung 0.0, epoch 1: 5 of 5");
    check(&definition, &given, &low, &[&verdict, &format!("stop {fifth}-0-1: rung 0")]);
}

/// Returns the facts of the trials from `first` on that logged these values as their second epoch, after 0.0.
fn second_epochs(first: u32, values: &[f64]) -> Vec<Recorded> {
    let trials = (first..).zip(values);
    trials
        .flat_map(|(trial, value)| [logged(10, job(trial), 1, 0.0), logged(11, job(trial), 2, *value)])
        .collect()
}

/// The running averages are half of the second values: 0.25, 0.3, 0.35, 0.4 and 0.45.
#[test]
fn the_median_rule_stops_a_trial_whose_best_value_is_worse_than_the_median_of_the_running_averages() {
    let given = || {
        let mut run = Run::new(&median(9, 9));
        run.take(&[submitted()]);
        run.take(&second_epochs(0, &[0.5, 0.6, 0.7, 0.8, 0.9]));
        run
    };
    let expect = ["trial 5 continues at rung 0.0, epoch 2: 3 of 6"];
    check_next(&mut given(), &second_epochs(5, &[0.36]), &expect);
    let expect = ["trial 5 is out at rung 0.0, epoch 2: 4 of 6", "stop 5-0-1: rung 0"];
    check_next(&mut given(), &second_epochs(5, &[0.34]), &expect);
}

#[test]
fn the_median_rule_compares_no_trial_with_fewer_than_five_others() {
    let mut run = Run::new(&median(9, 9));
    run.take(&[submitted()]);
    run.take(&second_epochs(0, &[0.9, 0.9, 0.9, 0.9]));
    check_next(&mut run, &second_epochs(4, &[0.1]), &["trial 4 continues at rung 0.0, epoch 2: 5 of 5"]);
}

#[test]
fn the_median_rule_stops_no_trial_of_a_flat_objective() {
    let mut run = Run::new(&median(9, 9));
    run.take(&[submitted()]);
    let flat = |trial| [logged(10, job(trial), 1, 0.5), logged(11, job(trial), 2, 0.5)];
    for trial in 0..8 {
        run.take(&flat(trial));
    }
    check_next(&mut run, &flat(8), &["trial 8 continues at rung 0.0, epoch 1: 1 of 9"]);
}
