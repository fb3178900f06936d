//! Reads tunings from the table: the definition, the head, and the state (a snapshot plus later steps).
//!
//! Makes no decisions. Caches only immutable data (definitions) and data that is compared with the head before use
//! (states).

mod cache;

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use thiserror::Error;
use tuning::definition::{Definition, RULES_VERSION};
use tuning::log::fact::{JobKey, Recorded};
use tuning::scheduler::Parked;
use tuning::state::State;
use tuning::unit::ids::TrialId;
use wire::events::logs::MetricPattern;
use wire::item::Item;
use wire::request::Request;
use wire::stored::{self, Head, StoredError};

use crate::ports::table::{Pages, Query, Table, TableError};
use cache::Cache;

const PAGE_ROWS: usize = 200;
/// Number of cached definitions. IDs that do not belong to a tuning of this stack are cached too.
const CACHED_TUNINGS_MAX: usize = 512;
/// Number of cached states: a sweep visits a hundred active tunings without reading them again.
const CACHED_STATES_MAX: usize = 128;
/// Estimated size of the cached states, in bytes: a quarter of a small function's memory, because a step clones the
/// state that it changes.
const CACHED_STATES_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Why the table could not be read or written.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum StoreError {
    /// The table refused or failed.
    #[error(transparent)]
    Table(#[from] TableError),
    /// A row is unreadable.
    #[error(transparent)]
    Stored(#[from] StoredError),
}

impl StoreError {
    /// Returns whether the error is permanent: a retry fails too until a permission, a row or the code is changed.
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Table(TableError::Conflict(_) | TableError::Throttled | TableError::Unavailable(_))
            // While a release is deployed, its functions are replaced one after another.
            | Self::Stored(StoredError::NewerFact { .. }) => false,
            Self::Table(TableError::Refused(_)) | Self::Stored(_) => true,
        }
    }
}

/// The immutable part of a tuning.
#[derive(Debug)]
pub struct Tuning {
    /// ID of the tuning.
    pub id: String,
    /// The definition, for the decider.
    pub definition: Definition,
    /// The request, as submitted.
    pub request: Request,
    /// Find the objective in log lines, one for each training job definition. `None` if the stored pattern no longer
    /// compiles.
    patterns: Vec<Option<MetricPattern>>,
    /// ARN of the principal that submitted the tuning; `None` = unknown.
    pub submitter: Option<String>,
    /// The best training job of each parent that another controller ran, as its service described it at the submission.
    /// `TuningJobName` is the name of the parent.
    pub other_parents: Vec<Value>,
}

impl Tuning {
    /// Returns a tuning with this definition and this request.
    pub fn new(definition: Definition, request: Request, submitter: Option<String>) -> Self {
        let pattern = |one: &Request| MetricPattern::new(&one.metric_regex()?, one.epoch_pattern()).ok();
        let patterns = request.definitions().map(pattern).collect();
        Self { id: definition.id(), definition, request, patterns, submitter, other_parents: Vec::new() }
    }

    /// Returns what finds the objective in the log lines of a trial; `None` if the stored pattern no longer compiles.
    pub fn pattern(&self, trial: TrialId) -> Option<&MetricPattern> {
        self.patterns.get(self.definition.definition_of(trial).index())?.as_ref()
    }

    /// Returns the request of the training job definition of a trial.
    pub fn request_of(&self, trial: TrialId) -> &Request {
        self.request.of_trial(trial.0)
    }
}

/// A tuning as of its last step.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The immutable part.
    pub tuning: Arc<Tuning>,
    /// The head.
    pub head: Head,
    /// The state after step `head.step`; shared with the cache until it changes.
    pub state: Arc<State>,
}

/// Reads tunings, with a cache.
#[derive(Debug)]
pub struct Store<T> {
    /// The table.
    pub table: Arc<T>,
    tunings: Mutex<BTreeMap<String, Option<Arc<Tuning>>>>,
    states: Mutex<Cache<Loaded>>,
    /// A random number. It keeps the transaction tokens of two processes apart.
    instance: u64,
    /// Number of transactions so far. It keeps the transaction tokens of one process apart.
    transactions: AtomicU64,
}

impl<T: Table> Store<T> {
    /// Creates a reader of `table`.
    pub fn new(table: Arc<T>) -> Self {
        let states = Mutex::new(Cache::new(CACHED_STATES_MAX, CACHED_STATES_BYTES_MAX));
        Self {
            table,
            tunings: Mutex::default(),
            states,
            instance: RandomState::new().build_hasher().finish(),
            transactions: AtomicU64::new(0),
        }
    }

    /// Returns the immutable part of tuning `id`, or `None` if the tuning does not exist. Caches `None` too, because
    /// most log lines of an account belong to other jobs.
    pub async fn tuning(&self, id: &str) -> Result<Option<Arc<Tuning>>, StoreError> {
        let known = self.tunings.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let item = self.table.get(&stored::meta_key(id)).await?;
        let tuning = item.as_ref().map(|item| read_tuning(id, item)).transpose()?.map(Arc::new);
        let mut tunings = self.tunings.lock().unwrap_or_else(PoisonError::into_inner);
        if tunings.len() >= CACHED_TUNINGS_MAX {
            tunings.clear();
        }
        tunings.insert(id.to_owned(), tuning.clone());
        Ok(tuning)
    }

    /// Removes tuning `id` from the cache, after it was created or deleted.
    pub fn forget(&self, id: &str) {
        self.tunings.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
        self.forget_state(id);
    }

    /// Returns a text that differs for each transaction of each process.
    pub(crate) fn nonce(&self) -> String {
        format!("{:x}-{}", self.instance, self.transactions.fetch_add(1, Ordering::Relaxed))
    }

    /// Removes the state of tuning `id` from the cache.
    pub(crate) fn forget_state(&self, id: &str) {
        self.states.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }

    /// Returns the head of tuning `id`.
    pub async fn head(&self, id: &str) -> Result<Option<Head>, StoreError> {
        let item = self.table.get(&stored::head_key(id)).await?;
        Ok(item.as_ref().map(Head::read).transpose()?)
    }

    /// Returns tuning `id` as this process last read or wrote it; another process may have changed it since.
    pub(crate) fn cached(&self, id: &str) -> Option<Loaded> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner).get(id)
    }

    /// Returns tuning `id` in its present state.
    pub async fn load(&self, id: &str) -> Result<Option<Loaded>, StoreError> {
        let Some(head) = self.head(id).await? else { return Ok(None) };
        if let Some(cached) = self.cached(id).filter(|cached| cached.head.step == head.step) {
            return Ok(Some(cached));
        }
        let Some(tuning) = self.tuning(id).await? else { return Ok(None) };
        let (head, state) = match self.state(&tuning, &head, head.snapshot).await {
            Ok(state) => (head, state),
            Err(StoreError::Stored(StoredError::Unreadable { .. })) => {
                let newer = self.head(id).await?.filter(|newer| newer.snapshot > head.snapshot);
                // A newer snapshot may have replaced this one meanwhile. Else another release wrote it, or it is
                // damaged: all steps give the same state.
                let (head, snapshot) = newer.map_or((head, 0), |newer| (newer.clone(), newer.snapshot));
                let state = self.state(&tuning, &head, snapshot).await?;
                (head, state)
            }
            Err(error) => return Err(error),
        };
        let loaded = Loaded { tuning, head, state: Arc::new(state) };
        self.remember(&loaded);
        Ok(Some(loaded))
    }

    /// Caches a state that was just read or written.
    pub fn remember(&self, loaded: &Loaded) {
        let mut states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        states.insert(&loaded.tuning.id, loaded.clone(), cache::bytes_of(&loaded.state));
    }

    /// Returns the state at `head` from the snapshot after step `snapshot` and the later steps; 0 = from all steps.
    async fn state(&self, tuning: &Tuning, head: &Head, snapshot: u64) -> Result<State, StoreError> {
        let mut state = if snapshot == 0 {
            State::new(&tuning.definition)
        } else {
            let prefix = stored::snapshot_key_prefix(snapshot);
            let chunks = self.all(&stored::tuning_partition(&tuning.id), &prefix).await?;
            stored::snapshot_state(&tuning.id, snapshot, &chunks)?
        };
        let mut query = Query::prefix(stored::tuning_partition(&tuning.id), "STEP#", PAGE_ROWS);
        query.after = Some(stored::step_key(&tuning.id, snapshot).sk);
        let mut loaded = snapshot;
        loop {
            let page = self.table.query(&query).await?;
            for item in &page.items {
                let step = stored::step(item)?;
                // Later steps than the head's are left to the next reader.
                if step.n > head.step {
                    break;
                }
                for job in tuning::step::missing(&state, &step) {
                    let parked = self.parked(&tuning.id, job).await?;
                    state.search.bring(job.trial, parked);
                }
                tuning::step::load(&tuning.definition, &mut state, &step);
                loaded = step.n;
            }
            match page.next {
                Some(next) if loaded < head.step => query.after = Some(next),
                Some(_) | None => break,
            }
        }
        if loaded == head.step {
            return Ok(state);
        }
        let missing = stored::step_key(&tuning.id, loaded.saturating_add(1));
        Err(StoredError::unreadable(&missing, "the step is missing").into())
    }

    /// Returns what the row of the last job of a waiting trial has of that trial.
    pub async fn parked(&self, id: &str, job: JobKey) -> Result<Arc<Parked>, StoreError> {
        let key = stored::job_key(id, job);
        let item = self.table.get(&key).await?;
        let item = item.ok_or_else(|| StoredError::unreadable(&key, "the row of the job is missing"))?;
        Ok(Arc::new(Parked::from(&stored::job(&item)?)))
    }

    /// Returns all rows of a partition with a prefix.
    pub async fn all(&self, pk: &str, prefix: &str) -> Result<Vec<Item>, StoreError> {
        let mut pages = Pages::of(Query::prefix(pk, prefix, PAGE_ROWS));
        let mut items = Vec::new();
        while let Some(page) = pages.next(&*self.table).await? {
            items.extend(page);
        }
        Ok(items)
    }
}

/// Returns the facts of these rows.
pub(crate) fn readable(rows: &[Item]) -> Result<Vec<Recorded>, StoreError> {
    let mut facts = Vec::new();
    for row in rows {
        match stored::fact(row) {
            Ok(fact) => facts.push(fact),
            Err(error @ (StoredError::Newer { .. } | StoredError::NewerFact { .. })) => {
                return Err(error.into());
            }
            // A damaged row must not hide the other facts. It stays in the table for inspection.
            Err(StoredError::Unreadable { .. }) => {}
        }
    }
    Ok(facts)
}

fn read_tuning(id: &str, item: &Item) -> Result<Tuning, StoredError> {
    let (definition, request) = stored::meta(item)?;
    if definition.rules_version > RULES_VERSION {
        let (key, version) =
            (format!("{}/{}", item.key.pk, item.key.sk), i64::from(definition.rules_version));
        return Err(StoredError::Newer { key, version });
    }
    let body = serde_json::from_str(&request);
    let body = body.map_err(|error| StoredError::unreadable(&item.key, error.to_string()))?;
    let request = Request::from_stored(body);
    let other_parents = stored::other_parents(item)?;
    Ok(Tuning {
        id: id.to_owned(),
        other_parents,
        ..Tuning::new(definition, request, stored::submitter(item))
    })
}
