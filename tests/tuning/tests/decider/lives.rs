//! The record of a job (state, times, end, interruptions) when its facts arrive in any order.

use tuning::job::Job;
use tuning::log::fact::JobEnd::{AlgorithmError, Completed, ServiceError, Stopped};
use tuning::log::fact::{Fact, JobEnd, JobPhase, Recorded};
use tuning::unit::time::{Millis, Time};

use crate::support::build::*;
use crate::support::check;
use crate::support::run::Run;

fn after(facts: &[Recorded]) -> Run {
    let mut run = Run::new(&random(9, 1));
    run.take(&[submitted()]);
    for fact in facts {
        run.take(std::slice::from_ref(fact));
    }
    run
}

fn job_after(facts: &[Recorded]) -> Job {
    after(facts).state.job(job(0)).unwrap().clone()
}

fn changed(
    seconds: i64,
    phase: JobPhase,
    times: (Option<Time>, Option<Time>),
    message: Option<&str>,
) -> Recorded {
    let message = message.map(str::to_owned);
    recorded(seconds, Fact::JobStateChanged { job: job(0), phase, started: times.0, ended: times.1, message })
}

/// Events have a resolution of one second. Two states of the same second are ordered by a job's usual life.
#[test]
fn states_of_the_same_second_follow_the_usual_order_of_a_job() {
    let order = [
        JobPhase::Other,
        JobPhase::Starting,
        JobPhase::Downloading,
        JobPhase::Training,
        JobPhase::Interrupted,
        JobPhase::Stopping,
        JobPhase::Uploading,
        JobPhase::Ended(Completed),
    ];
    for (index, earlier) in order.iter().enumerate() {
        for later in &order[index + 1..] {
            for pair in [[*earlier, *later], [*later, *earlier]] {
                let job = job_after(&pair.map(|reported| phase(5, job(0), reported)));
                assert_eq!(job.phase(), *later, "{pair:?}");
            }
        }
    }
}

#[test]
fn the_state_with_the_latest_time_is_current() {
    let job = job_after(&[phase(5, job(0), JobPhase::Training), phase(6, job(0), JobPhase::Starting)]);
    assert_eq!((job.phase(), job.phase_at()), (JobPhase::Starting, Some(at(6))));
}

#[test]
fn the_first_reported_end_of_a_job_is_final() {
    let facts =
        [ended(50, job(0), Stopped), phase(60, job(0), JobPhase::Training), ended(70, job(0), Completed)];
    let job = job_after(&facts);
    assert_eq!(
        (job.end(), job.phase_at(), job.phase()),
        (Some(Stopped), Some(at(50)), JobPhase::Ended(Stopped))
    );
}

#[test]
fn every_interruption_counts_once() {
    let interrupted = |seconds| phase(seconds, job(0), JobPhase::Interrupted);
    let facts = [
        interrupted(5),
        interrupted(5),
        phase(6, job(0), JobPhase::Training),
        interrupted(9),
        phase(8, job(0), JobPhase::Training),
    ];
    assert_eq!(job_after(&facts).interruptions(), 2);
}

#[test]
fn a_description_adds_interruptions_that_no_event_reported() {
    let described = |interruptions| {
        let fact = Fact::JobDescribed {
            job: job(0),
            end: Completed,
            started: None,
            ended: None,
            billable_seconds: 5,
            message: None,
            interruptions,
        };
        let run = after(&[phase(5, job(0), JobPhase::Interrupted), recorded(9, fact)]);
        run.concluded[0].interruptions
    };
    assert_eq!((described(3), described(0)), (3, 1));
}

#[test]
fn the_first_times_and_the_first_message_are_kept() {
    let facts = [
        changed(5, JobPhase::Training, (Some(at(4)), None), Some("slow")),
        changed(9, JobPhase::Uploading, (Some(at(8)), Some(at(9))), Some("slower")),
        changed(10, JobPhase::Uploading, (None, Some(at(10))), None),
    ];
    let job = job_after(&facts);
    assert_eq!(
        (job.started(), job.ended(), job.message.as_deref()),
        (Some(at(4)), Some(at(9)), Some("slow"))
    );
}

#[test]
fn every_sign_of_life_proves_that_the_job_exists() {
    let signs = [
        started(5, job(0)),
        phase(5, job(0), JobPhase::Starting),
        logged(5, job(0), 1, 0.5),
        ended(5, job(0), Completed),
    ];
    for sign in signs {
        let run = after(std::slice::from_ref(&sign));
        assert!(run.state.job(job(0)).unwrap().is_accepted(), "{sign:?}");
        // Facts that deny the start of an accepted job are ignored.
        check(&random(9, 1), &[submitted(), sign.clone()], &[never_started(9, job(0))], &[]);
        check(&random(9, 1), &[submitted(), sign], &[refused(9, job(0))], &[]);
    }
}

/// Another job has the name, so the signs were about that one.
#[test]
fn a_refusal_for_a_foreign_job_of_the_name_counts_in_spite_of_its_signs() {
    let fact = Fact::StartRefused { job: job(0), message: "it is foreign".to_owned(), name_is_foreign: true };
    let refusal = recorded(9, fact);
    let failed = "trial 0 failed: it is foreign";
    // The slot of a job that has ended is taken already.
    let signs = [
        (started(5, job(0)), vec![failed, "start 1-0-1"]),
        (phase(5, job(0), JobPhase::Training), vec![failed, "start 1-0-1"]),
        (ended(5, job(0), Completed), vec![failed]),
    ];
    for (sign, expect) in signs {
        check(&random(9, 1), &[submitted(), sign], std::slice::from_ref(&refusal), &expect);
    }
}

/// The actuator reports an accepted stop only of an ordered one. Without an order, such a fact has no effect, so it has
/// none when it comes again after the order.
#[test]
fn an_accepted_stop_proves_that_the_job_exists_and_counts_once() {
    let run = after(&[stop_requested(4), stop_accepted(5, job(0))]);
    assert!(run.state.job(job(0)).unwrap().is_accepted());
    let given = [submitted(), stop_requested(4), stop_accepted(5, job(0))];
    for later in [never_started(9, job(0)), refused(9, job(0)), stop_accepted(6, job(0))] {
        check(&random(9, 1), &given, &[later], &[]);
    }
    let run = after(&[stop_accepted(5, job(0))]);
    assert!(!run.state.job(job(0)).unwrap().is_accepted());
}

#[test]
fn facts_of_another_attempt_do_not_change_a_job() {
    let given = [submitted(), described(60, job(0), ServiceError, 5), described(95, job(1), Completed, 9)];
    // The second attempt runs, and the end of the first attempt arrives again.
    let run = check(&jobs(9, 1), &given, &[ended(60, job(0), AlgorithmError), started(97, job(0))], &[]);
    let job = run.state.job(attempt(0, 2)).unwrap();
    assert_eq!((job.end(), job.is_accepted()), (None, false));
    assert_eq!(run.state.job(attempt(0, 1)), None);
}

#[test]
fn a_zero_bill_settles_a_job_that_never_ran() {
    let run = after(&[phase(5, job(0), JobPhase::Starting), described(60, job(0), JobEnd::CapacityError, 0)]);
    assert_eq!((run.state.money.ledger.spent.0, run.concluded[0].billable_seconds), (0, Some(0)));
}

/// The job's instances ran, so a description with zero billed seconds came before the real bill.
#[test]
fn a_zero_bill_does_not_settle_a_job_that_ran() {
    let seen = changed(5, JobPhase::Training, (Some(at(4)), None), None);
    let run = after(&[seen, described(60, job(0), ServiceError, 0)]);
    assert_eq!((run.state.money.ledger.spent.0, run.concluded.len()), (0, 0));
    assert!(run.state.money.ledger.reserved.0 > 0);
}

#[test]
fn a_zero_bill_with_a_start_time_settles_the_job() {
    let fact = Fact::JobDescribed {
        job: job(0),
        end: ServiceError,
        started: Some(at(59)),
        ended: Some(at(59)),
        billable_seconds: 0,
        message: None,
        interruptions: 0,
    };
    let run = after(&[logged(5, job(0), 1, 0.5), recorded(60, fact)]);
    assert_eq!((run.state.money.ledger.spent.0, run.concluded.len()), (0, 1));
}

#[test]
fn a_bill_covers_all_instances_and_their_volumes() {
    let mut definition = random(9, 1);
    definition.job.instance_count = 3;
    definition.job.volume_gib = 30;
    definition.job.rate.as_mut().unwrap().volume_kilo_gib_hour = 120_000;
    // 3 x (100 + 30 x 120 / 3,600 = 1) micro-dollars a second.
    let run = check(
        &definition,
        &[submitted(), logged(10, job(0), 1, 0.5)],
        &[described(60, job(0), Completed, 50)],
        &["trial 0 completed", "start 1-0-1"],
    );
    assert_eq!(run.state.money.ledger.spent.0, 3 * 101 * 50);
    assert_eq!(run.state.money.ledger.reserved.0, 3 * 101 * (3_600 + 120 + 180));
}

#[test]
fn facts_of_a_job_at_another_rung_do_not_change_a_job() {
    let other = tuning::log::fact::JobKey { trial: TrialId(0), rung: RungId(1), attempt: 1 };
    let run = check(&random(9, 1), &[submitted()], &[started(5, other), ended(6, other, Completed)], &[]);
    assert!(!run.state.job(job(0)).unwrap().is_accepted());
    assert_eq!(run.state.job(other), None);
}

#[test]
fn a_job_is_known_from_its_first_sign_of_life_to_its_end() {
    let stage = |facts: &[Recorded]| {
        let job = job_after(facts);
        (job.awaits_start(), job.is_known())
    };
    assert_eq!(stage(&[]), (true, false));
    assert_eq!(stage(&[started(5, job(0))]), (false, true));
    assert_eq!(stage(&[started(5, job(0)), ended(9, job(0), Completed)]), (false, false));
}

/// Interruptions do not count against the limits of a job. Of two reported times, the decider takes the one with the
/// shorter interruption.
#[test]
fn an_interruption_that_two_sources_report_lasts_from_the_later_time() {
    let job = job_after(&[
        phase(10, job(0), JobPhase::Training),
        phase(20, job(0), JobPhase::Interrupted),
        phase(25, job(0), JobPhase::Interrupted),
        phase(60, job(0), JobPhase::Starting),
    ]);
    assert_eq!(job.run.trace().map(|trace| trace.idle), Some(Millis::from_seconds(35)));
}

#[test]
fn a_stored_job_has_no_field_for_what_did_not_happen() {
    let stored = |facts: &[Recorded]| serde_json::to_value(job_after(facts)).unwrap();
    let has = |job: &serde_json::Value, field| job["run"]["Known"].get(field).is_some();
    let quiet = stored(&[phase(5, job(0), JobPhase::Training)]);
    assert!(!has(&quiet, "idle") && !has(&quiet, "interruptions"), "{quiet}");
    let facts = [phase(5, job(0), JobPhase::Interrupted), phase(9, job(0), JobPhase::Training)];
    let interrupted = stored(&facts);
    assert!(has(&interrupted, "idle") && has(&interrupted, "interruptions"), "{interrupted}");
}
