//! An emulated stack, on loopback: the real API on any table, behind a small server. Serves HTTP, and Lambda's Invoke
//! of any function.
//!
//! For tests only. Accepts every caller, because API Gateway authorizes callers. A test's rule can emulate a denial.
#![expect(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a failing helper fails its test")]

use std::net::TcpListener;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use http_api::{Access, Api};
use loopback::{Request, Response, serve};
use serde_json::Value;
use tokio::runtime::Runtime;
use use_cases::describe::Place;
use use_cases::ports::table::Table;
use use_cases::ports::{Clock, Millis, Prices, PricesError, Time};
use use_cases::store::Store;
use use_cases::submit::{Guardrails, Submit};
use wire::events::direct;
use wire::events::http::HttpRequest;

/// A running stack.
#[derive(Debug)]
pub struct Stack {
    /// URL of the API.
    pub endpoint: String,
    requests: Arc<Mutex<Vec<Request>>>,
    behind: Arc<AtomicI64>,
}

/// Passes a request to the API and returns its response. For rules.
pub type Pass<'a> = &'a dyn Fn() -> Response;

impl Stack {
    /// Starts a stack on `table` that passes every request to the API.
    pub fn start<T: Table + Send + Sync + 'static>(table: T) -> Self {
        Self::with_rule(table, |_, pass| pass())
    }

    /// Starts a stack that responds by `rule`, which may pass a request to the API and may replace the response.
    pub fn with_rule<T: Table + Send + Sync + 'static>(
        table: T,
        rule: impl Fn(&Request, Pass<'_>) -> Response + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let requests: Arc<Mutex<Vec<Request>>> = Arc::default();
        let behind: Arc<AtomicI64> = Arc::default();
        let submit = Submit {
            other_tunings: None,
            store: Arc::new(Store::new(Arc::new(table))),
            prices: OnePrice,
            clock: Behind(Arc::clone(&behind)),
            monthly_cap: None,
            guardrails: Guardrails::default(),
        };
        let (api, runtime, kept) = (
            Api { submit, access: Access::default(), stack: "prod".to_owned() },
            Runtime::new().unwrap(),
            Arc::clone(&requests),
        );
        serve(listener, move |request| {
            kept.lock().unwrap().push(request.clone());
            rule(request, &|| answer(&api, &runtime, request))
        });
        Self { endpoint, requests, behind }
    }

    /// Sets the stack's clock back by `ms` milliseconds.
    pub fn set_clock_back(&self, ms: i64) {
        self.behind.store(ms, Ordering::Relaxed);
    }

    /// Returns the requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

/// Returns a response of API Gateway itself, or of a proxy.
pub fn response(status: u16, body: &Value) -> Response {
    Response { status, headers: Vec::new(), body: body.to_string().into_bytes() }
}

fn answer<T: Table>(api: &Api<T, OnePrice, Behind>, runtime: &Runtime, request: &Request) -> Response {
    let is_invocation = request.path.starts_with("/2015-03-31/functions/");
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let forwarded = HttpRequest {
        method: request.method.clone(),
        path: path.to_owned(),
        query: pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        headers: request
            .header("x-amz-target")
            .map(|target| ("x-amz-target".to_owned(), target.to_owned()))
            .into_iter()
            .collect(),
        body: request.body.clone(),
        request_id: "request-1".to_owned(),
        ..HttpRequest::default()
    };
    let place = Place::of_arn("arn:aws:lambda:eu-west-1:111122223333:function:api");
    let payload: Value = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
    let asked = if is_invocation { direct::parse(&payload).unwrap() } else { forwarded };
    let answered = runtime.block_on(api.handle(&asked, &place)).response;
    if is_invocation {
        return response(200, &direct::encode_result(&answered));
    }
    Response { status: answered.status, headers: answered.headers.into_iter().collect(), body: answered.body }
}

/// A price list with the same price for every instance.
#[derive(Debug)]
struct OnePrice;

impl Prices for OnePrice {
    async fn instance_hour(&self, _: &str) -> Result<Option<u64>, PricesError> {
        Ok(Some(115_000))
    }

    async fn volume_kilo_gib_hour(&self) -> Result<Option<u64>, PricesError> {
        Ok(Some(191_781))
    }
}

/// A clock that is behind by a number of milliseconds.
#[derive(Debug)]
struct Behind(Arc<AtomicI64>);

impl Clock for Behind {
    fn now(&self) -> Time {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        Time::EPOCH + Millis::from(since) - Millis(self.0.load(Ordering::Relaxed))
    }
}
