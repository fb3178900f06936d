//! Trials whose objective is NaN or infinite.

use tuning::definition::{Definition, EpochRule, Scheduling};
use tuning::log::fact::JobEnd::{Completed, ServiceError, Stopped};
use tuning::log::fact::Recorded;

use crate::support::build::*;
use crate::support::run::Run;
use crate::support::{check, check_next};

/// Returns a tuning without rungs whose trials are stopped after so many epochs.
fn stopping(max_diverged_epochs: u32) -> Definition {
    set(random(9, 1), |settings| settings.max_diverged_epochs = max_diverged_epochs)
}

/// Returns the submission and one line an epoch, with or without a value, from the first epoch on.
fn log(finite: &[bool]) -> Vec<Recorded> {
    let lines = (1..).zip(finite).map(|(epoch, finite)| {
        let (at_s, n) = (i64::from(epoch) * 10, u64::try_from(epoch).unwrap());
        if *finite { logged(at_s, job(0), n, 0.5) } else { logged_nan(at_s, job(0), n) }
    });
    std::iter::once(submitted()).chain(lines).collect()
}

#[test]
fn a_trial_without_rungs_is_stopped_after_several_epochs_without_a_finite_value() {
    let given = log(&[true, false, false]);
    let expect = ["stop 0-0-1: diverged for 3 epochs"];
    let run = &mut check(&stopping(3), &given, &[logged_nan(40, job(0), 4)], &expect);
    check_next(
        run,
        &[described(60, job(0), Stopped, 60)],
        &["trial 0 stopped: diverged for 3 epochs", "start 1-0-1"],
    );
    let message = run.concluded[0].message.as_deref();
    assert_eq!(message, Some("stopped: the objective metric was NaN or infinite for 3 epochs in a row"));
}

#[test]
fn a_finite_value_between_starts_the_count_again() {
    check(&stopping(3), &log(&[false, false, true, false]), &[logged_nan(50, job(0), 5)], &[]);
}

#[test]
fn zero_never_stops_a_diverged_trial() {
    check(&stopping(0), &log(&[false; 7]), &[logged_nan(80, job(0), 8)], &[]);
}

#[test]
fn a_diverged_trial_whose_job_failed_is_not_tried_again() {
    // The job ended before its last line arrived.
    let given = [log(&[false]), vec![ended(30, job(0), ServiceError), logged_nan(20, job(0), 2)]].concat();
    let expect = ["trial 0 failed: the training job failed without a reason"];
    check(&stopping(2), &given, &[described(30, job(0), ServiceError, 30)], &expect);
}

/// With promotion and epochs that count from each start, the place of a line is known only at the end of its job. Found by
/// seed 1795431716766 of the simulator.
#[test]
fn regression_a_diverged_trial_is_stopped_although_the_epochs_of_its_lines_are_not_known_yet() {
    let definition = Definition { strategy: comparing(9, 27, 3), ..jobs(9, 1) };
    let definition = set(definition, |settings| settings.max_diverged_epochs = 3);
    let mut definition = promoting(definition, Scheduling::Asynchronous);
    definition.epochs = EpochRule { captured: true, base: 1, per_attempt: true, is_base_assumed: false };
    check(
        &definition,
        &log(&[true, false, false]),
        &[logged_nan(40, job(0), 4)],
        &["stop 0-0-1: diverged for 3 epochs"],
    );
}

#[test]
fn a_trial_that_diverges_below_its_level_arrives_without_a_value() {
    let definition = Definition { strategy: comparing(6, 18, 3), ..jobs(99, 1) };
    let mut run = Run::new(&promoting(definition, Scheduling::Asynchronous));
    run.take(&[submitted()]);
    run.take(&[logged(1, job(0), 1, 0.5)]);
    run.take(&[logged_nan(2, job(0), 2), logged_nan(3, job(0), 3), logged_nan(4, job(0), 4)]);
    run.take(&[described(9, job(0), Completed, 9)]);
    assert_eq!(run.state.search.cohorts[0].rungs[0].arrivals, [(TrialId(0), None)]);
}
