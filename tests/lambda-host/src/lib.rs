//! Runs the real program of a function against emulators of Lambda's runtime API and DynamoDB, on loopback.
//!
//! For tests only. Starts the program as Lambda does, passes it one event, and kills it. The table is the embedded
//! engine behind DynamoDB's wire protocol, so the tests include the SDK's requests.
#![expect(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a failing helper fails its test")]

pub mod samples;

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, SystemTime};

use dynamodb::{Embedded, StreamStart, TABLE_NAME, event};
use loopback::{Request, Response, serve};
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tuning::unit::time::Time;
use use_cases::decide::{Decided, Decider};
use use_cases::ports::table::{Query, Table};
use use_cases::ports::{Clock, Prices, PricesError};
use use_cases::store::Store;
use use_cases::submit::{Guardrails, Submit};
use wire::item::Item;

/// Submission time of the sample tuning, in ms since the epoch.
pub const SUBMITTED: i64 = 1_789_000_000_000;
/// Stack name in the functions' environment.
pub const STACK: &str = "test-stack";
/// Stack ARN in the functions' environment.
const ACCOUNT_ARN: &str = "arn:aws:sagemaker:us-east-1:000000000000:*";
/// The value of the header `x-hyperband-gateway` in the samples of API Gateway.
const API_SECRET: &str = "SampleSecretOfGateway0";
/// Time-out of a function.
const PATIENCE: Duration = Duration::from_mins(2);

struct At(i64);

impl Clock for At {
    fn now(&self) -> Time {
        Time(self.0)
    }
}

struct NoPrices;

impl Prices for NoPrices {
    async fn instance_hour(&self, _instance_type: &str) -> Result<Option<u64>, PricesError> {
        Ok(None)
    }

    async fn volume_kilo_gib_hour(&self) -> Result<Option<u64>, PricesError> {
        Ok(None)
    }
}

/// An emulated DynamoDB endpoint with an embedded table, and the environment of the functions.
#[derive(Debug)]
pub struct Stage {
    /// The table behind the endpoint.
    pub table: Embedded,
    endpoint: String,
    variables: Vec<(String, String)>,
    silent: Arc<AtomicBool>,
    /// Time limit of an invocation, in ms; `None` = unlimited.
    pub time_ms: Option<u64>,
}

/// The result of an invocation.
#[derive(Debug)]
pub struct Invoked {
    /// The response, or the reported error.
    pub answer: Result<Value, Value>,
    /// The log lines.
    pub log: Vec<Value>,
    /// Size of the log, in bytes.
    pub log_bytes: usize,
}

impl Invoked {
    /// Returns the log lines that are not metrics.
    pub fn lines(&self) -> Vec<&Value> {
        self.log.iter().filter(|line| line.get("_aws").is_none()).collect()
    }

    /// Returns the values of the metrics by name. Asserts that they are in the embedded metric format, in at most one
    /// line.
    pub fn metrics(&self) -> BTreeMap<String, Value> {
        let mut lines = self.log.iter().filter(|line| line.get("_aws").is_some());
        let Some(line) = lines.next() else { return BTreeMap::new() };
        assert_eq!(lines.next(), None, "one line of metrics");
        let set = &line["_aws"]["CloudWatchMetrics"][0];
        assert_eq!((&set["Namespace"], &set["Dimensions"]), (&json!("Hyperband"), &json!([["Stack"]])));
        assert_eq!(line["Stack"], STACK);
        assert!(line["_aws"]["Timestamp"].is_i64());
        let names = set["Metrics"].as_array().unwrap().iter().map(|metric| metric["Name"].as_str().unwrap());
        names.map(|name| (name.to_owned(), line[name].clone())).collect()
    }
}

impl Stage {
    /// Returns a stage with an empty table. Needs a multi-threaded runtime.
    pub async fn open() -> Self {
        let table = Embedded::memory().await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let (engine, runtime) = (table.clone(), Handle::current());
        let silent = Arc::new(AtomicBool::new(false));
        let keeps_silent = Arc::clone(&silent);
        serve(listener, move |request: &Request| {
            while keeps_silent.load(Ordering::Relaxed) {
                std::thread::park();
            }
            let target = request.header("x-amz-target").unwrap_or_default();
            let operation = target.rsplit('.').next().unwrap_or_default();
            let (status, body) = runtime.block_on(engine.answer(operation, &request.body)).unwrap();
            Response { status, headers: Vec::new(), body }
        });
        Self { table, endpoint, variables: Vec::new(), silent, time_ms: None }
    }

    /// Sets an environment variable of every function that starts from now on.
    pub fn set_variable(&mut self, name: &str, value: &str) {
        self.variables.push((name.to_owned(), value.to_owned()));
    }

    /// From now on, the endpoint accepts requests and never responds.
    pub fn fall_silent(&self) {
        self.silent.store(true, Ordering::Relaxed);
    }

    /// Returns the records of the table's stream, from its beginning.
    pub async fn stream(&self) -> Vec<Value> {
        let mut stream = self.table.stream(StreamStart::TrimHorizon).await.unwrap();
        stream.ready(1_000).await.unwrap()
    }

    /// Passes all stream records to a decider in this process.
    pub async fn decide(&self) {
        let decider = Decider { store: Arc::new(Store::new(Arc::new(self.table.table()))) };
        let mut done = Decided::default();
        decider.handle(&event(self.stream().await), || true, &mut done).await;
        assert_eq!(done.answer(), json!({"batchItemFailures": []}));
    }

    /// Submits the sample request and returns the ID of the tuning.
    pub async fn submit(&self) -> String {
        self.submit_at(SUBMITTED).await
    }

    /// Like [`submit`](Self::submit), but at a given time, for programs that read the clock.
    pub async fn submit_at(&self, time: i64) -> String {
        let store = Arc::new(Store::new(Arc::new(self.table.table())));
        let submit = Submit {
            other_tunings: None,
            store,
            prices: NoPrices,
            clock: At(time),
            monthly_cap: None,
            guardrails: Guardrails::default(),
        };
        let request = include_bytes!(
            "../../../events/aws.sagemaker.api/create-hyper-parameter-tuning-job.request.json"
        );
        submit.submit(request).await.unwrap().id()
    }

    /// Returns the rows of a partition whose sort keys begin with `prefix`.
    pub async fn rows(&self, pk: &str, prefix: &str) -> Vec<Item> {
        let table = self.table.table();
        table.query(&Query::prefix(pk, prefix, 100)).await.unwrap().items
    }

    /// Runs `program` on `event`. Returns its response, or the error that it reported.
    pub async fn invoke(&self, program: &str, event: &Value) -> Result<Value, Value> {
        self.watch(program, event).await.answer
    }

    /// Like [`invoke`](Self::invoke), but returns the log, too.
    pub async fn watch(&self, program: &str, event: &Value) -> Invoked {
        let (answers, answer) = channel();
        let runtime_api = runtime_api(event.to_string(), self.deadline(), answers);
        let mut child = self.start(program, &runtime_api);
        let received = tokio::task::spawn_blocking(move || answer.recv_timeout(PATIENCE)).await.unwrap();
        child.kill().unwrap();
        // The program writes its log before it responds.
        let out = child.wait_with_output().unwrap().stdout;
        let line = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let log = String::from_utf8(out.clone()).unwrap().lines().map(line).collect();
        Invoked { answer: received.expect("the function responds in time"), log, log_bytes: out.len() }
    }

    /// Returns Lambda's deadline for an invocation that begins now.
    fn deadline(&self) -> u128 {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis();
        self.time_ms.map_or(4_102_444_800_000, |ms| now + u128::from(ms))
    }

    fn start(&self, program: &str, runtime_api: &str) -> Child {
        Command::new(program)
            .env_clear()
            .env("AWS_LAMBDA_RUNTIME_API", runtime_api)
            .envs([("AWS_LAMBDA_FUNCTION_NAME", "function"), ("AWS_LAMBDA_FUNCTION_VERSION", "1")])
            .envs([("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128"), ("AWS_LAMBDA_LOG_GROUP_NAME", "group")])
            .envs([("AWS_LAMBDA_LOG_STREAM_NAME", "stream"), ("AWS_REGION", "us-east-1")])
            .envs([("AWS_ACCESS_KEY_ID", "test"), ("AWS_SECRET_ACCESS_KEY", "test")])
            .env("AWS_ENDPOINT_URL_DYNAMODB", &self.endpoint)
            .envs([("TABLE_NAME", TABLE_NAME), ("STACK_NAME", STACK), ("ACCOUNT_ARN", ACCOUNT_ARN)])
            .envs([("CALLS_FROM", "ApiGateway"), ("API_SECRET", API_SECRET)])
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    }
}

/// Starts an emulator of Lambda's runtime API with one event and returns its address. Sends the result to `answers`.
fn runtime_api(event: String, deadline: u128, answers: Sender<Result<Value, Value>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (hand_out, events): (Sender<String>, Receiver<String>) = channel();
    hand_out.send(event).unwrap();
    let (events, hand_out) = (std::sync::Mutex::new(events), std::sync::Mutex::new(hand_out));
    serve(listener, move |request: &Request| {
        if request.path.ends_with("/invocation/next") {
            // After its event, the function waits as in Lambda, because the sender lives as long as this server.
            let _waits = hand_out.lock();
            let event = events.lock().unwrap().recv().unwrap();
            let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
            let headers = vec![
                header("Lambda-Runtime-Aws-Request-Id", "request-1"),
                header("Lambda-Runtime-Deadline-Ms", &deadline.to_string()),
                header(
                    "Lambda-Runtime-Invoked-Function-Arn",
                    "arn:aws:lambda:us-east-1:000000000000:function:f",
                ),
            ];
            return Response { status: 200, headers, body: event.into_bytes() };
        }
        let body: Value = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
        let answer = if request.path.ends_with("/response") { Ok(body) } else { Err(body) };
        // The test may have timed out.
        let _ = answers.send(answer);
        Response { status: 202, headers: Vec::new(), body: b"{}".to_vec() }
    });
    address
}
