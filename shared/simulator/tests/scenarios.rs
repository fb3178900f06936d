//! What a user may rely on, one scenario each: the promises of DESIGN.md P1 to P6 under one kind of trouble, as bad as it
//! gets. In each the tuning ends Completed, properly, and no checker has anything to say.

use std::ops::Range;

use simulator::Run;
use simulator::case::{Case, Choices, Epochs, Rungs};
use simulator::fault::Kind;
use simulator::plan::{CrashOnce, HOUR, MINUTE, Order, Plan};
use simulator::report::History;

/// A Hyperband and a random tuning, by rank and by captured epoch, with a cap that does not bind.
fn tunings() -> [Choices; 3] {
    let ranked = Choices { epochs: Epochs::Ranked, cap_jobs: Some(30.0), ..Choices::plain() };
    let spot = Choices {
        max_wait_seconds: Some(5_400),
        epochs: Epochs::PerAttempt,
        hyperband: Some((1, 27, 3)),
        maximize: false,
        ..Choices::plain()
    };
    let random = Choices { hyperband: None, max_jobs: 7, cap_jobs: Some(20.0), ..Choices::plain() };
    [ranked, spot, random]
}

/// Runs each tuning under `plan` with each of `seeds` and checks that it completed.
fn check(plan: &Plan, seeds: Range<u64>) -> Vec<History> {
    let mut histories = Vec::new();
    for (n, choices) in tunings().iter().enumerate() {
        for seed in seeds.clone() {
            let cases = vec![Case::of("sim0", choices)];
            let run = Run { seed, plan: plan.clone(), cases, trace: false };
            let history = run.history();
            assert!(history.violations.is_empty(), "tuning {n}, seed {seed}: {:#?}", history.violations);
            let end = ("sim0".to_owned(), "MaxJobs".to_owned());
            assert_eq!(history.ended, [end], "tuning {n}, seed {seed}");
            assert_eq!(u32::try_from(history.jobs), Ok(choices.max_jobs), "tuning {n}, seed {seed}");
            histories.push(history);
        }
    }
    histories
}

fn hits(histories: &[History], kind: Kind) -> u64 {
    histories.iter().filter_map(|history| history.faults.get(&kind)).sum()
}

/// All three tunings end well when nothing goes wrong: the rest of this file is about troubles, not about them.
#[test]
fn without_faults_every_tuning_completes() {
    for history in check(&Plan::calm(), 0..4) {
        assert_eq!(history.records_lost + history.given_up, 0);
        assert!(history.virtual_ms < 12 * HOUR, "{} ms", history.virtual_ms);
        assert_eq!(history.judged_wrong, 0);
    }
}

/// Where nothing goes wrong, the bus is told once of each trial that is stopped at a rung while it runs, and of each that is
/// promoted.
#[test]
fn each_decision_of_a_trial_is_told_once() {
    for (rungs, word, rule) in [
        (Rungs::Stop, "Stopped", "StopOrdered Rung"),
        (Rungs::Asynchronous, "Promoted", "TrialPromoted"),
        (Rungs::Synchronous, "Promoted", "TrialPromoted"),
    ] {
        let choices = Choices { rungs, hyperband: Some((1, 27, 3)), ..Choices::plain() };
        let cases = vec![Case::of("sim0", &choices)];
        let history = Run { seed: 1, plan: Plan::calm(), cases, trace: false }.history();
        assert!(history.violations.is_empty(), "{rungs:?}: {:#?}", history.violations);
        let made = history.rulings[rule];
        assert!(made > 0, "{rungs:?}");
        assert_eq!(history.decisions_told, [(word.to_owned(), made)].into(), "{rungs:?}");
    }
}

/// Where nothing goes wrong, the bus is told once that a tuning is being stopped, however many jobs that stops.
#[test]
fn that_a_tuning_is_being_stopped_is_told_once() {
    let mut case = Case::of("sim0", &Choices::plain());
    case.stop_at = Some(10 * MINUTE);
    let history = Run { seed: 1, plan: Plan::calm(), cases: vec![case], trace: false }.history();
    assert!(history.violations.is_empty(), "{:#?}", history.violations);
    assert!(history.rulings["StopOrdered TuningEnding"] > 1, "{:?}", history.rulings);
    assert_eq!(history.decisions_told.get("Stopping"), Some(&1));
}

/// P2: "no decision is performed twice with effect, none is lost." Here every process that performs an action dies right
/// after it and before it can say so, and every new action is delivered again besides.
#[test]
fn every_action_performed_twice() {
    let crash_once = CrashOnce::Outside;
    // Nothing but the action's own outcome tells that it was done.
    let plan = [Kind::StreamDuplicated, Kind::EventLost, Kind::LogLost]
        .iter()
        .fold(Plan { crash_once, safety_ms: 48 * HOUR, ..Plan::calm() }, |plan, kind| plan.with(*kind, 1.0));
    for history in check(&plan, 0..3) {
        let once: Vec<_> = history.tries.iter().filter(|(_, tries)| *tries < 2).collect();
        // A stop whose job ended by itself meanwhile has nothing left to do.
        let once: Vec<_> = once.into_iter().filter(|(action, _)| !action.starts_with("stop")).collect();
        // The sweeper looks at silent jobs with the same two calls, and may have died of them instead.
        let bills = |(action, _): &&(String, i64)| action.starts_with("bill");
        let (bills_once, once): (Vec<_>, Vec<_>) = once.into_iter().partition(bills);
        let bills = history.tries.iter().filter(bills).count();
        assert!(once.is_empty() && bills_once.len() * 4 <= bills, "only once: {once:?}, {bills_once:?}");
    }
}

/// P3: "any order, duplication or loss of events and of stream records ends in a finished tuning." Everything twice.
#[test]
fn every_event_delivered_twice() {
    let twice = [Kind::EventDuplicated, Kind::LogDuplicated, Kind::StreamDuplicated];
    let plan = twice.iter().fold(Plan::calm(), |plan, kind| plan.with(*kind, 1.0));
    for history in check(&Plan { safety_ms: 48 * HOUR, ..plan }, 0..4) {
        assert_eq!(history.judged_wrong, 0);
    }
}

/// P3: "any order [...] ends in a finished tuning." Within each ten minutes the last comes first.
#[test]
fn in_reverse_order_within_a_window() {
    let plan = Plan { order: Order::Reversed(10 * MINUTE), safety_ms: 48 * HOUR, ..Plan::calm() };
    check(&plan, 0..4);
}

/// P3: "any [...] loss of events and of stream records ends in a finished tuning." A third of all.
#[test]
fn a_third_of_all_events_and_stream_records_lost() {
    let lost = [Kind::EventLost, Kind::LogLost, Kind::StreamLost];
    let plan = lost.iter().fold(Plan::calm(), |plan, kind| plan.with(*kind, 0.33));
    let histories = check(&Plan { safety_ms: 200 * HOUR, ..plan }, 0..3);
    assert!(hits(&histories, Kind::StreamLost) > 100);
}

/// "The table, never a queue, is the source from which work is taken up again." Twice the stream's own retention nothing
/// arrives, from the very beginning or from the midst of things; then the sweeper's rings bring the tuning to its end.
#[test]
fn all_stream_records_lost_for_48_hours() {
    for from in [0, 5 * MINUTE] {
        let stream_outage = Some((from, from + 48 * HOUR));
        for history in check(&Plan { stream_outage, ..Plan::calm() }, 0..1) {
            assert!(history.records_lost > 0);
            assert!(history.virtual_ms > 48 * HOUR);
            // Waiting leaves no trace that grows.
            assert!(history.time_facts < 20, "{} facts tell the time", history.time_facts);
        }
    }
}

/// P4: "a crash between any two calls loses nothing." Every call of every function kills its process once, after its
/// effect: (function, operation, row or job) each.
#[test]
fn every_port_call_crashes_once_after_its_effect() {
    let plan = Plan { crash_once: CrashOnce::Every, safety_ms: 400 * HOUR, ..Plan::calm() };
    let histories = check(&plan, 0..1);
    assert!(hits(&histories, Kind::CrashAfter) > 1_000);
}

/// "Lambda may freeze between two calls and thaw minutes later: an old decider must lose by its version, an old actuator by
/// its claim." Frozen now and then after a call, while the user stops the tuning in its first minutes: no job is started
/// that was called off, and none runs on.
#[test]
fn frozen_functions_lose_by_version_and_claim() {
    for (n, choices) in tunings().iter().enumerate() {
        for seed in 0..12 {
            let mut case = Case::of("sim0", choices);
            case.stop_at = Some(i64::try_from(seed).expect("a small number") * 20_000);
            let plan = Plan { safety_ms: 2 * HOUR, ..Plan::calm() }.with(Kind::Freeze, 0.2);
            let history = Run { seed, plan, cases: vec![case], trace: false }.history();
            assert!(history.violations.is_empty(), "tuning {n}, seed {seed}: {:#?}", history.violations);
            assert_eq!(history.ended, [("sim0".to_owned(), "Stopped".to_owned())], "tuning {n}, seed {seed}");
        }
    }
}

/// A quota of nothing that nobody raises: the tuning asks for little while it waits, and ends after a day, with the way out.
#[test]
fn a_quota_that_is_never_raised_ends_the_tuning_and_costs_few_calls() {
    let choices = Choices { max_parallel: 6, max_jobs: 24, ..Choices::plain() };
    let plan = Plan { account_jobs: Some(0), monthly_cap: Some(40_000_000), ..Plan::calm() };
    let cases = vec![Case::of("sim0", &choices)];
    let history = Run { seed: 1, plan, cases, trace: false }.history();
    assert!(history.violations.is_empty(), "{:#?}", history.violations);
    let [(_, why)] = history.ended.as_slice() else { panic!("{:?}", history.ended) };
    assert!(why.starts_with("Failed: a quota") && why.contains("ResourceLimitExceeded"), "{why}");
    assert!((24 * HOUR..40 * HOUR).contains(&history.virtual_ms), "{} ms", history.virtual_ms);
    assert_eq!((history.rulings["StopOrdered Quota"], history.rulings["AttemptAwaited Quota"]), (5, 5));
    // Six for ten minutes, then one every five minutes: six all the time would be 1,700.
    let creates = hits(&[history], Kind::AccountQuota);
    assert!((200..400).contains(&creates), "{creates}");
}

/// Jobs that wait for their instances for hours (`MaxPendingTimeInSeconds`), far longer than their running time may last: none is
/// taken for deleted, whatever else is lost.
#[test]
fn jobs_that_wait_for_their_instances_for_hours_are_waited_for() {
    let choices = Choices { max_runtime_seconds: 600, max_pending_seconds: Some(14_400), ..Choices::plain() };
    for (n, lost) in [0.0, 0.5].into_iter().enumerate() {
        let plan = Plan { safety_ms: 100 * HOUR, ..Plan::calm() }.with(Kind::JobPends, 1.0);
        let plan = plan.with(Kind::EventLost, lost).with(Kind::StreamLost, lost);
        let seed = u64::try_from(n).expect("a small number");
        let run = Run { seed, plan, cases: vec![Case::of("sim0", &choices)], trace: false };
        let history = run.history();
        assert!(history.violations.is_empty(), "{:#?}", history.violations);
        assert_eq!(history.ended, [("sim0".to_owned(), "MaxJobs".to_owned())]);
        assert_eq!(history.rulings.get("SettledInFull"), None, "{:?}", history.rulings);
        assert!(history.faults[&Kind::JobPends] >= 12 && history.virtual_ms > 8 * HOUR);
    }
}

/// P7: "no training job of this stack runs unknown to the table for longer than the sweep interval + 10 minutes while a
/// tuning is active, an hour otherwise"; and another stack's jobs, named like ours, are left alone.
#[test]
fn jobs_that_no_row_knows_are_stopped_in_time() {
    let plan = Plan::calm().with(Kind::OrphanAppears, 0.02).with(Kind::ForeignJob, 0.3);
    // The faults end while the tunings run: from then on the bound holds.
    let histories = check(&Plan { safety_ms: 10 * MINUTE, ..plan }, 0..2);
    assert!(hits(&histories, Kind::OrphanAppears) >= 12, "two in each history at least");
    assert!(hits(&histories, Kind::ForeignJob) > 0);
}

/// P8: "no active tuning: one query a minute and one listing an hour, nothing else."
#[test]
fn an_idle_stack_asks_for_one_query_a_minute() {
    for history in check(&Plan::calm(), 0..1) {
        assert!(history.idle_minutes > 180, "{} idle minutes", history.idle_minutes);
    }
}
