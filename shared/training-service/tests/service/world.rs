//! A service in a temporary folder and a client of a few lines.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use aws_connection::{SdkConfig, account_at};
use local::training::{Config, Delays};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, spawn_blocking};
use training_service::{Server, Settings};

/// Everything happens within this, or the test fails.
const PATIENCE: Duration = Duration::from_secs(40);
/// Does what the hyperparameter `program` says.
const SCRIPT: &str =
    "case $SM_HP_PROGRAM in ends) echo one; echo two;; fails) exit 3;; *) exec sleep 600;; esac";

pub(crate) struct World {
    pub(crate) folder: TempDir,
    pub(crate) address: SocketAddr,
    pub(crate) told: Arc<Mutex<Vec<String>>>,
    end: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut Settings)) -> Self {
        Self::open(tempfile::tempdir().unwrap(), change).await
    }

    pub(crate) async fn open(folder: TempDir, change: impl FnOnce(&mut Settings)) -> Self {
        let told: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = Arc::clone(&told);
        let mut settings = Settings {
            training: config(folder.path()),
            events: None,
            logs: None,
            tell: Arc::new(move |line| kept.lock().unwrap().push(line.to_owned())),
        };
        change(&mut settings);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = Server::open(settings).await.unwrap();
        let (end, ended) = oneshot::channel();
        let task = tokio::spawn(server.serve(listener, async { ended.await.unwrap_or(()) }));
        Self { folder, address, told, end, task }
    }

    /// Ends the service; its folder.
    pub(crate) async fn end(self) -> TempDir {
        self.end.send(()).unwrap();
        self.task.await.unwrap();
        self.folder
    }

    /// Status and body of an operation's answer.
    pub(crate) async fn call(&self, operation: &str, body: &Value) -> (u16, Value) {
        let answer = self.send("POST", "/", &target(operation), &body.to_string()).await;
        let json = answer.body.is_empty().then_some(Value::Null);
        (answer.status, json.unwrap_or_else(|| serde_json::from_str(&answer.body).unwrap()))
    }

    /// The answer of an operation that is done.
    pub(crate) async fn done(&self, operation: &str, body: &Value) -> Value {
        let (status, answer) = self.call(operation, body).await;
        assert_eq!(status, 200, "{operation}: {answer}");
        answer
    }

    /// The code and message of an operation that is refused.
    pub(crate) async fn refused(&self, operation: &str, body: &Value) -> (String, String) {
        let (status, answer) = self.call(operation, body).await;
        assert_eq!(status, 400, "{operation}: {answer}");
        (text(&answer["__type"]), text(&answer["message"]))
    }

    pub(crate) async fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> Reply {
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
        );
        self.exchange(request).await
    }

    /// The answer to a request as it is.
    pub(crate) async fn exchange(&self, request: String) -> Reply {
        let address = self.address;
        let exchange = spawn_blocking(move || {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            text
        });
        let text = exchange.await.unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Reply { status, head: head.to_lowercase(), body: body.to_owned() }
    }

    /// Waits until a job is in the secondary status `state`; its description.
    pub(crate) async fn reaches(&self, job: &str, state: &str) -> Value {
        let start = Instant::now();
        loop {
            let seen = self.done("DescribeTrainingJob", &json!({"TrainingJobName": job})).await;
            if seen["SecondaryStatus"] == state {
                return seen;
            }
            assert!(start.elapsed() < PATIENCE, "{job} does not reach {state}: {seen}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

pub(crate) struct Reply {
    pub(crate) status: u16,
    /// In lower case.
    pub(crate) head: String,
    pub(crate) body: String,
}

/// The headers of an operation.
pub(crate) fn target(operation: &str) -> String {
    format!("X-Amz-Target: SageMaker.{operation}\r\nContent-Type: application/x-amz-json-1.1\r\n")
}

fn config(folder: &Path) -> Config {
    let shim = vec![env!("CARGO_BIN_EXE_training-service-test-host").into(), "__host".into()];
    let command = ["/bin/sh", "-c", SCRIPT].map(OsString::from).to_vec();
    Config {
        grace: Duration::from_millis(300),
        delays: Delays { restart: Duration::from_millis(20), ..Delays::default() },
        account: "111122223333".to_owned(),
        region: "eu-west-1".to_owned(),
        ..Config::new(folder.join("jobs"), command, shim)
    }
}

/// The account of an emulator at `endpoint`.
pub(crate) async fn account(endpoint: &str) -> SdkConfig {
    account_at(endpoint).await
}

/// A request whose program is `ends`, `fails` or endless.
pub(crate) fn request(job: &str, program: &str) -> Value {
    json!({
        "TrainingJobName": job,
        "HyperParameters": {"program": program},
        "AlgorithmSpecification": {"TrainingImage": "local", "TrainingInputMode": "File"},
        "RoleArn": "arn:aws:iam::111122223333:role/example",
        "OutputDataConfig": {"S3OutputPath": "s3://bucket/out"},
        "ResourceConfig": {"InstanceCount": 1, "InstanceType": "ml.m5.large", "VolumeSizeInGB": 30},
        "StoppingCondition": {"MaxRuntimeInSeconds": 600},
        "Tags": [{"Key": "team", "Value": "vision"}],
    })
}

/// Waits until `condition` holds.
pub(crate) async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "waited too long until {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
