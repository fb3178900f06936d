//! The order of job starts, and their limits.

use std::slice::from_ref;

use search::{Configuration, Origin, SamplerKind};
use tuning::log::fact::JobEnd::{Completed, ServiceError};
use tuning::log::ruling::{Order, Ruling};
use tuning::state::State;

use crate::support::build::*;
use crate::support::run::Run;
use crate::support::{check, check_next};

#[test]
fn no_job_is_ordered_before_the_submission() {
    check(&hyperband(), &[], &[time_passed(5)], &[]);
}

#[test]
fn the_first_jobs_start_in_order_of_trial_up_to_the_parallel_limit() {
    check(&jobs(100, 3), &[], &[submitted()], &["start 0-0-1", "start 1-0-1", "start 2-0-1"]);
}

#[test]
fn trials_join_brackets_in_proportion_to_the_plan() {
    let mut run = Run::new(&jobs(17, 17));
    let rulings = run.take(&[submitted()]);
    let brackets: Vec<u32> = rulings.iter().filter_map(bracket).collect();
    assert_eq!(brackets, [0, 1, 0, 0, 2, 1, 0, 0, 1, 0, 2, 0, 1, 0, 0, 1, 2]);
    assert_eq!(run.state.search.joined, [9, 5, 3], "one full set matches the plan");
}

fn bracket(ruling: &Ruling) -> Option<u32> {
    if let Ruling::Order(Order::Start { bracket, .. }) = ruling { Some(bracket.0) } else { None }
}

#[test]
fn a_trial_has_the_configuration_of_its_number_and_the_seed() {
    let definition = jobs(2, 2);
    let mut run = Run::new(&definition);
    for ruling in run.take(&[submitted()]) {
        let Ruling::Order(Order::Start { job, configuration, .. }) = ruling else { panic!("{ruling:?}") };
        assert_eq!(configuration, State::new(&definition).draw(&definition, job.trial).configuration);
    }
}

#[test]
fn the_sampler_draws_a_configuration_from_the_seed_and_the_trial() {
    let definition = jobs(2, 2);
    let configuration = |trial| State::new(&definition).draw(&definition, TrialId(trial)).configuration;
    assert_ne!(configuration(0), configuration(1));
    let names: Vec<String> = configuration(0).0.into_keys().collect();
    assert_eq!(names, ["depth", "rate"]);
}

#[test]
fn the_first_trials_have_the_initial_configurations_and_drawn_values_for_the_rest() {
    let configuration = |values: &[(&str, &str)]| {
        Configuration(values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    };
    for sampler in [SamplerKind::Random, SamplerKind::Sobol, SamplerKind::Model] {
        let mut definition = jobs(3, 3);
        definition.sampler = sampler;
        let drawn = |trial| State::new(&definition).draw(&definition, TrialId(trial));
        let (second, third) = (drawn(1).configuration, drawn(2));
        definition.initial =
            vec![configuration(&[("depth", "3"), ("rate", "0.01")]), configuration(&[("depth", "7")])];
        let mut run = Run::new(&definition);
        let started: Vec<_> = run
            .take(&[submitted()])
            .into_iter()
            .map(|ruling| {
                let Ruling::Order(Order::Start { configuration, origin, .. }) = ruling else {
                    panic!("{ruling:?}")
                };
                (configuration, origin)
            })
            .collect();
        let rate = second.get("rate").unwrap();
        let recorded = (sampler == SamplerKind::Model).then_some(third.origin);
        assert_eq!(
            started,
            [
                (configuration(&[("depth", "3"), ("rate", "0.01")]), Some(Origin::Initial)),
                (configuration(&[("depth", "7"), ("rate", rate)]), Some(Origin::Initial)),
                (third.configuration, recorded),
            ]
        );
    }
}

#[test]
fn a_retried_trial_keeps_its_initial_configuration() {
    let mut definition = jobs(9, 1);
    definition.initial = vec![Configuration([("depth".to_owned(), "5".to_owned())].into())];
    let mut run = Run::new(&definition);
    run.take(&[submitted()]);
    let first = run.state.trials[&TrialId(0)].configuration.clone();
    assert_eq!(first.get("depth"), Some("5"));
    run.take(&[described(60, job(0), ServiceError, 0)]);
    run.take(&[time_passed(95), described(96, job(1), Completed, 9)]);
    assert_eq!(run.state.trials[&TrialId(0)].attempts, 2, "the second attempt runs");
    assert_eq!(run.state.trials[&TrialId(0)].configuration, first);
}

#[test]
fn a_slot_is_free_when_its_job_has_ended_before_its_bill() {
    let given = [submitted(), started(1, job(0))];
    let run =
        &mut check(&random(9, 1), &given, &[ended(60, job(0), Completed)], &["bill 0-0-1", "start 1-0-1"]);
    check_next(run, &[described(60, job(0), Completed, 50)], &["trial 0 completed"]);
}

#[test]
fn a_stop_does_not_free_the_slot_before_the_job_has_ended() {
    let mut definition = jobs(9, 1);
    definition.limits.max_parallel = 1;
    let given = [submitted(), started(1, job(0)), logged(10, job(0), 9, 0.5)];
    check(&definition, &given, &[stop_accepted(11, job(0))], &[]);
}

#[test]
fn instances_of_running_jobs_stay_within_their_limit() {
    let mut definition = jobs(9, 4);
    definition.job.instance_count = 2;
    definition.limits.max_instances = Some(5);
    check(&definition, &[], &[submitted()], &["start 0-0-1", "start 1-0-1"]);
}

#[test]
fn launched_jobs_stay_within_max_jobs() {
    let given = [submitted(), ended(60, job(0), Completed)];
    let when = [described(60, job(0), Completed, 50)];
    let run = &mut check(&random(2, 1), &given, &when, &["trial 0 completed"]);
    check_next(run, &[ended(90, job(1), Completed)], &["bill 1-0-1"]);
    // No job logged a value, so the tuning fails.
    check_next(run, &[described(90, job(1), Completed, 50)], &["trial 1 completed", "ended: Failed"]);
}

#[test]
fn a_refused_start_frees_its_slot_and_does_not_count_as_launched() {
    let given = [submitted()];
    let expect = ["trial 0 failed: no such role", "start 1-0-1"];
    let run = check(&random(1, 1), &given, &[refused(5, job(0))], &expect);
    assert_eq!(run.state.results.launched, 1);
}

#[test]
fn five_refused_starts_in_a_row_fail_the_tuning() {
    let mut given = vec![submitted()];
    given.extend((0..4).map(|trial| refused(i64::from(trial) + 1, job(trial))));
    let expect = ["trial 4 failed: no such role", "ending: Failed", "ended: Failed"];
    let run = check(&random(9, 1), &given, &[refused(9, job(4))], &expect);
    let message = format!("{:?}", run.state.status);
    assert!(
        message.contains("the training service refused 5 training jobs in a row. Last error: no such role"),
        "{message}"
    );
}

#[test]
fn a_job_that_runs_resets_the_count_of_refused_starts() {
    let mut given = vec![submitted()];
    given.extend((0..4).map(|trial| refused(i64::from(trial) + 1, job(trial))));
    given.extend([logged(10, job(4), 1, 0.5), described(60, job(4), Completed, 50)]);
    check(&random(9, 1), &given, &[refused(70, job(5))], &["trial 5 failed: no such role", "start 6-0-1"]);
}

#[test]
fn a_job_that_never_started_frees_its_slot_its_count_and_its_reservation() {
    let definition = capped(random(1, 1), 1);
    let expect = ["trial 0 never started", "start 1-0-1"];
    let run = check(&definition, &[submitted()], &[never_started(700, job(0))], &expect);
    assert_eq!((run.state.results.launched, run.state.money.ledger.reserved.0), (1, WORST_CASE));
}

#[test]
fn a_cancellation_or_refusal_of_a_started_job_changes_nothing() {
    let given = [submitted(), started(1, job(0))];
    check(&random(2, 1), &given, &[never_started(5, job(0)), refused(6, job(0))], &[]);
}

#[test]
fn a_deferred_start_delays_further_starts_until_its_deadline() {
    let given = [submitted(), deferred(1, job(0), 60), deferred(2, job(1), 90)];
    let run = &mut check(&random(9, 2), &given, &[never_started(50, job(0))], &["trial 0 never started"]);
    check_next(run, &[time_passed(89)], &[]);
    assert_eq!(tuning::decide::deadline(&run.definition, &run.state), Some(at(90)));
    check_next(run, &[time_passed(90)], &["start 2-0-1"]);
}

#[test]
fn a_deferred_start_keeps_its_slot_and_starts_late() {
    let run = &mut check(&random(9, 1), &[submitted()], &[deferred(1, job(0), 60)], &[]);
    check_next(run, &[time_passed(61)], &[]);
    check_next(run, &[started(62, job(0)), deferred(1, job(0), 60)], &[]);
    assert!(run.state.job(job(0)).unwrap().is_accepted());
}

#[test]
fn rulings_above_the_limit_of_a_step_follow_in_the_next_step() {
    let mut run = Run::new(&random(200, 100));
    let rulings = run.take(from_ref(&submitted()));
    assert_eq!((rulings.len(), run.steps), (100, 2));
}

#[test]
fn facts_above_the_limit_of_a_step_are_taken_by_the_next_step() {
    let given: Vec<_> =
        std::iter::once(submitted()).chain((0..100).map(|trial| started(1, job(trial)))).collect();
    let mut run = Run::new(&random(100, 100));
    run.take(from_ref(&submitted()));
    let before = run.steps;
    run.take(&given);
    assert_eq!(run.steps - before, 2);
}

#[test]
fn running_jobs_may_use_the_whole_instance_limit() {
    let mut definition = jobs(9, 4);
    definition.job.instance_count = 2;
    definition.limits.max_instances = Some(4);
    check(&definition, &[], &[submitted()], &["start 0-0-1", "start 1-0-1"]);
}

/// Trials that never start use up numbers. Without a bound, a tuning whose starts are all cancelled would never end.
#[test]
fn trial_numbers_end_at_twice_the_largest_number_of_jobs() {
    let mut run = Run::new(&random(9, 3));
    (run.state.search.next_trial, run.state.search.joined) = (TrialId(19_999), vec![19_999]);
    check_next(&mut run, &[submitted()], &["start 19999-0-1"]);
}

#[test]
fn a_cap_below_one_job_ends_the_tuning_before_its_first_job() {
    let mut definition = capped(random(9, 4), 1);
    definition.cap = definition.cap.map(|cap| cap.minus(tuning::unit::money::MicroUsd(1)));
    // No job ran, so the tuning has not failed.
    check(&definition, &[], &[submitted()], &["notice: 100 % of the cap", "ended: CostCap"]);
}
