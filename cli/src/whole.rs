//! Opens one tuning with all its rows: in its data directory, or as a copy of the rows from a stack.
//!
//! Commands that need the recorded facts and decisions therefore have one implementation.

use api_client::{Client, ClientError};
use dynamodb::{DynamoTable, Embedded};
use local::host::place_of;
use local::training::JobRecords;
use serde_json::Value;
use use_cases::describe::Place;
use use_cases::ports::table::{Condition, Table, Write};
use use_cases::store::{Store, StoreError};
use wire::row_json;
use wire::stored::IndexRow;

use crate::arguments::{Source, Where};
use crate::data::Data;
use crate::failure::Failure;
use crate::remote::Remote;

const ROWS_AT_ONCE: usize = 50;
/// Maximum copies of a tuning until one is whole.
const COPIES_MAX: u32 = 3;

#[derive(Debug)]
pub(crate) struct Tuning {
    pub(crate) store: Store<DynamoTable>,
    pub(crate) row: IndexRow,
    /// The records of its training jobs; `None` on a stack, whose training jobs are SageMaker's.
    pub(crate) jobs: Option<JobRecords>,
    /// Partition, Region and account of its ARNs.
    pub(crate) place: Place,
    /// The URI of its best model on a stack.
    pub(crate) model: Option<String>,
    /// The options that a suggested command needs to reach it.
    pub(crate) location_options: String,
}

impl Tuning {
    pub(crate) async fn open(source: &Source, name: &str) -> Result<Self, Failure> {
        let location_options = source.location_options();
        match source.place().map_err(Failure::usage)? {
            Where::Folder(folder) => {
                let data = Data::existing(&folder).await?;
                let (row, jobs) = (data.find(name).await?, Some(data.training_jobs()));
                Ok(Self {
                    store: data.store,
                    row,
                    jobs,
                    place: place_of(&folder),
                    model: None,
                    location_options,
                })
            }
            Where::Endpoint(address) => {
                let remote = Remote::connect(address).await?;
                // Its ARN has the account and the Region.
                let described = remote.describe(name).await?;
                let model = described.controller.best_model.map(|best| best.location);
                let (store, row) = match copy(&remote.client, name).await {
                    Ok(copied) => copied,
                    Err(CopyError::Client(error)) => return Err(remote.tuning_failure(error, name).await),
                    Err(CopyError::Unreadable(failure)) => return Err(failure),
                };
                Ok(Self {
                    store,
                    row,
                    jobs: None,
                    place: Place::of_arn(&described.base.arn),
                    model,
                    location_options,
                })
            }
        }
    }

    /// Returns the error for a tuning that was deleted since it was opened.
    pub(crate) fn deleted(&self) -> Failure {
        Failure::usage(format!("the tuning {} was deleted", self.row.name))
    }
}

/// Why a tuning on a stack was not copied.
#[derive(Debug)]
pub(crate) enum CopyError {
    /// The stack did not return the rows.
    Client(ClientError),
    Unreadable(Failure),
}

/// Copies the rows of a tuning on a stack to memory. A tuning that runs replaces its snapshot now and then, so a copy may
/// miss it. Then the rows are read again.
pub(crate) async fn copy(client: &Client, name: &str) -> Result<(Store<DynamoTable>, IndexRow), CopyError> {
    let mut tries = 0;
    loop {
        let rows = client.rows(name).await.map_err(CopyError::Client)?;
        let (store, row) = table_of(&rows).await.map_err(CopyError::Unreadable)?;
        tries += 1;
        match store.load(&row.id).await {
            Err(_) if tries < COPIES_MAX => {}
            Err(error) => return Err(CopyError::Unreadable(error.into())),
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
