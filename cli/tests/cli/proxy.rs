//! Which requests use a proxy.

use std::net::TcpListener;
use std::process::Command;
use std::sync::{Arc, Mutex};

use port_tests::memory::MemoryTable;
use stack_api::{Stack, response};

use crate::world::{QUICK, World, ended};

const ENDPOINT: &str = "https://abc123.execute-api.eu-west-1.amazonaws.com";

/// A proxy that rejects and records all requests.
struct Proxy {
    address: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = Arc::clone(&asked);
        loopback::serve(listener, move |request| {
            kept.lock().unwrap().push(format!("{} {}", request.method, request.path));
            response(407, &serde_json::Value::Null)
        });
        Self { address, asked }
    }

    /// Returns the requests without consecutive duplicates.
    fn asked(&self) -> Vec<String> {
        let mut asked = self.asked.lock().unwrap().clone();
        asked.dedup();
        asked
    }
}

fn with_key(command: &mut Command) -> &mut Command {
    command.env("AWS_ACCESS_KEY_ID", "AKIAEXAMPLEABCD").env("AWS_SECRET_ACCESS_KEY", "example-secret")
}

#[test]
fn regression_requests_to_a_stack_use_the_proxy_of_the_environment() {
    let world = World::new(QUICK);
    let proxy = Proxy::start();
    let mut command = world.command(&["list", "--endpoint", ENDPOINT]);
    let refused = ended(with_key(&mut command).env("HTTPS_PROXY", &proxy.address).spawn().unwrap());
    let refused = refused.with_code(3);
    assert!(refused.err.starts_with("error: cannot reach the endpoint: "), "{refused:?}");
    assert_eq!(proxy.asked(), ["CONNECT abc123.execute-api.eu-west-1.amazonaws.com:443"]);
}

#[test]
fn regression_requests_for_credentials_use_the_proxy_of_the_environment() {
    let world = World::new(QUICK);
    let proxy = Proxy::start();
    world.write("token", "a-token");
    let mut command = world.command(&["list", "--endpoint", ENDPOINT]);
    command.env("AWS_WEB_IDENTITY_TOKEN_FILE", world.path("token")).env("AWS_ROLE_SESSION_NAME", "tuner");
    command
        .env("AWS_ROLE_ARN", "arn:aws:iam::111122223333:role/tuner")
        .env("AWS_EC2_METADATA_DISABLED", "true");
    let refused = ended(command.env("https_proxy", &proxy.address).spawn().unwrap()).with_code(3);
    assert!(refused.err.contains("no AWS credentials to sign with"), "{refused:?}");
    assert_eq!(proxy.asked(), ["CONNECT sts.eu-west-1.amazonaws.com:443"]);
}

#[test]
fn requests_to_this_machine_use_no_proxy() {
    let world = World::new(QUICK);
    let (proxy, stack) = (Proxy::start(), Stack::start(MemoryTable::default()));
    let mut command = world.command(&["list", "--endpoint", &stack.endpoint]);
    for variable in ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"] {
        command.env(variable, &proxy.address);
    }
    ended(command.spawn().unwrap()).with_code(0);
    // The same with TLS, which this stack does not support.
    let address = stack.endpoint.replace("http://", "https://");
    let mut command = world.command(&["list", "--endpoint", &address]);
    ended(command.env("HTTPS_PROXY", &proxy.address).spawn().unwrap()).with_code(3);
    assert_eq!(proxy.asked(), [""; 0]);
}

#[test]
fn an_invalid_proxy_is_rejected_with_its_variable() {
    let world = World::new(QUICK);
    let mut command = world.command(&["list", "--endpoint", ENDPOINT]);
    let address = "socks5://user:secret@127.0.0.1:1";
    let refused = ended(with_key(&mut command).env("ALL_PROXY", address).spawn().unwrap()).with_code(2);
    assert!(refused.err.starts_with("error: invalid proxy address in ALL_PROXY"), "{refused:?}");
    assert!(!refused.err.contains("secret"), "{refused:?}");
}
