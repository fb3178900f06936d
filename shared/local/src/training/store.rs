//! The folder of the service: its layout, its locks, and job records that survive a crash at any moment.
//!
//! The folder has `lock` (one service at a time), `alive` (its modification time is the last heartbeat),
//! `checkpoints/<uri>/`, and for each job `jobs/<job>/{job.json, logs/, hosts/<host>/, locks/<host>, checkpoints/}`.
//!
//! A job's folder is created atomically with its record, so a name is taken exactly when its record exists. Callers
//! validate job names, so no path leaves the folder. The functions block.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::clock;
use super::config::{DamagedRecord, OpenError};
use super::record::{Record, VERSION};
use super::request::JobRequest;
use super::seeded;
use tuning::unit::time::Time;
use use_cases::describe::Models;

/// How long `open` waits for another controller or its processes to end.
const LOCK_WAIT: Duration = Duration::from_secs(5);
const LOCK_STEP: Duration = Duration::from_millis(10);
/// The path of a job's model in its folder: the model folder of the first host.
const MODEL: &str = "hosts/algo-1/model";
/// The prefix of folders of jobs that are being created.
const NEW_PREFIX: &str = ".new-";
/// The maximum number of characters of a checkpoint address in its folder's name.
const ADDRESS_SHOWN_MAX: usize = 100;

#[derive(Debug, Clone)]
pub(crate) struct Layout {
    root: PathBuf,
}

impl Layout {
    /// Creates the folder if missing. Makes its path absolute, because training processes can change their directory.
    pub(crate) fn create(root: &Path) -> Result<Self, OpenError> {
        fs::create_dir_all(root).map_err(open_error("create", root))?;
        let root = fs::canonicalize(root).map_err(open_error("resolve", root))?;
        let jobs = root.join("jobs");
        fs::create_dir_all(&jobs).map_err(open_error("create", &jobs))?;
        Ok(Self { root })
    }

    /// Returns the layout of a folder without creating it, for reading.
    pub(crate) fn at(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn heartbeat(&self) -> PathBuf {
        self.root.join("alive")
    }

    pub(crate) fn jobs(&self) -> PathBuf {
        self.root.join("jobs")
    }

    pub(crate) fn job(&self, job: &str) -> PathBuf {
        self.jobs().join(job)
    }

    pub(crate) fn record(&self, job: &str) -> PathBuf {
        self.job(job).join("job.json")
    }

    pub(crate) fn logs(&self, job: &str) -> PathBuf {
        self.job(job).join("logs")
    }

    pub(crate) fn locks(&self, job: &str) -> PathBuf {
        self.job(job).join("locks")
    }

    pub(crate) fn host(&self, job: &str, host: &str) -> PathBuf {
        self.job(job).join("hosts").join(host)
    }

    /// Returns the model folder of the first host, which is the job's model.
    pub(crate) fn model(&self, job: &str) -> PathBuf {
        self.job(job).join(MODEL)
    }

    /// Returns where [`Self::model`] of each job is.
    pub(crate) fn models(&self) -> Models {
        Models::Folders { jobs: self.jobs(), model: PathBuf::from(MODEL) }
    }

    /// Returns the checkpoint folder: one for all jobs with the same address, or the job's own without an address.
    pub(crate) fn checkpoints(&self, job: &str, uri: Option<&str>) -> PathBuf {
        let Some(uri) = uri else { return self.job(job).join("checkpoints") };
        let address = uri.trim_end_matches('/');
        let is_safe = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-');
        let shown: String =
            address.chars().map(|letter| if is_safe(letter) { letter } else { '_' }).collect();
        let shown = shown.get(shown.len().saturating_sub(ADDRESS_SHOWN_MAX)..).unwrap_or_default();
        let folder = format!("{shown}-{:016x}", seeded::hash(&[b"checkpoints", address.as_bytes()]));
        self.root.join("checkpoints").join(folder)
    }
}

fn open_error(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> OpenError {
    let path = path.to_owned();
    move |source| OpenError::Io { doing, path, source }
}

/// Locks the folder for this process until the file is dropped.
pub(crate) fn claim(layout: &Layout) -> Result<File, OpenError> {
    let path = layout.root.join("lock");
    let mut file = open_lock(&path).map_err(open_error("open", &path))?;
    if !wait_for_lock(&file).map_err(open_error("lock", &path))? {
        return Err(OpenError::InUse { root: layout.root.clone(), pid: holder(&path) });
    }
    file.set_len(0)
        .and_then(|()| writeln!(file, "{}", std::process::id()))
        .map_err(open_error("write", &path))?;
    Ok(file)
}

/// Waits until no host process of an earlier controller holds a lock of `job`, for at most [`LOCK_WAIT`] per host.
pub(crate) fn wait_for_hosts(layout: &Layout, job: &str) -> Result<(), OpenError> {
    let locks = layout.locks(job);
    let entries = match fs::read_dir(&locks) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other.map_err(open_error("read", &locks))?,
    };
    for entry in entries {
        let path = entry.map_err(open_error("read", &locks))?.path();
        let file = open_lock(&path).map_err(open_error("open", &path))?;
        if !wait_for_lock(&file).map_err(open_error("lock", &path))? {
            let host = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            return Err(OpenError::HostAlive { job: job.to_owned(), host, pid: holder(&path), lock: path });
        }
    }
    Ok(())
}

fn open_lock(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(false).write(true).open(path)
}

/// Returns whether the lock was acquired in time.
fn wait_for_lock(file: &File) -> io::Result<bool> {
    let deadline = Instant::now() + LOCK_WAIT;
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(true),
            Err(Errno::WOULDBLOCK) if Instant::now() < deadline => thread::sleep(LOCK_STEP),
            Err(Errno::WOULDBLOCK) => return Ok(false),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Returns the process ID in a lock file, or "unknown".
fn holder(path: &Path) -> String {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(32).read_to_string(&mut text));
    if read.is_err() || text.trim().is_empty() { "unknown".to_owned() } else { text.trim().to_owned() }
}

/// Creates a job's folder with its record, atomically. Fails with `AlreadyExists` when the name is taken.
pub(crate) fn create(layout: &Layout, job: &str, record: &Record) -> io::Result<()> {
    let new = layout.jobs().join(format!("{NEW_PREFIX}{job}"));
    if new.exists() {
        fs::remove_dir_all(&new)?;
    }
    let made = fs::create_dir(&new)
        .and_then(|()| fs::create_dir(new.join("logs")))
        .and_then(|()| fs::create_dir(new.join("locks")))
        .and_then(|()| write_synced(&new.join("job.json"), record))
        .and_then(|()| fs::rename(&new, layout.job(job)));
    if made.is_err() {
        // If this fails, the next attempt or the next open removes the folder.
        let _ = fs::remove_dir_all(&new);
    }
    made.map_err(|error| match error.kind() {
        io::ErrorKind::DirectoryNotEmpty => io::ErrorKind::AlreadyExists.into(),
        _ => error,
    })
}

/// Replaces a job's record atomically.
pub(crate) fn save(layout: &Layout, job: &str, record: &Record) -> io::Result<()> {
    let path = layout.record(job);
    let fresh = path.with_extension("json.new");
    let replaced = write_synced(&fresh, record).and_then(|()| fs::rename(&fresh, &path));
    if replaced.is_err() {
        // Frees the space of a partial file on a full disk.
        let _ = fs::remove_file(&fresh);
    }
    replaced
}

fn write_synced(path: &Path, record: &Record) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(&serde_json::to_vec(record)?)?;
    file.sync_data()
}

#[derive(Debug)]
pub(crate) enum Found {
    Job(Box<Record>, Box<JobRequest>),
    Damaged(DamagedRecord),
}

/// Reads every job of the folder and removes incompletely created jobs.
pub(crate) fn load(layout: &Layout) -> Result<Vec<Found>, OpenError> {
    let jobs = layout.jobs();
    let mut found = Vec::new();
    for entry in fs::read_dir(&jobs).map_err(open_error("read", &jobs))? {
        let path = entry.map_err(open_error("read", &jobs))?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        if name.starts_with(NEW_PREFIX) {
            fs::remove_dir_all(&path).map_err(open_error("remove", &path))?;
        } else if path.is_dir() {
            found.push(load_job(layout, name));
        }
    }
    // Jobs that ran have their slots before those that wait, in the order of their creation.
    found.sort_by_key(|found| match found {
        Found::Job(record, _) => (record.runs.is_empty(), record.created),
        Found::Damaged(damaged) => (true, damaged.modified),
    });
    Ok(found)
}

/// Reads the job `name`, or returns `None` if it does not exist.
pub(crate) fn find(layout: &Layout, name: &str) -> Option<Found> {
    layout.record(name).exists().then(|| load_job(layout, name))
}

fn load_job(layout: &Layout, name: &str) -> Found {
    let path = layout.record(name);
    let modified = fs::metadata(&path)
        .and_then(|metadata| metadata.modified())
        .map_or_else(|_| clock::now(), clock::time);
    let damaged = |reason: String| {
        Found::Damaged(DamagedRecord { name: name.to_owned(), path: path.clone(), reason, modified })
    };
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) => return damaged(error.to_string()),
    };
    let record: Record = match serde_json::from_slice(&bytes) {
        Ok(record) => record,
        Err(error) => return damaged(error.to_string()),
    };
    if record.version > VERSION {
        return damaged(format!("unsupported version {}: expected at most {VERSION}", record.version));
    }
    match JobRequest::parse(&record.request) {
        Ok(request) if request.name == name => Found::Job(Box::new(record), Box::new(request)),
        Ok(request) => damaged(format!("the record belongs to training job {}", request.name)),
        Err(invalid) => damaged(invalid.0),
    }
}

/// Returns the last heartbeat of the previous service of the folder.
pub(crate) fn last_heartbeat(layout: &Layout) -> Option<Time> {
    fs::metadata(layout.heartbeat()).and_then(|metadata| metadata.modified()).ok().map(clock::time)
}

pub(crate) fn open_heartbeat(layout: &Layout) -> Result<File, OpenError> {
    let path = layout.heartbeat();
    let file = open_lock(&path).map_err(open_error("open", &path))?;
    touch(&file).map_err(open_error("write", &path))?;
    Ok(file)
}

pub(crate) fn touch(file: &File) -> io::Result<()> {
    file.set_modified(SystemTime::now())
}
