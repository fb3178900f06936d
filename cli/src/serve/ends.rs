//! Prints which tunings continue and which have ended.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use dynamodb::DynamoTable;
use local::host::{Host, place_of};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use use_cases::active::name_in;
use use_cases::describe;
use use_cases::store::{Store, StoreError};
use wire::stored::{ACTIVE, active_id};

use crate::failure::Failure;
use crate::output::print_err;
use crate::page::Page;

/// Minimum time between two reads of the table.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Time between two reads without a change.
const IDLE: Duration = Duration::from_secs(1);

/// The tunings of the data directory.
#[derive(Debug)]
pub(super) struct Ends {
    store: Arc<Store<DynamoTable>>,
    changes: watch::Receiver<u64>,
    trouble: watch::Receiver<Option<String>>,
    data_dir: PathBuf,
    /// Whether each known tuning has ended, by its ID.
    known: BTreeMap<String, bool>,
    /// The tunings whose end could not be read at the last look.
    failing: BTreeSet<String>,
}

impl Ends {
    /// Prints the tunings that continue.
    pub(super) async fn begin(host: &Host, data_dir: &Path) -> Self {
        let mut ends = Self {
            store: Arc::clone(host.store()),
            changes: host.changes(),
            trouble: host.table_error(),
            data_dir: data_dir.to_owned(),
            known: BTreeMap::new(),
            failing: BTreeSet::new(),
        };
        // The jobs run already: after a fault of the table, `report` prints it and reads again.
        for id in active(&ends.store).await.unwrap_or_default() {
            let ended = has_ended(&ends.store, &id).await.unwrap_or(false);
            if !ended {
                print_err(&format!("continuing {}\n", name_in(&id)));
            }
            ends.known.insert(id, ended);
        }
        ends
    }

    /// Prints each end. Returns only after an error.
    pub(super) async fn report(mut self) -> Failure {
        loop {
            self.changes.mark_unchanged();
            if self.trouble.has_changed().unwrap_or(false) {
                let trouble = self.trouble.borrow_and_update().clone();
                print_err(&trouble.map_or_else(
                    || "the table works again\n".to_owned(),
                    |error| format!("warning: the table fails: {error}\n"),
                ));
            }
            if let Err(failure) = self.update().await {
                // The table may work again.
                failure.print();
                sleep(IDLE).await;
            }
            sleep(LOOK_EVERY).await;
            if matches!(timeout(IDLE, self.changes.changed()).await, Ok(Err(_))) {
                return Failure::endpoint(anyhow::anyhow!("the controller has stopped unexpectedly"))
                    .hint("repeat the command line to continue the tunings");
            }
        }
    }

    async fn update(&mut self) -> Result<(), Failure> {
        let active = active(&self.store).await?;
        self.known.retain(|id, ended| !*ended || active.contains(id));
        for id in active {
            self.known.entry(id).or_insert(false);
        }
        let open: Vec<String> =
            self.known.iter().filter(|(_, ended)| !**ended).map(|(id, _)| id.clone()).collect();
        for id in open {
            match self.update_one(&id).await {
                Ok(()) => {
                    self.failing.remove(&id);
                }
                // Printed once: an unreadable tuning stays so, and must not hide the ends of others.
                Err(failure) if self.failing.insert(id) => failure.print(),
                Err(_) => {}
            }
        }
        Ok(())
    }

    async fn update_one(&mut self, id: &str) -> Result<(), Failure> {
        if self.store.head(id).await?.is_none() {
            // It was deleted.
            self.known.remove(id);
        } else if has_ended(&self.store, id).await? {
            let described = describe::describe(&*self.store, &place_of(&self.data_dir), id).await?;
            let Some(described) = described else { return Ok(()) };
            let page = Page { described, jobs: Vec::new(), interrupted: None };
            let why = page.why().map_or_else(String::new, |why| format!(", {why}"));
            print_err(&format!("ended {}: {}{why}\n", page.name(), page.status()));
            self.known.insert(id.to_owned(), true);
        }
        Ok(())
    }
}

async fn active(store: &Store<DynamoTable>) -> Result<Vec<String>, StoreError> {
    let rows = store.all(ACTIVE, "").await?;
    Ok(rows.iter().filter_map(active_id).map(str::to_owned).collect())
}

/// Returns the tunings that have not ended. An unreadable one may not have.
pub(super) async fn unfinished(store: &Store<DynamoTable>) -> Result<Vec<String>, StoreError> {
    let mut found = Vec::new();
    for id in active(store).await? {
        match has_ended(store, &id).await {
            Ok(true) => {}
            Ok(false) | Err(StoreError::Stored(_)) => found.push(id),
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// Returns whether a tuning has ended, or was deleted.
async fn has_ended(store: &Store<DynamoTable>, id: &str) -> Result<bool, StoreError> {
    let head = store.head(id).await?;
    Ok(head.is_none_or(|head| !matches!(head.status.as_str(), "InProgress" | "Stopping")))
}
