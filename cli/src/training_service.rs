//! `hyperband training-service`: serves SageMaker's training-job operations on this machine until a signal arrives.
//!
//! Its jobs have their own folder, because `run` would start them with another command. Must never print its address
//! before it listens, and must warn before it listens beyond this machine.

use std::env;
use std::path::Path;
use std::sync::Arc;

use aws::account_at;
use local::training::{Config, OpenError};
use training_service::{EventsTo, LogsTo, Server, Settings};

use crate::arguments::TrainingService;
use crate::failure::{Exit, Failure};
use crate::local_server;
use crate::output::{print_err, show_url};
use crate::run::command;
use crate::signals::Signals;
use crate::text::clean;

/// Folder of its jobs in the data directory.
const FOLDER: &str = "training-service";
const ACCOUNT: &str = "000000000000";
const REGION: &str = "us-east-1";

/// Serves until SIGINT or SIGTERM.
pub(crate) async fn serve(options: TrainingService) -> Result<Exit, Failure> {
    let program = command::resolve(&options.command)?;
    let (listener, address) = local_server::listen(&options.listen).await?;
    if !address.ip().is_loopback() {
        print_err(&format!(
            "warning: {address} can be reached from other machines, and there is no authentication: everyone who can \
             reach it can start the training command\n"
        ));
    }
    let mut signals = Signals::listen()?;
    let root = options.place.data_dir.join(FOLDER);
    let devices = options.processes.device_names()?;
    let training = command::training(root.clone(), program, &options.processes, devices)?;
    let settings = settings(&options, training).await?;
    let server = tokio::select! {
        server = Server::open(settings) => server.map_err(|error| open_failure(error, &root))?,
        () = signals.next() => return Ok(Exit::Done),
    };
    let endpoint = format!("http://{address}");
    show_url(options.output, "listening on", &endpoint);
    let (end, ended) = tokio::sync::oneshot::channel();
    let mut serving = tokio::spawn(server.serve(listener, async {
        // A dropped sender also ends the service.
        let _ = ended.await;
    }));
    tokio::select! {
        outcome = &mut serving => {
            return Err(Failure::endpoint(anyhow::anyhow!("the service ended unexpectedly: {outcome:?}")));
        }
        () = signals.next() => {}
    }
    print_err("stopping the training processes (press Ctrl-C again to exit at once)\n");
    let _ = end.send(());
    tokio::select! {
        _ = serving => {}
        // The training processes end with this process in any case.
        () = signals.next() => {}
    }
    Ok(Exit::Done)
}

async fn settings(options: &TrainingService, training: Config) -> Result<Settings, Failure> {
    let events = match &options.events_endpoint {
        Some(endpoint) => {
            let account = account_at(endpoint).await;
            Some(EventsTo { account, source: options.event_source.clone() })
        }
        None => None,
    };
    let logs = match &options.logs_endpoint {
        Some(endpoint) => {
            let account = account_at(endpoint).await;
            Some(LogsTo { account, group: options.log_group.clone() })
        }
        None => None,
    };
    let training = Config { account: ACCOUNT.to_owned(), region: region(), ..training };
    Ok(Settings { training, events, logs, report: Arc::new(|line| print_err(&format!("{}\n", clean(line)))) })
}

/// Returns the Region of jobs whose client names none: the Region of this machine's AWS clients.
fn region() -> String {
    let set = |name| env::var(name).ok().filter(|value| !value.is_empty());
    set("AWS_REGION").or_else(|| set("AWS_DEFAULT_REGION")).unwrap_or_else(|| REGION.to_owned())
}

fn open_failure(error: OpenError, root: &Path) -> Failure {
    let in_use = matches!(error, OpenError::InUse { .. });
    let failure = Failure::endpoint(error).context(format!("cannot work in {}", root.display()));
    if in_use {
        failure.hint("another training service uses this data directory: stop it, or use another --data-dir")
    } else {
        failure
    }
}
