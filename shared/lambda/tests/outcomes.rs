//! What each kind of function writes, to the byte, since log volume costs money.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail with their test")]

use lambda::telemetry::{ErrorType, LogWriter, Report};
use lambda::{Failure, outcomes};
use serde_json::{Value, json};
use tuning::log::fact::{Fact, JobKey, Recorded as RecordedFact};
use tuning::log::reasons::{EndReason, StopWhy, TrialEnd};
use tuning::log::ruling::{AttemptRuling, NoticeOrder, Order, Ruling, SearchRuling, Verdict};
use tuning::step::Step;
use tuning::unit::epochs::Epochs;
use tuning::unit::ids::{BracketId, RungId, TrialId};
use tuning::unit::time::{Millis, Time};
use use_cases::batch::{Part, Progress, Unreadable};
use use_cases::decide::Decided;
use use_cases::job_events::{About, RecordError, Recorded};
use use_cases::perform::{ActionBatch, ActionResult, Effect, Performed};
use use_cases::ports::table::TableError;
use use_cases::ports::training::TrainingJobsError;
use use_cases::store::StoreError;
use use_cases::sweep::{Counts, Swept};

const ID: &str = "hb1-3fa1c2";
const NOW: i64 = 1_789_000_200_000;

/// Returns the lines of a report and its size in bytes.
fn written(report: Report) -> (Vec<Value>, usize) {
    let text = LogWriter::new("f", "prod").text(report, "r-1", Time(NOW));
    (text.lines().map(|line| serde_json::from_str(line).unwrap()).collect(), text.len())
}

/// Returns the metrics of a report without log lines.
fn metrics(report: Report) -> Value {
    let (mut lines, _) = written(report);
    let mut line = lines.pop().unwrap();
    assert!(lines.is_empty(), "{lines:?}");
    let line = line.as_object_mut().unwrap();
    assert!(line.remove("_aws").is_some() && line.remove("Stack").is_some());
    json!(line)
}

fn step(facts: Vec<Fact>, rulings: Vec<Ruling>) -> Step {
    let fact = |fact| RecordedFact { key: "k".to_owned(), at: Time(NOW - 1_500), fact };
    Step { n: 7, at: Time(NOW), facts: facts.into_iter().map(fact).collect(), rulings }
}

fn part<D>(progress: Progress, done: D) -> Part<D> {
    Part { tuning: ID.to_owned(), sequences: vec!["1".to_owned(), "2".to_owned()], progress, done }
}

fn decided(progress: Progress, steps: Vec<Step>) -> Decided {
    Decided { parts: vec![part(progress, steps)], unreadable: Vec::new() }
}

fn act(action: &str, performed: Performed) -> ActionBatch {
    let done =
        ActionResult { action: action.to_owned(), performed: Some(performed), ..ActionResult::default() };
    ActionBatch { parts: vec![part(Progress::Done, done)], unreadable: Vec::new() }
}

fn throttled() -> StoreError {
    StoreError::Table(TableError::Throttled)
}

#[test]
fn rulings_are_counted_by_kind() {
    let verdict = |goes_on| Verdict { rank: 0, seen: 3, allowed: 1, continues: goes_on };
    let judged = |goes_on| {
        Ruling::Search(SearchRuling::TrialJudged {
            trial: TrialId(0),
            bracket: BracketId(0),
            rung: RungId(0),
            level: Epochs(1),
            resource: Epochs(1),
            value: Some(0.5),
            average: None,
            verdict: verdict(goes_on),
        })
    };
    let stopped = TrialEnd::Stopped(StopWhy::Rung { rung: RungId(0) });
    let rulings = vec![
        judged(true),
        judged(false),
        Ruling::Attempt(AttemptRuling::TrialFinished { job: None, trial: TrialId(1), how: stopped }),
        Ruling::Attempt(AttemptRuling::TrialFinished {
            job: None,
            trial: TrialId(2),
            how: TrialEnd::Completed,
        }),
    ];
    let mut report = Report::default();
    let answer = outcomes::decided(
        &decided(Progress::Done, vec![step(vec![Fact::TimePassed], rulings)]),
        Time(NOW),
        &mut report,
    );
    assert_eq!(answer, json!({"batchItemFailures": []}));
    let expected = json!({"FactAgeMs": 1_500, "StepsWritten": 1, "TrialsPromoted": 1, "TrialsStopped": 1});
    assert_eq!(metrics(report), expected);
}

#[test]
fn tuning_events_are_logged_with_their_step() {
    let ended = |why| Ruling::Order(Order::Notice(NoticeOrder::TuningEnded { why }));
    let month_cap = |percent| {
        Ruling::Order(Order::Notice(NoticeOrder::MonthCapReached { month: "2026-09".to_owned(), percent }))
    };
    for (rulings, level, message, counted) in [
        (vec![ended(EndReason::MaxJobs)], "INFO", "a tuning ended: MaxJobs", vec!["TuningsEnded"]),
        (
            vec![ended(EndReason::Failed("Traceback: lr=0.1".to_owned()))],
            "ERROR",
            "a tuning ended: Failed",
            vec!["TuningsEnded", "TuningsFailed"],
        ),
        (
            vec![Ruling::Order(Order::Notice(NoticeOrder::OverrunSeen))],
            "ERROR",
            "a training job costs more than was reserved for it: running and later jobs reserve the excess too",
            vec!["BudgetOverruns"],
        ),
        (
            vec![Ruling::Order(Order::Notice(NoticeOrder::CapReached { percent: 80 }))],
            "WARN",
            "80 % of the tuning's cap is spent",
            vec!["CapNotices"],
        ),
        (vec![month_cap(50)], "WARN", "50 % of the stack's cap for 2026-09 is granted", vec!["CapNotices"]),
        (
            vec![month_cap(80)],
            "WARN",
            "80 % of the stack's cap for 2026-09 is granted",
            vec!["CapNotices", "MonthCapNotices"],
        ),
    ] {
        let mut report = Report::default();
        outcomes::decided(&decided(Progress::Done, vec![step(Vec::new(), rulings)]), Time(NOW), &mut report);
        let (lines, _) = written(report);
        let [line, metrics] = &lines[..] else { panic!("{lines:?}") };
        assert_eq!((&line["level"], &line["message"]), (&json!(level), &json!(message)));
        assert_eq!((&line["tuning"], &line["step"]), (&json!(ID), &json!(7)));
        assert!(counted.iter().all(|name| metrics[name] == 1), "{metrics}");
        let alarms = ["MonthCapNotices", "TuningsFailed", "BudgetOverruns"];
        assert!(alarms.iter().all(|name| counted.contains(name) || metrics[name].is_null()), "{metrics}");
        assert!(!json!(lines).to_string().contains("lr=0.1"), "a training program's own text");
    }
}

#[test]
fn failures_are_logged_with_their_tuning_and_delivered_again_unless_permanent() {
    for (progress, error_type, again) in [
        (Progress::Failed(throttled()), "Table", vec!["1", "2"]),
        (Progress::Failed(StoreError::Table(TableError::Refused("no".to_owned()))), "TableRefused", vec![]),
        (Progress::Open, "Timeout", vec!["1", "2"]),
    ] {
        let mut batch = decided(progress, Vec::new());
        let reason = "Records: expected a list".to_owned();
        batch.unreadable.push(Unreadable { sequence: None, tuning: None, reason });
        let mut report = Report::default();
        let answer = outcomes::decided(&batch, Time(NOW), &mut report);
        let again: Vec<Value> = again.iter().map(|n| json!({"itemIdentifier": n})).collect();
        assert_eq!(answer, json!({"batchItemFailures": again}), "{error_type}");
        let (lines, _) = written(report);
        assert_eq!(lines[0]["error"], "record without a sequence number: Records: expected a list");
        assert_eq!((&lines[1]["tuning"], &lines[1]["errorType"]), (&json!(ID), &json!(error_type)));
        assert_eq!((&lines[2]["DecideFailed"], &lines[2]["EventsUnreadable"]), (&json!(1), &json!(1)));
    }
}

#[test]
fn an_action_is_logged_with_its_job_and_a_rejection_by_its_code_alone() {
    let refused = Effect::Refused("ValidationException: Value '{lr=0.1}' at 'hyperParameters'".to_owned());
    for (performed, message, counted) in [
        (Performed::Done(Effect::Started { promoted: None }), "a training job was started", "JobsStarted"),
        (
            Performed::Done(Effect::Stopped { why: StopWhy::TuningEnding, because: None }),
            "a training job was ordered to stop",
            "JobsStopped",
        ),
        (Performed::Done(refused), "a training job was refused", "ActionsPerformed"),
        (Performed::Deferred("no".to_owned()), "an action was deferred", "ActionsDeferred"),
        (
            Performed::Done(Effect::AssumedStarted("AccessDenied".to_owned())),
            "a training job counts as started: for a day its tags could not be read. Its maximum cost is booked unless \
             it shows another bill. Allow sagemaker:ListTags",
            "EventsUnreadable",
        ),
        (
            Performed::Done(Effect::LogCut),
            "a job was concluded before its whole log could be read: values that were not delivered may be missing",
            "ActionsPerformed",
        ),
    ] {
        let mut report = Report::default();
        outcomes::acts(&act("start-0-0-1", performed), &mut report);
        let (lines, _) = written(report);
        let [line, metrics] = &lines[..] else { panic!("{lines:?}") };
        assert_eq!((&line["message"], &line["action"]), (&json!(message), &json!("start-0-0-1")));
        assert_eq!(line["job"], "hb1-3fa1c2-0-0-1");
        assert_eq!(metrics[counted], 1, "{metrics}");
        if message.ends_with("refused") {
            assert_eq!(
                (&line["errorType"], &line["error"]),
                (&json!("StartRefused"), &json!("ValidationException"))
            );
        }
    }
    let mut batch = act(
        "stop-0-0-1",
        Performed::Done(Effect::Stopped { why: StopWhy::Rung { rung: RungId(0) }, because: None }),
    );
    batch.parts[0].done.unpublished = Some("it is throttling".to_owned());
    let mut report = Report::default();
    outcomes::acts(&batch, &mut report);
    assert_eq!(written(report).0[1]["errorType"], "Bus");
}

#[test]
fn a_sweep_logs_what_it_failed_to_do() {
    let swept = Swept {
        tunings: 2,
        left: 3,
        stuck: 1,
        missed: 4,
        failed: 2,
        failures: vec![(ID.to_owned(), throttled())],
        last_error: Some(StoreError::Table(TableError::Unavailable("no answer".to_owned()))),
        listing_error: Some(TrainingJobsError::Throttled),
        unpublished: vec![(ID.to_owned(), "out of time".to_owned())],
        performed: Counts { done: 2, started: 1, stopped: 1, deferred: 0 },
        orphans_stopped: 1,
        assumed_started: vec![(ID.to_owned(), "start-0-0-1".to_owned(), "AccessDenied".to_owned())],
        lost: true,
        ..Swept::default()
    };
    let mut report = Report::default();
    let answer = outcomes::swept(Some(Ok(swept)), Millis(40), &mut report).unwrap();
    assert_eq!(
        (&answer["failed"], &answer["lastError"]),
        (&json!(2), &json!("the table is unavailable: no answer"))
    );
    let (mut lines, _) = written(report);
    let metrics = lines.pop().unwrap();
    let types: Vec<Option<&str>> = lines.iter().map(|line| line["errorType"].as_str()).collect();
    let expected =
        [Some("Table"), Some("Table"), Some("TrainingService"), Some("Bus"), Some("Unreadable"), None, None];
    assert_eq!(types, expected);
    for (name, value) in [
        ("SweepMs", 40),
        ("TuningsActive", 2),
        ("ActionsLeft", 3),
        ("TuningsStuck", 1),
        ("ActionsMissed", 4),
        ("SweepFailed", 3),
        ("OrphansStopped", 1),
        ("EventsUnreadable", 1),
        ("JobsStarted", 1),
        ("JobsStopped", 1),
        ("ActionsPerformed", 2),
    ] {
        assert_eq!(metrics[name], value, "{name}");
    }
    let mut report = Report::default();
    let failed = outcomes::swept(None, Millis(40), &mut report);
    assert_eq!(failed.map_err(|failure| failure.error_type), Err(ErrorType::Timeout));
    assert_eq!(written(report).0[1]["SweepFailed"], 1);
}

/// Each kind of idle or usual invocation, and the maximum bytes that it writes to the log.
#[test]
fn a_usual_invocation_writes_little_and_an_idle_one_nothing() {
    let check = |what: &str, most: usize, fill: &dyn Fn(&mut Report)| {
        let mut report = Report::default();
        fill(&mut report);
        let (_, bytes) = written(report);
        assert!(bytes <= most && (bytes > 0) == (most > 0), "{what}: {bytes} bytes, at most {most}");
    };
    let recorded = |result: Recorded, facts, lines, report: &mut Report| {
        let job = JobKey::new(0, 0, 1);
        let about = About { tuning: Some(ID.to_owned()), job: Some(job), facts, lines };
        outcomes::recorded(Some(Ok(result)), &about, report).unwrap();
    };
    check("job-events, ignored", 0, &|report| recorded(Recorded::NotOurs, 0, 0, report));
    check("job-events, a state change", 200, &|report| recorded(Recorded::Stored, 1, 0, report));
    check("job-logs, ignored", 0, &|report| recorded(Recorded::NotOurs, 0, 0, report));
    check("job-logs, lines", 250, &|report| recorded(Recorded::Stored, 1, 12, report));
    check("decider, nothing new", 0, &|report| {
        outcomes::decided(&decided(Progress::Done, Vec::new()), Time(NOW), report);
    });
    check("decider, a step", 260, &|report| {
        let steps = vec![step(vec![Fact::TimePassed], Vec::new())];
        outcomes::decided(&decided(Progress::Done, steps), Time(NOW), report);
    });
    check("actuator, done before", 0, &|report| {
        outcomes::acts(&act("bill-0-0-1", Performed::Done(Effect::AlreadySettled)), report);
    });
    check("actuator, a bill", 210, &|report| {
        outcomes::acts(&act("bill-0-0-1", Performed::Done(Effect::Other)), report);
    });
    check("actuator, a start", 460, &|report| {
        outcomes::acts(&act("start-0-0-1", Performed::Done(Effect::Started { promoted: None })), report);
    });
    check("sweeper, idle", 0, &|report| _ = outcomes::swept(Some(Ok(Swept::default())), Millis(12), report));
    check("sweeper, tunings but nothing to do", 260, &|report| {
        _ = outcomes::swept(Some(Ok(Swept { tunings: 3, ..Swept::default() })), Millis(12), report);
    });
}

#[test]
fn a_failed_delivery_is_logged_with_its_tuning() {
    let about = About { tuning: Some(ID.to_owned()), ..About::default() };
    for (result, error_type) in [
        (Some(Err(RecordError::Unreadable("detail: expected an object".to_owned()))), ErrorType::Unreadable),
        (Some(Err(RecordError::Store(throttled()))), ErrorType::Table),
        (None, ErrorType::Timeout),
    ] {
        let mut report = Report::default();
        let Failure { error_type: reported, .. } =
            outcomes::recorded(result, &about, &mut report).unwrap_err();
        assert_eq!(reported, error_type);
        let (lines, _) = written(report);
        assert_eq!((&lines[0]["errorType"], &lines[0]["tuning"]), (&json!(error_type.name()), &json!(ID)));
    }
}
