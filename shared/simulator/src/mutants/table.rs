//! Planted bugs of the table.

use crate::planted::{Mutation, is_on};
use tuning::log::fact::Fact;
use tuning::state::State;
use tuning::step;
use use_cases::ports::table::{Condition, Page, Query, Table, TableError, Write};
use wire::item::{Item, Key};
use wire::stored::{self, ACTION_PREFIX, ACTIVE, ActionStatus, BUDGET, FACT_PREFIX, HEAD, RING_PREFIX};

use super::{Mutant, Ports, is_of_kind};
use crate::site::Function;

/// The sweeper's claims that a bug refuses, by the kind of the action.
const UNSWEPT: [(Mutation, &str); 4] = [
    (Mutation::SweeperStopsNothing, "stop"),
    (Mutation::SweeperStartsNothing, "start"),
    (Mutation::SweeperBillsNothing, "bill"),
    (Mutation::SweeperReadsNothing, "read"),
];

impl<P: Ports> Table for Mutant<P> {
    async fn get(&self, key: &Key) -> Result<Option<Item>, TableError> {
        let item = self.port.get(key).await?;
        Ok(item.map(|item| self.altered_row(item)))
    }

    async fn write(&self, write: Write) -> Result<(), TableError> {
        let key = write.key().clone();
        if self.is_swallowed(&write) {
            return Ok(());
        }
        let write = match write {
            Write::Put(item, condition) => self.altered_put(item, condition),
            Write::Delete(..) | Write::Check(..) => write,
        };
        if !key.pk.starts_with(ACTION_PREFIX) {
            return self.port.write(write).await;
        }
        let claims = is_claim(&write);
        let unswept = |(mutation, kind)| is_of_kind(&key.sk, kind) && is_on(mutation);
        if claims && self.runs(Function::Sweeper) && UNSWEPT.into_iter().any(unswept) {
            return Err(TableError::Conflict(vec![0]));
        }
        let starts = claims && is_of_kind(&key.sk, "start");
        let claimed_at = self.port.now();
        let withheld = starts && is_on(Mutation::CreateWithoutClaim);
        if !withheld {
            self.port.write(write.clone()).await?;
        }
        let mut memory = self.memory();
        memory.claimed = claims.then_some(key.sk);
        memory.withheld = withheld.then_some(write);
        memory.still_at = (starts && is_on(Mutation::ExpiredClaimGood)).then_some(claimed_at);
        Ok(())
    }

    async fn transact(&self, mut writes: Vec<Write>, token: &str) -> Result<(), TableError> {
        if self.runs(Function::Decider) {
            return self.save_step(writes, token).await;
        }
        let first = writes.first().map(|write| write.key().pk.clone()).unwrap_or_default();
        if first.starts_with(ACTION_PREFIX) && is_on(Mutation::RefusalInTwoWrites) {
            for write in writes.into_iter().rev() {
                if let Err(error) = self.port.write(write).await
                    && !matches!(error, TableError::Conflict(_))
                {
                    return Err(error);
                }
            }
            return Ok(());
        }
        let books = writes.iter().any(|write| write.key().pk == BUDGET);
        if books && self.performs() {
            self.alter_booking(&mut writes);
        }
        self.port.transact(writes, token).await
    }

    async fn query(&self, query: &Query) -> Result<Page, TableError> {
        if query.pk == ACTIVE && self.runs(Function::Sweeper) && is_on(Mutation::LoseSweep) {
            return Err(TableError::Unavailable("no answer".to_owned()));
        }
        let mut page = self.port.query(query).await?;
        let is_bill =
            |item: &Item| stored::fact(item).is_ok_and(|fact| matches!(fact.fact, Fact::JobDescribed { .. }));
        if query.pk.starts_with(FACT_PREFIX)
            && self.runs(Function::Decider)
            && page.items.iter().any(is_bill)
            && is_on(Mutation::BillBeforeFacts)
        {
            page.items.retain(is_bill);
        }
        let after_snapshot = query.after.as_ref().is_some_and(|after| *after != stored::step_key("", 0).sk);
        if query.prefix == "STEP#" && after_snapshot && is_on(Mutation::SnapshotWithoutSteps) {
            page.items = page.items.split_off(page.items.len().saturating_sub(1));
        }
        Ok(page)
    }
}

/// Returns whether a write of an action's row claims it.
fn is_claim(write: &Write) -> bool {
    let Write::Put(item, _) = write else { return false };
    item.text("status") == Some(ActionStatus::Performing.word())
}

impl<P: Ports> Mutant<P> {
    /// Returns a row as the running process sees it.
    fn altered_row(&self, item: Item) -> Item {
        let mut memory = self.memory();
        let cancels = std::mem::take(&mut memory.stop_not_found);
        memory.start_cancelled = false;
        if item.key.pk == BUDGET && memory.has_claimed("grant") && is_on(Mutation::GrantAboveCap) {
            memory.granted = item.number("granted").unwrap_or(0);
            return item.with("granted", 0);
        }
        if !item.key.pk.starts_with(ACTION_PREFIX) || !self.performs() {
            return item;
        }
        let has_status = |status: ActionStatus| item.text("status") == Some(status.word());
        memory.start_cancelled = is_of_kind(&item.key.sk, "start") && has_status(ActionStatus::Cancelled);
        if cancels && is_on(Mutation::CancelAtOnce) {
            return item.with("claimed_until", 0);
        }
        if cancels && has_status(ActionStatus::Done) && is_on(Mutation::CancelStarted) {
            return item.with("status", ActionStatus::Cancelled.word());
        }
        if !cancels && has_status(ActionStatus::Performing) && is_on(Mutation::ClaimNeverExpires) {
            return item.with("claimed_until", i64::MAX);
        }
        item
    }

    /// Returns whether a single write is answered without an effect.
    fn is_swallowed(&self, write: &Write) -> bool {
        let Key { pk, sk } = write.key();
        if pk.starts_with(RING_PREFIX) && is_on(Mutation::RingIgnored) {
            return true;
        }
        let is_listed_stop = || sk.starts_with(&format!("{}stop-requested#", stored::fact_prefix(None)));
        if pk.starts_with(FACT_PREFIX) && is_listed_stop() && is_on(Mutation::JobStopUnlisted) {
            return true;
        }
        if !self.runs(Function::Sweeper) {
            return false;
        }
        (pk.starts_with(RING_PREFIX) && is_on(Mutation::SilentTuningIgnored))
            || (pk.starts_with(FACT_PREFIX) && sk.contains("#time#") && is_on(Mutation::DeadlineUnreported))
            || (pk.starts_with(FACT_PREFIX) && sk.contains("#seen#") && is_on(Mutation::SignOfLifeUnreported))
            || (pk == ACTIVE && matches!(write, Write::Delete(..)) && is_on(Mutation::EndedStaysActive))
    }

    /// Returns a single put as it is sent.
    fn altered_put(&self, item: Item, condition: Condition) -> Write {
        let pk = &item.key.pk;
        let unconditional = (pk.starts_with(FACT_PREFIX) && is_on(Mutation::FactWithoutCondition))
            || (pk.starts_with(ACTION_PREFIX) && is_on(Mutation::RowWithoutRevision));
        let condition = if unconditional { Condition::Always } else { condition };
        let item = self.altered_snapshot(&item).unwrap_or(item);
        Write::Put(item, condition)
    }

    /// Returns another snapshot in place of that in a row; `None` if the row is to be stored as it is. Snapshots in
    /// several rows are not altered.
    fn altered_snapshot(&self, item: &Item) -> Option<Item> {
        let id = item.key.pk.strip_prefix("T#")?;
        let n = item.key.sk.strip_prefix("SNAP#")?.split('#').next()?.parse().ok()?;
        let state = if is_on(Mutation::SnapshotLosesField) {
            let mut state = stored::snapshot_state(id, n, std::slice::from_ref(item)).ok()?;
            state.results.timings.epoch_ms.clear();
            state
        } else if is_on(Mutation::SnapshotOffByOne) {
            self.state_before(id, n)?
        } else {
            return None;
        };
        stored::snapshot_chunks(id, n, &state).ok()?.into_iter().next()
    }

    /// Returns the state before step `n` of tuning `id`.
    fn state_before(&self, id: &str, n: u64) -> Option<State> {
        let get = |key: &Key| self.port.stored(key);
        let (definition, _) = stored::meta(&get(&stored::meta_key(id))?).ok()?;
        let mut state = State::new(&definition);
        for n in 1..n {
            step::load(&definition, &mut state, &stored::step(&get(&stored::step_key(id, n))?).ok()?);
        }
        Some(state)
    }

    /// Sends the transaction of a step.
    async fn save_step(&self, mut writes: Vec<Write>, token: &str) -> Result<(), TableError> {
        let is_action = |write: &mut Write| write.key().pk.starts_with(ACTION_PREFIX);
        if is_on(Mutation::SkipConditionOnSave) {
            for write in &mut writes {
                if let Write::Put(item, condition) = write
                    && (item.key.sk == HEAD || item.key.sk.starts_with("STEP#"))
                {
                    *condition = Condition::Always;
                }
            }
        }
        if is_on(Mutation::DropOutbox) {
            writes.retain_mut(|write| !is_action(write));
        }
        if is_on(Mutation::RowsBeforeStep) {
            let rows: Vec<Write> = writes.extract_if(.., is_action).collect();
            for row in rows {
                self.port.write(row).await?;
            }
        }
        let mut parts = token.rsplitn(3, '-');
        let (number, _, id) = (parts.next(), parts.next(), parts.next());
        let of_number = format!("{}-{}", id.unwrap_or_default(), number.unwrap_or_default());
        let token = if is_on(Mutation::TokenOfStepNumber) { &of_number } else { token };
        self.port.transact(writes, token).await
    }

    /// Alters the booking of a grant or of returned money: the fact, then the rows of the months.
    fn alter_booking(&self, writes: &mut [Write]) {
        let [Write::Put(fact, fact_condition), Write::Put(month, month_condition), ..] = writes else {
            return;
        };
        let grants = fact.text("key").is_some_and(|key| key.starts_with("granted#"));
        if grants && is_on(Mutation::GrantAboveCap) {
            let granted = month.number("granted").unwrap_or(0) + self.memory().granted;
            *month = month.clone().with("granted", granted);
        }
        if is_on(Mutation::GrantAnsweredTwice) {
            *fact_condition = Condition::Always;
        }
        if !grants && is_on(Mutation::ReturnNotBooked) {
            writes[1] = Write::Check(month.key.clone(), month_condition.clone());
        }
    }
}
