//! Sends state change events to the event bus: at least once, in order per job, without delaying any job.
//!
//! Each event of a job waits for the previous one. Jobs do not wait for each other. An event that cannot be delivered
//! is dropped after [`ATTEMPTS`] attempts and reported; receivers recover by describing the job. At most
//! [`WAITING_MAX`] events wait, and the feed is always read.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use aws::event_bus::{Event, EventBus};
use serde_json::Value;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::sleep;
use use_cases::ports::BusError;

use crate::{EventsTo, Report};
use use_cases::ports::Time;

/// The bus that AWS services use.
const BUS: &str = "default";
/// The maximum number of concurrent calls.
const CALLS_MAX: usize = 8;
/// The maximum number of waiting events. A job has about five.
const WAITING_MAX: usize = 10_000;
/// The maximum number of attempts to send one event.
const ATTEMPTS: u32 = 6;
/// The pause after the first attempt. Each further pause is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// Sends the events of the feed until it ends, then the waiting events.
pub(crate) async fn forward(mut feed: mpsc::Receiver<Value>, to: Option<EventsTo>, report: Report) {
    let Some(EventsTo { account, source }) = to else {
        while let Some(event) = feed.recv().await {
            report(&line(&event));
        }
        return;
    };
    let sender = Sender {
        bus: EventBus::new(&account, BUS.to_owned()),
        source,
        calls: Semaphore::new(CALLS_MAX),
        report,
    };
    let mut queues =
        Queues { sender: Arc::new(sender), waiting: BTreeMap::new(), count: 0, sending: JoinSet::new() };
    loop {
        tokio::select! {
            event = feed.recv() => match event {
                Some(event) => queues.push(event),
                None => break,
            },
            Some(sent) = queues.sending.join_next() => queues.send_next(sent.ok()),
        }
    }
    while let Some(sent) = queues.sending.join_next().await {
        queues.send_next(sent.ok());
    }
}

/// The waiting events of each job whose previous event is being sent.
struct Queues {
    sender: Arc<Sender>,
    waiting: BTreeMap<String, VecDeque<Value>>,
    /// The number of waiting events of all jobs.
    count: usize,
    sending: JoinSet<String>,
}

impl Queues {
    fn push(&mut self, event: Value) {
        (self.sender.report)(&line(&event));
        let job = text(&event, "/detail/TrainingJobName").to_owned();
        match self.waiting.get_mut(&job) {
            None => {
                self.waiting.insert(job.clone(), VecDeque::new());
                self.send(job, event);
            }
            Some(_) if self.count >= WAITING_MAX => {
                let text = format!("dropped an event of {job}: {WAITING_MAX} events are waiting already");
                (self.sender.report)(&text);
            }
            Some(waiting) => {
                self.count += 1;
                waiting.push_back(event);
            }
        }
    }

    /// Sends the next waiting event of `job`, after the previous one was sent or dropped.
    fn send_next(&mut self, job: Option<String>) {
        // `None` means that a sender panicked. No sender does.
        let Some(job) = job else { return };
        match self.waiting.get_mut(&job).and_then(VecDeque::pop_front) {
            Some(event) => {
                self.count -= 1;
                self.send(job, event);
            }
            None => {
                self.waiting.remove(&job);
            }
        }
    }

    fn send(&mut self, job: String, event: Value) {
        let sender = Arc::clone(&self.sender);
        self.sending.spawn(async move {
            sender.send(&job, &event).await;
            job
        });
    }
}

struct Sender {
    bus: EventBus,
    source: String,
    calls: Semaphore,
    report: Report,
}

impl Sender {
    /// Sends an event. Drops and reports it when it is refused or all attempts fail.
    async fn send(&self, job: &str, envelope: &Value) {
        let mut pause = FIRST_PAUSE;
        for attempt in 1..=ATTEMPTS {
            let error = match self.put(envelope).await {
                Ok(()) => return,
                Err(error) => error,
            };
            if matches!(error, BusError::Refused(_)) || attempt == ATTEMPTS {
                let state = text(envelope, "/detail/SecondaryStatus");
                (self.report)(&format!("dropped the event {state} of {job}: {error}"));
                return;
            }
            sleep(pause).await;
            pause = pause.saturating_mul(2);
        }
    }

    async fn put(&self, envelope: &Value) -> Result<(), BusError> {
        let _call = self.calls.acquire().await;
        let resources = envelope["resources"].as_array().into_iter().flatten();
        let event = Event {
            source: &self.source,
            detail_type: text(envelope, "/detail-type"),
            detail: &envelope["detail"],
            resources: resources.filter_map(Value::as_str).map(str::to_owned).collect(),
            time: envelope["detail"]["LastModifiedTime"].as_i64().map(Time),
        };
        self.bus.put(event).await
    }
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn line(event: &Value) -> String {
    let mut line = format!(
        "{} {} {} {}",
        text(event, "/time"),
        text(event, "/detail/TrainingJobName"),
        text(event, "/detail/TrainingJobStatus"),
        text(event, "/detail/SecondaryStatus"),
    );
    if let Some(reason) = event.pointer("/detail/FailureReason").and_then(Value::as_str) {
        line.push_str(": ");
        line.push_str(reason);
    }
    line
}
