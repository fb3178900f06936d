//! Deliveries from the training service: state changes (`EventBridge`) and log lines (a log subscription), in their
//! real JSON. Faults delay, duplicate, reorder, split or lose them.

use serde_json::{Value, json};
use wire::events::logs::{LogBatch, LogEvent, MessageType};

use super::World;
use super::queue::{Delivery, Event, What};
use crate::fault::Kind;
use crate::plan::{HOUR, MINUTE, Order};

/// Number of failures after which a delivery is dropped.
const FAILURES_MAX: u32 = 20;

impl World {
    /// Sends an event with the current state of a job.
    pub(crate) fn send_job_event(&mut self, index: usize) {
        if self.faults.strikes(Kind::EventLost) {
            return;
        }
        let event = self.job_event(index);
        let copies = 1 + i32::from(self.faults.strikes(Kind::EventDuplicated));
        for _ in 0..copies {
            let at = self.arrival(Kind::EventDelayed);
            let what = What::JobEvent(event.clone());
            self.queue.push(at, Event::Deliver(Delivery { what, failures: 0 }));
        }
        self.maybe_junk(&event);
    }

    /// Draws the arrival time of a delivery that is sent now.
    fn arrival(&mut self, delayed: Kind) -> i64 {
        let usual = self.now + self.dice.between(200, 3_000);
        let at =
            if self.faults.strikes(delayed) { usual + self.dice.between(MINUTE, 6 * HOUR) } else { usual };
        match self.plan.order {
            Order::Reversed(window) if self.faults_on => {
                let start = at - at.rem_euclid(window);
                start + 2 * window - (at - start)
            }
            Order::Natural | Order::Reversed(_) => at,
        }
    }

    fn job_event(&self, index: usize) -> Value {
        let job = &self.training.jobs[index];
        let now = &job.now;
        let transitions: Vec<Value> = job
            .transitions
            .iter()
            .map(|(status, start)| json!({"Status": status, "StartTime": start, "StatusMessage": ""}))
            .collect();
        // Some real events have their times as strings.
        let time = |ms: i64| if index % 5 == 4 { json!(ms.to_string()) } else { json!(ms) };
        let maybe = |ms: Option<i64>| ms.map_or(Value::Null, time);
        json!({
            "version": "0",
            "detail-type": "SageMaker Training Job State Change",
            "source": "aws.sagemaker",
            "account": "111122223333",
            "region": "us-east-1",
            "detail": {
                "TrainingJobName": now.name,
                "TrainingJobStatus": now.status,
                "SecondaryStatus": now.secondary_status,
                "FailureReason": now.failure_reason,
                "CreationTime": time(now.created.0),
                "TrainingStartTime": maybe(now.started.map(|time| time.0)),
                "TrainingEndTime": maybe(now.ended.map(|time| time.0)),
                "LastModifiedTime": time(now.modified.0),
                "SecondaryStatusTransitions": transitions,
                "Tags": job.tags,
            },
        })
    }

    /// Sends the lines of a log stream that are not sent yet.
    pub(crate) fn flush(&mut self, index: usize, stream: usize) {
        let stream = &mut self.training.jobs[index].streams[stream];
        stream.flush_due = false;
        let lines = stream.lines.get(stream.sent..).unwrap_or_default();
        let event = |line: &use_cases::ports::training::LogLine| LogEvent {
            id: line.id.clone(),
            timestamp: line.timestamp.0,
            message: line.message.clone(),
        };
        let batch = LogBatch {
            message_type: MessageType::Data,
            log_group: "/aws/sagemaker/TrainingJobs".to_owned(),
            log_stream: stream.name.clone(),
            events: lines.iter().map(event).collect(),
        };
        stream.sent = stream.lines.len();
        self.tally.batches += 1;
        self.tally.lines += u64::try_from(batch.events.len()).unwrap_or(0);
        if self.faults.strikes(Kind::LogLost) {
            return;
        }
        let twice = self.faults.strikes(Kind::LogDuplicated);
        let (at, other) = (self.arrival(Kind::LogDelayed), self.arrival(Kind::LogDelayed));
        if twice {
            for part in self.split_batch(&batch) {
                self.queue.push(other, Event::Deliver(Delivery { what: What::Logs(part), failures: 0 }));
            }
        }
        self.queue.push(at, Event::Deliver(Delivery { what: What::Logs(batch), failures: 0 }));
    }

    fn split_batch(&mut self, batch: &LogBatch) -> Vec<LogBatch> {
        if batch.events.len() < 2 {
            return vec![batch.clone()];
        }
        let at = 1 + self.dice.index(batch.events.len() - 1);
        let part = |events: &[LogEvent]| LogBatch { events: events.to_vec(), ..batch.clone() };
        vec![part(&batch.events[..at]), part(&batch.events[at..])]
    }

    /// Queues an asynchronous invocation of the actuator.
    pub(crate) fn invoke_later(&mut self, starts: Value) {
        let at = self.now + self.dice.between(10, 500);
        self.queue.push(at, Event::Deliver(Delivery { what: What::Starts(starts), failures: 0 }));
    }

    /// Schedules another delivery after a failure.
    pub(crate) fn deliver_again(&mut self, delivery: Delivery) {
        let failures = delivery.failures + 1;
        if failures >= FAILURES_MAX {
            self.deliveries_dropped += 1;
            return;
        }
        let at = self.now + self.dice.between(1_000, MINUTE * i64::from(failures));
        self.queue.push(at, Event::Deliver(Delivery { failures, ..delivery }));
    }

    /// Sometimes delivers junk: events of other jobs, similar names, or unreadable data.
    fn maybe_junk(&mut self, event: &Value) {
        if !self.faults.strikes(Kind::Junk) {
            return;
        }
        let mut junk = event.clone();
        let logs = match self.dice.index(6) {
            0 => {
                junk["detail"]["Tags"] = json!({});
                false
            }
            1 => {
                junk["detail"]["TrainingJobName"] = json!("other-job-7");
                false
            }
            2 => {
                junk["detail"]["SecondaryStatusTransitions"] = json!("?");
                junk["detail"]["LastModifiedTime"] = Value::Null;
                false
            }
            3 => {
                junk = json!({"awslogs": {"data": "bm90IGd6aXA="}});
                true
            }
            4 => {
                let batch = LogBatch {
                    message_type: MessageType::Data,
                    log_group: String::new(),
                    log_stream: "sim0-abcdef-0-0-1/algo-1-5".to_owned(),
                    events: vec![LogEvent {
                        id: "1".to_owned(),
                        timestamp: self.now,
                        message: "auc=9;".to_owned(),
                    }],
                };
                junk = batch.encode();
                true
            }
            _ => {
                junk["detail"]["SecondaryStatus"] = json!("Unheard");
                junk["detail"]["TrainingJobStatus"] = json!("Unheard");
                junk["detail"]["Tags"] = json!({"hyperband:stack": "other"});
                false
            }
        };
        let at = self.now + self.dice.between(1, 10_000);
        self.queue
            .push(at, Event::Deliver(Delivery { what: What::Junk(junk, !logs), failures: FAILURES_MAX }));
    }
}
