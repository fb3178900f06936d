//! Plays AWS around a function's real program: Lambda's runtime API and DynamoDB's endpoint, on loopback.
//!
//! For tests only. The program is started as Lambda starts it, gets one event, and is ended. Its table is the embedded
//! engine behind DynamoDB's wire protocol, so that the SDK's own requests are what is tested.
#![expect(clippy::unwrap_used, clippy::missing_panics_doc, reason = "helpers of tests fail with their test")]

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
use service::decide::{Decided, Decider};
use service::ports::table::{Query, Table};
use service::ports::{Clock, Prices, PricesError};
use service::store::Store;
use service::submit::{Guardrails, Submit};
use tokio::runtime::Handle;
use wire::item::Item;

/// When the sample tuning is submitted, ms since the epoch.
pub const SUBMITTED: i64 = 1_789_000_000_000;
/// Name of the stack that the functions are told.
pub const STACK: &str = "test-stack";
/// The ARN that they are told.
const STACK_ARN: &str = "arn:aws:cloudformation:us-east-1:000000000000:stack/test-stack/1";
/// A function must answer within this time.
const PATIENCE: Duration = Duration::from_secs(30);

struct At(i64);

impl Clock for At {
    fn now(&self) -> i64 {
        self.0
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

/// DynamoDB's endpoint over an embedded table.
#[derive(Debug)]
pub struct Stage {
    /// The table behind the endpoint.
    pub table: Embedded,
    endpoint: String,
    told: Vec<(String, String)>,
    silent: Arc<AtomicBool>,
    /// How much time an invocation has, ms; `None` = as much as it likes.
    pub time_ms: Option<u64>,
}

/// What a program made of an invocation.
#[derive(Debug)]
pub struct Invoked {
    /// The response, or the error it reported.
    pub answer: Result<Value, Value>,
    /// What it wrote to its log, line by line.
    pub log: Vec<Value>,
    /// The bytes of that.
    pub log_bytes: usize,
}

impl Invoked {
    /// The lines that are not metrics.
    pub fn lines(&self) -> Vec<&Value> {
        self.log.iter().filter(|line| line.get("_aws").is_none()).collect()
    }

    /// The values of the metrics, by name; checked to be in the embedded format, in one line at most.
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
    /// A stage with an empty table. Needs a runtime with several threads.
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
        Self { table, endpoint, told: Vec::new(), silent, time_ms: None }
    }

    /// Tells every function that is started from now on the value of an environment variable.
    pub fn tell(&mut self, name: &str, value: &str) {
        self.told.push((name.to_owned(), value.to_owned()));
    }

    /// The endpoint takes requests from now on, and never answers.
    pub fn fall_silent(&self) {
        self.silent.store(true, Ordering::Relaxed);
    }

    /// Takes the records that the table's stream has from its beginning.
    pub async fn stream(&self) -> Vec<Value> {
        let mut stream = self.table.stream(StreamStart::TrimHorizon).await.unwrap();
        stream.ready(1_000).await.unwrap()
    }

    /// Lets the decider take all that is in the stream, in this process.
    pub async fn decide(&self) {
        let decider = Decider { store: Arc::new(Store::new(Arc::new(self.table.table()))) };
        let mut done = Decided::default();
        decider.handle(&event(self.stream().await), || true, &mut done).await;
        assert_eq!(done.answer(), json!({"batchItemFailures": []}));
    }

    /// Submits a tuning of the sample request; its id.
    pub async fn submit(&self) -> String {
        self.submit_at(SUBMITTED).await
    }

    /// The same, at a time of one's own, for programs that act by the clock.
    pub async fn submit_at(&self, time: i64) -> String {
        let store = Arc::new(Store::new(Arc::new(self.table.table())));
        let submit = Submit {
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

    /// The rows of a partition whose sort keys begin with `prefix`.
    pub async fn rows(&self, pk: &str, prefix: &str) -> Vec<Item> {
        let table = self.table.table();
        table.query(&Query::prefix(pk, prefix, 100)).await.unwrap().items
    }

    /// Starts `program`, has it handle `event`, and gives its answer: the response, or the error it reported.
    pub async fn invoke(&self, program: &str, event: &Value) -> Result<Value, Value> {
        self.watch(program, event).await.answer
    }

    /// The same, with what it wrote to its log.
    pub async fn watch(&self, program: &str, event: &Value) -> Invoked {
        let (answers, answer) = channel();
        let runtime_api = runtime_api(event.to_string(), self.deadline(), answers);
        let mut child = self.start(program, &runtime_api);
        let received = tokio::task::spawn_blocking(move || answer.recv_timeout(PATIENCE)).await.unwrap();
        child.kill().unwrap();
        // Written before the answer was given.
        let out = child.wait_with_output().unwrap().stdout;
        let line = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let log = String::from_utf8(out.clone()).unwrap().lines().map(line).collect();
        Invoked { answer: received.expect("the function answers"), log, log_bytes: out.len() }
    }

    /// Lambda's deadline for an invocation that begins now.
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
            .envs([("TABLE_NAME", TABLE_NAME), ("STACK_NAME", STACK), ("STACK_ARN", STACK_ARN)])
            .envs(self.told.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    }
}

/// Lambda's runtime API with one event to hand out; what comes back goes to `answers`.
fn runtime_api(event: String, deadline: u128, answers: Sender<Result<Value, Value>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (hand_out, events): (Sender<String>, Receiver<String>) = channel();
    hand_out.send(event).unwrap();
    let (events, hand_out) = (std::sync::Mutex::new(events), std::sync::Mutex::new(hand_out));
    serve(listener, move |request: &Request| {
        if request.path.ends_with("/invocation/next") {
            // After its one event the function waits, as it does in Lambda; the sender lives as long as this server.
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
        // The test may have stopped waiting.
        let _ = answers.send(answer);
        Response { status: 202, headers: Vec::new(), body: b"{}".to_vec() }
    });
    address
}
