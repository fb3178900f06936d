//! Performs a batch of new action rows from the stream, in this order: stops, starts, bills, all other actions. Several
//! stops, or several bills, are performed at a time.
//!
//! The stops of the next batch wait for this batch. Therefore, another invocation performs the starts, and the time to
//! read logs is bounded here. The sweeper reads the rest, and performs the starts if that invocation is lost. In
//! whatever order the start and the stop of a job are performed, the job ends stopped or never starts.

use futures_util::future::{join, join_all};
use serde_json::Value;
use tuning::unit::time::{Millis, Time};
use wire::events::stream::{self, BadRecord, RecordKind};
use wire::stored::{self, ACTION_PREFIX, ActionRow};

use super::hand_over::{self, NoHandOver};
use super::{Actuator, Announcement, Due, Performed};
use crate::batch::{Batch, Part, Progress, Unreadable};
use crate::ports::table::Table;
use crate::ports::training::{JobLogs, TrainingJobs};
use crate::ports::{Bus, HandOver, Timer};
use crate::store::StoreError;

/// Most pages read of one log.
const LOG_PAGES: usize = 10;
/// Number of stops sent at once. A job that waits for its stop costs money, and the stops of a rung come together.
const STOPS_AT_ONCE: usize = 5;
/// The position of starts in the order of a batch.
const STARTS: u32 = 1;
/// Number of bills read at once. With 200 ms for each, this is fewer than ten a second.
const BILLS_AT_ONCE: usize = 2;
/// The position of bills in the order of a batch.
const BILLS: u32 = 3;
/// Why a start was not sent.
const NO_TURN: &str = "all tunings share the account's rate of CreateTrainingJob: the sweeper sends it";
/// Why this batch does not try an action.
const LEFT_TO_SWEEPER: &str = "the sweeper performs it, since this invocation has no time left for it";
/// No start begins later than this after the beginning of a batch. Each may wait for its turn.
const STARTS_TIME: Millis = Millis::from_seconds(60);
/// No log read starts later than this after the beginning of a batch's reads.
const READS: Millis = Millis::from_seconds(15);

/// The result of one action of a batch.
#[derive(Debug, Default)]
pub struct ActionResult {
    /// The action's name.
    pub action: String,
    /// Its row in the record, until it is tried.
    pub row: Option<Box<ActionRow>>,
    /// The result. `None` until the action was tried.
    pub performed: Option<Performed>,
    /// Why its event could not be published. `None` if it was published or has no event.
    pub unpublished: Option<String>,
    /// Why a start was not handed over, if that failed.
    pub kept: Option<String>,
}

/// A batch of new action rows. Each part is one action.
pub type ActionBatch = Batch<ActionResult>;

impl<T: Table, J: TrainingJobs + JobLogs, B: Bus, C: Timer> Actuator<T, J, B, C> {
    /// Performs a batch of stream records of new action rows while `has_time` returns true. `batch` receives the results
    /// and the records to deliver again. Actions that cost money while they wait come first.
    pub async fn handle(
        &self,
        event: &Value,
        has_time: impl Fn() -> bool + Send + Sync,
        batch: &mut ActionBatch,
    ) {
        self.handle_within(event, None::<&NoHandOver>, has_time, batch).await;
    }

    /// Like [`handle`](Self::handle), but another invocation performs the starts, so that the stops of the next batch
    /// do not wait for them. `event` is a batch, or the payload of such a hand-over. A start that is not handed over is
    /// performed here.
    pub async fn handle_handing_over(
        &self,
        event: &Value,
        elsewhere: &impl HandOver,
        has_time: impl Fn() -> bool + Send + Sync,
        batch: &mut ActionBatch,
    ) {
        let elsewhere = Some(elsewhere).filter(|_| !hand_over::is_payload(event));
        self.handle_within(event, elsewhere, has_time, batch).await;
    }

    async fn handle_within(
        &self,
        event: &Value,
        elsewhere: Option<&impl HandOver>,
        has_time: impl Fn() -> bool + Send + Sync,
        batch: &mut ActionBatch,
    ) {
        sort(event, batch);
        let starts_until = self.clock.now() + STARTS_TIME;
        let bills = first(&batch.parts, BILLS)..first(&batch.parts, BILLS + 1);
        let (starts, after) = (first(&batch.parts, STARTS), first(&batch.parts, STARTS + 1));
        let (urgent, others) = batch.parts.split_at_mut(bills.start);
        let (bills, others) = others.split_at_mut(bills.len());
        let (stops, rest) = urgent.split_at_mut(starts);
        let (starts, money) = rest.split_at_mut(after - starts);
        let stopped = self.act_several(&has_time, stops, STOPS_AT_ONCE);
        join(stopped, hand_over(elsewhere, starts)).await;
        for part in starts.iter_mut().filter(|part| !matches!(part.progress, Progress::Done)) {
            self.act_until(starts_until, &has_time, part).await;
            // The next start may wait for its turn, and the tuning may end before.
            self.announce(&has_time, part).await;
        }
        for part in money {
            self.act_while(&has_time, part).await;
        }
        self.act_several(&has_time, bills, BILLS_AT_ONCE).await;
        let reads_until = self.clock.now() + READS;
        for part in others {
            let until = if reads(&part.done.action) { reads_until } else { Time::MAX };
            self.act_until(until, &has_time, part).await;
        }
        // Publish last, so that a slow event bus does not delay a stop.
        for part in batch.parts.iter_mut().filter(|part| position(&part.done.action) != STARTS) {
            self.announce(&has_time, part).await;
        }
    }

    /// Publishes the event of an action, if it has one.
    async fn announce(&self, has_time: &(impl Fn() -> bool + Send + Sync), part: &mut Part<ActionResult>) {
        let Part { tuning, done, .. } = part;
        let announcement =
            done.performed.as_ref().and_then(|performed| Announcement::of(&done.action, performed));
        let Some(announcement) = announcement else { return };
        let published = if has_time() {
            self.publish(tuning, announcement).await
        } else {
            Err("no time left".to_owned())
        };
        done.unpublished = published.err();
    }

    /// Performs the actions, `at_once` at a time.
    async fn act_several(
        &self,
        has_time: &(impl Fn() -> bool + Send + Sync),
        parts: &mut [Part<ActionResult>],
        at_once: usize,
    ) {
        for several in parts.chunks_mut(at_once) {
            join_all(several.iter_mut().map(|part| self.act_while(has_time, part))).await;
        }
    }

    /// Like [`act_while`](Self::act_while), but leaves the action to the sweeper from `until` on.
    async fn act_until(
        &self,
        until: Time,
        has_time: &(impl Fn() -> bool + Send + Sync),
        part: &mut Part<ActionResult>,
    ) {
        if has_time() && self.clock.now() >= until {
            part.done.performed = Some(Performed::Deferred(LEFT_TO_SWEEPER.to_owned()));
            part.progress = Progress::Done;
        } else {
            self.act_while(has_time, part).await;
        }
    }

    async fn act_while(&self, has_time: &(impl Fn() -> bool + Send + Sync), part: &mut Part<ActionResult>) {
        if !has_time() {
            return;
        }
        let row = part.done.row.take();
        part.progress = match self.act_on(&part.tuning, &part.done.action, row).await {
            Ok(performed) => {
                part.done.performed = Some(performed);
                Progress::Done
            }
            Err(error) => Progress::Failed(error),
        };
    }

    /// Performs an action by its row in the record, as far as the row has not changed since. The claim, which is
    /// conditional on the revision, shows that; then the present row counts.
    async fn act_on(
        &self,
        id: &str,
        action: &str,
        row: Option<Box<ActionRow>>,
    ) -> Result<Performed, StoreError> {
        if let Some(row) = row {
            let due = self.due_row(*row);
            let is_due = matches!(due, Due::Now(_));
            let performed = self.act_if_due(id, action, due).await?;
            if !is_due || performed != Performed::NotNow {
                return Ok(performed);
            }
        }
        let due = self.due(id, action).await?;
        self.act_if_due(id, action, due).await
    }

    async fn act_if_due(&self, id: &str, action: &str, due: Due) -> Result<Performed, StoreError> {
        match position(action) {
            STARTS => {
                let started = self.perform_start(id, due).await?;
                Ok(started.unwrap_or_else(|| Performed::Deferred(NO_TURN.to_owned())))
            }
            _ => self.perform_due(id, due, LOG_PAGES).await,
        }
    }
}

/// Returns the index of the first part whose position is at least `least`.
fn first(parts: &[Part<ActionResult>], least: u32) -> usize {
    parts.partition_point(|part| position(&part.done.action) < least)
}

fn part(tuning: &str, action: &str) -> Part<ActionResult> {
    let mut part = Part::<ActionResult>::new(tuning);
    action.clone_into(&mut part.done.action);
    part
}

/// Hands the starts over, and marks them as done if that succeeds. Sends nothing if there are none.
async fn hand_over(elsewhere: Option<&impl HandOver>, starts: &mut [Part<ActionResult>]) {
    let Some(elsewhere) = elsewhere.filter(|_| !starts.is_empty()) else { return };
    let names = starts.iter().map(|part| (part.tuning.as_str(), part.done.action.as_str()));
    match elsewhere.hand_over(&hand_over::payload(names)).await {
        Ok(()) => starts.iter_mut().for_each(|part| part.progress = Progress::Done),
        Err(error) => starts.iter_mut().for_each(|part| part.done.kept = Some(error.to_string())),
    }
}

/// Sorts a batch, or the payload of a hand-over, into the order in which its actions are performed. Ignores records
/// other than inserted actions.
fn sort(event: &Value, batch: &mut ActionBatch) {
    if hand_over::is_payload(event) {
        for start in hand_over::read(event) {
            match start {
                Ok((tuning, action)) => batch.parts.push(part(tuning, action)),
                Err(reason) => batch.unreadable.push(Unreadable { sequence: None, tuning: None, reason }),
            }
        }
        return;
    }
    for record in stream::parse(event) {
        match record {
            Ok(record) if record.kind == RecordKind::Insert => {
                let Some(id) = stored::id_of(&record.key, ACTION_PREFIX) else { continue };
                let mut part = part(id, &record.key.sk);
                // An unreadable image is left to the read of the row, which reports it.
                part.done.row = record.new.and_then(|row| ActionRow::read(&row).ok()).map(Box::new);
                part.sequences.push(record.sequence_number);
                batch.parts.push(part);
            }
            Ok(_) => {}
            Err(BadRecord { sequence_number: sequence, reason }) => {
                batch.unreadable.push(Unreadable { sequence, tuning: None, reason });
            }
        }
    }
    batch.parts.sort_by_key(|part| position(&part.done.action));
}

/// Returns the position of an action in the order, from its name. Actions of equal position keep their order.
fn position(action: &str) -> u32 {
    match action.split('-').next().unwrap_or_default() {
        "stop" => 0,
        "start" => STARTS,
        "grant" | "return" | "release" | "pool" => 2,
        "bill" => BILLS,
        _ if !reads(action) => 4,
        _ => 5,
    }
}

/// Returns whether an action may read a log.
fn reads(action: &str) -> bool {
    matches!(action.split('-').next().unwrap_or_default(), "read" | "rest" | "look")
}
