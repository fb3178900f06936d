//! The contract of every training service, tested with SageMaker's SDK against the local training service over HTTP.
//!
//! A separate program without the test harness, because it is also the host shim of its training processes. Supports
//! `--list` for test runners.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a failing helper fails its test")]

#[path = "training_service/log_store.rs"]
mod log_store;

use std::env;
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use aws::account_at;
use local::training::{Config, shim::shim_main};
use port_tests::training::{self as contract, Program, Stage};
use sagemaker::SageMaker;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use training_service::{LOG_GROUP, LogsTo, Server, Settings};

const TEST: &str = "the_sdk_and_the_local_service_fulfill_the_contract";
/// Ends, fails or sleeps, as the hyperparameter `program` says.
const SCRIPT: &str =
    "case $SM_HP_PROGRAM in Ends) echo one; echo two;; Fails) exit 3;; *) exec sleep 600;; esac";

fn main() -> ExitCode {
    let arguments: Vec<OsString> = env::args_os().collect();
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    if arguments.get(1).is_some_and(|first| first == "__host") {
        return shim_main(arguments.into_iter().skip(2));
    }
    if has("--list") {
        if !has("--ignored") {
            println!("{TEST}: test");
        }
        return ExitCode::SUCCESS;
    }
    // A panic sets the exit code.
    tokio::runtime::Runtime::new().unwrap().block_on(the_sdk_and_the_local_service_fulfill_the_contract());
    println!("test {TEST} ... ok");
    ExitCode::SUCCESS
}

struct Wire {
    jobs: SageMaker,
}

impl Stage for Wire {
    type Jobs = SageMaker;

    fn jobs(&self) -> &SageMaker {
        &self.jobs
    }

    fn name(&self, number: u32) -> String {
        format!("job-{number}")
    }

    fn request(&self, name: &str, program: Program) -> Option<Value> {
        Some(json!({
            "TrainingJobName": name,
            "HyperParameters": {"program": format!("{program:?}")},
            "AlgorithmSpecification": {"TrainingImage": "local", "TrainingInputMode": "File"},
            "RoleArn": "arn:aws:iam::111122223333:role/example",
            "OutputDataConfig": {"S3OutputPath": "s3://bucket/out"},
            "ResourceConfig": {"InstanceCount": 1, "InstanceType": "ml.m5.large", "VolumeSizeInGB": 30},
            "StoppingCondition": {"MaxRuntimeInSeconds": 600},
        }))
    }

    async fn pause(&self) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn the_sdk_and_the_local_service_fulfill_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    let store = log_store::start();
    let shim = vec![env::current_exe().unwrap().into_os_string(), "__host".into()];
    let command = ["/bin/sh", "-c", SCRIPT].map(OsString::from).to_vec();
    let training =
        Config { grace: Duration::from_millis(300), ..Config::new(folder.path().to_owned(), command, shim) };
    let settings = Settings {
        training,
        events: None,
        logs: Some(LogsTo { account: account_at(&store.endpoint).await, group: LOG_GROUP.to_owned() }),
        report: Arc::new(|line| println!("{line}")),
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let (end, ended) = tokio::sync::oneshot::channel();
    let server = Server::open(settings).await.unwrap();
    let serving = tokio::spawn(server.serve(listener, async { ended.await.unwrap_or(()) }));
    let wire = Wire { jobs: SageMaker::new(&account_at(&endpoint).await) };
    contract::all(&wire).await;
    contract::logs(&wire, &SageMaker::new(&account_at(&store.endpoint).await)).await;
    end.send(()).unwrap();
    serving.await.unwrap();
}
