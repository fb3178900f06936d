//! The tail of a job: from its last epoch, through the save of its model, to its end.

use tuning::decide::deadline;
use tuning::definition::{Definition, Silence};
use tuning::log::fact::JobEnd::{Completed, MaxRuntime, Stopped};
use tuning::log::fact::{Fact, JobKey, JobPhase, Recorded};
use tuning::log::ruling::{Order, Ruling};
use tuning::unit::time::Millis;

use crate::support::build::*;
use crate::support::run::Run;
use crate::support::{check, check_next};

/// Returns the end of a job that ran from `from` to `to`.
fn ran(from: i64, to: i64, job: JobKey, end: tuning::log::fact::JobEnd) -> Recorded {
    let mut recorded = described(to, job, end, u64::try_from(to - from).unwrap());
    if let Fact::JobDescribed { started, .. } = &mut recorded.fact {
        *started = Some(at(from));
    }
    recorded
}

/// Plays jobs one after another, each with a tail of `tail` seconds after its last epoch. Returns the time.
fn complete(run: &mut Run, trials: std::ops::Range<u32>, tail: i64) -> i64 {
    let mut now = 0;
    for trial in trials {
        for epoch in 1..=9 {
            // Each trial is better than all before.
            run.take(&[logged(
                now + i64::try_from(epoch).unwrap() * 10,
                job(trial),
                epoch,
                f64::from(trial),
            )]);
        }
        run.take(&[ran(now, now + 90 + tail, job(trial), Completed)]);
        now += 100 + tail;
    }
    now
}

/// A program that exported its model for 140 s was stopped, and its model was lost.
#[test]
fn regression_before_tails_are_known_only_its_limits_end_a_job_after_its_last_epoch() {
    let definition = Definition { silence: Silence::Adaptive, ..jobs(99, 1) };
    let mut run = Run::new(&definition);
    run.take(&[submitted()]);
    let now = complete(&mut run, 0..4, 150);
    run.take(&[phase(now, job(4), JobPhase::Training)]);
    for epoch in 1..=9 {
        run.take(&[logged(now + i64::try_from(epoch).unwrap() * 10, job(4), epoch, 4.0)]);
    }
    for seconds in [120, 600, 3_000] {
        assert_eq!(run.take(&[time_passed(now + 90 + seconds)]), [], "after {seconds} s");
    }
    check_next(&mut run, &[ran(now, now + 3_200, job(4), Completed)], &["trial 4 completed", "start 5-0-1"]);
}

#[test]
fn a_job_is_stopped_after_three_times_the_longest_known_tail_and_at_least_two_minutes() {
    for (tail, grace) in [(5, 120), (150, 450)] {
        let mut run = Run::new(&jobs(99, 1));
        run.take(&[submitted()]);
        let now = complete(&mut run, 0..5, tail);
        run.take(&[logged(now + 90, job(5), 9, 9.0)]);
        let end = now + 90 + grace;
        assert_eq!(deadline(&run.definition, &run.state), Some(at(end)));
        check_next(&mut run, &[time_passed(end - 1)], &[]);
        check_next(&mut run, &[time_passed(end)], &["stop 5-0-1: max resource"]);
        let expect = ["trial 5 stopped: max resource", "start 6-0-1"];
        check_next(&mut run, &[described(end + 9, job(5), Stopped, 500)], &expect);
    }
}

/// Under a cap, limits are shortened to the times that jobs need. They contain the tail.
#[test]
fn shortened_limits_contain_the_tail() {
    let limit_of_next = |tail: i64, end| {
        let mut run = Run::new(&capped(jobs(99, 1), 99));
        run.take(&[submitted()]);
        for epoch in 1..=9 {
            run.take(&[logged(i64::try_from(epoch).unwrap() * 10, job(0), epoch, 0.5)]);
        }
        let rulings = run.take(&[ran(0, 90 + tail, job(0), end)]);
        let limit = |ruling: &Ruling| match ruling {
            Ruling::Order(Order::Start { limits, .. }) => Some(limits.max_runtime_seconds),
            _ => None,
        };
        i64::try_from(rulings.iter().find_map(limit).unwrap()).unwrap()
    };
    let (short, long) = (limit_of_next(1, Completed), limit_of_next(301, Completed));
    assert!(long >= short + 300, "{long} s after {short} s");
    // A job that its limit ended in its tail needed longer.
    assert!(limit_of_next(100, MaxRuntime) >= limit_of_next(200, Completed));
}

/// With promotion, the checkpoint of a rung is saved after its last epoch.
#[test]
fn a_promotable_job_is_not_silent_after_the_last_epoch_of_its_rung() {
    let definition = silent_for(promoting(jobs(99, 1), tuning::definition::Scheduling::Asynchronous), 60);
    let given = [submitted(), phase(1, job(0), JobPhase::Training), logged(10, job(0), 1, 0.5)];
    check(&definition, &given, &[time_passed(900)], &[]);
}

/// The best trial can be the one that ends the tuning.
#[test]
fn a_job_with_its_last_epoch_saves_its_model_while_the_tuning_ends() {
    let mut definition = jobs(9, 2);
    definition.limits.max_runtime_seconds = Some(91);
    let given = [submitted(), logged(10, job(0), 1, 0.5), logged(30, job(0), 3, 0.5)];
    let given = [&given[..], &[logged(90, job(0), 9, 0.9)]].concat();
    let run = &mut check(
        &definition,
        &given,
        &[time_passed(91)],
        &["ending: MaxRuntime", "stop 1-0-1: tuning ending"],
    );
    // A user who stops the tuning stops this job too.
    let mut stopped = check(&jobs(9, 2), &given, &[], &[]);
    let expect = ["stop 0-0-1: tuning ending", "stop 1-0-1: tuning ending"];
    check_next(&mut stopped, &[recorded(91, Fact::StopRequested)], &expect);
    let expect = ["trial 1 stopped: tuning ending"];
    check_next(run, &[described(95, job(1), Stopped, 80)], &expect);
    check_next(run, &[described(99, job(0), Completed, 99)], &["trial 0 completed", "ended: MaxRuntime"]);
}

/// A longer tail than those of the first jobs was stopped in each job, and each time a model was lost.
#[test]
fn regression_a_job_that_was_stopped_in_its_tail_lets_later_jobs_have_longer_ones() {
    let mut run = Run::new(&jobs(99, 1));
    run.take(&[submitted()]);
    let now = complete(&mut run, 0..5, 1);
    run.take(&[logged(now + 90, job(5), 9, 9.0)]);
    check_next(&mut run, &[time_passed(now + 210)], &["stop 5-0-1: max resource"]);
    run.take(&[ran(now, now + 215, job(5), Stopped)]);
    let now = now + 300;
    run.take(&[logged(now + 90, job(6), 9, 9.0)]);
    assert_eq!(deadline(&run.definition, &run.state), Some(at(now + 90 + 3 * 125)));
}

/// Jobs that trained beyond `MaxResource` were stopped at once. That taught a tail of a second, and the next job was
/// stopped while it saved its model.
#[test]
fn regression_a_job_that_trained_beyond_its_last_epoch_teaches_no_tail() {
    let mut run = Run::new(&jobs(99, 1));
    run.take(&[submitted()]);
    for trial in 0..5 {
        let now = i64::from(trial) * 100;
        for epoch in 1..=10 {
            run.take(&[logged(now + i64::try_from(epoch).unwrap(), job(trial), epoch, f64::from(trial))]);
        }
        run.take(&[ran(now, now + 11, job(trial), Stopped)]);
    }
    run.take(&[logged(590, job(5), 9, 9.0)]);
    check_next(&mut run, &[time_passed(590 + 600)], &[]);
}

#[test]
fn the_tail_of_a_job_that_its_limit_ended_counts_three_times_only_after_the_last_epoch() {
    for (last, tails) in [(9_u32, vec![Millis::from_seconds(30)]), (5, vec![])] {
        let mut run = Run::new(&jobs(99, 1));
        run.take(&[submitted()]);
        for epoch in 1..=last {
            run.take(&[logged(i64::from(epoch) * 10, job(0), u64::from(epoch), 0.5)]);
        }
        let end = i64::from(last) * 10 + 10;
        run.take(&[ran(0, end, job(0), MaxRuntime)]);
        assert_eq!(run.state.results.timings.tail_ms, tails, "after epoch {last}");
    }
}

#[test]
fn a_job_that_is_stopped_after_its_last_epoch_sets_no_deadline_for_its_tail() {
    let mut run = Run::new(&jobs(99, 1));
    run.take(&[submitted()]);
    let now = complete(&mut run, 0..5, 5);
    run.take(&[logged(now + 90, job(5), 9, 9.0)]);
    let end = at(now + 90 + 120);
    assert_eq!(deadline(&run.definition, &run.state), Some(end));
    run.take(&[recorded(now + 92, Fact::JobStopRequested { job: job(5) })]);
    assert_ne!(deadline(&run.definition, &run.state), Some(end));
}
