//! Opens one tuning with all its rows: in its data directory, or as a copy of the rows from a stack.
//!
//! Commands that need the recorded facts and decisions therefore have one implementation.

use std::sync::Arc;

use api_client::Client;
use dynamodb::{DynamoTable, Embedded};
use local::host::place_of;
use local::training::JobRecords;
use serde_json::Value;
use use_cases::describe::Place;
use use_cases::lookup;
use use_cases::ports::table::{Condition, Table, Write};
use use_cases::store::{Store, StoreError};
use wire::describe::TuningJob;
use wire::row_json;
use wire::stored::IndexRow;

use crate::arguments::Source;
use crate::failure::Failure;
use crate::remote::failed;
use crate::tunings::{Home, Tunings};

const ROWS_AT_ONCE: usize = 50;
/// Maximum copies of a tuning until one is whole.
const COPIES_MAX: u32 = 3;

#[derive(Debug)]
pub(crate) struct StoredTuning {
    pub(crate) store: Arc<Store<DynamoTable>>,
    pub(crate) row: IndexRow,
    /// The records of its training jobs; `None` on a stack, whose training jobs are SageMaker's.
    pub(crate) jobs: Option<JobRecords>,
    /// Partition, Region and account of its ARNs.
    pub(crate) place: Place,
    pub(crate) described: TuningJob,
    /// The command that continues it, if no `run` is active.
    pub(crate) interrupted: Option<String>,
    /// The options that a suggested command needs to reach it.
    pub(crate) location_options: String,
}

impl StoredTuning {
    pub(crate) async fn open(source: &Source, name: &str) -> Result<Self, Failure> {
        let tunings = Tunings::open(source).await?;
        let described = tunings.describe(name).await?;
        Self::open_described(&tunings, described).await
    }

    pub(crate) async fn open_described(tunings: &Tunings, described: TuningJob) -> Result<Self, Failure> {
        let name = &described.base.name;
        let (store, row, jobs, place) = match &tunings.home {
            Home::Folder(data) => {
                let row = lookup::find(&data.store, name).await?;
                (Arc::clone(&data.store), row, Some(data.training_jobs()), place_of(data.folder()))
            }
            Home::Stack(_) => {
                let (store, row) = copy(&tunings.client, name).await?;
                // Its ARN has the account and the Region.
                (Arc::new(store), row, None, Place::of_arn(&described.base.arn))
            }
        };
        let interrupted = tunings.interrupted(&described);
        let location_options = tunings.location_options.clone();
        Ok(Self { store, row, jobs, place, described, interrupted, location_options })
    }

    /// Returns the error for a tuning that was deleted since it was opened.
    pub(crate) fn deleted(&self) -> Failure {
        Failure::usage(format!("the tuning {} was deleted", self.row.name))
    }
}

/// Copies the rows of a tuning on a stack to memory. A tuning that runs replaces its snapshot now and then, so a copy may
/// miss it. Then the rows are read again.
async fn copy(client: &Client, name: &str) -> Result<(Store<DynamoTable>, IndexRow), Failure> {
    let mut tries = 0;
    loop {
        let rows = client.rows(name).await.map_err(failed)?;
        let (store, row) = table_of(&rows).await?;
        tries += 1;
        match store.load(&row.id).await {
            Err(_) if tries < COPIES_MAX => {}
            Err(error) => return Err(error.into()),
            Ok(_) => return Ok((store, row)),
        }
    }
}
/// Returns a table in memory with these rows, in DynamoDB's JSON. The first is that of the tuning's name.
async fn table_of(rows: &[Value]) -> Result<(Store<DynamoTable>, IndexRow), Failure> {
    let unreadable = || Failure::endpoint(anyhow::anyhow!("the stack returned unreadable rows"));
    let items = rows.iter().map(row_json::decode).collect::<Result<Vec<_>, _>>().map_err(|_| unreadable())?;
    let first = items.first().ok_or_else(unreadable)?;
    let row = IndexRow::read(first).map_err(|_| unreadable())?;
    let table = Embedded::memory().await?.table();
    for (n, items) in items.chunks(ROWS_AT_ONCE).enumerate() {
        let writes = items.iter().map(|item| Write::Put(item.clone(), Condition::Always)).collect();
        table.transact(writes, &format!("copy-{n}")).await.map_err(StoreError::from)?;
    }
    Ok((Store::new(table.into()), row))
}
