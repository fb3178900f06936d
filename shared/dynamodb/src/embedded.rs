//! A DynamoDB engine inside this process, on one SQLite file or in memory. It needs no network, account or credentials.
//!
//! Needs a tokio runtime: every call to the engine runs on a blocking thread. One process owns a file through a lock on
//! `<file>.lock`, which the system releases when the process ends. The engine never writes to a file that holds other
//! data.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{
    BehaviorVersion, Config, Credentials, Region, SharedHttpClient, StalledStreamProtectionConfig,
};
use thiserror::Error;
use use_cases::ports::table::TableError;

use crate::errors::DAMAGED;
use crate::schema::create_table;
use crate::table::DynamoTable;
use adapter::Adapter;
use engine::Engine;
use fault::Fault;
use stream::ChangeStream;

mod adapter;
mod engine;
mod fault;
pub(crate) mod stream;

/// Name of the table inside the engine.
pub const TABLE_NAME: &str = "hyperband";
/// The Region in the engine's requests and stream records.
const REGION: &str = "us-east-1";

/// The embedded engine with its one table. A clone is another handle. The last handle to be dropped, tables and streams
/// included, releases the file.
#[derive(Debug, Clone)]
pub struct Embedded {
    engine: Arc<Engine>,
    client: Client,
}

/// Where a stream starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamStart {
    /// At the oldest stored record.
    TrimHorizon,
    /// After the newest record.
    Latest,
    /// After the record with this sequence number.
    After(String),
}

/// Counts of what [`Embedded::sweep`] removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Swept {
    /// Rows past their time to live.
    pub rows: usize,
    /// Stream records older than 24 hours.
    pub records: usize,
}

/// Why the table file was not opened. The user must act, and each message says how.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The file has no table yet. Its owner may be creating the table.
    #[error("{} has no table yet: retry after the run has started", path.display())]
    NoTable {
        /// The table file.
        path: PathBuf,
    },
    /// Another process owns the file.
    #[error("{} is in use by {holder}: stop that process or use another file", path.display())]
    InUse {
        /// The table file.
        path: PathBuf,
        /// The owner, such as `process 4242`.
        holder: String,
    },
    /// The file or its directory is missing, or access is denied.
    #[error("cannot open {}: check that its directory exists and that you have write permission", path.display())]
    Access {
        /// The table file.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The file holds other data. It was not changed.
    #[error("{} is not a table file ({reason}): use another file", path.display())]
    NotATable {
        /// The file.
        path: PathBuf,
        /// What the file holds instead.
        reason: String,
    },
    /// The file is an unreadable table file.
    #[error(
        "{} is damaged ({reason}): restore a copy of it, or move it and the files beside it (-wal, -shm) away to start \
         with an empty table", path.display()
    )]
    Damaged {
        /// The table file.
        path: PathBuf,
        /// What SQLite reported.
        reason: String,
    },
    /// The disk is full.
    #[error("the disk of {} is full: free some space and start again", path.display())]
    Full {
        /// The table file.
        path: PathBuf,
    },
    /// The engine failed for another reason.
    #[error("the embedded engine could not open {}: {reason}", path.display())]
    Engine {
        /// The table file.
        path: PathBuf,
        /// The engine's message.
        reason: String,
    },
}

impl OpenError {
    fn new(path: &Path, reason: &impl ToString) -> Self {
        let (path, reason) = (path.to_owned(), reason.to_string());
        match Fault::of(&reason) {
            Fault::Full => Self::Full { path },
            Fault::Foreign => Self::NotATable { path, reason },
            Fault::Damaged => Self::Damaged { path, reason },
            Fault::Denied => Self::Access { path, source: io::Error::other(reason) },
            Fault::Other => Self::Engine { path, reason },
        }
    }
}

impl Embedded {
    /// Opens the table file at `path`. Creates the file if it is missing, but not its directory.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::start(path.as_ref(), Engine::open).await
    }

    /// Opens the existing table file at `path` while another process owns it, for reads and single writes. The owner's
    /// stream delivers these writes within a second.
    pub async fn attach(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::connect(path.as_ref(), Engine::attach).await
    }

    /// Opens a copy in memory of the table file at `path`, which the user may read but not write. Later writes of its
    /// owner are not in the copy, and writes to the copy are lost.
    pub async fn snapshot(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::connect(path.as_ref(), Engine::snapshot).await
    }

    /// Creates an empty table in memory.
    pub async fn memory() -> Result<Self, OpenError> {
        Self::start(Path::new("(memory)"), |_| Engine::memory()).await
    }

    /// Returns the table.
    pub fn table(&self) -> DynamoTable {
        DynamoTable::new(self.client.clone(), TABLE_NAME)
    }

    /// Returns a client of the engine.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Performs an operation of DynamoDB's wire protocol, such as `GetItem`, and returns HTTP status and body. For
    /// tests that emulate DynamoDB's endpoint.
    pub async fn answer(&self, operation: &str, body: &[u8]) -> Result<(u16, Vec<u8>), TableError> {
        let (operation, body) = (operation.to_owned(), body.to_owned());
        self.blocking(move |engine| Ok(engine.answer(&operation, &body))).await
    }

    /// Opens the stream of changes at `start`.
    pub async fn stream(&self, start: StreamStart) -> Result<ChangeStream, TableError> {
        ChangeStream::open(Arc::clone(&self.engine), start).await
    }

    /// Removes the stream records up to and including sequence number `through` and returns how many it removed. A
    /// stream opened at [`StreamStart::TrimHorizon`] then starts after that record. Call it when every consumer has
    /// finished these records.
    pub async fn trim_stream(&self, through: &str) -> Result<usize, TableError> {
        let through = through.to_owned();
        self.blocking(move |engine| engine.trim_through(&through)).await
    }

    /// Removes expired rows and stream records older than 24 hours, as DynamoDB does. Reads the whole table, so call it
    /// rarely, for example once an hour.
    pub async fn sweep(&self) -> Result<Swept, TableError> {
        self.blocking(Engine::sweep).await
    }

    /// Drops this handle and waits until the engine has released its file. A cancelled call counts as a handle until
    /// its statement ends. Waits forever while the caller keeps another handle, table or stream.
    pub async fn close(self) {
        let mut writes = self.engine.writes();
        drop(self);
        while writes.changed().await.is_ok() {}
    }

    async fn start(
        path: &Path,
        open: impl FnOnce(&Path) -> Result<Engine, OpenError> + Send + 'static,
    ) -> Result<Self, OpenError> {
        let embedded = Self::connect(path, open).await?;
        create_table(&embedded.client, TABLE_NAME).await.map_err(|error| OpenError::new(path, &error))?;
        embedded.blocking(Engine::trim_old).await.map_err(|error| OpenError::new(path, &error))?;
        Ok(embedded)
    }

    async fn connect(
        path: &Path,
        open: impl FnOnce(&Path) -> Result<Engine, OpenError> + Send + 'static,
    ) -> Result<Self, OpenError> {
        let file = path.to_owned();
        let opened = tokio::task::spawn_blocking(move || open(&file)).await;
        let engine = Arc::new(opened.map_err(|stopped| OpenError::new(path, &stopped))??);
        let client = client(Arc::clone(&engine));
        Ok(Self { engine, client })
    }

    async fn blocking<T: Send + 'static>(
        &self,
        run: impl FnOnce(&Engine) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, TableError> {
        blocking(Arc::clone(&self.engine), run).await
    }
}

/// An engine error in the form of a DynamoDB error.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Failure {
    status: u16,
    code: String,
    message: String,
}

impl From<Failure> for TableError {
    fn from(failure: Failure) -> Self {
        let text = format!("{}: {}", failure.code, failure.message);
        if failure.status >= 500 { Self::Unavailable(text) } else { Self::Refused(text) }
    }
}

/// Runs `run` on a blocking thread.
async fn blocking<T: Send + 'static>(
    engine: Arc<Engine>,
    run: impl FnOnce(&Engine) -> Result<T, Failure> + Send + 'static,
) -> Result<T, TableError> {
    match tokio::task::spawn_blocking(move || run(&engine)).await {
        Ok(result) => Ok(result?),
        Err(error) => Err(TableError::Unavailable(format!("the embedded engine stopped: {error}"))),
    }
}

fn client(engine: Arc<Engine>) -> Client {
    let config = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new(REGION))
        .credentials_provider(Credentials::new("embedded", "embedded", None, None, "embedded"))
        // Never resolved, because the adapter answers. It keeps the SDK from looking up an account endpoint.
        .endpoint_url("http://embedded.invalid")
        .http_client(SharedHttpClient::new(Adapter::new(engine)))
        // SQLite itself waits for a lock. No other failure ends within a second.
        .retry_config(RetryConfig::disabled())
        // A running statement cannot be canceled, so a time-out would only lose its answer.
        .timeout_config(TimeoutConfig::disabled())
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
        .build();
    Client::from_conf(config)
}
