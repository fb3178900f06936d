//! The data directory, as the commands beside `run` see it: the table, opened without disturbing a `run` at work.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use dynamodb::{DynamoTable, Embedded, OpenError};
use local::host::{table_path, training_path};
use local::training::JobRecords;
use service::lookup::{self, LookupError};
use service::store::Store;
use wire::stored::IndexRow;

use crate::closest::closest;
use crate::failure::{Exit, Failure};

/// Names read at once.
const NAMES_PER_PAGE: usize = 200;

/// The tunings of a data directory.
#[derive(Debug)]
pub(crate) struct Data {
    pub(crate) store: Store<DynamoTable>,
    folder: PathBuf,
}

impl Data {
    /// Opens the table of `folder`; `None` if nothing was ever run there.
    pub(crate) async fn open(folder: &Path) -> Result<Option<Self>, Failure> {
        let path = table_path(folder);
        if !path.exists() {
            return Ok(None);
        }
        let table = match Embedded::attach(&path).await {
            // A `run` has just begun and is making it.
            Err(OpenError::NotYet { .. }) => return Ok(None),
            attached => attached?,
        };
        let store = Store::new(table.table().into());
        Ok(Some(Self { store, folder: folder.to_owned() }))
    }

    /// As [`Data::open`], where there must be something to look at.
    pub(crate) async fn existing(folder: &Path) -> Result<Self, Failure> {
        let data = Self::open(folder).await?;
        data.ok_or_else(|| {
            Failure::usage(format!("nothing was run in {} yet", folder.display()))
                .hint("name the folder of a `hyperband run` with --data-dir")
        })
    }

    /// The tuning `name`, or an error with the names that it may have been.
    pub(crate) async fn find(&self, name: &str) -> Result<IndexRow, Failure> {
        match lookup::find(&self.store, name).await {
            Ok(row) => Ok(row),
            Err(LookupError::NotFound(_)) => Err(self.unknown(name).await?),
            Err(error) => Err(error.into()),
        }
    }

    /// All tunings, in order of their names.
    pub(crate) async fn names(&self) -> Result<Vec<IndexRow>, Failure> {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let (page, next) = lookup::list(&self.store, after, NAMES_PER_PAGE).await?;
            all.extend(page);
            match next {
                Some(next) => after = Some(next),
                None => return Ok(all),
            }
        }
    }

    /// Whether a `run` is at work on this folder.
    pub(crate) fn is_running(&self) -> bool {
        // Whoever runs holds this lock; who wants to run waits for it, so that this look disturbs nobody.
        let file = File::open(training_path(&self.folder).join("lock"));
        file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }

    /// The training jobs, as the training service of this folder has them now.
    pub(crate) fn training_jobs(&self) -> JobRecords {
        JobRecords::at(&training_path(&self.folder))
    }

    async fn unknown(&self, name: &str) -> Result<Failure, Failure> {
        let rows = self.names().await?;
        let near = closest(name, rows.iter().map(|row| row.name.as_str()));
        let hint = match near.as_slice() {
            [] if rows.is_empty() => "there is none at all: start one with `hyperband run`".to_owned(),
            [] => "`hyperband list` shows all".to_owned(),
            near => format!("did you mean {}?", near.join(" or ")),
        };
        let place = self.folder.display();
        Ok(Failure::usage(format!("no tuning in {place} is named '{name}'")).exit(Exit::Usage).hint(hint))
    }
}
