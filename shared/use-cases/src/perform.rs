//! The actuator's use case: performs one ordered action. Performing it twice has the same effect as performing it once.
//!
//! The actuator claims the row (a conditional write that expires), acts, stores the outcome as a fact, and marks the
//! row. After a crash between any two of these steps, the sweeper performs the action again once the claim has expired.
//! The second time changes nothing, because the name of a training job is computed and never reused. The actuator makes
//! no choices: the ruling in the row contains every detail.

mod batch;
pub(crate) mod bill;
mod decision;
mod grant;
mod hand_over;
pub(crate) mod log;
mod notice;
mod pool;
mod read;
mod silence;
mod start;
mod stop;

pub use batch::{ActionBatch, ActionResult};
pub(crate) use decision::Announcement;
pub use decision::TRIAL_DECISION;
pub use notice::{CAPACITY_ALARM, COST_ALARM, TUNING_STATE_CHANGE};

use std::sync::Arc;

use tuning::log::fact::{Fact, Recorded};
use tuning::log::reasons::StopWhy;
use tuning::log::ruling::{GrantOrder, Judged, Order, PoolOrder, ReadOrder};
use tuning::unit::money::MicroUsd;
use tuning::unit::time::{Millis, Time};
use wire::events::job_state::cut_message;
use wire::names::{digest, training_job_name};
use wire::stored::{self, ActionRow, ActionStatus, REVISION};

use crate::describe::Place;
use crate::pace::{Bucket, Pace};
use crate::ports::table::{Condition, Table, TableError, Write};
use crate::ports::training::{JobLogs, TrainingJobs, TrainingJobsError};
use crate::ports::{Bus, Timer};
use crate::record;
use crate::store::{Store, StoreError};

/// Duration of a claim in the cloud: longer than the time limits of the function and the SDK together.
pub const CLAIM: Millis = Millis::from_seconds(180);
/// Maximum delay in the cloud until a written log line can be read back.
pub const LOG_LAG: Millis = Millis::from_seconds(30);
/// An operation starts only if the claim is valid for at least this long.
const CLAIM_MARGIN: Millis = Millis::from_seconds(1);
/// Minimum time between the expiry of a claim and the cancellation of a start that may have been sent under it.
/// By then the job is visible if it exists, and the holder of the claim has terminated.
pub const ABANDONED: Millis = Millis::from_seconds(60);
/// Most pages read of a log, so that a flooded log does not delay all other work. Twice this number (the tail is read
/// separately) must fit one sweep at the sweeper's pace, or the sweeper would never finish such a log.
pub(crate) const LOG_PAGES_MAX: usize = 40;
/// Longest wait before a deferred action is retried.
const DEFER_MAX: Millis = Millis::from_seconds(300);

/// The actuator and its dependencies.
#[derive(Debug)]
pub struct Actuator<T, J, B, C> {
    /// Reads tunings.
    pub store: Arc<Store<T>>,
    /// The training service and its logs.
    pub jobs: J,
    /// Receives notices.
    pub bus: B,
    /// The current time.
    pub clock: C,
    /// Paces starts and pages of logs. `None`: the training service has no rate limits.
    pub pace: Option<Pace>,
    /// Name of this stack.
    pub stack: String,
    /// Maximum delay of a job's last log lines after its end. See [`LOG_LAG`].
    pub log_lag_ms: Millis,
    /// Whether the first bill of a job is never followed by a higher one.
    pub bills_are_final: bool,
    /// Duration of a claim. See [`CLAIM`].
    pub claim_ms: Millis,
    /// First wait before a deferred action is retried. It doubles with each try.
    pub defer_ms: Millis,
    /// How long after the end of a claim a request sent under it may still take effect. See [`ABANDONED`].
    pub abandoned_ms: Millis,
    /// The stack's cap for a calendar month (UTC). `None` means no cap.
    pub monthly_cap: Option<MicroUsd>,
    /// Account and region, for the ARNs in events.
    pub place: Place,
}

/// The outcome of one try to perform an action.
#[derive(Debug, Clone, PartialEq)]
enum Outcome {
    /// Performed, with the facts to store.
    Done(Vec<Recorded>),
    /// Settled, with an effect that does not follow from the facts.
    DoneAs(Effect, Vec<Recorded>),
    /// Refused permanently. The refusal frees the job's money, so the action must never be performed again.
    Refused(Recorded),
    /// Certainly not performed. Retry after a wait.
    Later(String),
    /// Like [`Self::Later`], but because of a quota of the account.
    Limited(String),
    /// Possibly performed, and the effect may still become visible. Retry after a wait.
    Unsure(String),
    /// This try did nothing, but an earlier try, whose claim ended at the first time, may still take effect. Retry
    /// after a wait, and not before the second time.
    EarlierTryOpen(String, Time, Time),
    /// The name of the job to start is taken, but the job is not visible. Retry after a wait. The time is the end of
    /// the previous try's claim, if there was one.
    NameTaken(String, Option<Time>),
}

/// The result of a call of [`Actuator::perform`].
#[derive(Debug, Clone, PartialEq)]
pub enum Performed {
    /// The row is settled.
    Done(Effect),
    /// Another actuator holds the claim, or the action is not due yet.
    NotNow,
    /// The action could not be performed now, with the reason. The sweeper retries it.
    Deferred(String),
}

impl Performed {
    /// Returns whether the row is settled.
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Done(_))
    }
}

/// The effect of a settled action.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// None: the action was settled before.
    AlreadySettled,
    /// A training job was started.
    Started {
        /// What promoted its trial, if this is the first job for its rung.
        promoted: Option<Judged>,
    },
    /// For a day nothing has shown whether the training job exists, so it counts as started. The reason is the last error.
    AssumedStarted(String),
    /// The training service refused the training job permanently, with the reason.
    Refused(String),
    /// A training job was stopped.
    Stopped {
        /// The reason.
        why: StopWhy,
        /// The comparison, if the reason is a rung.
        because: Option<Judged>,
    },
    /// A job was concluded before its whole log could be read.
    LogCut,
    /// Any other effect: a read, a notice or a booking, or an intended effect that had already happened.
    Other,
}

#[derive(Debug)]
pub(crate) enum Due {
    /// It was performed or cancelled.
    Settled,
    /// Another actuator holds the claim, or the action is not due yet.
    NotNow,
    Now(Box<ActionRow>),
}

impl<T: Table, J: TrainingJobs + JobLogs, B: Bus, C: Timer> Actuator<T, J, B, C> {
    /// Performs action `action` of tuning `id` if it is due.
    pub async fn perform(&self, id: &str, action: &str) -> Result<Performed, StoreError> {
        self.perform_due(id, self.due(id, action).await?, LOG_PAGES_MAX).await
    }

    /// Like [`Self::perform`], for a start: waits for its turn first, before the claim. Returns `None` if there is no turn.
    /// Then the row does not change.
    pub(crate) async fn perform_start(&self, id: &str, due: Due) -> Result<Option<Performed>, StoreError> {
        Ok(match due {
            Due::Settled => Some(Performed::Done(Effect::AlreadySettled)),
            Due::NotNow => Some(Performed::NotNow),
            Due::Now(row) if self.has_turn(|pace| &pace.starts, Some(id)).await? => {
                Some(self.claim_and_perform(id, *row, LOG_PAGES_MAX).await?)
            }
            Due::Now(_) => None,
        })
    }

    /// Waits for a turn of a bucket. Returns `false` if none comes soon.
    async fn has_turn(&self, bucket: fn(&Pace) -> &Bucket, tuning: Option<&str>) -> Result<bool, StoreError> {
        match &self.pace {
            Some(pace) => bucket(pace).turn(&*self.store.table, &self.clock, tuning).await,
            None => Ok(true),
        }
    }

    /// Performs an action if it is due. Reads at most `pages` pages of a log.
    async fn perform_due(&self, id: &str, due: Due, pages: usize) -> Result<Performed, StoreError> {
        match due {
            Due::Settled => Ok(Performed::Done(Effect::AlreadySettled)),
            Due::NotNow => Ok(Performed::NotNow),
            Due::Now(row) => self.claim_and_perform(id, *row, pages).await,
        }
    }

    pub(crate) async fn due(&self, id: &str, action: &str) -> Result<Due, StoreError> {
        let Some(item) = self.store.table.get(&stored::action_key(id, action)).await? else {
            return Ok(Due::Settled);
        };
        Ok(self.due_row(ActionRow::read(&item)?))
    }

    fn due_row(&self, row: ActionRow) -> Due {
        let now = self.clock.now();
        let claimed = row.status == ActionStatus::Performing && row.claimed_until > now;
        let not_before = row.not_before.max(self.readable_at(&row.order));
        match row.status {
            ActionStatus::Done | ActionStatus::Cancelled => Due::Settled,
            ActionStatus::Pending | ActionStatus::Performing if claimed || not_before > now => Due::NotNow,
            ActionStatus::Pending | ActionStatus::Performing => Due::Now(Box::new(row)),
        }
    }

    /// Returns the time from which all lines that an order needs can be read.
    fn readable_at(&self, order: &Order) -> Time {
        match order {
            Order::Read(ReadOrder::Rest { ended, at_once: false, .. }) => *ended + self.log_lag_ms,
            Order::Read(
                ReadOrder::Rest { at_once: true, .. }
                | ReadOrder::Bill { .. }
                | ReadOrder::Log { .. }
                | ReadOrder::Silence { .. },
            )
            | Order::Start { .. }
            | Order::Stop { .. }
            | Order::Pool(_)
            | Order::Grant(_)
            | Order::Notice(_) => Time::EPOCH,
        }
    }

    /// Claims and performs the action of a row that was due, unless another actuator has claimed it since. Reads at most
    /// `pages` pages of a log.
    pub(crate) async fn claim_and_perform(
        &self,
        id: &str,
        row: ActionRow,
        pages: usize,
    ) -> Result<Performed, StoreError> {
        let earlier = row.claimed_until;
        let Some(row) = self.claim(id, row, self.clock.now()).await? else { return Ok(Performed::NotNow) };
        let settled = match self.act(id, &row, earlier, pages).await {
            Ok(outcome) => self.settle(id, row.clone(), earlier, outcome).await,
            Err(error) => Err(error),
        };
        // After an error, a start may have been sent, so its claim must expire. Every other action can be repeated at
        // once.
        if settled.is_err() && !matches!(row.order, Order::Start { .. }) {
            self.release_claim(id, row, earlier).await;
        }
        settled
    }

    async fn act(
        &self,
        id: &str,
        row: &ActionRow,
        earlier: Time,
        pages: usize,
    ) -> Result<Outcome, StoreError> {
        match &row.order {
            Order::Start { .. } => self.start(id, row, earlier).await,
            Order::Stop { job, .. } => self.stop(id, *job).await,
            Order::Read(ReadOrder::Bill { job }) => self.bill(id, *job).await,
            Order::Read(ReadOrder::Rest { job, ordered, ended, at_once }) => {
                self.read_rest(id, *job, *ordered..*ended, *at_once, row.tries, pages).await
            }
            Order::Read(ReadOrder::Log { job, streams }) => self.read(id, *job, *streams, pages).await,
            Order::Read(ReadOrder::Silence { job, since }) => {
                self.check_silence(id, *job, *since, pages).await
            }
            Order::Pool(PoolOrder::Read { job, n, last }) => self.read_pool(id, *job, *n, *last).await,
            Order::Pool(PoolOrder::Release { job }) => self.release_pool(id, *job).await,
            Order::Grant(GrantOrder::Request { n, least, wanted }) => {
                self.grant(id, *n, *least, *wanted).await
            }
            Order::Grant(GrantOrder::Return { n, month, amount, moved_to }) => {
                self.return_grant(id, *n, (month, moved_to.as_deref()), *amount).await
            }
            Order::Notice(_) => self.notice(id, row).await,
        }
    }

    async fn claim(&self, id: &str, mut row: ActionRow, now: Time) -> Result<Option<ActionRow>, StoreError> {
        let before = row.revision;
        row.status = ActionStatus::Performing;
        row.claimed_until = now + self.claim_ms;
        row.revision += 1;
        row.tries += 1;
        Ok(self.put_row(id, &row, before).await?.then_some(row))
    }

    /// Replaces revision `before` of a row. Returns `false` if the stored row has another revision.
    async fn put_row(&self, id: &str, row: &ActionRow, before: i64) -> Result<bool, StoreError> {
        let unchanged = Condition::equals(REVISION, before);
        match self.store.table.write(Write::Put(row.row(id), unchanged)).await {
            Ok(()) => Ok(true),
            Err(TableError::Conflict(_)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Stores the facts first, then the row: after a crash between the two the action is performed again, which changes
    /// nothing. A refusal and its row are written in one transaction, which fails if another actuator has taken over.
    /// `earlier` is the end of the previous try's claim.
    async fn settle(
        &self,
        id: &str,
        mut row: ActionRow,
        earlier: Time,
        outcome: Outcome,
    ) -> Result<Performed, StoreError> {
        let before = row.revision;
        row.revision += 1;
        let performed = match outcome {
            Outcome::Refused(fact) => {
                row.status = ActionStatus::Done;
                return self.settle_refused(id, &row, &fact, before).await;
            }
            Outcome::Done(facts) => {
                self.put_all(id, &facts).await?;
                row.status = ActionStatus::Done;
                Performed::Done(effect(&row.order, &facts))
            }
            Outcome::DoneAs(effect, facts) => {
                self.put_all(id, &facts).await?;
                row.status = ActionStatus::Done;
                Performed::Done(effect)
            }
            Outcome::Later(ref reason) | Outcome::Limited(ref reason) => {
                let limited = matches!(outcome, Outcome::Limited(_));
                row.status = ActionStatus::Pending;
                // This try sent nothing, so the action can be cancelled as early as after the previous try.
                row.claimed_until = earlier;
                self.defer(id, &mut row, reason, limited, Time::EPOCH).await?;
                Performed::Deferred(reason.clone())
            }
            Outcome::Unsure(reason) => {
                row.status = ActionStatus::Pending;
                self.defer(id, &mut row, &reason, false, Time::EPOCH).await?;
                Performed::Deferred(reason)
            }
            Outcome::NameTaken(reason, earlier) => {
                row.status = ActionStatus::Pending;
                row.name_taken = true;
                // The end of the previous claim is kept, so that further checks do not extend the wait for the job.
                row.claimed_until = earlier.unwrap_or(row.claimed_until);
                self.defer(id, &mut row, &reason, false, Time::EPOCH).await?;
                Performed::Deferred(reason)
            }
            Outcome::EarlierTryOpen(reason, earlier, not_before) => {
                row.status = ActionStatus::Pending;
                // This try sent nothing.
                row.claimed_until = earlier;
                self.defer(id, &mut row, &reason, false, not_before).await?;
                Performed::Deferred(reason)
            }
        };
        // After our claim expired, another actuator may have taken over. Then the row belongs to it.
        if !self.put_row(id, &row, before).await? {
            self.stop_if_cancelled(id, &row).await?;
        }
        Ok(performed)
    }

    async fn put_all(&self, id: &str, facts: &[Recorded]) -> Result<(), StoreError> {
        for fact in facts {
            record::put(&*self.store.table, id, fact).await?;
        }
        Ok(())
    }

    /// Releases a claim, so that the next actuator need not wait until it expires. If this fails, the claim expires.
    async fn release_claim(&self, id: &str, mut row: ActionRow, earlier: Time) {
        let before = row.revision;
        (row.status, row.claimed_until) = (ActionStatus::Pending, earlier);
        row.revision += 1;
        let _ = self.put_row(id, &row, before).await;
    }

    /// Stops the job of a start that was cancelled while it was being performed.
    async fn stop_if_cancelled(&self, id: &str, row: &ActionRow) -> Result<(), StoreError> {
        let Order::Start { job, .. } = &row.order else { return Ok(()) };
        let item = self.store.table.get(&stored::action_key(id, &row.action)).await?;
        let now = item.as_ref().map(ActionRow::read).transpose()?;
        if now.is_some_and(|now| now.status == ActionStatus::Cancelled) {
            // If this stop fails, the sweeper finds the job as an orphan and stops it.
            let _ = self.jobs.stop(&training_job_name(id, *job)).await;
        }
        Ok(())
    }

    /// Defers an action at least until `earliest`; `limited` = a quota of the account is the reason.
    async fn defer(
        &self,
        id: &str,
        row: &mut ActionRow,
        reason: &str,
        limited: bool,
        earliest: Time,
    ) -> Result<(), StoreError> {
        row.not_before = (self.clock.now() + self.wait(row.tries)).max(earliest);
        let Some(job) = row.order.job() else { return Ok(()) };
        let key = format!("deferred#{}#{}", row.action, row.tries);
        let reason = cut_message(reason);
        let fact = self.fact(
            key,
            Fact::ActionDeferred { job, not_before: row.not_before, reason, quota_exceeded: limited },
        );
        record::put(&*self.store.table, id, &fact).await?;
        Ok(())
    }

    async fn settle_refused(
        &self,
        id: &str,
        row: &ActionRow,
        fact: &Recorded,
        before: i64,
    ) -> Result<Performed, StoreError> {
        let writes = vec![
            Write::Put(row.row(id), Condition::equals(REVISION, before)),
            Write::Put(stored::fact_row(id, fact), Condition::NotExists),
        ];
        let token = digest(format!("{id} {} {before} {fact:?}", row.action).as_bytes());
        match self.store.table.transact(writes, &token).await {
            Ok(()) => Ok(Performed::Done(refused(fact))),
            Err(TableError::Conflict(_)) => Ok(Performed::NotNow),
            Err(error) => Err(error.into()),
        }
    }

    fn wait(&self, tries: i64) -> Millis {
        let doublings = u32::try_from(tries.saturating_sub(1).clamp(0, 16)).unwrap_or(0);
        self.defer_ms.doubled(doublings).min(DEFER_MAX)
    }

    fn fact(&self, key: String, fact: Fact) -> Recorded {
        Recorded { key, at: self.clock.now(), fact }
    }

    /// Returns whether the claim leaves enough time to start an operation.
    fn claim_is_good(&self, row: &ActionRow) -> bool {
        self.clock.now() + CLAIM_MARGIN.min(self.claim_ms.half()) < row.claimed_until
    }
}

fn effect(order: &Order, facts: &[Recorded]) -> Effect {
    let has = |wanted: fn(&Fact) -> bool| facts.iter().any(|recorded| wanted(&recorded.fact));
    match order {
        Order::Start { promoted, .. } if has(|fact| matches!(fact, Fact::JobStarted { .. })) => {
            Effect::Started { promoted: *promoted }
        }
        Order::Stop { why, because, .. } if has(|fact| matches!(fact, Fact::StopAccepted { .. })) => {
            Effect::Stopped { why: *why, because: *because }
        }
        Order::Start { .. }
        | Order::Stop { .. }
        | Order::Read(_)
        | Order::Pool(_)
        | Order::Grant(_)
        | Order::Notice(_) => Effect::Other,
    }
}

fn refused(recorded: &Recorded) -> Effect {
    recorded.fact.refusal().map_or(Effect::Other, |message| Effect::Refused(message.to_owned()))
}

/// Returns the outcome of errors that every call treats alike: they are retried later.
fn later(error: &TrainingJobsError) -> Option<Outcome> {
    match error {
        TrainingJobsError::LimitExceeded(_) => Some(Outcome::Limited(error.to_string())),
        TrainingJobsError::Throttled => Some(Outcome::Later(error.to_string())),
        TrainingJobsError::Unavailable(_) => Some(Outcome::Unsure(error.to_string())),
        TrainingJobsError::NameTaken(_)
        | TrainingJobsError::NotFound(_)
        | TrainingJobsError::AlreadyEnded(_)
        | TrainingJobsError::Refused { .. } => None,
    }
}
