//! `hyperband training-service`: SageMaker's training-job operations on this machine, until a signal.
//!
//! Its jobs lie beside those of `run`, which would start them with another command. Must never say that it listens before
//! it does, nor listen beyond this machine without a word about who may call.

use std::env;
use std::path::Path;
use std::sync::Arc;

use aws_connection::account_at;
use local::training::{Config, OpenError};
use serde_json::json;
use tokio::net::TcpListener;
use training_service::{EventsTo, LogsTo, Server, Settings};

use crate::arguments::{Output, TrainingService};
use crate::failure::{Exit, Failure};
use crate::output::{say, tell};
use crate::run::command;
use crate::run::signals::Signals;
use crate::text::clean;

/// The folder of its jobs in the data directory.
const FOLDER: &str = "training-service";
/// Whose jobs these are, as ARNs say.
const ACCOUNT: &str = "000000000000";
const REGION: &str = "us-east-1";

/// Serves until SIGINT or SIGTERM.
pub(crate) async fn serve(options: TrainingService) -> Result<Exit, Failure> {
    let program = command::resolve(&options.command)?;
    let listener = TcpListener::bind(options.listen).await.map_err(|error| {
        Failure::endpoint(error)
            .context(format!("cannot listen on {}", options.listen))
            .hint("give another address with --listen; port 0 takes a free one")
    })?;
    let address = listener.local_addr()?;
    if !address.ip().is_loopback() {
        tell(&format!(
            "warning: {address} can be reached from other machines, and nobody is authenticated: whoever reaches it may \
             start the training command\n"
        ));
    }
    let mut signals = Signals::listen()?;
    let root = options.place.data_dir.join(FOLDER);
    let settings = settings(&options, Config::new(root.clone(), program, command::shim()?)).await;
    let server = tokio::select! {
        server = Server::open(settings) => server.map_err(|error| not_opened(error, &root))?,
        () = signals.next() => return Ok(Exit::Done),
    };
    let endpoint = format!("http://{address}");
    match options.output {
        Output::Text => say(&format!("listening on {endpoint}\n")),
        Output::Json => say(&format!("{}\n", json!({ "Endpoint": endpoint }))),
    }
    let (end, ended) = tokio::sync::oneshot::channel();
    let mut serving = tokio::spawn(server.serve(listener, async {
        // Either way it is over.
        let _ = ended.await;
    }));
    tokio::select! {
        outcome = &mut serving => {
            return Err(Failure::endpoint(anyhow::anyhow!("the service has ended by itself: {outcome:?}")));
        }
        () = signals.next() => {}
    }
    tell("ending the training processes (press Ctrl-C again to leave at once)\n");
    let _ = end.send(());
    tokio::select! {
        _ = serving => {}
        // The processes end with this one all the same.
        () = signals.next() => {}
    }
    Ok(Exit::Done)
}

async fn settings(options: &TrainingService, training: Config) -> Settings {
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
    let training = Config {
        grace: options.grace_seconds,
        spot_interruptions_per_hour: options.spot_interruptions,
        account: ACCOUNT.to_owned(),
        region: region(),
        ..training
    };
    Settings { training, events, logs, tell: Arc::new(|line| tell(&format!("{}\n", clean(line)))) }
}

/// The Region that ARNs name: the one that this machine's clients are set to.
fn region() -> String {
    let set = |name| env::var(name).ok().filter(|value| !value.is_empty());
    set("AWS_REGION").or_else(|| set("AWS_DEFAULT_REGION")).unwrap_or_else(|| REGION.to_owned())
}

fn not_opened(error: OpenError, root: &Path) -> Failure {
    let in_use = matches!(error, OpenError::InUse { .. });
    let failure = Failure::endpoint(error).context(format!("cannot work in {}", root.display()));
    if in_use {
        failure.hint("another training service is at work there: end it first, or use another --data-dir")
    } else {
        failure
    }
}
