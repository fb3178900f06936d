//! The table's change stream and its two consumers: ordered shards, batches of any size, at-least-once delivery and
//! partial failures. Faults delay, repeat or lose records.

use std::collections::VecDeque;

use port_tests::memory::Change;
use serde_json::{Value, json};
use wire::events::stream::{RecordKind, encode_record};
use wire::stored::{ACTION_PREFIX, FACT_PREFIX, RING_PREFIX};

use super::World;
use super::queue::{Consumer, Event, Record};
use crate::dice::fnv;
use crate::fault::Kind;
use crate::plan::{Batches, HOUR, Mapping, Order};
use crate::site::Site;

/// Maximum number of records in a batch.
const BATCH_MAX: i64 = 30;
/// Retention of a record, in ms.
const RETENTION_MS: i64 = 24 * HOUR;

/// One shard, as one consumer reads it.
#[derive(Debug, Default)]
pub(crate) struct Shard {
    waiting: VecDeque<Record>,
    /// Number of records in the batch that is being handled.
    in_flight: usize,
    busy: bool,
    pump_due: bool,
    failures: u32,
}

impl Consumer {
    /// Returns the consumer of a change.
    fn of(change: &Change) -> Option<Self> {
        let pk = &change.key.pk;
        let new = change.new.is_some();
        if new && (pk.starts_with(FACT_PREFIX) || pk.starts_with(RING_PREFIX)) {
            Some(Self::Decider)
        } else if new && change.old.is_none() && pk.starts_with(ACTION_PREFIX) {
            Some(Self::Actuator)
        } else {
            None
        }
    }

    fn index(self) -> usize {
        match self {
            Self::Decider => 0,
            Self::Actuator => 1,
        }
    }
}

impl World {
    /// Puts a change of the table into the stream.
    pub(crate) fn stream_change(&mut self, change: &Change) {
        let Some(consumer) = Consumer::of(change) else { return };
        let elapsed = self.now - self.start;
        let outage = self.plan.stream_outage.is_some_and(|(from, to)| (from..to).contains(&elapsed));
        if outage {
            self.faults.count(Kind::StreamOutage, Site::World);
        }
        if outage || self.faults.strikes(Kind::StreamLost) {
            self.records_lost += 1;
            return;
        }
        let kind = if change.old.is_some() { RecordKind::Modify } else { RecordKind::Insert };
        let value = encode_record(change.sequence, kind, &change.key, change.new.as_ref());
        let shards = u64::try_from(self.plan.shards.max(1)).unwrap_or(1);
        let shard =
            usize::try_from(fnv(&format!("{}/{}", change.key.pk, change.key.sk)) % shards).unwrap_or(0);
        let record = Record { at: self.now, value };
        self.shard(consumer, shard).waiting.push_back(record);
        self.pump_later(consumer, shard, 0);
    }

    fn shard(&mut self, consumer: Consumer, shard: usize) -> &mut Shard {
        &mut self.shards[consumer.index()][shard]
    }

    /// Returns the mapping of a consumer. `None` = batches of random size.
    fn mapping(&self, consumer: Consumer) -> Option<Mapping> {
        match (self.plan.batches, consumer) {
            (Batches::Anywhere, _) => None,
            (Batches::As { decider, .. }, Consumer::Decider) => Some(decider),
            (Batches::As { actuator, .. }, Consumer::Actuator) => Some(actuator),
        }
    }

    fn pump_later(&mut self, consumer: Consumer, shard: usize, wait: i64) {
        if std::mem::replace(&mut self.shard(consumer, shard).pump_due, true) {
            return;
        }
        // Sometimes longer than the retention of records.
        let (least, most) = self.dice.pick(&[(0, 1), (0, 1), (0, 1), (0, 1), (25, 30)]);
        let strikes = self.faults.strikes(Kind::StreamDelayed);
        let delay = if strikes { 1_000 + self.dice.between(least * HOUR, most * HOUR) } else { 0 };
        let gathered = match self.mapping(consumer) {
            None => self.dice.between(50, 1_000),
            // Lambda polls the stream four times a second.
            Some(mapping) => mapping.window_ms + self.dice.between(0, 250),
        };
        let mut at = self.now + wait + delay + gathered;
        if let (Order::Reversed(window), true) = (self.plan.order, self.faults_on) {
            at += window - at.rem_euclid(window);
        }
        self.queue.push(at, Event::Pump(consumer, shard));
    }

    /// Returns the next batch of a shard, unless one is being handled.
    pub(crate) fn next_batch(&mut self, consumer: Consumer, shard: usize) -> Option<Vec<Record>> {
        let size = match self.mapping(consumer) {
            None => usize::try_from(self.dice.between(1, BATCH_MAX)).unwrap_or(1),
            Some(mapping) => mapping.size,
        };
        let (now, reversed) = (self.now, self.plan.order != Order::Natural && self.faults_on);
        let mut expired = 0;
        let state = self.shard(consumer, shard);
        state.pump_due = false;
        if state.busy {
            return None;
        }
        while state.waiting.front().is_some_and(|record| now - record.at > RETENTION_MS) {
            state.waiting.pop_front();
            expired += 1;
        }
        if reversed && state.failures == 0 {
            state.waiting.make_contiguous().reverse();
        }
        let batch: Vec<Record> = state.waiting.iter().take(size).cloned().collect();
        state.busy = !batch.is_empty();
        state.in_flight = batch.len();
        self.records_lost += expired;
        if expired > 0 {
            self.faults.count(Kind::StreamExpired, Site::World);
        }
        (!batch.is_empty()).then_some(batch)
    }

    /// Ends the handling of a batch. `failed` has the sequence numbers in the response; `None` = the function crashed.
    pub(crate) fn batch_done(&mut self, consumer: Consumer, shard: usize, failed: Option<&[String]>) {
        let tries_max = self.plan.stream_tries_max;
        let duplicated = self.faults.strikes(Kind::StreamDuplicated);
        let state = self.shard(consumer, shard);
        state.busy = false;
        // All records from the lowest failed one on are delivered again.
        let number = |record: &Record| record.value["dynamodb"]["SequenceNumber"].as_str().map(str::to_owned);
        let done = match failed {
            None => 0,
            Some(failed) => {
                let batch = state.waiting.iter().take(state.in_flight);
                let lowest =
                    batch.clone().position(|r| number(r).is_some_and(|number| failed.contains(&number)));
                lowest.unwrap_or(state.in_flight)
            }
        };
        let all_done = done == state.in_flight;
        state.failures = if all_done { 0 } else { state.failures + 1 };
        let dropped = state.failures >= tries_max;
        let taken = if dropped { state.in_flight } else { done };
        let handled: Vec<Record> = state.waiting.drain(..taken.min(state.waiting.len())).collect();
        let failures = if dropped { std::mem::take(&mut state.failures) } else { state.failures };
        let more = !state.waiting.is_empty();
        if dropped {
            self.faults.count(Kind::StreamGivenUp, Site::World);
            self.records_lost += 1;
        }
        if duplicated && !handled.is_empty() {
            let at = self.now + self.dice.between(0, 600_000);
            self.queue.push(at, Event::Redeliver(consumer, handled));
        }
        if more {
            let backoff = if all_done { 0 } else { 500 << failures.min(7) };
            self.pump_later(consumer, shard, backoff);
        }
    }
}

/// Returns the Lambda event of a batch.
pub(crate) fn event_of(batch: &[Record]) -> Value {
    json!({"Records": batch.iter().map(|record| record.value.clone()).collect::<Vec<_>>()})
}
