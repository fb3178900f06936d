//! Lack of capacity: no trial fails for it, no dollar and no training job is counted for it, and starts wait with one
//! probe at a time.

use tuning::decide::{deadline, must_fold_first};
use tuning::definition::Definition;
use tuning::log::fact::JobEnd::{CapacityError, Completed, MaxWait, Stopped};
use tuning::log::fact::{Fact, JobPhase, Recorded};
use tuning::log::reasons::EndReason;
use tuning::log::ruling::{NoticeOrder, Order, Ruling};
use tuning::state::Status;
use tuning::unit::ids::TrialId;
use tuning::unit::money::MicroUsd;

use crate::support::build::*;
use crate::support::run::Run;
use crate::support::{check, check_next};

const DAY: i64 = 86_400;

/// Returns a run with both slots occupied, whose jobs wait for instances.
fn two_jobs(definition: &Definition) -> Run {
    let mut run = Run::new(definition);
    check_next(&mut run, &[submitted()], &["start 0-0-1", "start 1-0-1"]);
    run
}

fn training(seconds: i64, key: tuning::log::fact::JobKey) -> Recorded {
    let fact = Fact::JobStateChanged {
        job: key,
        phase: JobPhase::Training,
        started: Some(at(seconds)),
        ended: None,
        message: None,
    };
    recorded(seconds, fact)
}

#[test]
fn no_other_trial_takes_the_slot_of_a_job_without_capacity() {
    let run = &mut two_jobs(&jobs(9, 2));
    // The bill is not known yet, but the slot is free.
    check_next(run, &[ended(60, job(0), CapacityError)], &["bill 0-0-1"]);
    check_next(run, &[described(60, job(0), CapacityError, 0)], &["retry after 0-0-1: Capacity, from 90"]);
    // The other job still waits for its instances: it is the probe.
    check_next(run, &[time_passed(90)], &[]);
    check_next(run, &[training(95, job(1))], &["start 0-0-2"]);
}

#[test]
fn one_probe_at_a_time_waits_twice_as_long_each_time() {
    let run = &mut two_jobs(&jobs(9, 2));
    for trial in 0..2 {
        run.take(&[described(60, job(trial), CapacityError, 0)]);
    }
    let mut seconds = 90;
    for (n, wait) in (2..).zip([60, 120, 240, 480, 960, 1_920, 3_600, 3_600]) {
        let rulings = run.take(&[time_passed(seconds)]);
        let text: Vec<_> = rulings.iter().map(crate::support::render::render).collect();
        assert!(
            text.contains(&format!("start 0-0-{n}")) && !text.iter().any(|t| t.starts_with("start 1")),
            "{text:?}"
        );
        let next = seconds + 60 + wait;
        let expect = format!("retry after 0-0-{n}: Capacity, from {next}");
        check_next(run, &[described(seconds + 60, attempt(0, n), CapacityError, 0)], &[&expect]);
        seconds = next;
    }
}

#[test]
fn the_hold_ends_when_a_job_gets_instances() {
    let run = &mut two_jobs(&jobs(9, 2));
    run.take(&[described(60, job(0), CapacityError, 0), described(61, job(1), CapacityError, 0)]);
    check_next(run, &[time_passed(91)], &["start 0-0-2"]);
    check_next(run, &[started(92, attempt(0, 2))], &[]);
    check_next(run, &[training(100, attempt(0, 2))], &["start 1-0-2"]);
    assert_eq!(run.state.capacity.lacks, []);
    // A fact from before the lack shows nothing about the present.
    let run = &mut two_jobs(&jobs(9, 2));
    run.take(&[described(60, job(0), CapacityError, 0)]);
    check_next(run, &[training(50, job(1))], &[]);
    assert!(!run.state.capacity.lacks.is_empty());
}

/// Today's promise of the six hours: no trial, no training job and no money is lost.
#[test]
fn an_outage_of_six_hours_costs_no_trial_no_job_and_no_dollar() {
    let definition = set(capped(jobs(4, 2), 4), |settings| settings.max_interruptions = 0);
    let run = &mut two_jobs(&definition);
    run.take(&[described(60, job(0), CapacityError, 0), described(61, job(1), CapacityError, 0)]);
    let mut seconds = 61;
    while seconds < 6 * 3_600 {
        let at = deadline(&run.definition, &run.state).unwrap();
        seconds = (at - CREATED).as_seconds();
        run.take(&[time_passed(seconds)]);
        let waiting: Vec<_> = run.state.jobs().map(|(key, _, _)| key).collect();
        for key in waiting {
            run.take(&[described(seconds + 60, key, CapacityError, 0)]);
        }
    }
    assert_eq!(run.state.trials.keys().copied().collect::<Vec<_>>(), [TrialId(0), TrialId(1)]);
    assert_eq!((run.state.results.launched, run.state.money.ledger.spent), (0, MicroUsd::ZERO));
    assert_eq!((run.state.results.counters.retryable_error, run.state.search.since_improved), (0, 0));
    assert_eq!(run.state.status, Status::Active);
    let attempts = run.state.trials[&TrialId(0)].attempts;
    assert!(attempts < 20, "{attempts} attempts");
}

#[test]
fn an_attempt_that_had_instances_counts_as_a_training_job() {
    let run = &mut two_jobs(&jobs(9, 2));
    run.take(&[described(60, job(0), CapacityError, 7), described(61, job(1), CapacityError, 0)]);
    assert_eq!((run.state.results.launched, run.state.results.counters.retryable_error), (1, 1));
    // Only an event showed its instances, and the service billed nothing.
    let run = &mut two_jobs(&jobs(9, 2));
    run.take(&[phase(20, job(0), JobPhase::Training), described(60, job(0), CapacityError, 0)]);
    assert_eq!((run.state.results.launched, run.state.results.counters.retryable_error), (2, 1));
    // A job that is stopped before it has instances does not count either.
    let run = &mut two_jobs(&jobs(9, 2));
    run.take(&[stop_requested(10)]);
    run.take(&[described(60, job(0), Stopped, 0)]);
    assert_eq!((run.state.results.launched, run.state.results.counters.stopped), (1, 0));
}

#[test]
fn an_expired_spot_wait_is_lack_of_capacity() {
    let mut definition = jobs(9, 1);
    definition.job.spot = true;
    definition.job.max_wait_seconds = Some(4_000);
    definition.settings.max_interruptions = 0;
    let when = [described(4_000, job(0), MaxWait, 0)];
    check(&definition, &[submitted()], &when, &["retry after 0-0-1: MaxWait, from 4030"]);
}

#[test]
fn a_long_lack_is_published_once() {
    let run = &mut two_jobs(&jobs(9, 2));
    run.take(&[described(60, job(0), CapacityError, 0), described(61, job(1), CapacityError, 0)]);
    check_next(run, &[time_passed(91)], &["start 0-0-2"]);
    check_next(run, &[time_passed(659)], &[]);
    check_next(run, &[time_passed(660)], &["capacity notice"]);
    check_next(
        run,
        &[described(700, attempt(0, 2), CapacityError, 0)],
        &["retry after 0-0-2: Capacity, from 760"],
    );
}

#[test]
fn a_tuning_without_capacity_ends_after_its_wait_by_the_sweeper_s_time() {
    let run = &mut two_jobs(&set(jobs(9, 2), |settings| settings.capacity_wait_seconds = 3_600));
    run.take(&[described(60, job(0), CapacityError, 0), described(61, job(1), CapacityError, 0)]);
    run.take(&[time_passed(91)]);
    run.take(&[time_passed(660)]);
    // A late fact with a later time does not end the wait; the sweeper's report does.
    check_next(run, &[started(4_000, attempt(0, 2))], &[]);
    check_next(run, &[time_passed(3_659)], &[]);
    assert_eq!(
        must_fold_first(&run.definition, &run.state, at(3_660)),
        [attempt(0, 2)],
        "its facts are folded first"
    );
    let expect = ["ending: NoCapacity", "stop 0-0-2: tuning ending", "trial 1 stopped: tuning ending"];
    check_next(run, &[time_passed(3_660)], &expect);
    let expect = ["trial 0 stopped: tuning ending", "ended: NoCapacity"];
    check_next(run, &[described(4_100, attempt(0, 2), Stopped, 0)], &expect);
    let failure = run.state.failure();
    assert!(failure.is_some_and(|why| why.contains("raise MaxCapacityWaitSeconds")), "{failure:?}");
}

#[test]
fn the_wait_does_not_count_while_a_job_has_instances() {
    let run = &mut two_jobs(&set(jobs(9, 2), |settings| settings.capacity_wait_seconds = 3_600));
    run.take(&[training(10, job(1)), described(60, job(0), CapacityError, 0)]);
    check_next(run, &[time_passed(90)], &["start 0-0-2"]);
    run.take(&[described(150, attempt(0, 2), CapacityError, 0)]);
    check_next(run, &[time_passed(3_660)], &["start 0-0-3"]);
    check_next(
        run,
        &[described(3_700, attempt(0, 3), CapacityError, 0)],
        &["retry after 0-0-3: Capacity, from 3820"],
    );
    // The clock has passed the wait, but it begins only with the end of the other job.
    run.take(&[logged(4_000, job(1), 9, 0.5)]);
    run.take(&[described(5_000, job(1), Completed, 4_990), time_passed(5_001)]);
    assert_eq!(run.state.status, Status::Active);
    run.take(&[time_passed(5_000 + 3_600)]);
    assert_ne!(run.state.status, Status::Active);
}

/// Only the end of a job was reported, after another job got no instances. The notice came ten minutes after that job,
/// although instances had been there since. Found by seed 1795397050133 of the simulator.
#[test]
fn regression_the_end_of_a_job_shows_that_it_had_instances() {
    let run = &mut two_jobs(&jobs(9, 2));
    run.take(&[described(60, job(0), CapacityError, 0)]);
    let fact = Fact::JobStateChanged {
        job: job(1),
        phase: JobPhase::Ended(Completed),
        started: Some(at(10)),
        ended: Some(at(70)),
        message: None,
    };
    run.take(&[recorded(70, fact)]);
    assert_eq!(run.state.capacity.lacks, []);
}

/// An interrupted job got instances again and completed; only its end was reported. The tuning ended for lack of
/// capacity less than its wait after that. Found by seed 1795610005229 of the simulator.
#[test]
fn regression_the_end_of_an_interrupted_job_shows_that_it_had_instances_again() {
    let run = &mut two_jobs(&jobs(9, 2));
    let state = |at_s, phase, ended| {
        let fact = Fact::JobStateChanged { job: job(1), phase, started: Some(at(10)), ended, message: None };
        recorded(at_s, fact)
    };
    run.take(&[state(10, JobPhase::Training, None)]);
    run.take(&[state(20, JobPhase::Interrupted, None)]);
    run.take(&[described(60, job(0), CapacityError, 0)]);
    run.take(&[state(70, JobPhase::Ended(Completed), Some(at(70)))]);
    assert_eq!(run.state.capacity.lacks, []);
}

#[test]
fn the_wait_does_not_count_while_starts_are_paused() {
    let run = &mut two_jobs(&set(jobs(9, 2), |settings| settings.capacity_wait_seconds = 3_600));
    run.take(&[described(60, job(0), CapacityError, 0), described(61, job(1), CapacityError, 0)]);
    run.take(&[paused(70, true)]);
    run.take(&[time_passed(9_000)]);
    assert_eq!(run.state.status, Status::Active);
    run.take(&[paused(9_010, false)]);
    run.take(&[time_passed(9_011)]);
    assert_eq!(run.state.status, Status::Active);
    run.take(&[time_passed(9_010 + 3_600)]);
    assert_ne!(run.state.status, Status::Active);
}

/// The cap was lowered in an outage, so that no waiting trial could continue. The tuning ended as failed after five of
/// them. Found by seed 1795670002724 of the simulator.
#[test]
fn regression_trials_that_never_ran_do_not_fail_a_tuning() {
    let run = &mut Run::new(&capped(jobs(20, 6), 6));
    run.take(&[submitted()]);
    run.take(&(0..6).map(|trial| described(60, job(trial), CapacityError, 0)).collect::<Vec<_>>());
    let lowered = Fact::LimitsChanged { cap: Some(MicroUsd(1)), max_parallel: None, paused: None };
    run.take(&[recorded(70, lowered)]);
    assert_eq!(
        run.rulings.last(),
        Some(&Ruling::Order(Order::Notice(NoticeOrder::TuningEnded { why: EndReason::CostCap })))
    );
}

#[test]
fn a_refit_without_capacity_ends_after_the_wait() {
    let mut definition = Definition { refit: true, ..jobs(100, 1) };
    definition.limits.target = Some(0.7);
    let mut run = Run::new(&definition);
    for fact in [submitted(), logged(10, job(0), 3, 0.75), described(20, job(0), Completed, 10)] {
        run.take(&[fact]);
    }
    check_next(
        &mut run,
        &[described(30, job(1), CapacityError, 0)],
        &["retry after 1-0-1: Capacity, from 60"],
    );
    run.take(&[time_passed(631)]);
    let last = run.state.jobs().map(|(key, _, _)| key).next().unwrap();
    run.take(&[described(700, last, CapacityError, 0)]);
    let expect = ["trial 1 stopped: tuning ending", "ended: Target"];
    check_next(&mut run, &[time_passed(30 + DAY)], &expect);
}
