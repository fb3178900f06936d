//! Mutants: the ports of a process, with the planted bug that is on.
//!
//! A bug at a port drops, alters, duplicates or forges the data that crosses the port. The use cases under test are
//! therefore the deployed use cases. The bugs are listed in [`crate::planted`]. At most one is on.

mod jobs;
mod table;

use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::planted::{Mutation, is_on};
use serde_json::Value;
use tuning::unit::time::{Millis, Time};
use use_cases::perform::TRIAL_DECISION;
use use_cases::ports::table::{Table, Write};
use use_cases::ports::training::{JobLogs, TrainingJobListing, TrainingJobs};
use use_cases::ports::{Bus, BusError, Clock, HandOver, HandOverError, Prices, PricesError, Timer};

use wire::item::{Item, Key};

use crate::site::Function;
use crate::world::lock;
use crate::world::ports::{Port, now};

/// The ports of a process, and what a bug must know of it.
pub(crate) trait Ports:
    Table + TrainingJobs + TrainingJobListing + JobLogs + Bus + HandOver + Prices + Timer + Clone
{
    /// Returns the function that runs.
    fn function(&self) -> Function;

    /// Returns a row of the table, without a call.
    fn stored(&self, key: &Key) -> Option<Item>;
}

impl Ports for Port {
    fn function(&self) -> Function {
        lock(&self.world).function
    }

    fn stored(&self, key: &Key) -> Option<Item> {
        now(lock(&self.world).table.get(key)).ok().flatten()
    }
}

/// All ports of one process, with the planted bug that is on.
#[derive(Debug, Clone)]
pub(crate) struct Mutant<P> {
    port: P,
    memory: Arc<Mutex<Memory>>,
}

/// What a process did before a call.
#[derive(Debug, Default)]
struct Memory {
    /// Name of the action that it has claimed.
    claimed: Option<String>,
    /// A claim that it believes to be stored.
    withheld: Option<Write>,
    /// The time at which its clock stands still.
    still_at: Option<Time>,
    /// The request of its last create.
    created: Value,
    /// Whether its last create was refused.
    refused: bool,
    /// Whether the job of its last stop did not exist.
    stop_not_found: bool,
    /// Whether the last row that it read is that of a cancelled start.
    start_cancelled: bool,
    /// The money that a month has granted, in micro-dollars, when the process saw none.
    granted: i64,
}

impl Memory {
    /// Returns whether the process has claimed an action of kind `kind`, for example `stop`.
    fn has_claimed(&self, kind: &str) -> bool {
        self.claimed.as_deref().is_some_and(|action| is_of_kind(action, kind))
    }
}

/// Returns whether `action` is of kind `kind`, for example `stop`.
fn is_of_kind(action: &str, kind: &str) -> bool {
    action.split('-').next() == Some(kind)
}

impl<P: Ports> Deref for Mutant<P> {
    type Target = P;

    fn deref(&self) -> &P {
        &self.port
    }
}

impl<P: Ports> Mutant<P> {
    pub(crate) fn new(port: P) -> Self {
        Self { port, memory: Arc::default() }
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the running process is one of `function`.
    fn runs(&self, function: Function) -> bool {
        self.port.function() == function
    }

    /// Returns whether the running process performs actions.
    fn performs(&self) -> bool {
        self.runs(Function::Actuator) || self.runs(Function::Sweeper)
    }
}

impl<P: Ports> Bus for Mutant<P> {
    async fn publish(&self, detail_type: &str, detail: &Value) -> Result<(), BusError> {
        let is_notice = detail_type != TRIAL_DECISION;
        if is_notice && self.runs(Function::Sweeper) && is_on(Mutation::NoticeForgotten) {
            return Ok(());
        }
        self.port.publish(detail_type, detail).await
    }
}

impl<P: Ports> HandOver for Mutant<P> {
    async fn hand_over(&self, payload: &Value) -> Result<(), HandOverError> {
        self.port.hand_over(payload).await
    }
}

impl<P: Ports> Prices for Mutant<P> {
    async fn instance_hour(&self, instance_type: &str) -> Result<Option<u64>, PricesError> {
        self.port.instance_hour(instance_type).await
    }

    async fn volume_kilo_gib_hour(&self) -> Result<Option<u64>, PricesError> {
        self.port.volume_kilo_gib_hour().await
    }
}

impl<P: Ports> Clock for Mutant<P> {
    fn now(&self) -> Time {
        self.memory().still_at.unwrap_or_else(|| self.port.now())
    }
}

impl<P: Ports> Timer for Mutant<P> {
    async fn pause(&self, span: Millis) {
        self.port.pause(span).await;
    }
}
