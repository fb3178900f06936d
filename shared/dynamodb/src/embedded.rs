//! DynamoDB's engine inside this process, on one SQLite file or in memory: no network, no account, no credentials.
//!
//! Assumes a tokio runtime: every call to the engine runs on its blocking threads. One process owns a file, by a lock on
//! `<file>.lock` that ends with the process however it ends. It must never write to a file that holds other data.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{
    BehaviorVersion, Config, Credentials, Region, SharedHttpClient, StalledStreamProtectionConfig,
};
use service::ports::table::TableError;
use thiserror::Error;

use crate::errors::DAMAGED;
use crate::schema::create_table;
use crate::table::DynamoTable;
use adapter::Adapter;
use engine::Engine;
use fault::Fault;
use stream::{ChangeStream, StreamStart};

mod adapter;
mod engine;
mod fault;
pub(crate) mod stream;

/// Name of the table inside the engine.
pub const TABLE_NAME: &str = "hyperband";
/// The region that the engine's requests and records name.
const REGION: &str = "us-east-1";

/// The embedded engine with its one table. A clone is another handle; the last one, tables and streams included, gives
/// the file free.
#[derive(Debug, Clone)]
pub struct Embedded {
    engine: Arc<Engine>,
    client: Client,
}

/// What [`Embedded::sweep`] removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Swept {
    /// Rows past their time to live.
    pub rows: usize,
    /// Stream records older than 24 hours.
    pub records: usize,
}

/// Why the table file was not opened. A person has to act; each message says how.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The table is not in the file yet: whoever owns the file is making it, or nobody ever did.
    #[error("{} has no table yet: look again when the run has begun", path.display())]
    NotYet {
        /// The table file.
        path: PathBuf,
    },
    /// Another process works with this file.
    #[error("{} is in use by {holder}: stop that process or name another file", path.display())]
    InUse {
        /// The table file.
        path: PathBuf,
        /// That process.
        holder: String,
    },
    /// The file or its directory cannot be used.
    #[error("cannot open {}: make sure that its directory exists and that you may write there", path.display())]
    Access {
        /// The table file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The file is something else; it was not changed.
    #[error("{} is no table file ({reason}): name another file", path.display())]
    NotATable {
        /// The file.
        path: PathBuf,
        /// What it is.
        reason: String,
    },
    /// The file is a table file and cannot be read any more.
    #[error(
        "{} is damaged ({reason}): restore a copy of it, or move it and the files beside it (-wal, -shm) away to begin \
         with an empty table", path.display()
    )]
    Damaged {
        /// The table file.
        path: PathBuf,
        /// What was found.
        reason: String,
    },
    /// The disk is full.
    #[error("no space is left on the disk of {}: free some and start again", path.display())]
    Full {
        /// The table file.
        path: PathBuf,
    },
    /// The engine failed in another way.
    #[error("the engine could not open {}: {reason}", path.display())]
    Engine {
        /// The table file.
        path: PathBuf,
        /// What it said.
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
    /// Opens the table file at `path`, or makes it (not its directory).
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = path.as_ref().to_owned();
        let shown = path.clone();
        Self::start(&shown, move || Engine::open(&path)).await
    }

    /// Opens the table file at `path`, which must be there, beside the process that works with it. For reading, and for
    /// single writes: the stream of that process has them within a second.
    pub async fn attach(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = path.as_ref().to_owned();
        let shown = path.clone();
        Self::on(&shown, move || Engine::attach(&path)).await
    }

    /// Makes an empty table in memory.
    pub async fn memory() -> Result<Self, OpenError> {
        Self::start(Path::new("(memory)"), Engine::memory).await
    }

    /// The table.
    pub fn table(&self) -> DynamoTable {
        DynamoTable::new(self.client.clone(), TABLE_NAME)
    }

    /// A client of the engine.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The engine's answer to an operation of DynamoDB's wire protocol, such as `GetItem`: HTTP status and body. For a
    /// test that plays DynamoDB's endpoint.
    pub async fn answer(&self, operation: &str, body: &[u8]) -> Result<(u16, Vec<u8>), TableError> {
        let (operation, body) = (operation.to_owned(), body.to_owned());
        self.blocking(move |engine| Ok(engine.answer(&operation, &body))).await
    }

    /// The stream of changes, from `start` on.
    pub async fn stream(&self, start: StreamStart) -> Result<ChangeStream, TableError> {
        ChangeStream::open(Arc::clone(&self.engine), start).await
    }

    /// Removes the stream records up to and including the one with this sequence number, so that a stream opened at
    /// [`StreamStart::TrimHorizon`] begins after it. For a host whose consumers have all taken them. Returns how many.
    pub async fn trim_stream(&self, through: &str) -> Result<usize, TableError> {
        let through = through.to_owned();
        self.blocking(move |engine| engine.trim_through(&through)).await
    }

    /// Removes rows past their time to live and stream records older than 24 hours, as DynamoDB does by itself. Reads
    /// the whole table: call it now and then, not often.
    pub async fn sweep(&self) -> Result<Swept, TableError> {
        self.blocking(Engine::sweep).await
    }

    async fn start(
        path: &Path,
        open: impl FnOnce() -> Result<Engine, OpenError> + Send + 'static,
    ) -> Result<Self, OpenError> {
        let embedded = Self::on(path, open).await?;
        create_table(&embedded.client, TABLE_NAME).await.map_err(|error| OpenError::new(path, &error))?;
        embedded.blocking(Engine::trim_old).await.map_err(|error| OpenError::new(path, &error))?;
        Ok(embedded)
    }

    async fn on(
        path: &Path,
        open: impl FnOnce() -> Result<Engine, OpenError> + Send + 'static,
    ) -> Result<Self, OpenError> {
        let opened = tokio::task::spawn_blocking(open).await;
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

/// What the engine answers when it fails, as DynamoDB would put it.
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

/// Runs `run` where it may block.
async fn blocking<T: Send + 'static>(
    engine: Arc<Engine>,
    run: impl FnOnce(&Engine) -> Result<T, Failure> + Send + 'static,
) -> Result<T, TableError> {
    match tokio::task::spawn_blocking(move || run(&engine)).await {
        Ok(result) => Ok(result?),
        Err(stopped) => Err(TableError::Unavailable(format!("the embedded engine stopped: {stopped}"))),
    }
}

fn client(engine: Arc<Engine>) -> Client {
    let config = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new(REGION))
        .credentials_provider(Credentials::new("embedded", "embedded", None, None, "embedded"))
        // Never resolved: the adapter answers. It keeps the SDK from asking for an endpoint of the account.
        .endpoint_url("http://embedded.invalid")
        .http_client(SharedHttpClient::new(Adapter::new(engine)))
        // SQLite itself waits for a lock, and nothing else that fails here gets better within a second.
        .retry_config(RetryConfig::disabled())
        // A statement that runs cannot be called off, so a timeout would only lose its answer.
        .timeout_config(TimeoutConfig::disabled())
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
        .build();
    Client::from_conf(config)
}
