//! `hyperband run`: runs a tuning on this machine, from the request to the result.
//!
//! All state is in the data directory. If the process is killed, the same command line continues the tuning. If the
//! tuning has ended, the command only prints its result. Must never run this command line's training program for
//! another tuning of the folder.

pub(crate) mod command;
pub(crate) mod devices;
mod fresh;
mod session;

use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dynamodb::DynamoTable;
use local::host::{Claimed, Host, HostConfig, HostError, training_path};
use local::training::Config;
use use_cases::describe;
use use_cases::lookup::{self, LookupError};
use use_cases::store::{Store, StoreError};
use use_cases::submit::SubmitError;
use wire::describe::difference;
use wire::request::Request;
use wire::stored::{ACTIVE, active_id};

use crate::arguments::{Named, Output, Place, Processes, Run, folder_option, warn_of_idle_devices};
use crate::check;
use crate::data::Data;
use crate::failure::{Exit, Failure};
use crate::follow::Since;
use crate::log_hint::LogHint;
use crate::output::print_err;
use crate::record::RunRecord;
use crate::request;
use crate::signals::Signals;
use crate::stored_tuning::StoredTuning;
use crate::tunings::Tunings;
use crate::warning;
use session::Outcome;
pub(crate) use session::SWEEP_EVERY;

/// What a command line asks to run.
#[derive(Debug)]
struct Session {
    request: Request,
    /// The training program and its arguments, as typed.
    command: Vec<OsString>,
    data_dir: PathBuf,
    processes: Processes,
    /// Whether to delete the tuning of this name first.
    fresh: bool,
    /// Whether the command may differ from the recorded one.
    command_changed: bool,
    output: Output,
}

/// The tuning in the data directory that has the requested name and the same request.
enum Existing {
    /// There is no tuning with this name.
    Missing,
    /// The id of a tuning that has not ended.
    Active(String),
    /// The tuning has ended.
    Ended,
}

pub(crate) async fn run(options: Run) -> Result<Exit, Failure> {
    command::require(&options)?;
    let edits = request::Edits {
        name: options.name.as_deref(),
        tries: &options.tries,
        parents: &options.parents,
        limits: options.limits,
        channels: &options.channels,
    };
    let session = Session {
        request: request::read_local(&options.request, edits)?,
        command: options.command,
        data_dir: options.place.data_dir,
        processes: options.processes,
        fresh: options.fresh,
        command_changed: options.command_changed,
        output: options.output,
    };
    Box::pin(session.run()).await
}

pub(crate) async fn resume(options: Named<Place>) -> Result<Exit, Failure> {
    let Named { name, place: Place { data_dir }, output } = options;
    let tunings = Tunings::of_folder(Data::existing(&data_dir).await?);
    let described = tunings.describe(&name).await?;
    let tuning = StoredTuning::open_described(&tunings, described).await?;
    let stored = tuning.store.tuning(&tuning.row.id).await?.ok_or_else(|| tuning.deleted())?;
    drop(tunings);
    Box::pin(repeat(tuning, &data_dir, stored.request.clone(), output)).await
}

/// Runs `request` with the recorded command line of `tuning`.
pub(crate) async fn repeat(
    tuning: StoredTuning,
    data_dir: &Path,
    request: Request,
    output: Output,
) -> Result<Exit, Failure> {
    let record = RunRecord::read(data_dir, &tuning.row.id)?.ok_or_else(|| {
        Failure::usage(format!(
            "the command line of '{}' is not recorded in {}",
            tuning.row.name,
            data_dir.display()
        ))
        .hint("repeat the `hyperband run` command line that started it")
    })?;
    // The default data directory is relative to the folder of the caller, and the program to that of the run.
    let data_dir = std::path::absolute(data_dir)?;
    std::env::set_current_dir(&record.directory).map_err(|error| {
        Failure::file("cannot work in the folder of the training program", &record.directory, &error).hint(
            "if the folder has moved, repeat the `hyperband run` command line there with --command-changed",
        )
    })?;
    // The session opens the folder again.
    drop(tuning);
    let session = Session {
        request,
        command: record.words(),
        data_dir,
        processes: record.processes(),
        fresh: false,
        command_changed: false,
        output,
    };
    Box::pin(session.run()).await
}

impl Session {
    async fn run(self) -> Result<Exit, Failure> {
        command::check_names(&self.request, &self.command, &self.processes.commands)?;
        let program = self.program()?;
        let mut signals = Signals::listen()?;
        let devices = self.devices()?;
        let slots = self.slots(devices.len());
        let root = training_path(&self.data_dir);
        let training = Config {
            seed: self.request.random_seed().unwrap_or(0),
            slots,
            ..command::training(root, program, &self.processes, devices)?
        };
        let config = HostConfig { data_dir: self.data_dir.clone(), training, sweep_every: SWEEP_EVERY };
        let data = Data::open(&self.data_dir).await?;
        let mut continues = false;
        if let Some(data) = &data {
            if !self.fresh {
                match existing(&data.store, &self.request).await? {
                    Existing::Ended => return self.print_earlier_result(data.clone()).await,
                    Existing::Active(id) => {
                        self.reject_other_command(&id)?;
                        continues = true;
                    }
                    Existing::Missing => {}
                }
            }
            let (store, is_running) = (&data.store, data.is_running());
            reject_other_active(store, &self.data_dir, is_running, self.request.name()).await?;
        }
        // An earlier release accepted channels elsewhere, and its tunings continue.
        let earlier = if continues {
            None
        } else {
            let new = request::check_new(&self.request).map_err(|error| Failure::invalid_request(&error))?;
            match &data {
                Some(data) if self.fresh => fresh::prepare(data, &self.request, &new).await?,
                Some(_) | None => None,
            }
        };
        drop(data);
        self.print_slots(&config.training);
        let host = tokio::select! {
            host = self.open(config) => host?,
            () = signals.next() => return Ok(Exit::Interrupted),
        };
        let outcome = self.replace(&host, earlier, &mut signals).await;
        let shown = match &outcome {
            Ok(Outcome::Ended) => {
                Some(self.print_result(Data::of_store(Arc::clone(host.store()), &self.data_dir)).await)
            }
            Ok(Outcome::Interrupted) | Err(_) => None,
        };
        if matches!(outcome, Ok(Outcome::Interrupted)) {
            print_err("interrupted: stopping the training processes (press Ctrl-C again to exit at once)\n");
        }
        tokio::select! {
            () = host.shutdown() => {}
            // The training processes end with this process in any case.
            () = signals.next() => {}
        }
        match (outcome?, shown) {
            (Outcome::Ended, Some(shown)) => shown,
            (Outcome::Ended | Outcome::Interrupted, _) => {
                let (name, place) = (self.request.name(), folder_option(&self.data_dir));
                print_err(&format!(
                    "{name} has not ended; to continue it:\n  hyperband resume {name}{place}\n"
                ));
                Ok(Exit::Interrupted)
            }
        }
    }

    /// Returns the training command; without one for all definitions, that of the first.
    fn program(&self) -> Result<Vec<OsString>, Failure> {
        match self.processes.commands.first().filter(|_| self.command.is_empty()) {
            Some(first) => command::resolve(&first.os_words()),
            None => command::resolve(&self.command),
        }
    }

    /// Returns the devices of this machine. Fails if a job needs more.
    fn devices(&self) -> Result<Vec<String>, Failure> {
        let (names, instances) = (self.processes.device_names()?, self.request.instance_count());
        if !names.is_empty() && u32::try_from(names.len()).is_ok_and(|count| count < instances) {
            return Err(Failure::usage(format!(
                "each training job has {instances} processes, but --devices lists {}",
                names.len()
            ))
            .hint("list more devices, or lower ResourceConfig.InstanceCount"));
        }
        Ok(names)
    }

    /// Returns the training processes at once. The processes that the request allows at once share all devices.
    /// Warns of devices that stay idle.
    fn slots(&self, devices: usize) -> Option<NonZeroU32> {
        let all = self.request.max_parallel().saturating_mul(self.request.instance_count());
        let slots = self.processes.slots.or_else(|| NonZeroU32::new(all).filter(|_| devices > 0))?;
        warn_of_idle_devices(devices, slots);
        Some(slots)
    }

    /// Prints how many training processes run at once, if the request allows more.
    fn print_slots(&self, config: &Config) {
        let all = self.request.max_parallel().saturating_mul(self.request.instance_count());
        let devices = u32::try_from(config.devices.len()).ok().filter(|count| *count > 0);
        let most = config.slots.map(NonZeroU32::get).into_iter().chain(devices).min();
        if let Some(most) = most.filter(|most| *most < all) {
            print_err(&format!("at most {most} of {all} training processes at once; further jobs wait\n"));
        }
    }

    /// Opens the host. Checks and records the training program once more before any job starts: another process may have
    /// used the folder since the first look, and a crash must leave no trial of a program that is not recorded.
    async fn open(&self, config: HostConfig) -> Result<Host, Failure> {
        let failed = |error| open_failure(error, &self.data_dir);
        let claimed = Claimed::claim(config).await.map_err(failed)?;
        let store = claimed.store();
        reject_other_active(store, &self.data_dir, false, self.request.name()).await?;
        if !self.fresh
            && let Existing::Active(id) = existing(store, &self.request).await?
        {
            self.reject_other_command(&id)?;
            self.record().map_or(Ok(()), |record| record.write(&self.data_dir, &id))?;
        }
        claimed.open().await.map_err(failed)
    }

    /// Deletes the earlier tuning of this name, if there is one, and runs this one.
    async fn replace(
        &self,
        host: &Host,
        earlier: Option<String>,
        signals: &mut Signals,
    ) -> Result<Outcome, Failure> {
        if let Some(earlier) = earlier {
            fresh::remove(host, &self.data_dir, &earlier, signals).await?;
        }
        self.tune(host, signals).await
    }

    /// Prints the result of a tuning that an earlier run has ended.
    async fn print_earlier_result(&self, data: Data) -> Result<Exit, Failure> {
        print_err(&format!(
            "{} has already ended; this is its result (to run it again, add --fresh, or --name for another name):\n",
            self.request.name()
        ));
        self.print_result(data).await
    }

    fn record(&self) -> Option<RunRecord> {
        RunRecord::here(&self.command, &self.processes)
    }

    /// Fails if the tuning's trials ran another program.
    fn reject_other_command(&self, id: &str) -> Result<(), Failure> {
        if self.command_changed {
            return Ok(());
        }
        let recorded = RunRecord::read(&self.data_dir, id)?;
        let difference = recorded.zip(self.record()).and_then(|(then, now)| then.difference(&now));
        let Some(difference) = difference else { return Ok(()) };
        Err(other_command(self.request.name(), &difference, &self.data_dir))
    }

    /// Submits or continues the tuning, and follows it until it ends.
    async fn tune(&self, host: &Host, signals: &mut Signals) -> Result<Outcome, Failure> {
        let (id, since) = match existing(host.store(), &self.request).await? {
            Existing::Ended => return Ok(Outcome::Ended),
            Existing::Active(id) => (id, Since::Now),
            Existing::Missing => {
                let (record, name) = (self.record(), self.request.name());
                RunRecord::before_submission(record.as_ref(), &self.data_dir, name)?;
                let body = self.request.body().to_string();
                let submitted = host.submit(body.as_bytes()).await;
                (submitted.map_err(|error| submit_failure(&self.request, error))?.id(), Since::Submission)
            }
        };
        if let Some(record) = self.record() {
            record.write(&self.data_dir, &id)?;
        }
        if matches!(since, Since::Submission) {
            warn(&self.request);
        }
        session::follow(host, &id, since, LogHint::of_run(&self.data_dir), signals).await
    }

    /// Prints the result of a tuning that has ended, and returns the exit code.
    async fn print_result(&self, data: Data) -> Result<Exit, Failure> {
        let page = Tunings::of_folder(data).page(self.request.name()).await?;
        Ok(page.print_result(self.output, || {
            page.see_log(&LogHint::of_run(&self.data_dir)) + &page.see_more(&self.data_dir)
        }))
    }
}

/// Returns the error for a tuning whose trials ran another training program.
pub(crate) fn other_command(name: &str, difference: &str, data_dir: &Path) -> Failure {
    let place = folder_option(data_dir);
    Failure::usage(format!("the tuning '{name}' was started {difference}")).hint(format!(
        "`hyperband resume {name}{place}` continues it as it was; --command-changed continues it with the new command"
    ))
}

/// Prints the warnings of `check` for this machine.
fn warn(request: &Request) {
    for warning in check::local_warnings(request) {
        print_err(&format!("{}\n", warning::plain(&warning)));
    }
}

/// Finds the tuning with the request's name. Fails if its request is different.
async fn existing(store: &Store<DynamoTable>, request: &Request) -> Result<Existing, Failure> {
    let row = match lookup::find(store, request.name()).await {
        Ok(row) => row,
        Err(LookupError::NotFound(_)) => return Ok(Existing::Missing),
        Err(error) => return Err(error.into()),
    };
    let Some(loaded) = store.load(&row.id).await? else { return Ok(Existing::Missing) };
    if loaded.tuning.request.body() != request.body() {
        let name = &row.name;
        let place = difference(loaded.tuning.request.body(), request.body()).unwrap_or_default();
        let place = place.trim_start_matches('.');
        let first = if place.is_empty() { String::new() } else { format!(" (first difference: {place})") };
        return Err(Failure::usage(format!(
            "the tuning '{name}' already exists with a different request{first}"
        ))
        .hint(if loaded.state.is_ended() {
            "add --fresh to delete it and run the new request, or use another --name"
        } else {
            "add --fresh to stop it, delete it and run the new request, or use another --name or --data-dir"
        }));
    }
    Ok(if loaded.state.is_ended() { Existing::Ended } else { Existing::Active(row.id) })
}

/// Fails if the folder has another tuning that has not ended, unless it is stopping. Otherwise the host would run it
/// with this command line's training program.
async fn reject_other_active(
    store: &Store<DynamoTable>,
    data_dir: &Path,
    is_running: bool,
    name: &str,
) -> Result<(), Failure> {
    for row in store.all(ACTIVE, "").await? {
        let Some(id) = active_id(&row) else { continue };
        let Some(loaded) = store.load(id).await? else { continue };
        let other = &loaded.tuning.definition.name;
        if loaded.state.is_ended() || other.eq_ignore_ascii_case(name) || is_stopping(store, id).await? {
            continue;
        }
        if is_running {
            return Err(in_use(data_dir));
        }
        let place = folder_option(data_dir);
        return Err(Failure::usage(format!(
            "the data directory has another tuning that has not ended: '{other}'"
        ))
        .hint(format!(
            "finish it with `hyperband resume {other}{place}`, or several with `hyperband serve`, stop it with \
             `hyperband stop {other}{place}`, or use another --data-dir"
        )));
    }
    Ok(())
}

/// Returns whether a user has stopped a tuning. A host continues no job of it.
pub(crate) async fn is_stopping(store: &Store<DynamoTable>, id: &str) -> Result<bool, Failure> {
    match describe::summary(store, &local::host::place(), id).await {
        Ok(described) => Ok(described.is_none_or(|tuning| tuning.base.is_stopping())),
        Err(StoreError::Stored(_)) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn submit_failure(request: &Request, error: SubmitError) -> Failure {
    match error {
        SubmitError::Parent { .. } => Failure::usage(error.to_string()),
        SubmitError::Request(error) => Failure::invalid_request(&request::local_error(request, error)),
        SubmitError::NameTaken(name) => {
            Failure::usage(format!("another process has just started a tuning '{name}'"))
                .hint("use another --name")
        }
        SubmitError::MonthlyCap(message) => Failure::usage(message),
        SubmitError::Prices(error) => error.into(),
        SubmitError::Store(error) => error.into(),
    }
}

pub(crate) fn open_failure(error: HostError, data_dir: &Path) -> Failure {
    let in_use = matches!(
        error,
        HostError::Table(dynamodb::OpenError::InUse { .. })
            | HostError::Training(local::training::OpenError::InUse { .. })
    );
    let failure = Failure::endpoint(error).context(format!("cannot work in {}", data_dir.display()));
    if in_use { failure.hint(IN_USE) } else { failure }
}

/// The hint if another process works in the data directory.
const IN_USE: &str = "another `hyperband run` or `hyperband serve` uses this data directory: wait for it, submit to \
                      the URL of `serve`, or use another --data-dir";

/// Returns the error for a data directory in which another process works.
pub(crate) fn in_use(data_dir: &Path) -> Failure {
    Failure::usage(format!("cannot work in {}: another process uses it", data_dir.display()))
        .exit(Exit::Endpoint)
        .hint(IN_USE)
}
