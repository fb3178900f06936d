//! The order of a batch, and actions that meet a quota, an ended job, a long log or a late bill.

use std::pin::pin;
use std::sync::{Arc, Mutex};

use port_tests::memory::MemoryTable;
use serde_json::{Value, json};
use tuning::log::fact::{Fact, JobKey, JobPhase, Recorded};
use tuning::log::reasons::StopWhy;
use tuning::log::ruling::{Order, ReadOrder};
use tuning::unit::time::{Millis, Time};
use use_cases::decide::Decider;
use use_cases::perform::{ActionBatch, Actuator, Effect, Performed};
use use_cases::ports::training::{Description, TrainingJobsError};
use use_cases::ports::{HandOver, HandOverError};
use use_cases::store::Store;
use wire::events::stream::{RecordKind, encode_payload, encode_record};
use wire::stored::{ActionRow, ActionStatus};

use crate::support::{
    Script, Service, TestBus, TestClock, action_row, actuator, description, not_found, now, order, poll,
    table_with,
};

pub(crate) const NOW: i64 = 1_789_000_000_000;

/// Returns the description of a job with a bill of 700 seconds.
pub(crate) fn completed() -> Description {
    Description {
        started: Some(Time(NOW - 800_000)),
        ended: Some(Time(NOW - 100_000)),
        modified: Time(NOW - 100_000),
        billable_seconds: Some(700),
        ..description("job", "Completed", NOW - 900_000)
    }
}

/// The role may not read logs.
pub(crate) fn no_policy() -> TrainingJobsError {
    TrainingJobsError::Refused {
        code: "AccessDeniedException".to_owned(),
        message: "no policy allows logs:FilterLogEvents".to_owned(),
    }
}

/// One tuning, and the actuator of its actions.
pub(crate) struct Stack {
    pub(crate) table: MemoryTable,
    pub(crate) service: Service,
    pub(crate) actuator: Actuator<MemoryTable, Service, TestBus, TestClock>,
    pub(crate) id: String,
}

impl Stack {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    /// Like [`Self::new`], with a changed request.
    pub(crate) fn with(change: impl FnOnce(&mut Value)) -> Self {
        let (table, id) = table_with(NOW - 10_000_000, change);
        let script = Script {
            create: Some(Ok(())),
            stop: Some(Ok(())),
            describe: Some(Ok(completed())),
            tags: Some(Err(not_found("job"))),
            read: Some(Ok(1)),
            ..Script::default()
        };
        let service = Service::new(&TestClock::at(NOW), script);
        let bus = TestBus { accepts: true, ..TestBus::default() };
        let actuator = Actuator { bus, ..actuator(&Arc::new(table.clone()), &service) };
        Self { table, service, actuator, id }
    }

    /// Gives these facts to the decider, which stores its orders in the table.
    pub(crate) fn decide(&self, facts: Vec<Fact>) {
        let recorded = |(n, fact): (usize, Fact)| Recorded { key: format!("{n}"), at: Time(NOW), fact };
        let facts: Vec<_> = facts.into_iter().enumerate().map(recorded).collect();
        let store = Arc::new(Store::new(Arc::new(self.table.clone())));
        now(Decider { store }.decide(&self.id, &facts, false)).unwrap();
    }

    pub(crate) fn order(&self, ordered: Order) -> String {
        order(&self.table, &self.id, ordered)
    }

    pub(crate) fn row(&self, action: &str) -> ActionRow {
        action_row(&self.table, &self.id, action)
    }

    /// Returns the calls since the last call of this method, without consecutive repetitions.
    pub(crate) fn calls(&self) -> Vec<&'static str> {
        let mut calls: Vec<_> = self.service.calls().into_iter().map(|(call, _)| call).collect();
        calls.dedup();
        calls
    }

    pub(crate) fn perform(&self, action: &str) -> Performed {
        now(self.actuator.perform(&self.id, action)).unwrap()
    }

    /// Performs a batch of new rows of these actions. Returns the results in the order of execution.
    pub(crate) fn handle(&self, actions: &[&str]) -> Vec<(String, Performed)> {
        let mut acts = ActionBatch::default();
        now(self.actuator.handle(&self.event(actions), || true, &mut acts));
        acts.parts.into_iter().map(|part| (part.done.action, part.done.performed.unwrap())).collect()
    }

    /// Returns the event of new rows of these actions.
    pub(crate) fn event(&self, actions: &[&str]) -> Value {
        let record = |(n, action): (u64, &&str)| {
            let row = self.row(action).row(&self.id);
            encode_record(n, RecordKind::Insert, &row.key, Some(&row))
        };
        encode_payload((1..).zip(actions).map(record))
    }

    /// Returns whether a fact with this key is stored.
    pub(crate) fn knows(&self, key: &str) -> bool {
        self.table.rows().iter().any(|row| row.key.pk.starts_with("F#") && row.key.sk.ends_with(key))
    }
}

pub(crate) fn job(trial: u32) -> JobKey {
    JobKey::new(trial, 0, 1)
}

pub(crate) fn stop_of(trial: u32) -> Order {
    Order::Stop { job: job(trial), why: StopWhy::TuningEnding, because: None }
}

pub(crate) fn rest_of(trial: u32) -> Order {
    Order::Read(ReadOrder::Rest {
        job: job(trial),
        ordered: Time(NOW - 900_000),
        ended: Time(NOW - 100_000),
        at_once: false,
    })
}

pub(crate) fn is_deferred(performed: &Performed) -> bool {
    matches!(performed, Performed::Deferred(_))
}

/// A stop waited until the logs before it were read, up to two hundred pages each.
#[test]
fn regression_stops_and_starts_do_not_wait_for_logs() {
    let stack = Stack::new();
    stack.decide(vec![Fact::TuningSubmitted]);
    stack.service.lock().read = Some(Ok(60));
    let bill = stack.order(Order::Read(ReadOrder::Bill { job: job(7) }));
    let rest = stack.order(rest_of(7));
    let stop = stack.order(stop_of(8));
    let performed = stack.handle(&[&rest, &bill, "start-0-0-1", &stop]);
    assert_eq!(stack.calls(), ["stop", "create", "describe", "read"]);
    let [(first, stopped), (second, started), (third, billed), (fourth, read)] = &performed[..] else {
        panic!("{performed:?}")
    };
    assert_eq!([first, second, third, fourth], [&stop, "start-0-0-1", &bill, &rest]);
    assert!(matches!(stopped, Performed::Done(Effect::Stopped { .. })), "{stopped:?}");
    assert_eq!(started, &Performed::Done(Effect::Started { promoted: None }));
    assert_eq!(billed, &Performed::Done(Effect::Other));
    assert!(stack.knows("described#7-0-1"));
    // A few pages were read. The sweeper, which does not delay a stop, reads all.
    assert!(is_deferred(read), "{read:?}");
    stack.service.time.pass(1_000);
    assert_eq!(stack.perform(&rest), Performed::Done(Effect::Other));
    assert!(stack.knows("rest-read#7-0-1"));
}

#[test]
fn a_slow_stop_does_not_delay_the_other_stops_of_its_batch() {
    let stack = Stack::new();
    stack.decide(vec![Fact::TuningSubmitted]);
    stack.service.lock().stop_hangs = true;
    let stops: Vec<String> = (1..=3).map(|trial| stack.order(stop_of(trial))).collect();
    let event = stack.event(&["start-0-0-1", &stops[0], &stops[1], &stops[2]]);
    let mut acts = ActionBatch::default();
    assert!(poll(pin!(stack.actuator.handle(&event, || true, &mut acts))).is_none());
    let calls = stack.service.calls();
    assert_eq!(calls.iter().map(|(call, _)| *call).collect::<Vec<_>>(), ["stop", "stop", "stop"]);
}

/// Another invocation: keeps the payloads that it received, and answers as set.
struct Another {
    payloads: Mutex<Vec<Value>>,
    answer: Result<(), HandOverError>,
}

impl Another {
    fn new(answer: Result<(), HandOverError>) -> Self {
        Self { payloads: Mutex::default(), answer }
    }
}

impl HandOver for Another {
    async fn hand_over(&self, payload: &Value) -> Result<(), HandOverError> {
        self.payloads.lock().unwrap().push(payload.clone());
        self.answer.clone()
    }
}

/// A stop waited for the starts of the batch before it.
#[test]
fn regression_the_next_batch_does_not_wait_for_starts() {
    let stack = Stack::new();
    stack.decide(vec![Fact::TuningSubmitted]);
    let stop = stack.order(stop_of(8));
    let (event, another) = (stack.event(&["start-0-0-1", &stop]), Another::new(Ok(())));
    let mut acts = ActionBatch::default();
    now(stack.actuator.handle_handing_over(&event, &another, || true, &mut acts));
    assert_eq!(stack.calls(), ["stop"]);
    assert!(acts.failed().next().is_none(), "{acts:?}");
    let payloads = another.payloads.into_inner().unwrap();
    assert_eq!(payloads, [json!({"hyperbandStarts": [[stack.id, "start-0-0-1"]]})]);
    // The other invocation hands nothing over.
    let (third, mut acts) = (Another::new(Ok(())), ActionBatch::default());
    now(stack.actuator.handle_handing_over(&payloads[0], &third, || true, &mut acts));
    assert!(third.payloads.into_inner().unwrap().is_empty());
    assert_eq!(stack.calls(), ["create"]);
    assert_eq!(acts.parts[0].done.performed, Some(Performed::Done(Effect::Started { promoted: None })));
}

#[test]
fn a_start_that_is_not_handed_over_is_performed_here_and_one_that_is_performed_twice_creates_one_job() {
    let stack = Stack::new();
    stack.decide(vec![Fact::TuningSubmitted]);
    // The answer is lost, so both invocations have the start.
    let another = Another::new(Err(HandOverError("no answer".to_owned())));
    let mut acts = ActionBatch::default();
    let event = stack.event(&["start-0-0-1"]);
    now(stack.actuator.handle_handing_over(&event, &another, || true, &mut acts));
    assert_eq!(acts.parts[0].done.performed, Some(Performed::Done(Effect::Started { promoted: None })));
    let kept = acts.parts[0].done.kept.as_deref();
    assert_eq!(kept, Some("no other invocation took the starts: no answer"));
    let (payload, mut acts) = (another.payloads.into_inner().unwrap().remove(0), ActionBatch::default());
    now(stack.actuator.handle(&payload, || true, &mut acts));
    assert_eq!(acts.parts[0].done.performed, Some(Performed::Done(Effect::AlreadySettled)));
    assert_eq!(stack.calls(), ["create"]);
}

#[test]
fn a_batch_without_starts_hands_nothing_over_and_a_payload_with_other_actions_is_unreadable() {
    let stack = Stack::new();
    let stop = stack.order(stop_of(8));
    let (another, mut acts) = (Another::new(Ok(())), ActionBatch::default());
    now(stack.actuator.handle_handing_over(&stack.event(&[&stop]), &another, || true, &mut acts));
    assert!(another.payloads.into_inner().unwrap().is_empty());
    assert_eq!(stack.calls(), ["stop"]);
    for pairs in
        [json!([[stack.id, stop]]), json!([["x"]]), json!(["x", 1]), json!([[stack.id, "start-00-0-1"]])]
    {
        let mut acts = ActionBatch::default();
        now(stack.actuator.handle(&json!({"hyperbandStarts": pairs}), || true, &mut acts));
        assert!(acts.parts.is_empty() && !acts.unreadable.is_empty(), "{acts:?}");
    }
    assert!(stack.calls().is_empty());
}

#[test]
fn a_batch_starts_no_log_read_after_its_time() {
    let stack = Stack::new();
    (stack.service.lock().read, stack.service.lock().page_ms) = (Some(Ok(9)), 2_000);
    let reads = [1, 2].map(|trial| stack.order(rest_of(trial)));
    let performed = stack.handle(&[&reads[0], &reads[1]]);
    assert_eq!(performed[0].1, Performed::Done(Effect::Other));
    assert!(is_deferred(&performed[1].1), "{performed:?}");
    // The action has no claim.
    assert_eq!(stack.row(&reads[1]).tries, 0);
}

#[test]
fn a_stop_in_the_same_batch_cancels_the_start() {
    let stack = Stack::new();
    stack.decide(vec![Fact::TuningSubmitted]);
    let stop = stack.order(stop_of(0));
    stack.service.lock().stop = Some(Err(not_found("job")));
    let performed = stack.handle(&["start-0-0-1", &stop]);
    assert_eq!(stack.calls(), ["stop"], "it was cancelled: {performed:?}");
    assert!(stack.knows("never-started#0-0-1"));
}

/// A start's second try left its claim behind, and the job could not be cancelled for four minutes.
#[test]
fn regression_a_start_blocked_by_a_quota_can_be_cancelled_at_once() {
    let stack = Stack::new();
    stack.decide(vec![Fact::TuningSubmitted]);
    stack.service.lock().create = Some(Err(TrainingJobsError::LimitExceeded("ml.m5.large".to_owned())));
    for _ in 0..3 {
        assert!(is_deferred(&stack.perform("start-0-0-1")));
        stack.service.time.pass(10_000);
    }
    assert_eq!((stack.row("start-0-0-1").tries, stack.row("start-0-0-1").claimed_until), (3, Time(0)));
    stack.service.lock().stop = Some(Err(not_found("job")));
    let stop = stack.order(stop_of(0));
    assert_eq!(stack.perform(&stop), Performed::Done(Effect::Other));
    assert_eq!(stack.row("start-0-0-1").status, ActionStatus::Cancelled);
}

/// An open request of an earlier try stays open, whatever a later try returns.
#[test]
fn a_start_that_may_have_been_sent_is_not_cancelled_after_a_later_quota_error() {
    let stack = Stack::new();
    stack.decide(vec![Fact::TuningSubmitted]);
    let claimed_until = NOW + 180_000;
    for answer in [
        TrainingJobsError::Unavailable("no answer".to_owned()),
        TrainingJobsError::LimitExceeded("ml.m5.large".to_owned()),
    ] {
        stack.service.lock().create = Some(Err(answer));
        assert!(is_deferred(&stack.perform("start-0-0-1")));
        assert_eq!(stack.row("start-0-0-1").claimed_until, Time(claimed_until));
        stack.service.time.pass(10_000);
    }
    stack.service.lock().stop = Some(Err(not_found("job")));
    let stop = stack.order(stop_of(0));
    assert!(is_deferred(&stack.perform(&stop)));
}

/// A create succeeded although its answer was lost, and the job was deleted before it was visible. A stop cancelled the
/// start as never performed and released the money, although a retry had found the name taken. Found by seed
/// 1795400000261 of the simulator.
#[test]
fn regression_a_start_whose_name_is_taken_is_not_cancelled() {
    let stack = Stack::new();
    stack.decide(vec![Fact::TuningSubmitted]);
    stack.service.lock().create = Some(Err(TrainingJobsError::Unavailable("no answer".to_owned())));
    assert!(is_deferred(&stack.perform("start-0-0-1")));
    stack.service.time.pass(60_000);
    stack.service.lock().create = Some(Err(TrainingJobsError::NameTaken("job".to_owned())));
    assert!(is_deferred(&stack.perform("start-0-0-1")));
    assert!(stack.row("start-0-0-1").name_taken);
    stack.service.time.pass(3_600_000);
    stack.service.lock().stop = Some(Err(not_found("job")));
    let stop = stack.order(stop_of(0));
    assert!(is_deferred(&stack.perform(&stop)));
    // The next try of the start settles that the job has existed.
    assert!(stack.perform("start-0-0-1").is_done());
    assert!(stack.knows("started#0-0-1") && !stack.knows("never-started#0-0-1"));
}

/// An actuator asked for the job before its create took effect, was frozen for minutes, and then cancelled the start
/// although the job ran. Found by seed 1795410005712 of the simulator.
#[test]
fn regression_an_old_answer_does_not_cancel_a_start() {
    let stack = Stack::new();
    stack.decide(vec![Fact::TuningSubmitted]);
    stack.service.lock().create = Some(Err(TrainingJobsError::Unavailable("no answer".to_owned())));
    assert!(is_deferred(&stack.perform("start-0-0-1")));
    stack.service.lock().stop = Some(Err(not_found("job")));
    stack.service.lock().stop_ms = 3_600_000;
    let stop = stack.order(stop_of(0));
    assert!(is_deferred(&stack.perform(&stop)));
    assert!(!stack.knows("never-started#0-0-1"));
    // The next question comes late enough.
    stack.service.time.pass(60_000);
    assert!(stack.perform(&stop).is_done());
    assert!(stack.knows("never-started#0-0-1"));
}

/// An event reported that we had stopped a job that had ended by itself, and the stop was counted.
#[test]
fn regression_a_job_that_ended_by_itself_is_not_reported_as_stopped() {
    let stack = Stack::new();
    stack.service.lock().stop = Some(Err(TrainingJobsError::AlreadyEnded("job".to_owned())));
    let stop = stack.order(stop_of(0));
    assert_eq!(stack.perform(&stop), Performed::Done(Effect::Other));
    // The decider waits for this fact, whatever its cause.
    assert!(stack.knows("stop-accepted#0-0-1"));
}

/// Lines of the last seconds may not be readable yet.
#[test]
fn a_log_is_read_when_its_last_lines_are_readable_or_at_once_where_no_decision_needs_them() {
    let mut stack = Stack::new();
    stack.actuator.log_lag_ms = Millis::from_seconds(30);
    stack.service.lock().read = Some(Ok(1));
    let ended = Time(NOW);
    let later =
        stack.order(Order::Read(ReadOrder::Rest { job: job(0), ordered: ended, ended, at_once: false }));
    let at_once =
        stack.order(Order::Read(ReadOrder::Rest { job: job(1), ordered: ended, ended, at_once: true }));
    assert_eq!(stack.perform(&later), Performed::NotNow);
    assert_eq!(stack.row(&later).tries, 0, "it makes no claim");
    assert_eq!(stack.perform(&at_once), Performed::Done(Effect::Other));
    stack.service.time.pass(30_000);
    assert_eq!(stack.perform(&later), Performed::Done(Effect::Other));
    assert!(stack.knows("rest-read#0-0-1"));
}

/// Each try began at the first page and was throttled before the last; after an hour the whole reservation was booked.
#[test]
fn regression_a_long_log_does_not_delay_a_job_forever() {
    let stack = Stack::new();
    let rest = stack.order(rest_of(0));
    stack.service.lock().read = Some(Ok(80));
    let tries = (1..=7).map(|_| {
        stack.service.lock().pages_left = Some(50);
        stack.service.time.pass(300_000);
        stack.perform(&rest)
    });
    let tries: Vec<_> = tries.collect();
    assert!(tries.iter().take(6).all(is_deferred), "{tries:?}");
    assert_eq!(tries.last(), Some(&Performed::Done(Effect::LogCut)));
    assert!(stack.knows("rest-read#0-0-1"));
    // A log without any readable page delays the job, because it may be short.
    let other = stack.order(rest_of(1));
    stack.service.lock().pages_left = Some(0);
    for _ in 0..8 {
        assert!(is_deferred(&stack.perform(&other)));
        stack.service.time.pass(300_000);
    }
    (stack.service.lock().pages_left, stack.service.lock().read) = (Some(2), Some(Ok(1)));
    assert_eq!(stack.perform(&other), Performed::Done(Effect::Other), "the whole log was read");
}

/// A refused read of the log concluded the job at once, and the lines of a lost delivery never reached the decider.
#[test]
fn regression_a_job_waits_for_a_log_whose_read_was_refused() {
    let stack = Stack::new();
    let rest = stack.order(rest_of(0));
    stack.service.lock().read = Some(Err(no_policy()));
    assert!(is_deferred(&stack.perform(&rest)));
    stack.service.lock().read = Some(Ok(1));
    stack.service.time.pass(300_000);
    assert_eq!(stack.perform(&rest), Performed::Done(Effect::Other));
    // A role that never may read logs does not delay the job forever.
    let other = stack.order(rest_of(1));
    stack.service.lock().read = Some(Err(no_policy()));
    let tries: Vec<_> = (1..=7)
        .map(|_| {
            stack.service.time.pass(300_000);
            stack.perform(&other)
        })
        .collect();
    assert!(tries.iter().take(6).all(is_deferred), "{tries:?}");
    assert_eq!(tries.last(), Some(&Performed::Done(Effect::LogCut)));
}

/// A bill of zero, which the decider rejected, used up the key of the fact. The whole reservation was booked.
#[test]
fn regression_a_zero_bill_of_a_job_that_ran_is_read_again() {
    let never =
        Description { ended: Some(Time(NOW - 100_000)), ..description("job", "Stopped", NOW - 900_000) };
    let started = Fact::JobStateChanged {
        job: job(0),
        phase: JobPhase::Training,
        started: Some(Time(NOW - 800_000)),
        ended: None,
        message: None,
    };
    let stack = Stack::new();
    stack.decide(vec![Fact::TuningSubmitted]);
    stack.decide(vec![Fact::JobStarted { job: job(0) }, started]);
    stack.service.lock().describe = Some(Ok(never.clone()));
    let bill = stack.order(Order::Read(ReadOrder::Bill { job: job(0) }));
    assert!(is_deferred(&stack.perform(&bill)));
    assert!(!stack.knows("described#0-0-1"));
    stack.service.lock().describe = Some(Ok(completed()));
    stack.service.time.pass(1_000);
    assert_eq!(stack.perform(&bill), Performed::Done(Effect::Other));
    assert!(stack.knows("described#0-0-1"));
    // A job that was never seen to run costs nothing.
    let stack = Stack::new();
    stack.decide(vec![Fact::TuningSubmitted]);
    stack.decide(vec![Fact::JobStarted { job: job(0) }]);
    stack.service.lock().describe = Some(Ok(never.clone()));
    let bill = stack.order(Order::Read(ReadOrder::Bill { job: job(0) }));
    assert_eq!(stack.perform(&bill), Performed::Done(Effect::Other));
    assert!(stack.knows("described#0-0-1"));
}

/// A job that had failed, or was stopped, was reported to have completed without a value.
#[test]
fn regression_only_a_job_that_ended_by_itself_shows_that_its_log_has_no_value() {
    for (at_once, is_reported) in [(true, false), (false, true)] {
        let stack = Stack::new();
        stack.service.lock().read = Some(Ok(1));
        let ended = Time(NOW - 100_000);
        let rest = stack.order(Order::Read(ReadOrder::Rest { job: job(0), ordered: ended, ended, at_once }));
        assert_eq!(stack.perform(&rest), Performed::Done(Effect::Other));
        assert_eq!(stack.knows("problem#no-value"), is_reported, "at once: {at_once}");
    }
}

/// After a crash between the two facts, the tuning ended a minute later: nothing repeated the confirmation of the bill.
#[test]
fn regression_a_crash_between_the_facts_of_a_bill_leaves_its_action_open() {
    let mut stack = Stack::new();
    stack.actuator.bills_are_final = true;
    let bill = stack.order(Order::Read(ReadOrder::Bill { job: job(0) }));
    assert_eq!(stack.perform(&bill), Performed::Done(Effect::Other));
    let written: Vec<String> = stack.table.changes().into_iter().map(|change| change.key.sk).collect();
    let place = |part: &str| written.iter().position(|key| key.ends_with(part));
    assert!(place("bill-final#0-0-1") < place("described#0-0-1"), "{written:?}");
    assert!(place("bill-final#0-0-1").is_some());
}
