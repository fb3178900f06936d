//! The bounds, by what a client on a plain socket sees.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream as Plain};

use tokio::sync::oneshot;
use tokio::task::{JoinHandle, spawn_blocking};

use super::*;

/// A server whose answer says what came: the path and the body's length, or why there is none.
struct Running {
    address: SocketAddr,
    end: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

async fn start(limits: Limits) -> Running {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (end, ended) = oneshot::channel();
    let handler = |request: Request| async move {
        let body = request.body().as_ref().map(Bytes::len);
        Response::new(format!("{} {body:?}", request.uri().path()).into())
    };
    let until = async { ended.await.unwrap_or(()) };
    let task = tokio::spawn(serve(listener, limits, handler, until));
    Running { address, end, task }
}

/// All that comes back for `sent`, to the end of the connection.
async fn exchange(address: SocketAddr, sent: &'static str) -> String {
    let exchange = spawn_blocking(move || {
        let mut stream = Plain::connect(address).unwrap();
        stream.write_all(sent.as_bytes()).unwrap();
        let mut text = String::new();
        // A reset after the answer is an end too.
        let _ = stream.read_to_string(&mut text);
        text
    });
    exchange.await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_answered_whole_and_the_next_on_the_same_connection() {
    let server = start(Limits::default()).await;
    let two = "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc\
               GET /b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let text = exchange(server.address, two).await;
    assert!(text.contains("/a Ok(3)") && text.ends_with("/b Ok(0)"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_body_is_refused_by_what_its_head_says_and_by_what_comes() {
    let server = start(Limits { body_bytes: 8, ..Limits::default() }).await;
    let fits = "POST /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 8\r\n\r\n12345678";
    assert!(exchange(server.address, fits).await.ends_with("/a Ok(8)"));
    let said = "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000\r\n\r\n";
    assert!(exchange(server.address, said).await.contains("/a Err(TooLarge)"));
    let came = "POST /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n123456789\r\n0\r\n\r\n";
    assert!(exchange(server.address, came).await.contains("/a Err(TooLarge)"));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_go_on_is_not_waited_for() {
    let short = Duration::from_millis(50);
    let server = start(Limits { head_time: short, body_time: short, ..Limits::default() }).await;
    let half_a_body = "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\na";
    assert!(exchange(server.address, half_a_body).await.contains("/a Err(TooSlow)"));
    assert!(!exchange(server.address, "POST /a HTTP/1.1\r\nHo").await.contains("200"), "half a head");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_too_many_waits_for_room() {
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
async fn it_ends_when_told_though_a_connection_is_idle() {
    let server = start(Limits::default()).await;
    let idle = Plain::connect(server.address).unwrap();
    server.end.send(()).unwrap();
    server.task.await.unwrap();
    assert!(Plain::connect(server.address).is_err(), "nobody listens any more");
    drop(idle);
}
