//! `hyperband serve`: the HTTP API on this machine, together with the complete controller.
//!
//! All state is in the data directory. The same command line continues every tuning in this directory, even after a
//! kill. Must never run a tuning of the folder with a training program other than its own.

mod ends;
mod statistics;

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use dynamodb::DynamoTable;
use http_api::{Answered, ApiError};
use local::host::{Claimed, Host, HostConfig, training_path};
use local::training::{Config, JobRecords};
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use use_cases::active::name_in;
use use_cases::store::Store;
use wire::events::http::{HttpRequest, HttpResponse};
use wire::names::parse_training_job_name;
use wire::request::{Request, RequestError, read_body};

use crate::arguments::{Serve, warn_of_idle_devices};
use crate::data::Data;
use crate::failure::{Exit, Failure};
use crate::folder_api::FolderApi;
use crate::local_server::LocalServer;
use crate::output::print_err;
use crate::record::RunRecord;
use crate::request;
use crate::request::channels::{self, Channel};
use crate::run::{SWEEP_EVERY, command, is_stopping, open_failure, other_command};
use crate::signals::Signals;
use crate::tunings::Tunings;
use statistics::Asked;

const CREATE: &str = "CreateHyperParameterTuningJob";
/// The code of an error because a tuning has the name already.
const NAME_TAKEN: &str = "ResourceInUse";

/// What this machine gives to training jobs.
#[derive(Debug)]
struct Machine {
    channels: Vec<Channel>,
    /// The number of GPUs, if the processes share them.
    devices: Option<NonZeroU32>,
}

#[derive(Debug)]
struct LocalApi {
    api: FolderApi,
    data_dir: PathBuf,
    /// The training command, for `resume`; `None` if it is not Unicode.
    record: Option<RunRecord>,
    machine: Machine,
    /// One submission at a time, since two of the same name write the same record.
    submitting: Mutex<()>,
}

/// Serves until SIGINT or SIGTERM.
pub(crate) async fn serve(options: Serve) -> Result<Exit, Failure> {
    let program = command::resolve(&options.command)?;
    let data_dir = options.place.data_dir;
    let listening =
        LocalServer::bind(&options.listen, options.allow_remote, "can start the training command").await?;
    let record = RunRecord::here(&options.command, &options.processes);
    let devices = options.processes.device_names()?;
    let slots = options.processes.slots.unwrap_or_else(|| count(&devices).unwrap_or_else(cores));
    let machine = Machine { channels: options.channels, devices: count(&devices) };
    let slots = machine.devices.map_or(slots, |devices| slots.min(devices));
    warn_of_idle_devices(devices.len(), slots);
    let mut signals = Signals::listen()?;
    let training = command::training(training_path(&data_dir), program, &options.processes, devices)?;
    let training = Config { slots: Some(slots), ..training };
    let config = HostConfig { data_dir: data_dir.clone(), training, sweep_every: SWEEP_EVERY };
    let open = async {
        let claimed = Claimed::claim(config).await.map_err(|error| open_failure(error, &data_dir))?;
        let unfinished = ends::unfinished(claimed.store()).await?;
        if !options.command_changed {
            reject_other_commands(claimed.store(), &unfinished, &data_dir, record.as_ref()).await?;
        }
        // Before any job starts, so that a crash leaves no trial of a program that is not recorded.
        for id in &unfinished {
            record.as_ref().map_or(Ok(()), |record| record.write(&data_dir, id))?;
        }
        claimed.open().await.map_err(|error| open_failure(error, &data_dir))
    };
    let host = tokio::select! {
        host = open => host?,
        () = signals.next() => return Ok(Exit::Done),
    };
    let ends = ends::Ends::begin(&host, &data_dir).await;
    let data = Data::of_store(Arc::clone(host.store()), &data_dir);
    let api = Arc::new(LocalApi::new(&host, data_dir, record, machine));
    let (pages, streams) = server::pages(Tunings::of_folder(data));
    let routes = server::routes(move |request| answer(Arc::clone(&api), request)).merge(pages);
    let mut serving = listening.serve(routes, options.output);
    print_err(&format!("at most {slots} training processes at once (--slots)\n"));
    let outcome = tokio::select! {
        failure = serving.broken() => Err(failure),
        failure = ends.report() => Err(failure),
        () = signals.next() => Ok(Exit::Done),
    };
    print_err("stopping the training processes (press Ctrl-C again to exit at once)\n");
    let close = async {
        drop(streams);
        serving.close().await;
        host.shutdown().await;
    };
    tokio::select! {
        () = close => {}
        // The training processes end with this process in any case.
        () = signals.next() => {}
    }
    outcome
}

/// Returns the number of devices, if there are any.
fn count(devices: &[String]) -> Option<NonZeroU32> {
    NonZeroU32::new(u32::try_from(devices.len()).unwrap_or(u32::MAX))
}

/// Returns the number of processor cores that this process may use.
fn cores() -> NonZeroU32 {
    let cores = thread::available_parallelism().ok().and_then(|cores| NonZeroU32::try_from(cores).ok());
    cores.unwrap_or(NonZeroU32::MIN)
}

/// Fails if the trials of a tuning of `unfinished` ran another program.
async fn reject_other_commands(
    store: &Store<DynamoTable>,
    unfinished: &[String],
    data_dir: &Path,
    record: Option<&RunRecord>,
) -> Result<(), Failure> {
    for id in unfinished {
        let recorded = RunRecord::read(data_dir, id)?;
        let difference = recorded.zip(record).and_then(|(then, now)| then.difference(now));
        let Some(difference) = difference else { continue };
        // The host continues no job of a stopping tuning.
        if is_stopping(store, id).await? {
            continue;
        }
        return Err(other_command(name_in(id), &difference, data_dir));
    }
    Ok(())
}

async fn answer(local: Arc<LocalApi>, mut request: HttpRequest) -> HttpResponse {
    let target = request.header("x-amz-target").and_then(|target| target.strip_prefix(statistics::TARGET));
    if let Some(operation) = target.filter(|_| request.method == "POST" && request.path == "/") {
        return match local.metric_statistics(operation, &request.body).await {
            Ok(found) => {
                HttpResponse::amz_json(200, &found).header("content-type", "application/x-amz-json-1.0")
            }
            Err(error) => Answered::refused(&request, error).response,
        };
    }
    let mut submission = None;
    if is_create(&request) {
        let turn = local.submitting.lock().await;
        match local.accept(&request.body).await {
            Ok((name, body)) => {
                submission = Some((turn, name));
                request.body = body;
            }
            Err(error) => return Answered::refused(&request, error).response,
        }
    }
    let answered = local.api.handle(&request).await;
    if let Some((_, name)) = &submission
        && answered.error.as_ref().is_some_and(leaves_no_tuning)
    {
        RunRecord::refused(&local.data_dir, name);
    }
    local.report(&request, &answered).await;
    answered.response
}

/// Returns whether no tuning has the name of a submission with this error. After a fault of the table, one may have it.
fn leaves_no_tuning(error: &ApiError) -> bool {
    error.rest_status < 500 && error.code != NAME_TAKEN
}

fn is_create(request: &HttpRequest) -> bool {
    let target = request.header("x-amz-target").and_then(|target| target.strip_prefix("SageMaker."));
    request.method == "POST"
        && (request.path == "/tuning-jobs" || request.path == "/" && target == Some(CREATE))
}

impl Machine {
    /// Adds the defaults of this machine to a submission, as `run` does.
    fn request(&self, body: &[u8]) -> Result<Request, RequestError> {
        let mut body = read_body(body)?;
        channels::replace(&mut body, &self.channels);
        let request = request::check_local(body)?;
        request::check_new(&request)?;
        let instances = request.instance_count();
        match self.devices.map(NonZeroU32::get).filter(|devices| *devices < instances) {
            None => Ok(request),
            Some(devices) => {
                let message = format!("{instances} processes cannot share the {devices} GPUs of this server");
                Err(RequestError::field("TrainingJobDefinition.ResourceConfig.InstanceCount", &message))
            }
        }
    }
}

impl LocalApi {
    fn new(host: &Host, data_dir: PathBuf, record: Option<RunRecord>, machine: Machine) -> Self {
        Self {
            api: FolderApi::new(Arc::clone(host.store()), &data_dir),
            data_dir,
            record,
            machine,
            submitting: Mutex::new(()),
        }
    }

    /// Returns the name and the body of a submission with the defaults of this machine. Records the training command first,
    /// so that a crash leaves no tuning without one.
    async fn accept(&self, body: &[u8]) -> Result<(String, Vec<u8>), ApiError> {
        let request = self.machine.request(body)?;
        let name = request.name().to_owned();
        let (data_dir, record, of_name) = (self.data_dir.clone(), self.record.clone(), name.clone());
        let recorded =
            spawn_blocking(move || RunRecord::before_submission(record.as_ref(), &data_dir, &of_name)).await;
        if let Ok(Err(failure)) = recorded {
            failure.print();
            let message = "the training command cannot be recorded: see the standard error of the server";
            return Err(ApiError::of_host("ServiceUnavailable", 503, message));
        }
        Ok((name, request.body().to_string().into_bytes()))
    }

    /// Returns the answer of CloudWatch's operation. Unknown jobs and metrics have no values, as in CloudWatch.
    async fn metric_statistics(&self, operation: &str, body: &[u8]) -> Result<Value, ApiError> {
        if operation != statistics::OPERATION {
            let message = format!(
                "unsupported operation: this endpoint has only {} of CloudWatch",
                statistics::OPERATION
            );
            return Err(ApiError::of_host("UnknownOperationException", 400, message));
        }
        let asked =
            Asked::parse(body).map_err(|message| ApiError::of_host("ValidationException", 400, message))?;
        let unavailable = |error: &dyn std::fmt::Display| {
            ApiError::of_host("ServiceUnavailable", 503, format!("cannot read the log: {error}"))
        };
        let Some((id, job)) = asked.job().and_then(parse_training_job_name) else {
            return Ok(asked.no_values());
        };
        let tuning = self.api.store().tuning(&id).await.map_err(|error| unavailable(&error))?;
        let Some(tuning) = tuning else { return Ok(asked.no_values()) };
        let records = JobRecords::at(&training_path(&self.data_dir));
        let read = spawn_blocking(move || asked.answer(&records, tuning.request_of(job.trial))).await;
        read.map_err(|error| unavailable(&error))?.map_err(|error| unavailable(&error))
    }

    /// Prints what a request changed, or why it failed, and records the training command of a new tuning.
    async fn report(&self, request: &HttpRequest, answered: &Answered) {
        if let Some(cause) = answered.error.as_ref().and_then(|error| error.cause.as_ref()) {
            let HttpRequest { method, path, request_id, .. } = request;
            print_err(&format!("{method} {path} failed: {cause:?} (request ID {request_id})\n"));
        }
        let Some(id) = answered.id.clone().filter(|_| answered.error.is_none()) else { return };
        let verb = match answered.operation {
            // A repeated request created nothing.
            CREATE if request.path != "/" && answered.response.status != 201 => return,
            CREATE => "submitted",
            "StopHyperParameterTuningJob" => "stopping",
            "ChangeLimits" => "changed",
            "DeleteHyperParameterTuningJob" => "deleted",
            _ => return,
        };
        print_err(&format!("{verb} {}\n", name_in(&id)));
        let (data_dir, record) = (self.data_dir.clone(), self.record.clone());
        let recorded = match verb {
            "submitted" => {
                spawn_blocking(move || record.map_or(Ok(()), |record| record.write(&data_dir, &id))).await
            }
            "deleted" => {
                RunRecord::remove(&data_dir, &id);
                return;
            }
            _ => return,
        };
        if let Ok(Err(failure)) = recorded {
            failure.print();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fault after the write left a tuning whose recorded command was removed.
    #[test]
    fn regression_a_fault_keeps_the_recorded_command() {
        let error = |code, status| ApiError::of_host(code, status, "why");
        assert!(leaves_no_tuning(&error("ValidationException", 400)));
        assert!(!leaves_no_tuning(&error(NAME_TAKEN, 409)));
        assert!(!leaves_no_tuning(&error("ServiceUnavailable", 503)));
    }
}
