//! The command line of a tuning's latest `run`, in `runs/<id>.json` of the data directory.
//!
//! `resume` repeats it. `run` compares it with its own command line, because a tuning whose trials ran different
//! programs compares values that are not comparable.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Session;
use crate::failure::Failure;
use crate::text::quoted;

/// A recorded command line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunRecord {
    /// The folder in which the training processes run.
    pub(super) directory: PathBuf,
    /// The training program and its arguments, as typed.
    pub(super) command: Vec<String>,
    /// Seconds between SIGTERM and SIGKILL.
    pub(super) grace_seconds: u64,
    /// Simulated spot interruptions per job and hour.
    pub(super) spot_interruptions: f64,
}

impl RunRecord {
    /// Returns the record of a session in the current folder. `None` if its words are not Unicode.
    pub(super) fn of(session: &Session) -> Option<Self> {
        let words = session.command.iter().map(|word| word.to_str().map(str::to_owned));
        Some(Self {
            directory: env::current_dir().ok()?,
            command: words.collect::<Option<_>>()?,
            grace_seconds: session.grace.as_secs(),
            spot_interruptions: session.spot_interruptions,
        })
    }

    /// Reads the record of tuning `id`. `None` if there is none.
    pub(super) fn read(data_dir: &Path, id: &str) -> Result<Option<Self>, Failure> {
        let path = path(data_dir, id);
        let failed = |error: anyhow::Error| {
            Failure::endpoint(error)
                .context(format!("cannot read the recorded command {}", path.display()))
                .hint("repeat the `hyperband run` command line with --command-changed")
        };
        match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| failed(error.into())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(error.into())),
        }
    }

    /// Writes the record of tuning `id`.
    pub(super) fn write(&self, data_dir: &Path, id: &str) -> Result<(), Failure> {
        let path = path(data_dir, id);
        self.replace(&path).map_err(|error| {
            Failure::endpoint(error).context(format!("cannot write the command to {}", path.display()))
        })
    }

    fn replace(&self, path: &Path) -> io::Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let new = path.with_extension("json.new");
        let mut file = fs::File::create(&new)?;
        serde_json::to_writer(&mut file, self)?;
        file.sync_all()?;
        fs::rename(new, path)
    }

    /// Removes the record of tuning `id`.
    pub(crate) fn remove(data_dir: &Path, id: &str) {
        // A record without a tuning is never read.
        let _ = fs::remove_file(path(data_dir, id));
    }

    /// Returns the training command as typed.
    pub(super) fn words(&self) -> Vec<OsString> {
        self.command.iter().map(OsString::from).collect()
    }

    /// Returns the time between SIGTERM and SIGKILL.
    pub(super) fn grace(&self) -> Duration {
        Duration::from_secs(self.grace_seconds)
    }

    /// Returns how the training program of `now` differs from the recorded one.
    pub(super) fn difference(&self, now: &Self) -> Option<String> {
        let line =
            |record: &Self| record.command.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
        if self.command != now.command {
            return Some(format!("with the command `{}`, not `{}`", line(self), line(now)));
        }
        let (then, here) = (self.directory.display(), now.directory.display());
        (self.directory != now.directory).then(|| format!("in the folder {then}, not {here}"))
    }
}

fn path(data_dir: &Path, id: &str) -> PathBuf {
    data_dir.join("runs").join(format!("{id}.json"))
}
