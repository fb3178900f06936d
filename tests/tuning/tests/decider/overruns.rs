//! Jobs that last longer than their reservation pays for, although their own limits should have ended them.
//!
//! Promise quoted: "P1 spent + reserved <= cap at every step", except what AWS bills beyond a stop that was ordered in
//! time.

use tuning::decide::deadline;
use tuning::decide::job_seen_due_at;
use tuning::definition::{Allowances, Definition};
use tuning::log::fact::JobEnd::{Completed, Stopped};
use tuning::log::fact::{Fact, JobKey, JobPhase, Recorded};
use tuning::unit::money::MicroUsd;

use crate::support::build::*;
use crate::support::check_next;
use crate::support::run::Run;

/// Returns that a job, billed since `started`, is in a phase.
fn in_phase(seconds: i64, job: JobKey, phase: JobPhase, started: i64) -> Recorded {
    let (started, ended) = (Some(at(started)), None);
    recorded(seconds, Fact::JobStateChanged { job, phase, started, ended, message: None })
}

/// Returns a run whose first jobs are billed since 5 s after the submission.
fn running(definition: &Definition, jobs: u32) -> Run {
    let mut run = Run::new(definition);
    run.take(&[submitted()]);
    for number in 0..jobs {
        run.take(&[in_phase(5, job(number), JobPhase::Training, 5)]);
    }
    run
}

/// Its limit of 3,600 s and the allowance of 60 s for its start are over in the sweep after 3,605 s.
#[test]
fn a_job_is_stopped_while_its_reservation_still_pays_for_the_stop() {
    let mut run = running(&capped(random(9, 1), 1), 1);
    assert_eq!(deadline(&run.definition, &run.state), Some(at(5 + 3_600)));
    check_next(&mut run, &[time_passed(3_604)], &[]);
    check_next(&mut run, &[time_passed(3_605)], &["stop 0-0-1: reservation used at 3600 s"]);
    let expect = ["bill 0-0-1"];
    check_next(&mut run, &[ended(3_700, job(0), Stopped)], &expect);
    let expect = ["trial 0 ran out of time"];
    let made = run.take(&[described(3_700, job(0), Stopped, 3_695)]);
    assert_eq!(crate::support::render::render(&made[0]), expect[0]);
}

/// A local tuning is interrupted by its user and continued a day later.
#[test]
fn an_interruption_uses_up_no_reservation() {
    let mut run = running(&capped(random(9, 1), 1), 1);
    let day = 86_400;
    check_next(&mut run, &[phase(100, job(0), JobPhase::Interrupted), time_passed(day)], &[]);
    check_next(&mut run, &[phase(day + 100, job(0), JobPhase::Starting)], &[]);
    let stop = 5 + 3_600 + day;
    assert_eq!(deadline(&run.definition, &run.state), Some(at(stop)));
    check_next(&mut run, &[phase(day + 110, job(0), JobPhase::Training), time_passed(stop - 1)], &[]);
    check_next(&mut run, &[time_passed(stop)], &["stop 0-0-1: reservation used at 3600 s"]);
    let expect = ["extend 0-0-1 to 4140 s: 24000", "overrun notice"];
    check_next(&mut run, &[seen(stop + 300, job(0))], &expect);
}

#[test]
fn a_longer_allowance_for_the_start_is_reserved_and_stops_a_job_later() {
    let mut definition = random(9, 1);
    definition.job.allowances = Allowances { startup_seconds: 660, upload_seconds: 1_000 };
    definition.cap = Some(MicroUsd((3_600 + 660 + 120 + 1_000) * SECOND));
    let run = running(&definition, 1);
    assert_eq!(run.state.money.ledger.reserved, definition.cap.unwrap());
    assert_eq!(deadline(&run.definition, &run.state), Some(at(5 + 3_600 + 600)));
    definition.cap = definition.cap.map(|cap| cap.minus(MicroUsd(1)));
    assert_eq!(running(&definition, 0).state.results.launched, 0, "the cap pays for no job");
}

/// Rows of earlier versions have no allowances.
#[test]
fn a_stored_definition_has_its_allowances_only_if_they_are_not_the_usual_ones() {
    let stored = |allowances: Allowances| {
        let mut definition = random(9, 1);
        definition.job.allowances = allowances;
        let row = serde_json::to_value(&definition).unwrap();
        let read: Definition = serde_json::from_value(row.clone()).unwrap();
        assert_eq!(read.job.allowances, allowances);
        row["job"].get("allowances").is_some()
    };
    assert!(!stored(Allowances::usual()));
    assert!(stored(Allowances { upload_seconds: 1_000, ..Allowances::usual() }));
}

/// A stop would only lose the model.
#[test]
fn a_job_that_uploads_its_model_is_not_stopped() {
    let mut run = running(&capped(random(9, 1), 1), 1);
    run.take(&[in_phase(3_500, job(0), JobPhase::Uploading, 5)]);
    check_next(&mut run, &[time_passed(3_800)], &[]);
}

#[test]
fn without_a_cap_the_own_limits_of_a_job_are_enough() {
    let mut run = running(&random(9, 1), 1);
    check_next(&mut run, &[time_passed(3_800), seen(4_000, job(0))], &[]);
    assert_eq!(run.state.money.ledger.reserved, MicroUsd(WORST_CASE));
}

/// Its limit was shorter than the user's: it is tried again like one that SageMaker ended.
#[test]
fn a_trial_whose_cut_job_used_its_reservation_up_is_tried_again() {
    let definition = Definition { cap: Some(MicroUsd(3 * WORST_CASE)), ..jobs(9, 1) };
    let mut run = running(&definition, 1);
    let epochs = (1..=9).map(|epoch| logged(5 + 10 * i64::try_from(epoch).unwrap(), job(0), epoch, 0.5));
    run.take(&epochs.collect::<Vec<_>>());
    run.take(&[ended(100, job(0), Completed), described(100, job(0), Completed, 95)]);
    let limit = i64::try_from(run.state.job(job(1)).unwrap().order.limits.max_runtime_seconds).unwrap();
    assert!(limit < 3_600, "{limit}");
    run.take(&[in_phase(110, job(1), JobPhase::Training, 110), time_passed(110 + limit)]);
    run.take(&[ended(200 + limit, job(1), Stopped)]);
    let made = run.take(&[described(200 + limit, job(1), Stopped, 100)]);
    let words: Vec<String> = made.iter().map(crate::support::render::render).collect();
    assert!(words[0].starts_with("retry after 1-0-1: RuntimeCutTooShort"), "{words:?}");
}

#[test]
fn a_job_that_is_seen_past_its_reservation_reserves_the_minutes_to_come() {
    let mut run = running(&capped(random(9, 1), 2), 1);
    run.take(&[time_passed(3_605), seen(3_700, job(0))]);
    let due = job_seen_due_at(&run.definition, &run.state, run.state.job(job(0)).unwrap());
    assert_eq!(due, Some(at(5 + 3_900)), "the sweeper reports it once its reservation is over");
    check_next(&mut run, &[seen(3_904, job(0))], &[]);
    let expect = ["extend 0-0-1 to 4140 s: 24000", "overrun notice"];
    check_next(&mut run, &[seen(3_905, job(0))], &expect);
    assert_eq!(run.state.money.ledger.reserved, MicroUsd(WORST_CASE + 240 * SECOND));
    let due = job_seen_due_at(&run.definition, &run.state, run.state.job(job(0)).unwrap());
    assert_eq!(due, Some(at(5 + 4_140)));
    // The next five percent of a day.
    check_next(&mut run, &[seen(86_405, job(0))], &["extend 0-0-1 to 90720 s: 8658000"]);
}

/// It may have been deleted, or the fact of its end is late.
#[test]
fn time_alone_extends_no_reservation() {
    let mut run = running(&capped(random(9, 1), 2), 1);
    run.take(&[time_passed(3_605)]);
    check_next(&mut run, &[time_passed(5_000)], &[]);
    assert_eq!(run.state.money.ledger.reserved, MicroUsd(WORST_CASE));
}

/// What one job cost more, later ones can cost too.
#[test]
fn the_excess_of_an_extended_job_is_reserved_with_every_later_job() {
    let mut run = running(&capped(random(9, 1), 3), 1);
    run.take(&[time_passed(3_605), seen(3_905, job(0))]);
    run.take(&[ended(4_105, job(0), Stopped)]);
    run.take(&[described(4_105, job(0), Stopped, 4_100)]);
    let ledger = &run.state.money.ledger;
    assert_eq!(ledger.spent, MicroUsd(4_100 * SECOND));
    assert_eq!(ledger.margin, MicroUsd(200 * SECOND));
    assert_eq!(ledger.reserved, MicroUsd((3_900 + 200) * SECOND), "the next job reserves it");
}

/// Three jobs of one hour use the cap up. The first one uploads its model for hours.
#[test]
fn the_youngest_other_jobs_stop_while_the_cap_does_not_pay_for_an_overrun() {
    let mut run = running(&capped(random(9, 3), 3), 1);
    run.take(&[in_phase(100, job(0), JobPhase::Uploading, 5)]);
    run.take(&[in_phase(3_000, job(1), JobPhase::Training, 3_000)]);
    run.take(&[in_phase(3_500, job(2), JobPhase::Training, 3_500)]);
    // 240 s more are needed. Job 2 has run for 405 s: its stop saves 3,900 - 405 - 240 s.
    let expect = ["extend 0-0-1 to 4140 s: 24000", "overrun notice", "stop 2-0-1: cap exceeded by 0-0-1"];
    check_next(&mut run, &[time_passed(3_905), seen(3_905, job(0))], &expect);
    check_next(&mut run, &[time_passed(4_145), seen(4_145, job(0))], &["extend 0-0-1 to 4380 s: 24000"]);
    // 2,394 s more than reserved: the stop of job 1 after 3,000 s saves money too.
    let expect = ["extend 0-0-1 to 6294 s: 191400", "stop 1-0-1: cap exceeded by 0-0-1"];
    check_next(&mut run, &[seen(6_000, job(0))], &expect);
}

/// No stop ends an upload early.
#[test]
fn another_job_that_uploads_its_model_is_not_stopped_for_an_overrun() {
    let mut run = running(&capped(random(9, 2), 2), 1);
    run.take(&[in_phase(100, job(0), JobPhase::Uploading, 5)]);
    run.take(&[in_phase(3_000, job(1), JobPhase::Uploading, 2_000)]);
    let expect = ["extend 0-0-1 to 4140 s: 24000", "overrun notice"];
    check_next(&mut run, &[seen(3_905, job(0))], &expect);
}

/// The stop of one job saves more than the overrun takes; the rest is above the cap because the user lowered it.
#[test]
fn an_overrun_after_a_lowered_cap_stops_only_what_it_takes_itself() {
    let mut run = running(&capped(random(9, 3), 3), 1);
    run.take(&[in_phase(100, job(0), JobPhase::Uploading, 5)]);
    for number in 1..3 {
        run.take(&[in_phase(3_000, job(number), JobPhase::Training, 3_000)]);
    }
    let cap = Some(MicroUsd(WORST_CASE));
    run.take(&[recorded(3_100, Fact::LimitsChanged { cap, max_parallel: None, paused: None })]);
    let expect = ["extend 0-0-1 to 4140 s: 24000", "overrun notice", "stop 2-0-1: cap exceeded by 0-0-1"];
    check_next(&mut run, &[seen(3_905, job(0))], &expect);
}

/// Facts arrive while no sweep runs: the job is stopped for its own time, and never for its own cost.
#[test]
fn a_job_is_stopped_in_time_also_without_a_sweep() {
    let mut run = running(&capped(random(9, 1), 1), 1);
    check_next(&mut run, &[logged(3_604, job(0), 1, 0.5)], &[]);
    check_next(&mut run, &[logged(3_605, job(0), 2, 0.5)], &["stop 0-0-1: reservation used at 3600 s"]);
    let expect = ["extend 0-0-1 to 4140 s: 24000", "overrun notice"];
    check_next(&mut run, &[logged(3_905, job(0), 3, 0.5)], &expect);
}

/// Nothing is reserved for it that a sign of life could raise.
#[test]
fn regression_without_a_cap_a_long_job_is_seen_a_few_times_an_hour_only() {
    let run = running(&random(9, 1), 1);
    let due = job_seen_due_at(&run.definition, &run.state, run.state.job(job(0)).unwrap());
    assert_eq!(due, Some(at(5 + 3_750)));
}

#[test]
fn a_cap_that_the_user_lowered_stops_no_job() {
    let mut run = running(&capped(random(9, 3), 4), 3);
    let cap = Some(MicroUsd(WORST_CASE));
    run.take(&[recorded(50, Fact::LimitsChanged { cap, max_parallel: None, paused: None })]);
    check_next(&mut run, &[time_passed(60)], &[]);
}

#[test]
fn a_stop_for_an_overrun_names_the_job_that_is_past_its_reservation() {
    let mut run = running(&capped(random(9, 2), 2), 0);
    run.take(&[in_phase(100, job(1), JobPhase::Uploading, 5)]);
    run.take(&[in_phase(3_000, job(0), JobPhase::Training, 3_000)]);
    let expect = ["extend 1-0-1 to 4140 s: 24000", "overrun notice", "stop 0-0-1: cap exceeded by 1-0-1"];
    check_next(&mut run, &[seen(3_905, job(1))], &expect);
}

/// A stop would come too late to free any of its reservation.
#[test]
fn a_job_that_has_used_its_reservation_up_is_not_stopped_for_another() {
    let mut run = running(&capped(random(9, 2), 2), 2);
    run.take(&[in_phase(100, job(0), JobPhase::Uploading, 5)]);
    run.take(&[in_phase(3_600, job(1), JobPhase::Stopping, 5)]);
    let expect = ["extend 0-0-1 to 4140 s: 24000", "overrun notice"];
    check_next(&mut run, &[seen(3_905, job(0))], &expect);
}

/// The pool is kept after the job, however long that lasts.
#[test]
fn an_extended_job_keeps_the_reservation_of_its_pool() {
    let mut definition = capped(random(9, 1), 2);
    definition.job.keep_alive_seconds = 600;
    let mut run = running(&definition, 1);
    run.take(&[time_passed(3_605)]);
    let expect = ["extend 0-0-1 to 4140 s: 24000", "overrun notice"];
    check_next(&mut run, &[seen(3_905, job(0))], &expect);
    assert_eq!(run.state.money.ledger.reserved, MicroUsd((4_140 + 660) * SECOND));
}
