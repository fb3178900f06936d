//! A service in a temporary folder, and a minimal HTTP client.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use aws::{SdkConfig, account_at};
use local::training::{Config, Delays};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, spawn_blocking};
use training_service::{Server, Settings};

/// The time-out of each wait of a test.
const PATIENCE: Duration = Duration::from_mins(4);
/// Ends, logs metrics, fails or sleeps, as the hyperparameter `program` says.
const SCRIPT: &str = "case $SM_HP_PROGRAM in ends) echo one; echo two;; fails) exit 3;; \
                      measures) echo loss=1.5; echo loss=0.25; echo done;; *) exec sleep 600;; esac";

pub(crate) struct World {
    pub(crate) folder: TempDir,
    pub(crate) address: SocketAddr,
    pub(crate) reported: Arc<Mutex<Vec<String>>>,
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
        let reported: Arc<Mutex<Vec<String>>> = Arc::default();
        let lines = Arc::clone(&reported);
        let mut settings = Settings {
            training: config(folder.path()),
            events: None,
            logs: None,
            report: Arc::new(move |line| lines.lock().unwrap().push(line.to_owned())),
        };
        change(&mut settings);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = Server::open(settings).await.unwrap();
        let (end, ended) = oneshot::channel();
        let task = tokio::spawn(server.serve(listener, async { ended.await.unwrap_or(()) }));
        Self { folder, address, reported, end, task }
    }

    /// Shuts the service down and returns its folder.
    pub(crate) async fn end(self) -> TempDir {
        self.end.send(()).unwrap();
        self.task.await.unwrap();
        self.folder
    }

    /// Calls an operation and returns HTTP status and body.
    pub(crate) async fn call(&self, operation: &str, body: &Value) -> (u16, Value) {
        self.call_with("", operation, body).await
    }

    /// Calls an operation, signed for a Region, and returns its answer. The call must succeed.
    pub(crate) async fn done_in(&self, region: &str, operation: &str, body: &Value) -> Value {
        let scope = format!("AKIDEXAMPLE/20260101/{region}/sagemaker/aws4_request");
        let signed = format!(
            "Authorization: AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0123\r\n"
        );
        let (status, answer) = self.call_with(&signed, operation, body).await;
        assert_eq!(status, 200, "{operation}: {answer}");
        answer
    }

    async fn call_with(&self, headers: &str, operation: &str, body: &Value) -> (u16, Value) {
        let headers = target(operation) + headers;
        let answer = self.send("POST", "/", &headers, &body.to_string()).await;
        let json = answer.body.is_empty().then_some(Value::Null);
        (answer.status, json.unwrap_or_else(|| serde_json::from_str(&answer.body).unwrap()))
    }

    /// Calls an operation that must succeed and returns its answer.
    pub(crate) async fn done(&self, operation: &str, body: &Value) -> Value {
        let (status, answer) = self.call(operation, body).await;
        assert_eq!(status, 200, "{operation}: {answer}");
        answer
    }

    /// Calls an operation that must be refused and returns code and message.
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

    /// Sends a raw HTTP request and returns the answer.
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

    /// Waits until a job has the secondary status `state` and returns its description.
    pub(crate) async fn reaches(&self, job: &str, state: &str) -> Value {
        let start = Instant::now();
        loop {
            let seen = self.done("DescribeTrainingJob", &json!({"TrainingJobName": job})).await;
            if seen["SecondaryStatus"] == state {
                return seen;
            }
            assert!(start.elapsed() < PATIENCE, "{job} did not reach {state} in time: {seen}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

pub(crate) struct Reply {
    pub(crate) status: u16,
    /// The status line and headers, in lower case.
    pub(crate) head: String,
    pub(crate) body: String,
}

/// Returns the headers of an operation.
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

/// Returns the account of an emulator at `endpoint`.
pub(crate) async fn account(endpoint: &str) -> SdkConfig {
    account_at(endpoint).await
}

/// Returns a request whose program is `ends`, `measures`, `fails` or any other name for an endless one.
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
        assert!(start.elapsed() < PATIENCE, "timed out waiting until {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
