//! One decider's work on a tuning: it folds facts in order and writes the steps.

use std::collections::BTreeSet;
use std::sync::Arc;

use tuning::decide::must_fold_first;
use tuning::log::fact::{Fact, JobKey, Recorded};
use tuning::log::reasons::EndReason;
use tuning::log::ruling::{Launch, NoticeOrder, Order, Ruling};
use tuning::step::{Step, advance, fit_a_step};
use wire::stored;

use crate::ports::table::{Pages, Query, Table};
use crate::store::{Loaded, Store, StoreError, readable};

/// Races that a decider may lose without a step of its own. A pass on a state that was not the present one counts too.
/// Then the batch returns to the stream.
pub(super) const RACES_MAX: usize = 8;
/// Facts per page when a ring makes the decider read all of them.
const FACT_ROWS: usize = 500;

/// The work of one decider on a tuning. It reads the tuning once, and writes step after step. The condition of each
/// write proves that no other decider has changed the tuning meanwhile.
pub(super) struct Session<'s, T> {
    pub(super) store: &'s Store<T>,
    pub(super) loaded: Loaded,
    pub(super) steps: &'s mut Vec<Step>,
    /// Whether the table is known to have had this state after the facts arrived.
    pub(super) is_current: bool,
    /// Whether nothing is left to decide without further facts.
    pub(super) is_settled: bool,
    /// Races lost since the last step.
    pub(super) races: usize,
}

/// Why a session ended early.
pub(super) enum Interrupted {
    /// Another decider has changed the tuning. All facts must be folded again into the new state.
    Race,
    /// The table could not be read or written.
    Store(StoreError),
}

impl<E: Into<StoreError>> From<E> for Interrupted {
    fn from(error: E) -> Self {
        Self::Store(error.into())
    }
}

impl<T: Table> Session<'_, T> {
    /// Folds `facts`. All stored facts of a job are folded before the fact that concludes it, and before the passage of
    /// time can settle it. Nothing else orders a job's log before the end of its read, or the log and the bill before the
    /// clock.
    pub(super) async fn fold_all(&mut self, facts: &[Recorded], ring: bool) -> Result<(), Interrupted> {
        let (mut last, mut first): (Vec<_>, Vec<_>) = facts.iter().cloned().partition(comes_last);
        let mut jobs: BTreeSet<JobKey> = last.iter().flat_map(|fact| fact.fact.jobs()).collect();
        jobs.extend(unread(&self.loaded, &last, &BTreeSet::new()));
        if ring {
            let state = &self.loaded.state;
            jobs.extend(state.billed_jobs().map(|(key, _)| key));
            jobs.extend(state.money.pools.iter().map(|pool| pool.job));
        }
        let mut stored = Vec::new();
        if ring || first.iter().any(is_request) {
            // The latest change of a user counts: a lower cap that a later change has replaced must not end the tuning.
            // And a stop comes before the stored end of a job, which would start another one.
            let all = self.stored_facts().await?;
            let (mut requests, others): (Vec<_>, Vec<_>) = all.into_iter().partition(is_request);
            requests.append(&mut first);
            (first, stored) = (requests, others);
        }
        self.absorb(&mut first, &jobs).await?;
        self.absorb_stored(jobs.iter().copied()).await?;
        if ring {
            let (mut bills, mut stored): (Vec<_>, Vec<_>) = stored.into_iter().partition(comes_last);
            self.absorb(&mut stored, &jobs).await?;
            bills.append(&mut last);
            last = bills;
        }
        // The facts so far may have shown the ends of further jobs, which the time settles too.
        loop {
            let further = self.absorb(&mut last, &jobs).await?;
            if further.is_empty() {
                return Ok(());
            }
            self.absorb_stored(further.iter().copied()).await?;
            jobs.extend(further);
        }
    }

    /// Returns all stored facts of the tuning itself, without those of its jobs.
    async fn stored_facts(&self) -> Result<Vec<Recorded>, StoreError> {
        let partition = stored::fact_partition(&self.loaded.tuning.id);
        let mut pages = Pages::of(Query::prefix(partition, stored::fact_prefix(None), FACT_ROWS));
        let mut facts = Vec::new();
        while let Some(rows) = pages.next(&*self.store.table).await? {
            facts.extend(readable(&rows)?);
        }
        Ok(facts)
    }

    /// Folds the stored facts of `jobs`. Jobs share a step while all their facts fit, because each step makes other
    /// deciders lose a race. A job whose facts do not fit begins a new step, since a step that ends between them decides
    /// without the rest. Only a job that is larger than a step spans several.
    async fn absorb_stored(&mut self, jobs: impl Iterator<Item = JobKey>) -> Result<(), Interrupted> {
        let partition = stored::fact_partition(&self.loaded.tuning.id);
        let (mut shared, mut last) = (Vec::new(), Vec::new());
        for job in jobs {
            let mut query = Query::prefix(partition.clone(), stored::fact_prefix(Some(job)), FACT_ROWS);
            let mut first = Vec::new();
            loop {
                let page = self.store.table.query(&query).await?;
                let facts = readable(&page.items)?;
                let (of_last, of_first): (Vec<_>, Vec<_>) = facts.into_iter().partition(comes_last);
                first.extend(of_first);
                last.extend(of_last);
                if !fit_a_step(shared.iter().chain(&first)) {
                    self.absorb(&mut shared, &BTreeSet::new()).await?;
                }
                match page.next {
                    Some(next) => query.after = Some(next),
                    None => break,
                }
                self.absorb(&mut first, &BTreeSet::new()).await?;
            }
            shared.append(&mut first);
        }
        self.absorb(&mut shared, &BTreeSet::new()).await?;
        self.absorb(&mut last, &BTreeSet::new()).await?;
        Ok(())
    }

    /// Folds `facts` in as many steps as needed.
    ///
    /// Before a search ends at its cap, all stored changes of limits are folded: the stream may be hours late, and a
    /// raised cap cannot revive a tuning that has ended.
    ///
    /// Returns the jobs that the passage of time may settle, without those in `read`. If there are any, the rest of
    /// `facts` is not folded: the stored facts of these jobs come first.
    async fn absorb(
        &mut self,
        facts: &mut Vec<Recorded>,
        read: &BTreeSet<JobKey>,
    ) -> Result<Vec<JobKey>, Interrupted> {
        facts.sort_by_key(|fact| !fact.fact.comes_first());
        let mut requests_folded = false;
        while !(facts.is_empty() && self.is_settled) {
            let further = unread(&self.loaded, facts, read);
            if !further.is_empty() {
                return Ok(further);
            }
            let undecided = self.loaded.clone();
            let n = undecided.head.step.saturating_add(1);
            // A step of their own: its rulings conclude the jobs, so that no later fact of these names counts.
            let first = facts.iter().take_while(|fact| fact.fact.comes_first()).count();
            let given = if first > 0 { facts.get(..first) } else { None };
            let state = Arc::make_mut(&mut self.loaded.state);
            let advanced = advance(&undecided.tuning.definition, state, n, given.unwrap_or(facts));
            if let Some(job) = advanced.missing {
                self.loaded = undecided;
                let parked = self.store.parked(&self.loaded.tuning.id, job).await?;
                Arc::make_mut(&mut self.loaded.state).search.bring(job.trial, parked);
                continue;
            }
            if let Some(step) = &advanced.step {
                if !requests_folded && ends_at_cap(step) {
                    requests_folded = true;
                    self.loaded = undecided;
                    let mut requests = self.stored_facts().await?;
                    requests.retain(is_request);
                    requests.append(facts);
                    *facts = requests;
                    continue;
                }
                if !self.store.commit(&mut self.loaded, step, &advanced).await? {
                    self.reload().await?;
                    continue;
                }
                (self.is_current, self.races) = (true, 0);
                self.steps.push(step.clone());
            }
            self.is_settled = !advanced.has_more;
            facts.drain(..advanced.taken.min(facts.len()));
        }
        Ok(Vec::new())
    }

    /// Reads the tuning after a lost race. Facts that a state which was not current ignored must be folded again.
    async fn reload(&mut self) -> Result<(), Interrupted> {
        self.races += 1;
        if !self.is_current || self.races >= RACES_MAX {
            return Err(Interrupted::Race);
        }
        let loaded = self.store.load(&self.loaded.tuning.id).await?;
        self.loaded = loaded.ok_or(Interrupted::Race)?;
        self.is_settled = false;
        Ok(())
    }
}

/// Returns the jobs that the passage of time in `facts` may settle, without those in `read`.
fn unread(loaded: &Loaded, facts: &[Recorded], read: &BTreeSet<JobKey>) -> Vec<JobKey> {
    let time = facts.iter().filter(|fact| matches!(fact.fact, Fact::TimePassed)).map(|fact| fact.at).max();
    let Some(at) = time else { return Vec::new() };
    let mut jobs = must_fold_first(&loaded.tuning.definition, &loaded.state, at);
    jobs.retain(|job| !read.contains(job));
    jobs
}

/// Returns whether a step ends a search for lack of money, or starts its refit, which ends the search too.
fn ends_at_cap(step: &Step) -> bool {
    step.rulings.iter().any(|ruling| {
        matches!(
            ruling,
            Ruling::TuningEnding { why: EndReason::CostCap }
                | Ruling::Order(
                    Order::Notice(NoticeOrder::TuningEnded {
                        why: EndReason::CostCap | EndReason::Failed(_)
                    }) | Order::Start { launch: Launch { refit: true, .. }, .. }
                )
        )
    })
}

/// Returns whether a fact is a user's request: a change of limits or a stop.
fn is_request(fact: &Recorded) -> bool {
    matches!(fact.fact, Fact::LimitsChanged { .. } | Fact::StopRequested | Fact::JobStopRequested { .. })
}

/// Returns whether a fact is folded after all others: the facts that complete a job's facts or confirm its bill, and the
/// passage of time.
fn comes_last(fact: &Recorded) -> bool {
    fact.fact.completes() || matches!(fact.fact, Fact::TimePassed | Fact::BillsConfirmed { .. })
}
