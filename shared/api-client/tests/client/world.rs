//! Shared helpers: clients of a stack, and a request.

use std::sync::Arc;
use std::time::Duration;

use api_client::{Client, Retry};
use aws_credential_types::Credentials;
use stack_api::Stack;
use wire::request::Request;
use wire::sample;

pub(crate) const KEY_ID: &str = "AKIAEXAMPLEKEYWXYZ";
pub(crate) const SECRET: &str = "example-secret-key";
pub(crate) const TOKEN: &str = "example-session-token";

/// Four attempts without pauses, so that the tests do not depend on time.
pub(crate) const AT_ONCE: Retry = Retry { tries: 4, first: Duration::ZERO, most: Duration::ZERO };

pub(crate) fn credentials() -> Credentials {
    Credentials::new(KEY_ID, SECRET, Some(TOKEN.to_owned()), None, "test")
}

/// Returns a client that signs.
pub(crate) fn client(stack: &Stack) -> Client {
    Client::new(Arc::new(signing(stack)), AT_ONCE)
}

pub(crate) fn signing(stack: &Stack) -> api_client::Stack {
    let endpoint = stack.endpoint.parse().unwrap();
    api_client::Stack::new(endpoint, Some((credentials(), "eu-west-1")), AT_ONCE)
}

/// Returns a client that does not sign.
pub(crate) fn unsigned(endpoint: &str) -> Client {
    Client::new(Arc::new(api_client::Stack::new(endpoint.parse().unwrap(), None, AT_ONCE)), AT_ONCE)
}

pub(crate) fn request(name: &str) -> Request {
    Request::check(sample::request(name)).unwrap()
}
