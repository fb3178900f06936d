//! What the sampler learns from the end of a trial.

use search::{Origin, SamplerKind};
use tuning::definition::Definition;
use tuning::log::fact::JobEnd::{self, AlgorithmError, Completed, ServiceError, Stopped};
use tuning::log::ruling::{Order, Ruling};

use crate::support::build::*;
use crate::support::check_next;
use crate::support::run::Run;

/// Returns a begun tuning whose sampler learns, and in which no job is retried.
fn learning(definition: Definition) -> Run {
    let definition = set(definition, |settings| settings.max_interruptions = 0);
    let mut run = Run::new(&Definition { sampler: SamplerKind::Model, ..definition });
    run.take(&[submitted()]);
    run
}

/// What the sampler knows of a trial that has ended.
#[derive(Debug, PartialEq)]
enum Known {
    Nothing,
    /// Its configuration is bad.
    Bad,
    /// Its best value.
    Best(f64),
}

fn learned(run: &Run, trial: u32) -> Known {
    match run.state.search.history.get(trial).map(|seen| seen.best) {
        None => Known::Nothing,
        Some(None) => Known::Bad,
        Some(Some(best)) => Known::Best(best),
    }
}

/// Returns what the sampler learns from a trial whose job logs a value and ends.
fn after_value(end: JobEnd) -> Known {
    let mut run = learning(random(9, 1));
    run.take(&[logged(10, job(0), 1, 0.5)]);
    run.take(&[described(20, job(0), end, 9)]);
    learned(&run, 0)
}

#[test]
fn the_values_of_a_trial_count_unless_its_program_failed() {
    assert_eq!(after_value(Completed), Known::Best(0.5));
    assert_eq!(after_value(AlgorithmError), Known::Bad);
    assert_eq!(after_value(ServiceError), Known::Best(0.5), "the service failed, and not the configuration");
}

#[test]
fn a_failed_trial_without_a_value_shows_only_what_its_program_did() {
    let mut run = learning(random(9, 3));
    run.take(&[described(20, job(0), AlgorithmError, 9)]);
    run.take(&[described(21, job(1), ServiceError, 9)]);
    run.take(&[never_started(22, job(2))]);
    assert_eq!([0, 1, 2].map(|trial| learned(&run, trial)), [Known::Bad, Known::Nothing, Known::Nothing]);
}

#[test]
fn a_trial_that_a_rung_stops_for_values_that_are_not_finite_is_bad_whatever_it_had_before() {
    let mut run = learning(jobs(4, 4));
    run.take(&[logged(10, job(0), 1, 0.5), logged(11, job(0), 2, 0.4)]);
    run.take(&[logged_nan(12, job(0), 3), logged_nan(13, job(0), 4)]);
    let expect = ["trial 0 is out at rung 0.1, epoch 5: 1 of 1", "stop 0-0-1: rung 1"];
    check_next(&mut run, &[logged_nan(14, job(0), 5)], &expect);
    let expect = ["trial 2 is out at rung 0.0, epoch 1: 2 of 2", "stop 2-0-1: rung 0"];
    check_next(&mut run, &[logged(15, job(2), 1, 0.4)], &expect);
    run.take(&[described(20, job(0), Stopped, 9), described(21, job(2), Stopped, 9)]);
    assert_eq!(learned(&run, 0), Known::Bad);
    assert_eq!(learned(&run, 2), Known::Best(0.4), "it is only worse than another");
}

/// The least distance of the next configuration depends on the curves of these trials.
#[test]
fn the_sampler_knows_which_configurations_its_model_drew() {
    let mut run = learning(random(12, 1));
    for trial in 0..12 {
        let at = i64::from(trial) * 10;
        run.take(&[logged(at, job(trial), 1, f64::from(trial % 5))]);
        run.take(&[described(at + 5, job(trial), Completed, 5)]);
    }
    let mut drawn = Vec::new();
    for ruling in &run.rulings {
        if let Ruling::Order(Order::Start { job, origin, .. }) = ruling {
            let by_model = matches!(origin, Some(Origin::Model { .. }));
            let known = run.state.search.history.get(job.trial.0).map(|seen| seen.by_model);
            assert_eq!(known, Some(by_model), "trial {}", job.trial);
            drawn.push(by_model);
        }
    }
    assert!(drawn.contains(&true) && drawn.contains(&false), "{drawn:?}");
}
