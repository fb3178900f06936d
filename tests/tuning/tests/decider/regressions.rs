//! One test for each fixed bug. The doc of a test names the symptom and, if known, how the bug was found.

use std::slice::from_ref;

use tuning::log::fact::JobEnd::{Completed, MaxRuntime, ServiceError};
use tuning::log::fact::{JobPhase, MetricLine, Recorded};
use tuning::scheduler::Rung;
use tuning::unit::epochs::Epochs;

use crate::support::build::*;
use crate::support::run::Run;
use crate::support::{check, check_next};

fn plain(second: i64, value: f64) -> MetricLine {
    MetricLine { index: None, ..line(second, &format!("{second:05}"), 0, value) }
}

fn stream(stream: &str, list: Vec<MetricLine>) -> Recorded {
    lines(99, job(0), stream, list)
}

/// The fold changed the last sign of life but returned that nothing changed. The step lacked the fact, and the loaded
/// state differed from the live one. Found by reading; [`Run::take`] checks it in every test.
#[test]
fn regression_a_second_start_of_a_job_changes_nothing() {
    check(&random(1, 1), &[submitted(), started(1, job(0))], &[started(50, job(0))], &[]);
}

/// The fold added a late line to an old stream but returned that nothing changed.
#[test]
fn regression_a_late_line_of_an_earlier_stream_is_recorded() {
    let given =
        [submitted(), stream("a", vec![plain(1, 0.1)]), stream("b", vec![plain(90, 0.2), plain(91, 0.3)])];
    let run = check(&ranked(random(1, 1)), &given, &[stream("a", vec![plain(2, 0.7)])], &[]);
    assert_eq!(run.state.trials[&TrialId(0)].streams[0].lines.len(), 2);
}

/// A captured epoch that arrived again with another time changed the stream's span each time.
#[test]
fn regression_an_epoch_with_two_times_has_one_span() {
    let list = vec![line(10, "x", 1, 0.1), line(5, "y", 1, 0.1)];
    check(&random(1, 1), &[submitted(), stream("a", list)], &[stream("a", vec![line(10, "x", 1, 0.1)])], &[]);
}

/// After a restart, a line out of order overwrote values of the stream before it.
#[test]
fn regression_lines_out_of_order_after_a_restart_leave_earlier_values_alone() {
    let facts =
        [stream("a", vec![plain(1, 0.1), plain(2, 0.2), plain(3, 0.3)]), stream("b", vec![plain(20, 0.8)])];
    let given = [from_ref(&submitted()), &facts].concat();
    let run = check(&ranked(random(1, 1)), &given, &[stream("b", vec![plain(10, 0.7)])], &[]);
    assert_eq!(run.curve(0), [(1, 0.1), (2, 0.2), (3, 0.3)]);
}

/// The incumbent's epoch was wrong after late lines: it did not move with the line of its value.
#[test]
fn regression_the_incumbent_s_epoch_is_that_of_its_line() {
    let given = [submitted(), stream("a", vec![plain(3, 0.3), plain(4, 0.9)])];
    let run = check(&ranked(random(1, 1)), &given, &[stream("a", vec![plain(1, 0.1)])], &[]);
    assert_eq!(run.state.search.incumbent.as_ref().map(|best| best.resource), Some(Epochs(3)));
}

/// The first fact of a restarted stream may lack the first lines of the stream. The proven offset was too large by
/// their number, so the trial was judged at an epoch that it had not reached.
#[test]
fn regression_a_checkpoint_proven_by_a_later_line_has_the_right_offset() {
    let first: Vec<_> =
        (0..5_i32).map(|n| line(i64::from(n), "x", n.unsigned_abs().into(), f64::from(n))).collect();
    let mut definition = random(1, 1);
    definition.epochs =
        tuning::definition::EpochRule { captured: true, base: 0, per_attempt: true, is_base_assumed: false };
    // Restarted after epoch 2; the fact with its index 0 is late: index 1 repeats epoch 4.
    let given = [submitted(), stream("a", first)];
    let when = [stream("b", vec![line(11, "x", 1, 3.0), line(12, "x", 2, 4.0), line(13, "x", 3, 7.0)])];
    let run = check(&definition, &given, &when, &[]);
    assert_eq!(run.state.trials[&TrialId(0)].streams[1].offset, Epochs(2));
    assert_eq!(run.curve(0).last(), Some(&(6, 7.0)));
}

/// Ranked epochs: lines before the line that proved its epoch do not move that epoch.
#[test]
fn regression_a_proven_rank_stays_when_earlier_lines_come_late() {
    let given = [
        submitted(),
        stream("a", (1..=5).map(|n| plain(n, f64::from(i32::try_from(n).unwrap()))).collect()),
        stream("b", vec![plain(22, 4.0), plain(23, 5.0), plain(24, 8.0)]),
    ];
    let run = check(&ranked(random(1, 1)), &given, &[stream("b", vec![plain(20, 2.0), plain(21, 3.0)])], &[]);
    assert_eq!(run.state.trials[&TrialId(0)].streams[1].offset, Epochs(1));
    assert_eq!(run.curve(0).last(), Some(&(6, 8.0)));
}

/// A trial waited for a retry when late lines of its last job put it out at a rung. It was started again.
#[test]
fn regression_a_waiting_trial_that_is_out_is_not_started_again() {
    let run = &mut check(
        &jobs(9, 3),
        &[submitted(), logged(1, job(0), 1, 0.5)],
        &[described(60, job(2), ServiceError, 9)],
        &["retry after 2-0-1: ServiceError, from 90", "start 3-0-1"],
    );
    check_next(
        run,
        &[logged(50, job(2), 1, 0.4)],
        &["trial 2 is out at rung 0.0, epoch 1: 2 of 2", "trial 2 stopped: rung 0"],
    );
}

/// A trial waited for a retry when late lines completed its epochs. It was started again.
#[test]
fn regression_a_waiting_trial_with_all_its_epochs_is_not_started_again() {
    let given = [submitted(), logged(1, job(0), 3, 0.5), described(60, job(0), ServiceError, 9)];
    let when = [logged(50, job(0), 9, 0.9)];
    check(&jobs(9, 1), &given, &when, &["trial 0 stopped: max resource"]);
}

/// A job with all its epochs was retried after a service error or a timeout.
#[test]
fn regression_a_job_that_ended_with_all_its_epochs_is_not_retried() {
    for (end, word) in
        [(ServiceError, "failed: the training job failed without a reason"), (MaxRuntime, "ran out of time")]
    {
        let when = [logged(50, job(0), 9, 0.9), described(60, job(0), end, 9)];
        let given = [submitted(), logged(1, job(0), 3, 0.5)];
        check(&jobs(9, 1), &given, &when, &[&format!("trial 0 {word}"), "start 1-0-1"]);
    }
}

/// A deferral that arrived again after the start counted as a change each time.
#[test]
fn regression_a_repeated_deferral_after_the_start_changes_nothing() {
    let given = [submitted(), deferred(1, job(0), 60), started(61, job(0))];
    check(&random(1, 1), &given, &[deferred(1, job(0), 60)], &[]);
}

/// A refused retry counted as a job with the final objective value of the attempt before it.
#[test]
fn regression_a_refused_attempt_has_no_objective_value() {
    let given = [submitted(), logged(1, job(0), 1, 0.5), described(60, job(0), ServiceError, 9)];
    let run = &mut check(
        &random(3, 1),
        &given,
        &[described(95, job(1), Completed, 9)],
        &["trial 1 completed", "start 0-0-2"],
    );
    check_next(run, &[refused(96, attempt(0, 2))], &["trial 0 failed: no such role", "start 2-0-1"]);
    let counters = run.state.results.counters;
    assert_eq!((counters.objective_succeeded, counters.objective_failed), (0, 3), "no job counts");
}

/// The wait before a retry doubled without a bound.
#[test]
fn regression_the_wait_before_a_retry_is_at_most_an_hour() {
    let mut definition = random(9, 1);
    definition.settings.max_interruptions = 40;
    let mut run = Run::new(&definition);
    run.take(&[submitted()]);
    run.state.trials.get_mut(TrialId(0)).unwrap().retries = 39;
    check_next(
        &mut run,
        &[described(60, job(0), ServiceError, 9)],
        &["retry after 0-0-1: ServiceError, from 3660", "start 1-0-1"],
    );
}

/// JSON stores an infinity as `null`, so the state changed when the snapshot was read.
#[test]
fn regression_an_infinite_value_is_not_a_number() {
    let when = [logged(1, job(0), 1, f64::INFINITY)];
    let run = check(&random(1, 1), &[submitted()], &when, &[]);
    assert_eq!(run.state.search.incumbent, None);
}

/// Every verdict rebuilt and sorted the rung; now a lookup returns the same rank.
#[test]
fn regression_a_rung_ranks_an_arrival_as_a_sorted_list_does() {
    use hyperband::ranking::{Direction, Score, better_first};
    use hyperband::rung::Rule;
    let mut rung = Rung::default();
    let mut sorted = Vec::new();
    for (trial, value) in (0..).zip([Some(0.5), None, Some(0.7), Some(0.5), None, Some(-1.0), Some(0.7)]) {
        let verdict = tuning::scheduler::judge(
            [&rung],
            Direction::Minimize,
            Rule::TopShare { eta_percent: 300 },
            (TrialId(trial), value),
        );
        sorted.push((value.map_or(Score::NotFinite, Score::of), trial));
        sorted.sort_by(|a, b| better_first(Direction::Minimize, *a, *b));
        let rank = sorted.iter().position(|(_, other)| *other == trial).unwrap();
        assert_eq!(usize::try_from(verdict.rank).unwrap(), rank, "trial {trial}");
        rung.arrive(Direction::Minimize, (TrialId(trial), value));
    }
}

/// A description without a start and without a bill freed the whole reservation of a job that had run.
#[test]
fn regression_an_empty_bill_of_a_job_that_ran_is_ignored() {
    let given = [submitted(), logged(10, job(0), 1, 0.5)];
    let definition = capped(random(9, 1), 1);
    let run = check(&definition, &given, &[described(60, job(0), ServiceError, 0)], &["bill 0-0-1"]);
    assert_eq!(run.state.money.ledger.reserved.0, WORST_CASE, "still reserved");
    let mut run = run;
    let settled = ["settle 0-0-1 in full", "retry after 0-0-1: ServiceError, from 3760", "trial 0 failed: "];
    run.take(&[time_passed(130)]);
    let rulings = run.take(&[time_passed(130 + 3_600)]);
    let rendered: Vec<String> = rulings.iter().map(crate::support::render::render).collect();
    assert_eq!(rendered[..2], settled[..2]);
    assert_eq!(run.state.money.ledger.spent.0, WORST_CASE);
}

/// A job that its user deleted, without an end event, kept its slot and its money for ever.
#[test]
fn regression_a_vanished_job_is_settled_in_full_after_its_latest_end() {
    let given = [submitted(), started(1, job(0))];
    let mut run = check(&capped(random(9, 1), 4), &given, &[], &[]);
    let latest_end = 1 + 3_600 + 120 + 180;
    assert_eq!(tuning::decide::deadline(&run.definition, &run.state), Some(at(latest_end)));
    check_next(&mut run, &[time_passed(latest_end)], &[]);
    assert_eq!(tuning::decide::deadline(&run.definition, &run.state), Some(at(latest_end + 3_600)));
    check_next(&mut run, &[time_passed(latest_end + 3_599)], &[]);
    let expect =
        ["settle 0-0-1 in full", "trial 0 failed: the training job failed without a reason", "start 1-0-1"];
    check_next(&mut run, &[time_passed(latest_end + 3_600)], &expect);
}

/// Lines of a foreign job with a name like ours entered a trial.
#[test]
fn regression_a_line_of_a_job_that_was_never_ordered_is_ignored() {
    use tuning::log::fact::JobKey;
    let foreign = JobKey { trial: TrialId(0), rung: RungId(3), attempt: 1 };
    let run =
        check(&random(1, 1), &[submitted()], &[lines(5, foreign, "x", vec![line(5, "x", 1, 0.9)])], &[]);
    assert!(run.state.search.incumbent.is_none());
}

/// Forty jobs with long categories made a step above DynamoDB's item size, so the tuning never started.
#[test]
fn regression_a_step_fits_a_row_with_any_configurations() {
    use search::{Domain, Parameter, Space};
    let long = |index: usize| Parameter {
        name: format!("{index:0250}"),
        domain: Domain::Categorical { values: vec!["\"".repeat(250), "\u{1}".repeat(250)] },
    };
    let mut definition = jobs(100, 100);
    definition.space = Space::new((0..30).map(long).collect()).unwrap();
    let mut state = tuning::state::State::new(&definition);
    let mut facts = vec![submitted()];
    let mut started = 0;
    for n in 1.. {
        let advanced = tuning::step::advance(&definition, &mut state, n, &facts);
        let step = advanced.step.expect("something was owed");
        let bytes = serde_json::to_string(&step).unwrap().len();
        assert!(bytes < 290_000, "step {n} has {bytes} bytes");
        started += step.rulings.len();
        facts.clear();
        if !advanced.has_more {
            break;
        }
    }
    assert_eq!(started, 100);
}

/// After two hours without a stream, an old end and then a new start arrived. The clock jumped, so a bill that had just
/// been ordered counted as an hour late. Found by the fault simulator, seed 40.
#[test]
fn regression_facts_that_arrive_hours_late_do_not_make_a_bill_late() {
    let given = [submitted(), logged(10, job(0), 1, 0.5), ended(60, job(0), Completed)];
    let mut run = check(&random(9, 2), &given, &[], &[]);
    check_next(&mut run, &[logged(7_200, job(1), 1, 0.5)], &[]);
    check_next(&mut run, &[time_passed(7_260)], &[]);
    check_next(&mut run, &[described(60, job(0), Completed, 50)], &["trial 0 completed"]);
}

/// A restarted program that repeats no value proves no epoch; the best of its values was lost.
#[test]
fn regression_the_best_value_after_an_unproven_restart_is_the_incumbent() {
    let first = stream("a", vec![plain(1, 0.1), plain(2, 0.2), plain(3, 0.3)]);
    let given = [submitted(), first];
    let run = check(&ranked(random(1, 1)), &given, &[stream("b", vec![plain(20, 0.8), plain(21, 0.7)])], &[]);
    assert_eq!(run.curve(0), [(1, 0.1), (2, 0.2), (3, 0.3)]);
    assert_eq!(run.state.search.incumbent.as_ref().map(|best| best.value), Some(0.8));
}

/// The outcome of a start and all events of its job were lost, but its stop was accepted. The sweeper no longer looked
/// at the job, and the tuning never ended.
#[test]
fn regression_a_job_whose_stop_was_accepted_is_known_to_exist() {
    let given = [submitted(), stop_requested(1)];
    let mut run = check(&random(9, 1), &given, &[stop_accepted(5, job(0))], &[]);
    assert!(run.state.job(job(0)).unwrap().is_accepted(), "the sweeper looks at the job from now on");
    assert!(tuning::decide::deadline(&run.definition, &run.state).is_some(), "the job has a deadline");
    check_next(&mut run, &[never_started(6, job(0))], &[]);
}

/// Two jobs vanished, and the end of the first ended the tuning. The decider ordered a stop of the second, which was
/// already settled in full. Found by a planted mutation (silent jobs are not looked at).
#[test]
fn regression_a_job_that_is_settled_in_full_is_not_stopped() {
    let mut definition = random(2, 2);
    definition.limits.not_improving = Some(1);
    let given = [submitted(), started(1, job(0)), started(1, job(1))];
    let expect = [
        "settle 0-0-1 in full",
        "settle 1-0-1 in full",
        "trial 0 failed: the training job failed without a reason",
        "ending: NotImproving",
        "trial 1 failed: the training job failed without a reason",
        "ended: NotImproving",
    ];
    let run = &mut check(&definition, &given, &[time_passed(4_000)], &[]);
    check_next(run, &[time_passed(4_000 + 3_600)], &expect);
}

/// The decider ordered a job from facts that were hours old. When the stop of the job was accepted, the job seemed
/// silent for all those hours. Found by the simulator, seed 5833.
#[test]
fn an_accepted_stop_is_a_sign_of_life() {
    let mut run = Run::new(&jobs(1, 1));
    check_next(&mut run, &[submitted()], &["start 0-0-1"]);
    check_next(&mut run, &[time_passed(90_000)], &[]);
    check_next(&mut run, &[stop_requested(90_001)], &["stop 0-0-1: tuning ending"]);
    check_next(&mut run, &[stop_accepted(90_002, job(0))], &[]);
    check_next(&mut run, &[time_passed(90_060)], &[]);
    assert_eq!(run.state.money.ledger.reserved.0, WORST_CASE, "the job runs until its end is seen");
}

/// After the end of a job, the sweeps of several hours arrived late and all at once. The job's bill counted as late
/// since the first sweep, so the last sweep settled the job in full. Found by the simulator, seed 1795289900252.
#[test]
fn regression_the_hour_of_a_bill_begins_at_its_order() {
    let given = [submitted(), logged(7_900, job(0), 1, 0.5), ended(8_000, job(0), Completed)];
    let run = &mut check(&random(1, 1), &given, &[time_passed(600), time_passed(8_100)], &[]);
    assert_eq!(tuning::decide::deadline(&run.definition, &run.state), Some(at(8_100 + 3_600)));
    check_next(run, &[time_passed(8_100 + 3_599)], &[]);
    check_next(
        run,
        &[time_passed(8_100 + 3_600)],
        &["settle 0-0-1 in full", "trial 0 completed", "ended: MaxJobs"],
    );
}

/// A job that waits for its instances (`MaxPendingTimeInSeconds`) has no state change for hours. It counted as deleted,
/// was booked in full, and its trial failed. Found by reading.
#[test]
fn regression_a_job_that_waits_hours_for_its_instances_does_not_count_as_deleted() {
    let mut run = Run::new(&capped(random(9, 1), 4));
    check_next(&mut run, &[submitted()], &["start 0-0-1"]);
    check_next(&mut run, &[started(1, job(0)), phase(2, job(0), JobPhase::Starting)], &[]);
    // For a day, the time passes every hour, and the sweeper sees the job before each deadline.
    for hour in 1..=24 {
        let due =
            tuning::decide::job_seen_due_at(&run.definition, &run.state, run.state.job(job(0)).unwrap())
                .unwrap();
        if due <= at(hour * 3_600) {
            check_next(&mut run, &[seen(hour * 3_600, job(0))], &[]);
        }
        check_next(&mut run, &[time_passed(hour * 3_600)], &[]);
    }
    assert_eq!(run.state.money.ledger.reserved.0, WORST_CASE, "the job keeps its reservation");
    assert!(run.log.len() < 60, "{} steps", run.log.len());
    let facts = [logged(90_000, job(0), 1, 0.5), described(90_100, job(0), Completed, 50)];
    check_next(&mut run, &facts, &["trial 0 completed", "start 1-0-1"]);
}

/// The stored facts of a job, and the time, were folded hours late. The job seemed gone for all those hours, although
/// the sweeper had no chance to look at it.
#[test]
fn regression_a_job_is_looked_at_before_it_is_settled_although_its_start_arrives_late() {
    let mut run = Run::new(&random(9, 1));
    check_next(&mut run, &[submitted()], &["start 0-0-1"]);
    check_next(&mut run, &[time_passed(80_000)], &[]);
    check_next(&mut run, &[started(1, job(0))], &[]);
    assert_eq!(tuning::decide::deadline(&run.definition, &run.state), Some(at(80_060)));
    check_next(&mut run, &[time_passed(80_100)], &[]);
    assert_eq!(tuning::decide::must_fold_first(&run.definition, &run.state, at(80_100 + 3_600)), [job(0)]);
    check_next(&mut run, &[seen(80_200, job(0)), time_passed(80_100 + 3_600)], &[]);
    assert!(run.state.job(job(0)).unwrap().bill.amount().is_none());
}

#[test]
fn seeing_a_job_again_at_the_same_time_or_after_its_end_changes_nothing() {
    let given = [submitted(), started(1, job(0)), seen(5_000, job(0))];
    let run = &mut check(&random(1, 1), &given, &[seen(5_000, job(0)), seen(4_000, job(0))], &[]);
    assert_eq!(run.state.job(job(0)).unwrap().seen_at(), at(5_000));
    check_next(run, &[ended(5_100, job(0), Completed)], &["bill 0-0-1"]);
    check_next(run, &[seen(5_200, job(0))], &[]);
    assert_eq!(run.state.job(job(0)).unwrap().seen_at(), at(5_100));
}
