//! What goes by a proxy, and what does not.

use std::net::TcpListener;
use std::process::Command;
use std::sync::{Arc, Mutex};

use service::memory::MemoryTable;
use stack_test::{Stack, response};

use crate::world::{QUICK, World, ended};

const ENDPOINT: &str = "https://abc123.execute-api.eu-west-1.amazonaws.com";

/// A proxy that lets nobody through, and whom it was asked for.
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

    /// What it was asked, each once.
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
fn regression_a_stack_is_reached_by_the_proxy_of_the_environment() {
    let world = World::new(QUICK);
    let proxy = Proxy::start();
    let mut command = world.command(&["list", "--endpoint", ENDPOINT]);
    let refused = ended(with_key(&mut command).env("HTTPS_PROXY", &proxy.address).spawn().unwrap());
    let refused = refused.with_code(3);
    assert!(refused.err.starts_with("error: cannot reach the endpoint: "), "{refused:?}");
    assert_eq!(proxy.asked(), ["CONNECT abc123.execute-api.eu-west-1.amazonaws.com:443"]);
}

#[test]
fn regression_credentials_are_asked_for_by_the_proxy_of_the_environment() {
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
fn this_machine_is_reached_without_a_proxy() {
    let world = World::new(QUICK);
    let (proxy, stack) = (Proxy::start(), Stack::start(MemoryTable::default()));
    let mut command = world.command(&["list", "--endpoint", &stack.endpoint]);
    for variable in ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"] {
        command.env(variable, &proxy.address);
    }
    ended(command.spawn().unwrap()).with_code(0);
    // Over TLS too, which this stack does not speak.
    let address = stack.endpoint.replace("http://", "https://");
    let mut command = world.command(&["list", "--endpoint", &address]);
    ended(command.env("HTTPS_PROXY", &proxy.address).spawn().unwrap()).with_code(3);
    assert_eq!(proxy.asked(), [""; 0]);
}

#[test]
fn a_proxy_that_is_none_is_refused_by_its_name() {
    let world = World::new(QUICK);
    let mut command = world.command(&["list", "--endpoint", ENDPOINT]);
    let address = "socks5://user:secret@127.0.0.1:1";
    let refused = ended(with_key(&mut command).env("ALL_PROXY", address).spawn().unwrap()).with_code(2);
    assert!(refused.err.starts_with("error: ALL_PROXY is no address of a proxy"), "{refused:?}");
    assert!(!refused.err.contains("secret"), "{refused:?}");
}
