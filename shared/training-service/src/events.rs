//! Changes of state, told on the event bus: at least once, in order per job, and never at a job's expense.
//!
//! A job's next event waits for the one before; jobs do not wait for each other. What cannot be delivered after its tries
//! is given up and told; whoever needs it heals by looking. Must never keep more events than its bound, nor stop reading
//! the feed.

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use eventbridge::{Event, EventBus};
use serde_json::Value;
use service::ports::BusError;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::{EventsTo, Tell};

/// The bus that AWS services use.
const BUS: &str = "default";
/// Calls under way at once.
const CALLS_MAX: usize = 8;
/// Events that wait. A job has about five.
const WAITING_MAX: usize = 10_000;
/// Tries of one event, the pauses between them twice as long each.
const TRIES: u32 = 6;
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// Carries the feed to the bus until it ends, and what waits then.
pub(crate) async fn carry(mut feed: mpsc::Receiver<Value>, to: Option<EventsTo>, tell: Tell) {
    let Some(EventsTo { account, source }) = to else {
        while let Some(event) = feed.recv().await {
            tell(&line(&event));
        }
        return;
    };
    let sender = Sender {
        bus: EventBus::new(&account, BUS.to_owned()),
        source,
        room: Semaphore::new(CALLS_MAX),
        tell,
    };
    let mut queues =
        Queues { sender: Arc::new(sender), waiting: BTreeMap::new(), count: 0, at_work: JoinSet::new() };
    loop {
        tokio::select! {
            event = feed.recv() => match event {
                Some(event) => queues.take(event),
                None => break,
            },
            Some(sent) = queues.at_work.join_next() => queues.next(sent.ok()),
        }
    }
    while let Some(sent) = queues.at_work.join_next().await {
        queues.next(sent.ok());
    }
}

/// The events of each job that has one under way.
struct Queues {
    sender: Arc<Sender>,
    waiting: BTreeMap<String, VecDeque<Value>>,
    count: usize,
    at_work: JoinSet<String>,
}

impl Queues {
    fn take(&mut self, event: Value) {
        (self.sender.tell)(&line(&event));
        let job = text(&event, "/detail/TrainingJobName").to_owned();
        match self.waiting.get_mut(&job) {
            None => {
                self.waiting.insert(job.clone(), VecDeque::new());
                self.send(job, event);
            }
            Some(_) if self.count >= WAITING_MAX => {
                (self.sender.tell)(&format!("an event of {job} was not sent: {WAITING_MAX} others wait"));
            }
            Some(waiting) => {
                self.count += 1;
                waiting.push_back(event);
            }
        }
    }

    /// An event of `job` is out of the way.
    fn next(&mut self, job: Option<String>) {
        // A sender that panicked would leave its job silent; there is none.
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
        self.at_work.spawn(async move {
            sender.send(&job, &event).await;
            job
        });
    }
}

struct Sender {
    bus: EventBus,
    source: String,
    room: Semaphore,
    tell: Tell,
}

impl Sender {
    /// Sends an event, or gives it up.
    async fn send(&self, job: &str, envelope: &Value) {
        let mut pause = FIRST_PAUSE;
        for attempt in 1..=TRIES {
            let error = match self.put(envelope).await {
                Ok(()) => return,
                Err(error) => error,
            };
            if matches!(error, BusError::Refused(_)) || attempt == TRIES {
                let state = text(envelope, "/detail/SecondaryStatus");
                (self.tell)(&format!("the event {state} of {job} was not delivered: {error}"));
                return;
            }
            sleep(pause).await;
            pause = pause.saturating_mul(2);
        }
    }

    async fn put(&self, envelope: &Value) -> Result<(), BusError> {
        let _room = self.room.acquire().await;
        let resources = envelope["resources"].as_array().into_iter().flatten();
        let event = Event {
            source: &self.source,
            detail_type: text(envelope, "/detail-type"),
            detail: &envelope["detail"],
            resources: resources.filter_map(Value::as_str).map(str::to_owned).collect(),
            time: envelope["detail"]["LastModifiedTime"].as_i64(),
        };
        self.bus.put(event).await
    }
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The event for a person.
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
