//! The actuator's use case: performs one ordered action, so that twice is the same as once.
//!
//! Claim (conditional, until a time), act, put the outcome as a fact, mark the row. A crash between any two leaves a row
//! that the sweeper takes up again when the claim has expired; acting again changes nothing, because a training job's
//! name is computed and never used twice. Chooses nothing: the ruling in the row carries every detail.

mod batch;
pub(crate) mod bill;
mod decision;
mod grant;
mod look;
mod notice;
mod pool;
mod start;
mod stop;

pub use batch::{Act, Acts};
pub(crate) use decision::News;
pub use decision::TRIAL_DECISION;
pub use notice::{COST_ALARM, TUNING_STATE_CHANGE};

use std::sync::Arc;

use tuning::fact::{Fact, JobKey, Recorded};
use tuning::money::MicroUsd;
use tuning::ruling::{Ruling, StopWhy};
use wire::events::job_state::cut_message;
use wire::names::{digest, training_job_name};
use wire::stored::{self, ActionRow, ActionStatus, REVISION};

use self::bill::LOG_PAGES_MAX;
use crate::describe::Place;
use crate::ports::table::{Condition, Table, TableError, Write};
use crate::ports::training::{JobLogs, TrainingJobs, TrainingJobsError};
use crate::ports::{Bus, Clock, Millis};
use crate::record;
use crate::store::{Store, StoreError};

/// A claim in the cloud: longer than the function's and the SDK's time-outs together.
pub const CLAIM_MS: i64 = 180_000;
/// In the cloud, a log line can be read back so long after it was written at the latest.
pub const LOG_LAG_MS: i64 = 30_000;
/// Nothing is begun under a claim with less than this left.
const CLAIM_MARGIN_MS: i64 = 1_000;
/// A start that may have been sent is given up only so long after its claim expired: by then a job would show, and whoever
/// held the claim is gone.
pub const ABANDONED_MS: i64 = 60_000;
/// Longest wait before a deferred action is tried again.
const DEFER_MAX_MS: i64 = 300_000;

/// The use case with what it needs.
#[derive(Debug)]
pub struct Actuator<T, J, B, C> {
    /// Reads tunings.
    pub store: Arc<Store<T>>,
    /// The training service and its logs.
    pub jobs: J,
    /// For notices.
    pub bus: B,
    /// Time.
    pub clock: C,
    /// Name of this stack.
    pub stack: String,
    /// How long after a job's end its last log lines may still be on their way, see [`LOG_LAG_MS`].
    pub log_lag_ms: i64,
    /// How long a claim lasts, see [`CLAIM_MS`].
    pub claim_ms: i64,
    /// First wait before a deferred action is tried again, ms; it doubles with each try.
    pub defer_ms: i64,
    /// How long after the end of a claim what was sent under it may still take effect, see [`ABANDONED_MS`].
    pub abandoned_ms: i64,
    /// The stack's cap of a month (UTC); `None` = there is none.
    pub monthly_cap: Option<MicroUsd>,
    /// Where it all is, for the names in events.
    pub place: Place,
}

/// What became of an action.
#[derive(Debug, Clone, PartialEq)]
enum Outcome {
    /// Performed.
    Done(Vec<Recorded>),
    /// Settled, with another effect than the facts tell.
    DoneAs(Effect, Vec<Recorded>),
    /// Refused for good: this frees the job's money, so nobody may perform it again.
    Refused(Recorded),
    /// It was certainly not done now: to be tried again, after a wait.
    Later(String),
    /// The same, for a quota of the account.
    Limited(String),
    /// It may have been done and may yet show: to be tried again, after a wait.
    Unsure(String),
    /// It was not done now, but an earlier try, whose claim ended then (first), may yet show: to be tried again after a wait,
    /// and not before the second time.
    Open(String, Millis, Millis),
}

/// What became of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Performed {
    /// The row is settled.
    Done(Effect),
    /// Somebody else is at it, or it is not yet time.
    NotNow,
    /// It could not be done now, and why: the sweeper tries again.
    PutOff(String),
}

impl Performed {
    /// Whether the row is settled.
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Done(_))
    }
}

/// What a settled action has brought about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Nothing: it was settled before.
    Before,
    /// A training job was started.
    Started,
    /// The service will never take the training job, and why.
    Refused(String),
    /// A training job was stopped.
    Stopped {
        /// Why; `None` = no decision said so.
        why: Option<StopWhy>,
    },
    /// A job's bill was booked before all of its log could be read.
    LogCut,
    /// Something was read, told or booked; or what was to be brought about had come about by itself.
    Other,
}

/// Whether an action is to be performed now.
#[derive(Debug)]
pub(crate) enum Due {
    /// It was performed, or never will be.
    Settled,
    /// Somebody is at it, or it is not yet time.
    NotNow,
    /// It is.
    Now(Box<ActionRow>),
}

impl<T, J, B, C> Actuator<T, J, B, C>
where
    T: Table,
    J: TrainingJobs + JobLogs,
    B: Bus,
    C: Clock,
{
    /// Performs action `action` of tuning `id`, if it is to be performed now.
    pub async fn perform(&self, id: &str, action: &str) -> Result<Performed, StoreError> {
        self.perform_reading(id, action, LOG_PAGES_MAX).await
    }

    /// The same; of a log at most `pages` pages are read.
    async fn perform_reading(&self, id: &str, action: &str, pages: usize) -> Result<Performed, StoreError> {
        match self.due(id, action).await? {
            Due::Settled => Ok(Performed::Done(Effect::Before)),
            Due::NotNow => Ok(Performed::NotNow),
            Due::Now(row) => self.take_up_reading(id, *row, pages).await,
        }
    }

    /// Whether an action is to be performed now.
    pub(crate) async fn due(&self, id: &str, action: &str) -> Result<Due, StoreError> {
        let Some(item) = self.store.table.get(&stored::action_key(id, action)).await? else {
            return Ok(Due::Settled);
        };
        let row = ActionRow::read(&item)?;
        let now = self.clock.now();
        let good = row.claimed_until > now || tuning::planted!(ClaimNeverExpires);
        let claimed = row.status == ActionStatus::Performing && good;
        Ok(match row.status {
            ActionStatus::Done | ActionStatus::Cancelled => Due::Settled,
            ActionStatus::Pending | ActionStatus::Performing if claimed || row.not_before > now => {
                Due::NotNow
            }
            ActionStatus::Pending | ActionStatus::Performing => Due::Now(Box::new(row)),
        })
    }

    /// Performs the action of a row that was due, unless somebody else has taken it up since.
    pub(crate) async fn take_up(&self, id: &str, row: ActionRow) -> Result<Performed, StoreError> {
        self.take_up_reading(id, row, LOG_PAGES_MAX).await
    }

    async fn take_up_reading(&self, id: &str, row: ActionRow, pages: usize) -> Result<Performed, StoreError> {
        let earlier = row.claimed_until;
        if tuning::planted!(CreateWithoutClaim) && matches!(row.ruling, Ruling::StartOrdered { .. }) {
            let unclaimed = ActionRow { claimed_until: i64::MAX, ..row.clone() };
            self.start(id, &unclaimed, earlier).await?;
        }
        let Some(row) = self.claim(id, row, self.clock.now()).await? else { return Ok(Performed::NotNow) };
        let settled = match self.act(id, &row, earlier, pages).await {
            Ok(outcome) => self.settle(id, row.clone(), earlier, outcome).await,
            Err(error) => Err(error),
        };
        // A start may have been sent; all else may be done again at once.
        if settled.is_err() && !matches!(row.ruling, Ruling::StartOrdered { .. }) {
            self.give_up(id, row, earlier).await;
        }
        settled
    }

    async fn act(
        &self,
        id: &str,
        row: &ActionRow,
        earlier: Millis,
        pages: usize,
    ) -> Result<Outcome, StoreError> {
        match &row.ruling {
            Ruling::StartOrdered { .. } => self.start(id, row, earlier).await,
            Ruling::StopOrdered { job, .. } => self.stop(id, *job).await,
            Ruling::BillOrdered { job } => self.bill(id, *job, (row.tries, pages)).await,
            Ruling::LogReadOrdered { job, streams } => self.read(id, *job, *streams, pages).await,
            Ruling::LookOrdered { job, since } => self.look(id, *job, *since, pages).await,
            Ruling::PoolReadOrdered { job, n, last } => self.read_pool(id, *job, *n, *last).await,
            Ruling::PoolReleaseOrdered { job } => self.release_pool(id, *job).await,
            Ruling::GrantOrdered { n, least, wanted } => self.grant(id, *n, *least, *wanted).await,
            Ruling::ReturnOrdered { n, month, amount } => self.give_back(id, *n, month, *amount).await,
            Ruling::TuningEnded { .. }
            | Ruling::OverrunSeen
            | Ruling::CapReached { .. }
            | Ruling::MonthCapReached { .. } => self.notice(id, row).await,
            Ruling::TrialJudged { .. }
            | Ruling::RungReached { .. }
            | Ruling::TrialPromoted { .. }
            | Ruling::ResourceRepeated { .. }
            | Ruling::SettledInFull { .. }
            | Ruling::PoolClosed { .. }
            | Ruling::AttemptAwaited { .. }
            | Ruling::TrialFinished { .. }
            | Ruling::TuningEnding { .. } => Ok(Outcome::Done(Vec::new())),
        }
    }

    async fn claim(
        &self,
        id: &str,
        mut row: ActionRow,
        now: Millis,
    ) -> Result<Option<ActionRow>, StoreError> {
        let before = row.revision;
        row.status = ActionStatus::Performing;
        row.claimed_until = now.saturating_add(self.claim_ms);
        row.revision += 1;
        row.tries += 1;
        Ok(self.put_row(id, &row, before).await?.then_some(row))
    }

    /// Puts a row in place of revision `before`; `false` if it is not that revision any more.
    async fn put_row(&self, id: &str, row: &ActionRow, before: i64) -> Result<bool, StoreError> {
        let unchanged = if tuning::planted!(RowWithoutRevision) {
            Condition::Always
        } else {
            Condition::equals(REVISION, before)
        };
        match self.store.table.write(Write::Put(row.row(id), unchanged)).await {
            Ok(()) => Ok(true),
            Err(TableError::Conflict(_)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Facts first, then the row: a crash between the two performs the action again, which changes nothing.
    /// A refusal and its row are written together, or not at all should another have taken over meanwhile.
    /// `earlier` = until when the claim of the try before this one was good.
    async fn settle(
        &self,
        id: &str,
        mut row: ActionRow,
        earlier: Millis,
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
                Performed::Done(effect(&row.ruling, &facts))
            }
            Outcome::DoneAs(effect, facts) => {
                self.put_all(id, &facts).await?;
                row.status = ActionStatus::Done;
                Performed::Done(effect)
            }
            Outcome::Later(ref reason) | Outcome::Limited(ref reason) => {
                let limited = matches!(outcome, Outcome::Limited(_));
                row.status = ActionStatus::Pending;
                // Of this try nothing is left open: it may be called off as soon as after the one before.
                row.claimed_until = earlier;
                self.defer(id, &mut row, (reason, limited), 0).await?;
                Performed::PutOff(reason.clone())
            }
            Outcome::Unsure(reason) => {
                row.status = ActionStatus::Pending;
                self.defer(id, &mut row, (&reason, false), 0).await?;
                Performed::PutOff(reason)
            }
            Outcome::Open(reason, earlier, not_before) => {
                row.status = ActionStatus::Pending;
                // Of this try nothing is left open.
                row.claimed_until = earlier;
                self.defer(id, &mut row, (&reason, false), not_before).await?;
                Performed::PutOff(reason)
            }
        };
        // Should another have taken over after our claim expired, the row is theirs.
        if !self.put_row(id, &row, before).await? {
            self.undo_if_called_off(id, &row).await?;
        }
        Ok(performed)
    }

    async fn put_all(&self, id: &str, facts: &[Recorded]) -> Result<(), StoreError> {
        for fact in facts {
            record::put(&*self.store.table, id, fact).await?;
        }
        Ok(())
    }

    /// Gives a claim back, so that who gets the action next need not wait for its end. Should this fail too, they wait.
    async fn give_up(&self, id: &str, mut row: ActionRow, earlier: Millis) {
        let before = row.revision;
        (row.status, row.claimed_until) = (ActionStatus::Pending, earlier);
        row.revision += 1;
        let _ = self.put_row(id, &row, before).await;
    }

    /// A start that was called off while it was under way must not leave a job running.
    async fn undo_if_called_off(&self, id: &str, row: &ActionRow) -> Result<(), StoreError> {
        let Ruling::StartOrdered { job, .. } = &row.ruling else { return Ok(()) };
        let item = self.store.table.get(&stored::action_key(id, &row.action)).await?;
        let now = item.as_ref().map(ActionRow::read).transpose()?;
        if now.is_some_and(|now| now.status == ActionStatus::Cancelled) && !tuning::planted!(UndoForgotten) {
            // Should this fail, the sweeper finds the job as one that no row knows.
            let _ = self.jobs.stop(&training_job_name(id, *job)).await;
        }
        Ok(())
    }

    /// Puts an action off, at least until `earliest`.
    async fn defer(
        &self,
        id: &str,
        row: &mut ActionRow,
        (reason, limited): (&str, bool),
        earliest: Millis,
    ) -> Result<(), StoreError> {
        row.not_before = self.clock.now().saturating_add(self.wait_ms(row.tries)).max(earliest);
        let Some(job) = job_of(&row.ruling) else { return Ok(()) };
        let key = format!("deferred#{}#{}", row.action, row.tries);
        let reason = cut_message(reason);
        let fact = self.fact(key, Fact::ActionDeferred { job, not_before: row.not_before, reason, limited });
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
        if tuning::planted!(RefusalInTwoWrites) {
            record::put(&*self.store.table, id, fact).await?;
            self.put_row(id, row, before).await?;
            return Ok(Performed::Done(refused(fact)));
        }
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

    fn wait_ms(&self, tries: i64) -> i64 {
        let doublings = u32::try_from(tries.saturating_sub(1).clamp(0, 16)).unwrap_or(0);
        self.defer_ms.saturating_mul(2_i64.saturating_pow(doublings)).min(DEFER_MAX_MS)
    }

    fn fact(&self, key: String, fact: Fact) -> Recorded {
        Recorded { key, at: self.clock.now(), fact }
    }

    /// Whether there is time left under the claim to begin something.
    fn claim_is_good(&self, row: &ActionRow) -> bool {
        tuning::planted!(ExpiredClaimGood)
            || self.clock.now().saturating_add(CLAIM_MARGIN_MS.min(self.claim_ms / 2)) < row.claimed_until
    }
}

fn effect(ruling: &Ruling, facts: &[Recorded]) -> Effect {
    facts
        .iter()
        .find_map(|recorded| match recorded.fact {
            Fact::JobStarted { .. } => Some(Effect::Started),
            Fact::StopAccepted { .. } => Some(Effect::Stopped { why: decision::stop_of(ruling) }),
            _ => None,
        })
        .unwrap_or(Effect::Other)
}

fn refused(recorded: &Recorded) -> Effect {
    match &recorded.fact {
        Fact::StartRefused { message, .. } => Effect::Refused(message.clone()),
        _ => Effect::Other,
    }
}

fn job_of(ruling: &Ruling) -> Option<JobKey> {
    match ruling {
        Ruling::StartOrdered { job, .. }
        | Ruling::StopOrdered { job, .. }
        | Ruling::BillOrdered { job }
        | Ruling::LogReadOrdered { job, .. }
        | Ruling::LookOrdered { job, .. }
        | Ruling::PoolReadOrdered { job, .. }
        | Ruling::PoolReleaseOrdered { job } => Some(*job),
        Ruling::TrialJudged { .. }
        | Ruling::RungReached { .. }
        | Ruling::TrialPromoted { .. }
        | Ruling::ResourceRepeated { .. }
        | Ruling::SettledInFull { .. }
        | Ruling::PoolClosed { .. }
        | Ruling::AttemptAwaited { .. }
        | Ruling::TrialFinished { .. }
        | Ruling::OverrunSeen
        | Ruling::GrantOrdered { .. }
        | Ruling::ReturnOrdered { .. }
        | Ruling::CapReached { .. }
        | Ruling::MonthCapReached { .. }
        | Ruling::TuningEnding { .. }
        | Ruling::TuningEnded { .. } => None,
    }
}

/// What every call has in common: errors after which it is simply tried again.
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
