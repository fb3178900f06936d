//! The promises P1 to P8, one scenario each: an extreme rate of one kind of fault. In each scenario the tuning
//! completes and no checker reports a violation.

use std::ops::Range;

use simulator::Run;
use simulator::case::{Case, Choices, Epochs, Rungs};
use simulator::fault::Kind;
use simulator::plan::{CrashOnce, HOUR, MINUTE, Order, Plan};
use simulator::report::History;

/// Hyperband and random search, with and without epochs in the log lines, with a cap that does not bind.
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

/// The tunings complete without faults, so later failures in this file are caused by the faults.
#[test]
fn without_faults_every_tuning_completes() {
    for history in check(&Plan::calm(), 0..4) {
        assert_eq!(history.records_lost + history.deliveries_dropped, 0);
        assert!(history.virtual_ms < 12 * HOUR, "{} ms", history.virtual_ms);
        assert_eq!(history.judged_by_other_epoch, 0);
    }
}

/// No instances are available for six hours: no trial fails, no job is counted, and every tuning completes.
#[test]
fn an_outage_of_six_hours_costs_no_trial_and_no_dollar() {
    let plan = Plan { capacity_outage: Some((MINUTE, MINUTE + 6 * HOUR)), ..Plan::calm() };
    for (n, choices) in tunings().iter().enumerate() {
        for seed in 0..4 {
            let cases = vec![Case::of("sim0", choices)];
            let history = Run { seed, plan: plan.clone(), cases, trace: false }.history();
            assert!(history.violations.is_empty(), "tuning {n}, seed {seed}: {:#?}", history.violations);
            assert_eq!(history.ended, [("sim0".to_owned(), "MaxJobs".to_owned())], "tuning {n}, seed {seed}");
            assert!(
                u32::try_from(history.jobs).is_ok_and(|jobs| jobs > choices.max_jobs),
                "the outage struck"
            );
        }
    }
}

/// Without faults, one event is published for each trial that is stopped at a rung while it runs, and for each
/// promoted trial.
#[test]
fn each_decision_on_a_trial_is_published_once() {
    for (rungs, word, rule) in [
        (Rungs::Stop, "Stopped", "Stop Rung"),
        (Rungs::Asynchronous, "Promoted", "TrialPromoted"),
        (Rungs::Synchronous, "Promoted", "TrialPromoted"),
    ] {
        let choices = Choices { rungs, hyperband: Some((1, 27, 3)), ..Choices::plain() };
        let cases = vec![Case::of("sim0", &choices)];
        let history = Run { seed: 1, plan: Plan::calm(), cases, trace: false }.history();
        assert!(history.violations.is_empty(), "{rungs:?}: {:#?}", history.violations);
        let made = history.rulings[rule];
        assert!(made > 0, "{rungs:?}");
        assert_eq!(history.decisions_published, [(word.to_owned(), made)].into(), "{rungs:?}");
    }
}

/// Without faults, the status `Stopping` is published once, however many jobs are stopped.
#[test]
fn the_stopping_status_of_a_tuning_is_published_once() {
    let mut case = Case::of("sim0", &Choices::plain());
    case.stop_at = Some(10 * MINUTE);
    for seed in 0..20 {
        let cases = vec![case.clone()];
        let history = Run { seed, plan: Plan::calm(), cases, trace: false }.history();
        assert!(history.violations.is_empty(), "{:#?}", history.violations);
        assert!(history.rulings["Stop TuningEnding"] > 1, "{:?}", history.rulings);
        // Also where the first job is being stopped at a rung.
        assert_eq!(history.decisions_published.get("Stopping"), Some(&1), "seed {seed}");
    }
}

/// P2: no decision is performed twice with effect, and none is lost. Every process that performs an action crashes
/// right after it, before it records the outcome, and every new action is delivered again.
#[test]
fn actions_performed_twice_have_one_effect() {
    let crash_once = CrashOnce::Outside;
    // Only the outcome of the action shows that it was performed.
    let plan = [Kind::StreamDuplicated, Kind::EventLost, Kind::LogLost]
        .iter()
        .fold(Plan { crash_once, safety_ms: 48 * HOUR, ..Plan::calm() }, |plan, kind| plan.with(*kind, 1.0));
    for history in check(&plan, 0..3) {
        let once: Vec<_> = history.tries.iter().filter(|(_, tries)| *tries < 2).collect();
        // A stop has nothing to do if its job has ended by itself.
        let once: Vec<_> = once.into_iter().filter(|(action, _)| !action.starts_with("stop")).collect();
        // A process crashes once at each call. The sweeper checks silent jobs with the same calls as bills and rests, and
        // decisions are published with the same call as notices. It can have crashed there instead.
        let alike = |(action, _): &&(String, i64)| {
            ["bill", "rest", "notice"].iter().any(|kind| action.starts_with(kind))
        };
        let (alike_once, once): (Vec<_>, Vec<_>) = once.into_iter().partition(alike);
        let alike = history.tries.iter().filter(alike).count();
        assert!(
            once.is_empty() && alike_once.len() * 4 <= alike,
            "performed only once: {once:?}, {alike_once:?}"
        );
    }
}

/// P3: any order, duplication or loss of events and stream records ends in a finished tuning. Here every delivery
/// comes twice.
#[test]
fn a_tuning_completes_when_every_event_is_delivered_twice() {
    let twice = [Kind::EventDuplicated, Kind::LogDuplicated, Kind::StreamDuplicated];
    let plan = twice.iter().fold(Plan::calm(), |plan, kind| plan.with(*kind, 1.0));
    for history in check(&Plan { safety_ms: 48 * HOUR, ..plan }, 0..4) {
        assert_eq!(history.judged_by_other_epoch, 0);
    }
}

/// P3: within each window of ten minutes the last delivery comes first.
#[test]
fn a_tuning_completes_when_events_come_in_reverse_order() {
    let plan = Plan { order: Order::Reversed(10 * MINUTE), safety_ms: 48 * HOUR, ..Plan::calm() };
    check(&plan, 0..4);
}

/// P3: a third of all events and stream records is lost.
#[test]
fn a_tuning_completes_when_a_third_of_all_events_is_lost() {
    let lost = [Kind::EventLost, Kind::LogLost, Kind::StreamLost];
    let plan = lost.iter().fold(Plan::calm(), |plan, kind| plan.with(*kind, 0.33));
    let histories = check(&Plan { safety_ms: 200 * HOUR, ..plan }, 0..3);
    assert!(hits(&histories, Kind::StreamLost) > 100);
}

/// Work always resumes from the table, never from a queue. All stream records are lost for twice the retention of the
/// stream, from the beginning or from the middle of a tuning; then the sweeper's rings bring the tuning to its end.
#[test]
fn a_tuning_completes_after_a_stream_outage_of_48_hours() {
    for from in [0, 5 * MINUTE] {
        let stream_outage = Some((from, from + 48 * HOUR));
        for history in check(&Plan { stream_outage, ..Plan::calm() }, 0..1) {
            assert!(history.records_lost > 0);
            assert!(history.virtual_ms > 48 * HOUR);
            // Waiting must not fill the table.
            assert!(history.time_facts < 20, "{} TimePassed facts", history.time_facts);
        }
    }
}

/// P4: a crash between any two calls loses nothing. Every call of every function kills its process once after its
/// effect, for each (function, operation, row or job).
#[test]
fn a_tuning_completes_when_every_port_call_crashes_once_after_its_effect() {
    let plan = Plan { crash_once: CrashOnce::Every, safety_ms: 400 * HOUR, ..Plan::calm() };
    let histories = check(&plan, 0..1);
    assert!(hits(&histories, Kind::CrashAfter) > 1_000);
}

/// Lambda can freeze a process between two calls and thaw it minutes later. Then an old decider must lose by its
/// version and an old actuator by its claim. Processes freeze after some calls while the user stops the tuning in its
/// first minutes: no cancelled job starts, and no job keeps running.
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

/// With a quota of 0 jobs the tuning makes few calls while it waits. It fails after a day, and the message says how to
/// raise the quota.
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
    assert_eq!((history.rulings["Stop Quota"], history.rulings["AttemptAwaited Quota"]), (5, 5));
    // Six jobs retry for ten minutes, then one job every five minutes. Six jobs all the time would make 1,700 creates.
    let creates = hits(&[history], Kind::AccountQuota);
    assert!((200..400).contains(&creates), "{creates}");
}

/// Jobs wait for their instances for hours (`MaxPendingTimeInSeconds`), far longer than their running-time limit. The
/// decider never takes them for deleted, even when events are lost.
#[test]
fn a_job_that_waits_for_hours_for_its_instances_is_not_settled_in_full() {
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

/// P7: no training job of this stack runs without a row for longer than the sweep interval + 10 minutes while a tuning
/// is active, and an hour otherwise. Jobs of other stacks with similar names keep running.
#[test]
fn jobs_without_a_row_are_stopped_in_time() {
    let plan = Plan::calm().with(Kind::OrphanAppears, 0.02).with(Kind::ForeignJob, 0.3);
    // The bound holds after the faults end, while the tunings still run.
    let histories = check(&Plan { safety_ms: 10 * MINUTE, ..plan }, 0..2);
    assert!(hits(&histories, Kind::OrphanAppears) >= 12, "at least two in each history");
    assert!(hits(&histories, Kind::ForeignJob) > 0);
}

/// P8: without an active tuning the stack makes one query a minute, and one listing with a query an hour.
#[test]
fn an_idle_stack_makes_one_query_a_minute() {
    for history in check(&Plan::calm(), 0..1) {
        assert!(history.idle_minutes > 180, "{} idle minutes", history.idle_minutes);
    }
}
