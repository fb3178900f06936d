//! An emulated AWS service with the JSON protocol: records its calls and responds by a rule.

use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::{Request, Response, serve};

/// A received call.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// `X-Amz-Target`, such as `SageMaker.StopTrainingJob`.
    pub target: String,
    /// Body.
    pub body: Value,
}

impl Call {
    /// Returns the name of the operation.
    pub fn operation(&self) -> &str {
        self.target.rsplit('.').next().unwrap_or_default()
    }
}

/// A response.
#[derive(Debug, Clone)]
pub struct Answer {
    status: u16,
    body: String,
}

impl Answer {
    /// Returns a success.
    pub fn done(body: &Value) -> Self {
        Self { status: 200, body: body.to_string() }
    }

    /// Returns an error with a code and a message.
    pub fn error(status: u16, code: &str, message: &str) -> Self {
        let body = serde_json::json!({"__type": code, "message": message});
        Self { status, body: body.to_string() }
    }

    /// Returns a response with any body.
    pub fn text(status: u16, body: &str) -> Self {
        Self { status, body: body.to_owned() }
    }
}

/// A running service.
#[derive(Debug)]
pub struct Service {
    /// URL of the service.
    pub endpoint: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Service {
    /// Starts a service that responds to each call by `rule`.
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

    /// Returns the calls so far.
    pub fn calls(&self) -> Vec<Call> {
        self.requests().iter().map(call).collect()
    }

    /// Returns the HTTP requests of the calls so far.
    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

fn call(request: &Request) -> Call {
    let target = request.header("x-amz-target").unwrap_or_default().to_owned();
    Call { target, body: serde_json::from_slice(&request.body).unwrap_or(Value::Null) }
}
