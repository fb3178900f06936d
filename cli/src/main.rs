//! `hyperband`: runs a tuning on this machine or on a deployed stack, and inspects tunings.
//!
//! Exit codes are a contract: 0 success, 1 the tuning failed, 2 invalid request or usage, 3 table or endpoint error,
//! 130 interrupted. This crate makes no tuning decisions.

mod arguments;
mod audit;
mod change;
mod check;
mod controller_list;
mod cost;
mod cut_numbers;
mod data;
mod delete;
mod describe;
mod doctor;
mod explain;
mod export;
mod extend;
mod failure;
mod folder_api;
mod init;
mod list;
mod live;
mod local_server;
mod location;
mod log_hint;
mod logs;
mod metrics;
mod model;
mod output;
mod page;
mod plan;
mod progress;
mod proxy;
mod question;
mod record;
mod remote;
mod replay;
mod report;
mod request;
mod run;
mod serve;
mod signals;
mod simulate;
mod stop;
mod stored_tuning;
mod submit;
mod text;
#[cfg(feature = "aws")]
mod training_service;
mod tunings;
mod warning;
mod watch;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, Parser};

use ::report::{best_model, event_text, follow};
use arguments::{Arguments, Command};
use failure::{Exit, Failure};
use output::print_out_raw;

/// Worker threads of the controller. Few, because the training processes need the machine.
const WORKERS: usize = 2;

fn main() -> ExitCode {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    // Each instance of each training job starts this shim, so it comes before any slow work.
    if arguments.get(1).is_some_and(|first| first == "__host") {
        return local::training::shim::shim_main(arguments.split_off(2));
    }
    let parsed = match Arguments::try_parse_from(&arguments) {
        Ok(parsed) => parsed,
        Err(error) => {
            if let Some(ContextValue::String(unexpected)) = error.get(ContextKind::InvalidArg)
                && let Some(failure) = run::command::without_dashes(&arguments, unexpected)
            {
                failure.print();
                return failure.exit.into();
            }
            // A closed pipe is not an error.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    match on_runtime(parsed.command) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            failure.print();
            failure.exit.into()
        }
    }
}

fn on_runtime(command: Command) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build()
        .map_err(|error| Failure::endpoint(error).context("cannot start the async runtime"))?;
    let result = runtime.block_on(perform(command));
    // A blocked system call must not delay the exit.
    runtime.shutdown_background();
    result
}

async fn perform(command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Run(options) => Box::pin(run::run(options)).await,
        Command::Resume(options) => Box::pin(run::resume(options)).await,
        Command::Extend(options) => Box::pin(extend::extend(options)).await,
        Command::Submit(options) => submit::submit(options).await,
        Command::List(options) => list::list(options).await,
        Command::Describe(options) => describe::describe(options).await,
        Command::Watch(options) => watch::watch(options).await,
        Command::Model(options) => model::model(options).await,
        Command::Logs(options) => logs::logs(options).await,
        Command::Explain(options) => explain::explain(options).await,
        Command::Cost(options) => Box::pin(cost::cost(options)).await,
        Command::Change(options) => change::change(options).await,
        Command::Stop(options) => stop::stop(options).await,
        Command::Delete(options) => delete::delete(options).await,
        Command::Replay(options) => replay::replay(options).await,
        Command::Audit(options) => Box::pin(audit::audit(options)).await,
        Command::Report(options) => Box::pin(report::report(options)).await,
        Command::Export(options) => Box::pin(export::export(options)).await,
        Command::Doctor(options) => doctor::doctor(&options).await,
        Command::Serve(options) => serve::serve(options).await,
        Command::Proxy(options) => proxy::proxy(options).await,
        #[cfg(feature = "aws")]
        Command::TrainingService(options) => training_service::serve(options).await,
        Command::Plan(options) => plan::plan(&options),
        Command::Simulate(options) => simulate::simulate(&options),
        Command::Check(options) => check::check(&options),
        Command::Init(options) => init::init(&options),
        Command::Completions { shell } => {
            completions(shell);
            Ok(Exit::Done)
        }
    }
}

fn completions(shell: clap_complete::Shell) {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "hyperband", &mut script);
    print_out_raw(&String::from_utf8_lossy(&script));
}
