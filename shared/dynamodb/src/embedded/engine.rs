//! The engine, its file, and the maintenance that the engine lacks.
//!
//! The engine derives the number of a change from the greatest number among its stream records, and reads records by
//! number. Without an index, both operations scan all records on every write. A second connection to the same database
//! therefore adds an index and removes old records, which the engine never does. One mutex serializes the two
//! connections.
//!
//! The last record is never removed. Without it, numbers would restart from the clock, and a reader would lose its
//! position if the clock had been set back.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::fs::{File, TryLockError};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use dynoxide::actions::get_records::{GetRecordsRequest, GetRecordsResponse};
use dynoxide::actions::get_shard_iterator::{GetShardIteratorRequest, decode_shard_iterator};
use dynoxide::{Database, DynoxideError};
use rusqlite::{Connection, OpenFlags};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use super::{Failure, OpenError, StreamStart, Swept, TABLE_NAME, fault};

/// How long DynamoDB keeps a stream record.
const RETENTION: Duration = Duration::from_hours(24);
/// How long a maintenance statement waits for another process that reads the file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// How often an open tries to lock the file, and the time between two tries: 2 seconds in all.
const LOCK_TRIES: u32 = 100;
const LOCK_POLL: Duration = Duration::from_millis(20);
/// Indexes stream records in the order in which the engine reads them.
const INDEX: &str = "CREATE INDEX IF NOT EXISTS hyperband_stream_order ON _stream_records \
                     (table_name, CAST(sequence_number AS INTEGER))";
const TRIM: &str = "DELETE FROM _stream_records WHERE table_name = ?1 AND CAST(sequence_number AS INTEGER) <= ?2 \
                    AND id < (SELECT MAX(id) FROM _stream_records)";

pub(super) struct Engine {
    // Fields are dropped in this order: the file's lock after the connections, then `written`, which reports the release.
    database: Database,
    maintenance: Mutex<Connection>,
    path: Option<PathBuf>,
    _lock: Option<File>,
    written: watch::Sender<u64>,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Engine {
    /// Opens the file, or creates it.
    pub(super) fn open(path: &Path) -> Result<Self, OpenError> {
        let access = |source| OpenError::Access { path: path.to_owned(), source };
        // SQLite never takes an absolute path for a URI or for a name like ":memory:".
        let absolute = std::path::absolute(path).map_err(access)?;
        let Some(name) = absolute.to_str() else {
            return Err(access(io::Error::new(io::ErrorKind::InvalidInput, "the path is not UTF-8")));
        };
        let lock = lock(&absolute, thread::sleep)?;
        if std::fs::metadata(&absolute).is_ok_and(|file| file.len() > 0) {
            check_file(&absolute)?;
        }
        Self::connect(name, Some(absolute.clone()), Some(lock))
            .map_err(|reason| OpenError::new(&absolute, &reason))
    }

    /// Opens an existing file without taking its lock. `SQLite` serializes the processes.
    pub(super) fn attach(path: &Path) -> Result<Self, OpenError> {
        let access = |source| OpenError::Access { path: path.to_owned(), source };
        let absolute = std::path::absolute(path).map_err(access)?;
        let Some(name) = absolute.to_str() else {
            return Err(access(io::Error::new(io::ErrorKind::InvalidInput, "the path is not UTF-8")));
        };
        if std::fs::metadata(&absolute).map_err(access)?.len() == 0 {
            return Err(OpenError::NoTable { path: absolute });
        }
        check_file(&absolute)?;
        // Creating the table here too would make the owner's own creation fail.
        if !has_table(&absolute)? {
            return Err(OpenError::NoTable { path: absolute });
        }
        Self::connect(name, Some(absolute.clone()), None).map_err(|reason| OpenError::new(&absolute, &reason))
    }

    /// Copies an existing file into memory, for a user who may read it but not write it.
    pub(super) fn snapshot(path: &Path) -> Result<Self, OpenError> {
        let name = memory_name();
        let copy = || -> rusqlite::Result<Connection> {
            // The copy exists as long as a connection to it.
            let copy = Connection::open(&name)?;
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
                | OpenFlags::SQLITE_OPEN_URI
                | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let source = Connection::open_with_flags(read_only_uri(path), flags)?;
            source.busy_timeout(BUSY_TIMEOUT)?;
            source.execute("VACUUM INTO ?1", [&name])?;
            Ok(copy)
        };
        let copy = copy().map_err(|error| OpenError::new(path, &error))?;
        let engine = Self::connect(&name, None, None).map_err(|reason| OpenError::new(path, &reason))?;
        drop(copy);
        Ok(engine)
    }

    /// Creates an empty database in memory.
    pub(super) fn memory() -> Result<Self, OpenError> {
        let name = memory_name();
        Self::connect(&name, None, None).map_err(|reason| OpenError::new(Path::new("(memory)"), &reason))
    }

    fn connect(name: &str, path: Option<PathBuf>, lock: Option<File>) -> Result<Self, String> {
        let database = Database::new(name).map_err(|error| error.to_string())?;
        let prepare = || -> rusqlite::Result<Connection> {
            let maintenance = Connection::open(name)?;
            maintenance.busy_timeout(BUSY_TIMEOUT)?;
            maintenance.execute_batch(INDEX)?;
            Ok(maintenance)
        };
        let maintenance = Mutex::new(prepare().map_err(|error| error.to_string())?);
        Ok(Self { database, maintenance, path, _lock: lock, written: watch::Sender::new(0) })
    }

    /// Performs one request of DynamoDB's JSON protocol and returns HTTP status and body.
    pub(super) fn answer(&self, operation: &str, body: &[u8]) -> (u16, Vec<u8>) {
        let guard = self.lock_database();
        let database = &self.database;
        let result = match operation {
            "GetItem" => reply(body, |request| database.get_item(request)),
            "PutItem" => reply(body, |request| database.put_item(request)),
            "DeleteItem" => reply(body, |request| database.delete_item(request)),
            "UpdateItem" => reply(body, |request| database.update_item(request)),
            "Query" => reply(body, |request| database.query(request)),
            "Scan" => reply(body, |request| database.scan(request)),
            "TransactWriteItems" => reply(body, |request| database.transact_write_items(request)),
            "TransactGetItems" => reply(body, |request| database.transact_get_items(request)),
            "BatchGetItem" => reply(body, |request| database.batch_get_item(request)),
            "BatchWriteItem" => reply(body, |request| database.batch_write_item(request)),
            "CreateTable" => reply(body, |request| database.create_table(request)),
            "DescribeTable" => reply(body, |request| database.describe_table(request)),
            "ListTables" => reply(body, |request| database.list_tables(request)),
            "UpdateTimeToLive" => reply(body, |request| database.update_time_to_live(request)),
            "DescribeTimeToLive" => reply(body, |request| database.describe_time_to_live(request)),
            _ => Err(DynoxideError::ValidationException(format!(
                "the embedded table does not support the operation {operation}"
            ))),
        };
        drop(guard);
        match result {
            Ok(body) => {
                if matches!(
                    operation,
                    "PutItem" | "DeleteItem" | "UpdateItem" | "TransactWriteItems" | "BatchWriteItem"
                ) {
                    self.wake_readers();
                }
                (200, body)
            }
            Err(error) => fault::answer(&error, self.path.as_deref()),
        }
    }

    /// Returns a receiver that changes with every later write and closes when the engine has released its file.
    pub(super) fn writes(&self) -> watch::Receiver<u64> {
        self.written.subscribe()
    }

    pub(super) fn stream_arn(&self) -> Result<String, Failure> {
        let _guard = self.lock_database();
        let table = self.database.get_table_metadata(TABLE_NAME).map_err(|error| self.failure(&error))?;
        let label = table.and_then(|table| table.stream_label).unwrap_or_default();
        Ok(dynoxide::streams::stream_arn(TABLE_NAME, &label))
    }

    /// Returns an iterator of the stream's only shard.
    pub(super) fn iterator(&self, start: &StreamStart) -> Result<String, Failure> {
        let stream_arn = self.stream_arn()?;
        let _guard = self.lock_database();
        let (kind, sequence_number) = match start {
            StreamStart::TrimHorizon => ("TRIM_HORIZON", None),
            StreamStart::Latest => ("LATEST", None),
            StreamStart::After(sequence) => ("AFTER_SEQUENCE_NUMBER", Some(sequence.clone())),
        };
        let request = GetShardIteratorRequest {
            stream_arn,
            shard_id: dynoxide::streams::shard_id(TABLE_NAME),
            shard_iterator_type: kind.to_owned(),
            sequence_number,
        };
        let answer = self.database.get_shard_iterator(request).map_err(|error| self.failure(&error))?;
        Ok(answer.shard_iterator.unwrap_or_default())
    }

    /// Returns at most `limit` records, starting at the iterator.
    pub(super) fn records(
        &self,
        shard_iterator: String,
        limit: usize,
    ) -> Result<GetRecordsResponse, Failure> {
        let _guard = self.lock_database();
        let request = GetRecordsRequest { shard_iterator, limit: Some(limit) };
        self.database.get_records(request).map_err(|error| self.failure(&error))
    }

    /// Removes the records up to and including this sequence number.
    pub(super) fn trim_through(&self, sequence: &str) -> Result<usize, Failure> {
        let iterator = self.iterator(&StreamStart::After(sequence.to_owned()))?;
        let (_, _, stored) = decode_shard_iterator(&iterator).unwrap_or_default();
        self.trim(stored)
    }

    /// Removes the records older than [`RETENTION`].
    pub(super) fn trim_old(&self) -> Result<usize, Failure> {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        // The number of a change is the time in microseconds since 1970, or one more than the last number.
        let oldest = now.saturating_sub(RETENTION).as_micros();
        self.trim(i64::try_from(oldest).unwrap_or_default())
    }

    /// Removes expired rows and old stream records.
    pub(super) fn sweep(&self) -> Result<Swept, Failure> {
        let guard = self.lock_database();
        let rows = self.database.sweep_ttl().map_err(|error| self.failure(&error))?;
        drop(guard);
        if rows > 0 {
            self.wake_readers();
        }
        Ok(Swept { rows, records: self.trim_old()? })
    }

    fn trim(&self, through: i64) -> Result<usize, Failure> {
        let removed = self.lock_database().execute(TRIM, (TABLE_NAME, through));
        removed.map_err(|error| fault::failure(&error.to_string(), self.path.as_deref()))
    }

    fn wake_readers(&self) {
        self.written.send_modify(|count| *count = count.wrapping_add(1));
    }

    fn failure(&self, error: &DynoxideError) -> Failure {
        fault::of_engine(error, self.path.as_deref())
    }

    /// Serializes the two connections. In memory, a busy connection makes the other fail instead of wait.
    fn lock_database(&self) -> MutexGuard<'_, Connection> {
        self.maintenance.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn reply<Q: DeserializeOwned, A: Serialize>(
    body: &[u8],
    run: impl FnOnce(Q) -> dynoxide::Result<A>,
) -> dynoxide::Result<Vec<u8>> {
    let unreadable = |error: serde_json::Error| DynoxideError::SerializationException(error.to_string());
    let answer = run(serde_json::from_slice(body).map_err(unreadable)?)?;
    // A server error, not a refusal: the write was performed.
    serde_json::to_vec(&answer).map_err(|error| DynoxideError::InternalServerError(error.to_string()))
}

/// Locks the lock file and writes this process's ID into it. Calls `pause` before each further try.
fn lock(path: &Path, mut pause: impl FnMut(Duration)) -> Result<File, OpenError> {
    let access = |source| OpenError::Access { path: path.to_owned(), source };
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let mut file =
        File::options().create(true).truncate(false).read(true).write(true).open(name).map_err(access)?;
    let mut tries = 0;
    loop {
        tries += 1;
        match file.try_lock() {
            Ok(()) => break,
            // A killed owner can leave a child that was just forked, which has the lock until it runs its program.
            Err(TryLockError::WouldBlock) if tries < LOCK_TRIES => pause(LOCK_POLL),
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                // For the message only, so an unreadable file is ignored.
                let _ = file.read_to_string(&mut holder);
                let holder = holder.trim();
                let holder = if holder.is_empty() {
                    "another process".to_owned()
                } else {
                    format!("process {holder}")
                };
                return Err(OpenError::InUse { path: path.to_owned(), holder });
            }
            Err(TryLockError::Error(source)) => return Err(access(source)),
        }
    }
    // The ID is for messages only. A full disk is reported when the table itself is written.
    let _ =
        file.set_len(0).and_then(|()| file.rewind()).and_then(|()| writeln!(file, "{}", std::process::id()));
    Ok(file)
}

/// Checks that a non-empty file is an undamaged table file, before the engine writes to it.
fn check_file(path: &Path) -> Result<(), OpenError> {
    let look = || -> rusqlite::Result<(u32, u32, String)> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        let count = |sql: &str| connection.query_row(sql, [], |row| row.get(0));
        let all = count("SELECT COUNT(*) FROM sqlite_master")?;
        let ours = count(
            "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name IN ('_config', '_tables', \
             '_stream_records')",
        )?;
        let health = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
        Ok((all, ours, health))
    };
    match look().map_err(|error| OpenError::new(path, &error))? {
        (1.., 0..3, _) => {
            let reason = "it is the SQLite database of another program".to_owned();
            Err(OpenError::NotATable { path: path.to_owned(), reason })
        }
        (_, _, health) if health != "ok" => Err(OpenError::Damaged { path: path.to_owned(), reason: health }),
        _ => Ok(()),
    }
}

/// Returns the address of a file that `SQLite` must not write. Without a log beside it, the file has no writer, and
/// `SQLite` would try to create the log.
fn read_only_uri(path: &Path) -> String {
    let path = path.to_string_lossy();
    let has_log = Path::new(&format!("{path}-wal")).exists();
    let escaped = path.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    format!("file:{escaped}{}", if has_log { "" } else { "?immutable=1" })
}

/// Returns the name of a new database in memory. Two connections share it by its name, unique in this process.
fn memory_name() -> String {
    format!("file:hyperband-{:016x}?mode=memory&cache=shared", RandomState::new().build_hasher().finish())
}

fn has_table(path: &Path) -> Result<bool, OpenError> {
    let look = || -> rusqlite::Result<u32> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        // The owner creates the database first, then the table in it.
        let ready = "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = '_tables'";
        if connection.query_row(ready, [], |row| row.get::<_, u32>(0))? == 0 {
            return Ok(0);
        }
        let tables = "SELECT COUNT(*) FROM _tables WHERE table_name = ?1";
        connection.query_row(tables, [TABLE_NAME], |row| row.get(0))
    };
    Ok(look().map_err(|error| OpenError::new(path, &error))? > 0)
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::sync::{Arc, mpsc};
    use std::task::{Context, Waker};

    use super::super::Embedded;
    use super::*;

    /// A killed owner can leave a child that holds the lock until it runs its program.
    #[test]
    fn regression_an_open_waits_for_a_lock_that_is_being_released() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table.sqlite");
        let owner = lock(&path, |_| {}).unwrap();
        let mut pauses = 0;
        let in_use = lock(&path, |_| pauses += 1);
        assert!(matches!(in_use, Err(OpenError::InUse { .. })), "{in_use:?}");
        assert_eq!(pauses, LOCK_TRIES - 1);
        let mut owner = Some(owner);
        lock(&path, |_| drop(owner.take())).expect("the owner released it during the first pause");
    }

    #[tokio::test]
    async fn regression_a_closed_table_can_be_opened_although_a_cancelled_call_was_running() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table.sqlite");
        let embedded = Embedded::open(&path).await.unwrap();
        let (locked, wait_for_lock) = mpsc::channel();
        let (unlock, wait_for_unlock) = mpsc::channel();
        let engine = Arc::clone(&embedded.engine);
        let statement = thread::spawn(move || {
            let _guard = engine.lock_database();
            locked.send(()).unwrap();
            wait_for_unlock.recv().unwrap();
        });
        wait_for_lock.recv().unwrap();
        let cancelled = tokio::time::timeout(Duration::ZERO, embedded.answer("ListTables", b"{}")).await;
        assert!(cancelled.is_err(), "the call waits for the running statement");

        let mut close = pin!(embedded.close());
        let mut context = Context::from_waker(Waker::noop());
        assert!(close.as_mut().poll(&mut context).is_pending(), "a statement is still running");
        unlock.send(()).unwrap();
        close.await;
        Embedded::open(&path).await.unwrap();
        statement.join().unwrap();
    }
}
