//! Opens a data directory for reading and for orders, without disturbing an active `run`.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dynamodb::{DynamoTable, Embedded, OpenError};
use local::host::{table_path, training_path};
use local::training::JobRecords;
use use_cases::store::Store;

use crate::failure::Failure;

#[derive(Debug, Clone)]
pub(crate) struct Data {
    pub(crate) store: Arc<Store<DynamoTable>>,
    folder: PathBuf,
    /// Whether this user may only read the folder, so that `store` is a copy.
    read_only: bool,
}

/// Returns whether a `run` is active in the data directory `folder`.
pub(crate) fn is_running(folder: &Path) -> bool {
    // An active `run` holds this lock. A starting `run` waits for it, so this test disturbs no one.
    let file = File::open(training_path(folder).join("lock"));
    file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

impl Data {
    /// Opens the table of `folder`. Returns `None` if no tuning was ever run there.
    pub(crate) async fn open(folder: &Path) -> Result<Option<Self>, Failure> {
        let path = table_path(folder);
        if !path.exists() {
            return Ok(None);
        }
        let (table, read_only) = match Embedded::attach(&path).await {
            // A `run` that has just started is creating it.
            Err(OpenError::NoTable { .. }) => return Ok(None),
            Err(OpenError::Access { .. }) if File::open(&path).is_ok() => {
                (Embedded::snapshot(&path).await?, true)
            }
            attached => (attached?, false),
        };
        let store = Arc::new(Store::new(table.table().into()));
        Ok(Some(Self { store, folder: folder.to_owned(), read_only }))
    }

    /// Returns the data directory `folder`, whose table this process has open.
    pub(crate) fn of_store(store: Arc<Store<DynamoTable>>, folder: &Path) -> Self {
        Self { store, folder: folder.to_owned(), read_only: false }
    }

    /// Like [`Data::open`], but fails if no tuning was ever run there.
    pub(crate) async fn existing(folder: &Path) -> Result<Self, Failure> {
        let data = Self::open(folder).await?;
        data.ok_or_else(|| {
            Failure::usage(format!("no tuning was run in {}", folder.display()))
                .hint("set --data-dir to the data directory of a `hyperband run`")
        })
    }

    /// Fails if this user may only read the folder.
    pub(crate) fn require_writable(&self) -> Result<(), Failure> {
        if !self.read_only {
            return Ok(());
        }
        Err(Failure::usage(format!("{} is read-only for this user", self.folder.display()))
            .hint("run the command as the owner of the folder, or get write permission for it and its files"))
    }

    /// Returns whether a `run` is active in this folder.
    pub(crate) fn is_running(&self) -> bool {
        is_running(&self.folder)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the training jobs of this folder's training service.
    pub(crate) fn training_jobs(&self) -> JobRecords {
        JobRecords::at(&training_path(&self.folder))
    }
}
