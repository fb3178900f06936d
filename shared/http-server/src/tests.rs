//! The bounds, by what a client on a plain socket sees.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream as Plain};

use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::{JoinHandle, spawn_blocking};

use super::*;

/// A server whose answer says what came: the path and the body's length, or why there is none.
struct Running {
    address: SocketAddr,
    end: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

async fn start(limits: Limits) -> Running {
    start_with(limits, |request: Request| async move {
        let body = request.body().as_ref().map(Bytes::len);
        Response::new(format!("{} {body:?}", request.uri().path()).into())
    })
    .await
}

async fn start_with<H, F>(limits: Limits, handler: H) -> Running
where
    H: Fn(Request) -> F + Send + Sync + 'static,
    F: Future<Output = Response> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (end, ended) = oneshot::channel();
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

/// Tells how a request at `/slow` ended: done, or given up before.
struct Told(mpsc::UnboundedSender<&'static str>, &'static str);

impl Drop for Told {
    fn drop(&mut self) {
        let _ = self.0.send(self.1);
    }
}

/// A server that answers only when it may go on, but for `/b`; what it does is told.
async fn start_slow(limits: Limits, go_on: &Arc<Notify>) -> (Running, mpsc::UnboundedReceiver<&'static str>) {
    let (tell, told) = mpsc::unbounded_channel();
    let go_on = Arc::clone(go_on);
    let handler = move |request: Request| {
        let (tell, go_on) = (tell.clone(), Arc::clone(&go_on));
        async move {
            if request.uri().path() == "/slow" {
                let mut end = Told(tell.clone(), "given up");
                let _ = tell.send("at work");
                go_on.notified().await;
                end.1 = "done";
            }
            Response::new(Bytes::from_static(b"answered"))
        }
    };
    (start_with(limits, handler).await, told)
}

const SLOW: &[u8] = b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n";
const B: &str = "GET /b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

#[tokio::test(flavor = "multi_thread")]
async fn regression_what_a_client_that_hung_up_asked_for_is_done() {
    let go_on = Arc::new(Notify::new());
    let (server, mut told) = start_slow(Limits { connections: 1, ..Limits::default() }, &go_on).await;
    let mut client = Plain::connect(server.address).unwrap();
    client.write_all(SLOW).unwrap();
    assert_eq!(told.recv().await, Some("at work"));
    drop(client);
    // There is room for one connection: that of the client is gone.
    assert!(exchange(server.address, B).await.ends_with("answered"));
    go_on.notify_one();
    assert_eq!(told.recv().await, Some("done"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_waits_for_what_a_client_that_hung_up_asked_for() {
    let go_on = Arc::new(Notify::new());
    let (server, mut told) = start_slow(Limits { connections: 1, ..Limits::default() }, &go_on).await;
    let mut client = Plain::connect(server.address).unwrap();
    client.write_all(SLOW).unwrap();
    assert_eq!(told.recv().await, Some("at work"));
    drop(client);
    assert!(exchange(server.address, B).await.ends_with("answered"));
    server.end.send(()).unwrap();
    sleep(Duration::from_millis(50)).await;
    assert!(!server.task.is_finished());
    go_on.notify_one();
    server.task.await.unwrap();
    assert_eq!(told.recv().await, Some("done"));
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_clients_that_hung_up_count_until_they_are_done() {
    let go_on = Arc::new(Notify::new());
    let (server, mut told) = start_slow(Limits { requests: 1, ..Limits::default() }, &go_on).await;
    let mut client = Plain::connect(server.address).unwrap();
    client.write_all(SLOW).unwrap();
    assert_eq!(told.recv().await, Some("at work"));
    drop(client);
    let waiting = tokio::spawn(exchange(server.address, B));
    sleep(Duration::from_millis(50)).await;
    assert!(!waiting.is_finished());
    go_on.notify_one();
    assert!(waiting.await.unwrap().ends_with("answered"));
}

#[tokio::test(flavor = "multi_thread")]
async fn regression_who_does_not_read_its_answer_does_not_keep_its_connection() {
    // More than the sockets of both sides hold.
    const LARGE: usize = 64 * 1024 * 1024;
    let limits = Limits { connections: 1, answer_time: Duration::from_millis(50), ..Limits::default() };
    let handler = |request: Request| async move {
        let length = if request.uri().path() == "/b" { 1 } else { LARGE };
        Response::new(Bytes::from(vec![b'x'; length]))
    };
    let server = start_with(limits, handler).await;
    let mut deaf = Plain::connect(server.address).unwrap();
    deaf.write_all(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let next = timeout(Duration::from_secs(30), exchange(server.address, B)).await;
    assert!(next.expect("room for the next connection").ends_with('x'));
    drop(deaf);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_panics_closes_its_connection_alone() {
    let handler = |request: Request| async move {
        assert_eq!(request.uri().path(), "/b", "as a handler that panics");
        Response::new(Bytes::from_static(b"answered"))
    };
    let server = start_with(Limits::default(), handler).await;
    assert_eq!(exchange(server.address, "GET /a HTTP/1.1\r\nHost: x\r\n\r\n").await, "");
    assert!(exchange(server.address, B).await.ends_with("answered"));
}
