//! Tests the limits as a client on a plain socket observes them.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream as Plain};

use axum::Extension;
use axum::http::Uri;
use axum::routing::get;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::sleep;

use super::*;

/// A running server.
struct Running {
    address: SocketAddr,
    end: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

/// Starts a server that answers with the path and the body's length, or why the body was not read.
async fn start(limits: Limits) -> Running {
    let echo = |uri: Uri, Extension(body): Extension<WholeBody>| async move {
        format!("{} {:?}", uri.path(), body.map(|body| body.len()))
    };
    start_with(limits, Router::new().fallback(echo)).await
}

async fn start_with(limits: Limits, router: Router) -> Running {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (end, ended) = oneshot::channel();
    let until = async { ended.await.unwrap_or(()) };
    let task = tokio::spawn(serve(listener, limits, router, until));
    Running { address, end, task }
}

/// Sends `sent` on a new connection and returns everything that the server sends until it closes the connection.
async fn exchange(address: SocketAddr, sent: &'static str) -> String {
    let exchange = spawn_blocking(move || {
        let mut stream = Plain::connect(address).unwrap();
        stream.write_all(sent.as_bytes()).unwrap();
        let mut text = String::new();
        // The server may reset the connection after its answer.
        let _ = stream.read_to_string(&mut text);
        text
    });
    exchange.await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_requests_on_one_connection_are_answered() {
    let server = start(Limits::default()).await;
    let two = "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc\
               GET /b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let text = exchange(server.address, two).await;
    assert!(text.contains("/a Ok(3)") && text.ends_with("/b Ok(0)"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_body_is_refused_by_its_declared_length_and_by_its_size() {
    let server = start(Limits { body_bytes: 8, ..Limits::default() }).await;
    let fits = "POST /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 8\r\n\r\n12345678";
    assert!(exchange(server.address, fits).await.ends_with("/a Ok(8)"));
    let declared = "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000\r\n\r\n";
    assert!(exchange(server.address, declared).await.contains("/a Err(TooLarge)"));
    let chunked = "POST /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n123456789\r\n0\r\n\r\n";
    assert!(exchange(server.address, chunked).await.contains("/a Err(TooLarge)"));
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_heads_and_bodies_time_out() {
    let short = Duration::from_millis(50);
    let server = start(Limits { head_time: short, body_time: short, ..Limits::default() }).await;
    let half_a_body = "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\na";
    assert!(exchange(server.address, half_a_body).await.contains("/a Err(TooSlow)"));
    assert!(!exchange(server.address, "POST /a HTTP/1.1\r\nHo").await.contains("200"), "half a head");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_above_the_limit_waits() {
    let server = start(Limits { connections: 1, ..Limits::default() }).await;
    let first = Plain::connect(server.address).unwrap();
    let waiting =
        tokio::spawn(exchange(server.address, "GET /b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
    sleep(Duration::from_millis(50)).await;
    assert!(!waiting.is_finished());
    drop(first);
    assert!(waiting.await.unwrap().ends_with("/b Ok(0)"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_does_not_wait_for_idle_connections() {
    let server = start(Limits::default()).await;
    let idle = Plain::connect(server.address).unwrap();
    server.end.send(()).unwrap();
    server.task.await.unwrap();
    assert!(Plain::connect(server.address).is_err(), "the listener is closed");
    drop(idle);
}

/// Reports how a request to `/slow` ended: completed, or dropped before.
struct Outcome(mpsc::UnboundedSender<&'static str>, &'static str);

impl Drop for Outcome {
    fn drop(&mut self) {
        let _ = self.0.send(self.1);
    }
}

/// Starts a server with a request for `/slow` whose client has hung up. Returns also the progress of the request, and
/// the signal that it waits for. `/b` answers at once.
async fn start_abandoned(limits: Limits) -> (Running, mpsc::UnboundedReceiver<&'static str>, Arc<Notify>) {
    let (report, mut progress) = mpsc::unbounded_channel();
    let proceed = Arc::new(Notify::new());
    let signal = Arc::clone(&proceed);
    let slow = move || {
        let (report, proceed) = (report.clone(), Arc::clone(&signal));
        async move {
            let mut outcome = Outcome(report.clone(), "dropped");
            let _ = report.send("started");
            proceed.notified().await;
            outcome.1 = "completed";
            "answered"
        }
    };
    let router = Router::new().route("/slow", get(slow)).route("/b", get("answered"));
    let server = start_with(limits, router).await;
    let mut client = Plain::connect(server.address).unwrap();
    client.write_all(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    assert_eq!(progress.recv().await, Some("started"));
    drop(client);
    (server, progress, proceed)
}

const B: &str = "GET /b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

#[tokio::test(flavor = "multi_thread")]
async fn regression_a_request_is_performed_after_its_client_hangs_up() {
    let limits = Limits { connections: 1, ..Limits::default() };
    let (server, mut progress, proceed) = start_abandoned(limits).await;
    // Only one connection is allowed, so the first one is closed.
    assert!(exchange(server.address, B).await.ends_with("answered"));
    proceed.notify_one();
    assert_eq!(progress.recv().await, Some("completed"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_waits_for_requests_whose_clients_hung_up() {
    let limits = Limits { connections: 1, ..Limits::default() };
    let (server, mut progress, proceed) = start_abandoned(limits).await;
    assert!(exchange(server.address, B).await.ends_with("answered"));
    server.end.send(()).unwrap();
    sleep(Duration::from_millis(50)).await;
    assert!(!server.task.is_finished());
    proceed.notify_one();
    server.task.await.unwrap();
    assert_eq!(progress.recv().await, Some("completed"));
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_whose_clients_hung_up_count_against_the_limit() {
    let limits = Limits { requests: 1, ..Limits::default() };
    let (server, _progress, proceed) = start_abandoned(limits).await;
    let waiting = tokio::spawn(exchange(server.address, B));
    sleep(Duration::from_millis(50)).await;
    assert!(!waiting.is_finished());
    proceed.notify_one();
    assert!(waiting.await.unwrap().ends_with("answered"));
}

#[tokio::test(flavor = "multi_thread")]
async fn regression_a_client_that_does_not_read_its_answer_loses_its_connection() {
    // More than the socket buffers of both sides hold.
    const LARGE: usize = 64 * 1024 * 1024;
    let limits = Limits { connections: 1, answer_time: Duration::from_millis(50), ..Limits::default() };
    let router = Router::new().route("/large", get("x".repeat(LARGE))).route("/b", get("x"));
    let server = start_with(limits, router).await;
    let mut silent = Plain::connect(server.address).unwrap();
    silent.write_all(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let next = timeout(Duration::from_secs(30), exchange(server.address, B)).await;
    assert!(next.expect("the next connection is accepted").ends_with('x'));
    drop(silent);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_of_a_handler_is_answered_with_500_and_the_server_continues() {
    async fn panics() {
        panic!("as the test wants");
    }
    let router = Router::new().route("/a", get(panics)).route("/b", get("answered"));
    let server = start_with(Limits::default(), router).await;
    let a = "GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    assert!(exchange(server.address, a).await.starts_with("HTTP/1.1 500 "));
    assert!(exchange(server.address, B).await.ends_with("answered"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_can_be_added_to_the_routes_of_the_api() {
    use wire::events::http::{HttpRequest, HttpResponse};

    let api = crate::routes(|request: HttpRequest| async move {
        let query: Vec<String> =
            request.query.iter().map(|(name, value)| format!("{name}:{value}")).collect();
        let text = format!("api {} {} {}", request.method, request.path, query.join(";"));
        HttpResponse::new(200, text)
    });
    let pages = Router::new().route("/", get("page"));
    let hosts = crate::Hosts::of("127.0.0.1", "127.0.0.1:80".parse().unwrap());
    let server = start_with(Limits::default(), crate::local_only(api.merge(pages), hosts)).await;
    for (line, expected) in [
        ("GET / ", "page"),
        ("POST / ", "api POST / "),
        ("DELETE / ", "api DELETE / "),
        ("GET /a%20b?x=1%2C2&x=3+4&y ", "api GET /a%20b x:1,2,3 4;y:"),
    ] {
        let sent = format!("{line}HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let text = exchange(server.address, sent.leak()).await;
        assert!(text.ends_with(&format!("\r\n\r\n{expected}")), "{line}: {text}");
    }
    let foreign = "GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
    let text = exchange(server.address, foreign).await;
    assert!(text.starts_with("HTTP/1.1 403"), "{text}");
}
