//! A service of AWS that speaks its JSON protocol, played on loopback: it keeps what was sent and answers by a rule.

use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::{Request, Response, serve};

/// One call as it arrived.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// `X-Amz-Target`, such as `SageMaker.StopTrainingJob`.
    pub target: String,
    /// The body.
    pub body: Value,
}

impl Call {
    /// The operation's name.
    pub fn operation(&self) -> &str {
        self.target.rsplit('.').next().unwrap_or_default()
    }
}

/// What is answered.
#[derive(Debug, Clone)]
pub struct Answer {
    status: u16,
    body: String,
}

impl Answer {
    /// It was done.
    pub fn done(body: &Value) -> Self {
        Self { status: 200, body: body.to_string() }
    }

    /// An error with its code and message.
    pub fn error(status: u16, code: &str, message: &str) -> Self {
        let body = serde_json::json!({"__type": code, "message": message});
        Self { status, body: body.to_string() }
    }

    /// Anything else.
    pub fn text(status: u16, body: &str) -> Self {
        Self { status, body: body.to_owned() }
    }
}

/// A service.
#[derive(Debug)]
pub struct Service {
    /// Where it is.
    pub endpoint: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Service {
    /// A service that answers each call by `rule`.
    pub fn start(rule: impl Fn(&Call) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let requests: Arc<Mutex<Vec<Request>>> = Arc::default();
        let kept = Arc::clone(&requests);
        serve(listener, move |request: &Request| {
            kept.lock().unwrap().push(request.clone());
            let Answer { status, body } = rule(&call(request));
            let content = ("Content-Type".to_owned(), "application/x-amz-json-1.1".to_owned());
            Response { status, headers: vec![content], body: body.into_bytes() }
        });
        Self { endpoint, requests }
    }

    /// The calls so far.
    pub fn calls(&self) -> Vec<Call> {
        self.requests().iter().map(call).collect()
    }

    /// The same, as they came over the wire.
    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

fn call(request: &Request) -> Call {
    let target = request.header("x-amz-target").unwrap_or_default().to_owned();
    Call { target, body: serde_json::from_slice(&request.body).unwrap_or(Value::Null) }
}
