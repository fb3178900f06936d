//! The command line of a tuning's latest `run`, in `runs/<id>.json` of the data directory.
//!
//! The id exists only after the submission. Before the submission, the command line is stored in
//! `runs/<name>.submitted.json`, which is valid until the id has a record. A crash at any point therefore leaves a
//! record for every tuning.
//!
//! `resume` repeats the recorded command line. `run` compares it with its own, because values of different training
//! programs are not comparable.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use use_cases::active::name_in;

use crate::arguments::{NamedCommand, Processes};
use crate::failure::Failure;
use crate::run::devices::Devices;
use crate::text::quoted;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunRecord {
    /// The folder in which the training processes run.
    pub(crate) directory: PathBuf,
    /// The training program and its arguments, as typed.
    pub(crate) command: Vec<String>,
    /// The training program of each definition that has its own, as typed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    commands: Vec<(String, Vec<String>)>,
    /// Seconds between SIGTERM and SIGKILL.
    grace_seconds: u64,
    /// Simulated spot interruptions per job and hour.
    spot_interruptions: f64,
    /// Training processes at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    slots: Option<NonZeroU32>,
    /// The devices, as the command line gave them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    devices: Option<String>,
    /// Whether the hyperparameters are options of the command.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pass_args: bool,
}

impl RunRecord {
    /// Returns the record of a training command in the current folder. `None` if its words are not Unicode.
    pub(crate) fn here(command: &[OsString], processes: &Processes) -> Option<Self> {
        let words = command.iter().map(|word| word.to_str().map(str::to_owned));
        Some(Self {
            directory: env::current_dir().ok()?,
            command: words.collect::<Option<_>>()?,
            commands: processes
                .commands
                .iter()
                .map(|one| (one.definition.clone(), one.words.clone()))
                .collect(),
            grace_seconds: processes.grace_seconds.as_secs(),
            spot_interruptions: processes.spot_interruptions,
            slots: processes.slots,
            devices: processes.devices.as_ref().map(Devices::text),
            pass_args: processes.pass_args,
        })
    }

    /// Reads the record of tuning `id`, else that of its submission. `None` if there is none.
    pub(crate) fn read(data_dir: &Path, id: &str) -> Result<Option<Self>, Failure> {
        match Self::read_at(&path(data_dir, id))? {
            Some(record) => Ok(Some(record)),
            None => Self::read_at(&submission_path(data_dir, name_in(id))),
        }
    }

    fn read_at(path: &Path) -> Result<Option<Self>, Failure> {
        let failed = |error: anyhow::Error| {
            Failure::endpoint(error)
                .context(format!("cannot read the recorded command {}", path.display()))
                .hint("repeat the `hyperband run` command line with --command-changed")
        };
        match fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| failed(error.into())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(error.into())),
        }
    }

    /// Records the command line of the next submission of the tuning `name`, `None` if it cannot be recorded.
    pub(crate) fn before_submission(
        record: Option<&Self>,
        data_dir: &Path,
        name: &str,
    ) -> Result<(), Failure> {
        let path = submission_path(data_dir, name);
        match record {
            Some(record) => record.write_at(&path),
            // Otherwise an earlier submission's command line would count for this one.
            None => remove_if_present(&path).map_err(|error| write_failure(error, &path)),
        }
    }

    /// Removes the command line of a refused submission of a new name.
    pub(crate) fn refused(data_dir: &Path, name: &str) {
        // A record without a tuning is never read.
        let _ = fs::remove_file(submission_path(data_dir, name));
    }

    pub(crate) fn write(&self, data_dir: &Path, id: &str) -> Result<(), Failure> {
        self.write_at(&path(data_dir, id))?;
        // From now on only the record of the id is read.
        let _ = fs::remove_file(submission_path(data_dir, name_in(id)));
        Ok(())
    }

    fn write_at(&self, path: &Path) -> Result<(), Failure> {
        self.replace(path).map_err(|error| write_failure(error, path))
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

    pub(crate) fn remove(data_dir: &Path, id: &str) {
        // A record without a tuning is never read.
        let _ = fs::remove_file(path(data_dir, id));
        let _ = fs::remove_file(submission_path(data_dir, name_in(id)));
    }

    /// Returns the training command as typed.
    pub(crate) fn words(&self) -> Vec<OsString> {
        self.command.iter().map(OsString::from).collect()
    }

    /// Returns how its training processes are started, interrupted and stopped.
    pub(crate) fn processes(&self) -> Processes {
        let named = |(definition, words): &(String, Vec<String>)| NamedCommand {
            definition: definition.clone(),
            words: words.clone(),
        };
        Processes {
            commands: self.commands.iter().map(named).collect(),
            grace_seconds: Duration::from_secs(self.grace_seconds),
            spot_interruptions: self.spot_interruptions,
            slots: self.slots,
            // The text was parsed before it was recorded.
            devices: self.devices.as_ref().and_then(|text| text.parse().ok()),
            pass_args: self.pass_args,
        }
    }

    /// Returns how the training program of `now` differs from the recorded one.
    pub(crate) fn difference(&self, now: &Self) -> Option<String> {
        let line = |record: &Self| {
            let line = |words: &[String]| words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
            let named = |(name, words): &(String, Vec<String>)| {
                format!("--command {}", quoted(&format!("{name}={}", line(words))))
            };
            let options = record.commands.iter().map(named);
            let options: Vec<String> =
                options.chain(record.pass_args.then(|| "--pass-args".to_owned())).collect();
            let words = line(&record.command);
            match (options.is_empty(), words.is_empty()) {
                (true, _) => words,
                (false, true) => options.join(" "),
                (false, false) => format!("{} -- {words}", options.join(" ")),
            }
        };
        let of = |record: &Self| (record.command.clone(), record.commands.clone(), record.pass_args);
        if of(self) != of(now) {
            return Some(format!("with the command `{}`, not `{}`", line(self), line(now)));
        }
        let (then, here) = (self.directory.display(), now.directory.display());
        (self.directory != now.directory).then(|| format!("in the folder {then}, not {here}"))
    }
}

fn path(data_dir: &Path, id: &str) -> PathBuf {
    data_dir.join("runs").join(format!("{id}.json"))
}

/// Returns the path of the command line of a submission. Names and ids have no dots, so no id has this path.
fn submission_path(data_dir: &Path, name: &str) -> PathBuf {
    data_dir.join("runs").join(format!("{name}.submitted.json"))
}

fn remove_if_present(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn write_failure(error: io::Error, path: &Path) -> Failure {
    Failure::endpoint(error).context(format!("cannot write the command to {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(word: &str) -> RunRecord {
        let command = vec!["sh".to_owned(), word.to_owned()];
        RunRecord {
            commands: Vec::new(),
            directory: PathBuf::from("/w"),
            command,
            grace_seconds: 1,
            spot_interruptions: 0.0,
            slots: None,
            devices: None,
            pass_args: false,
        }
    }

    /// A crash between the submission and the record left a tuning without one.
    #[test]
    fn regression_a_tuning_has_a_record_at_every_point_of_its_submission() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path();
        let read = |id: &str| RunRecord::read(data, id).unwrap();
        RunRecord::before_submission(Some(&record("old.sh")), data, "a-b").unwrap();
        let new = record("new.sh");
        RunRecord::before_submission(Some(&new), data, "a-b").unwrap();
        assert_eq!(read("a-b-abc123"), Some(new.clone()), "after a crash before or after the submission");
        assert_eq!(read("a-abc123"), None, "another tuning");
        let resumed = record("resumed.sh");
        resumed.write(data, "a-b-abc123").unwrap();
        assert_eq!(read("a-b-abc123"), Some(resumed));
        assert_eq!(read("a-b-xyz789"), None, "the record of the submission is gone");
        RunRecord::before_submission(Some(&new), data, "a-b").unwrap();
        RunRecord::before_submission(None, data, "a-b").unwrap();
        assert_eq!(read("a-b-xyz789"), None, "a command that cannot be recorded");
    }
}
