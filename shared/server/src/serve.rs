//! Serves an axum router over HTTP/1.1 within [`Limits`] on sizes, times, connections and requests.
//!
//! `axum::serve` has no time-outs and no connection limit, so the router runs under hyper-util's connection builder.
//! The tower layers for concurrency and time-outs do not fit either: they release a request as soon as its client hangs
//! up. This server always completes a request whose body has arrived; a client that hangs up only loses the response.
//!
//! Needs a tokio runtime with time and I/O. Does not authenticate its clients.

mod patience;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::serve::{Listener, ListenerExt};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::io::join;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use patience::Patient;

/// How long a shutdown waits for running requests.
const SHUTDOWN_TIME: Duration = Duration::from_secs(5);
/// The maximum size of a request's head, and of the read buffer of a connection.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// The whole body of a request. Handlers extract it as `Extension<WholeBody>`.
pub type WholeBody = Result<Bytes, Unread>;

/// The limits of a server. Request bodies use at most `requests` times `body_bytes` of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The maximum size of a request's body, in bytes.
    pub body_bytes: usize,
    /// The maximum number of open connections. Further connections wait to be accepted.
    pub connections: usize,
    /// The maximum number of requests whose bodies are read or that are performed. Further requests wait.
    pub requests: usize,
    /// The time-out for the head of a request, and for an idle connection.
    pub head_time: Duration,
    /// The time-out for a whole request body.
    pub body_time: Duration,
    /// The time-out for the client to read a whole answer.
    pub answer_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 1024 * 1024,
            connections: 256,
            requests: 64,
            head_time: Duration::from_secs(30),
            body_time: Duration::from_secs(30),
            answer_time: Duration::from_secs(30),
        }
    }
}

/// Why a request's body was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unread {
    /// It is larger than [`Limits::body_bytes`].
    TooLarge,
    /// It did not arrive within [`Limits::body_time`].
    TooSlow,
    /// The connection broke, or the body does not match its head.
    Broken,
}

/// Serves `router` until `until` completes. Then accepts no connection and waits up to 5 seconds for running requests.
pub async fn serve(listener: TcpListener, limits: Limits, router: Router, until: impl Future<Output = ()>) {
    let requests = Arc::new(Semaphore::new(limits.requests));
    let connections = Arc::new(Semaphore::new(limits.connections));
    let service = router.layer(from_fn_with_state((limits, Arc::clone(&requests)), limit_request));
    let mut builder = Builder::new(TokioExecutor::new()).http1_only();
    let timer = TokioTimer::new();
    builder.http1().timer(timer).header_read_timeout(limits.head_time).max_buf_size(HEAD_BYTES_MAX);
    let graceful = GracefulShutdown::new();
    // Answers are small, so delaying their last packet brings nothing.
    let mut listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    let mut until = pin!(until);
    loop {
        let accept = async {
            // The semaphore is never closed.
            let permit = Arc::clone(&connections).acquire_owned().await.ok();
            (listener.accept().await.0, permit)
        };
        let (stream, permit) = tokio::select! {
            biased;
            () = &mut until => break,
            accepted = accept => accepted,
        };
        let (reader, writer) = stream.into_split();
        let stream = TokioIo::new(join(reader, Patient::new(writer, limits.answer_time)));
        let connection = builder.serve_connection(stream, TowerToHyperService::new(service.clone()));
        let connection = graceful.watch(connection.into_owned());
        tokio::spawn(async move {
            // A broken connection concerns its client only.
            let _ = connection.await;
            drop(permit);
        });
    }
    drop(listener);
    let all = u32::try_from(limits.requests).unwrap_or(u32::MAX);
    let _ = timeout(SHUTDOWN_TIME, async {
        graceful.shutdown().await;
        // Requests whose clients have hung up belong to no connection.
        let _ = requests.acquire_many(all).await;
    })
    .await;
}

/// Reads the body of a request within the limits, then performs the request to its end.
async fn limit_request(
    State((limits, requests)): State<(Limits, Arc<Semaphore>)>,
    request: Request,
    next: Next,
) -> Response {
    // The semaphore is never closed.
    let permit = requests.acquire_owned().await.ok();
    let (mut head, body) = request.into_parts();
    head.extensions.insert(read_body(body, limits).await);
    let request = Request::from_parts(head, Body::empty());
    // A client that hangs up ends the task of its connection, but not this one.
    let answer = tokio::spawn(async move {
        let answer = next.run(request).await;
        drop(permit);
        answer
    });
    answer.await.unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
}

async fn read_body(body: Body, limits: Limits) -> WholeBody {
    // The declared length, so that a body that is too large is refused before it arrives.
    if usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX) > limits.body_bytes {
        return Err(Unread::TooLarge);
    }
    match timeout(limits.body_time, Limited::new(body, limits.body_bytes).collect()).await {
        Err(_) => Err(Unread::TooSlow),
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Unread::TooLarge),
        Ok(Err(_)) => Err(Unread::Broken),
    }
}

#[cfg(test)]
mod tests;
