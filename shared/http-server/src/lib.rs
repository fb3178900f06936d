//! An HTTP/1.1 server with bounds: on the size of a body, on the time that a request may take to arrive and its answer to be
//! taken, on connections and on requests at work.
//!
//! On hyper, the library under the AWS SDKs, since a server of a few paths needs no framework, and what a framework would
//! leave to do is just this: the bounds. Bodies are whole on both sides. Assumes a tokio runtime with time and I/O. Must
//! never hold more than its bounds allow, whoever calls; it does not know who that is. Must never give up in the middle what
//! a whole request asks for: who hangs up loses the answer, nothing else.
#![warn(missing_docs)]

mod patience;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinError;
use tokio::time::{sleep, timeout};

use patience::Patient;

/// How long a shutdown waits for requests at work.
const CLOSING_TIME: Duration = Duration::from_secs(5);
/// How long no connection is taken after one could not be, for want of file descriptors above all.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// The head of a request, and what is read ahead.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// A request with its whole body, or why there is none.
pub type Request = http::Request<Result<Bytes, Unread>>;
/// An answer with its whole body.
pub type Response = http::Response<Bytes>;

/// The bounds. What is kept of requests in memory is at most `requests` times `body_bytes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Largest body.
    pub body_bytes: usize,
    /// Connections at once; others wait to be taken.
    pub connections: usize,
    /// Requests at once, their bodies' arrival included; others wait.
    pub requests: usize,
    /// For the head of a request to arrive; so long a connection may also be idle.
    pub head_time: Duration,
    /// For a body to arrive.
    pub body_time: Duration,
    /// For an answer to be taken.
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

/// Why a body was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unread {
    /// It is larger than [`Limits::body_bytes`].
    TooLarge,
    /// It did not arrive within [`Limits::body_time`].
    TooSlow,
    /// The connection broke, or it is not what its head says.
    Broken,
}

/// Answers requests by `handler` until `until`; then takes no more, and waits a little for those at work.
pub async fn serve<H, F>(listener: TcpListener, limits: Limits, handler: H, until: impl Future<Output = ()>)
where
    H: Fn(Request) -> F + Send + Sync + 'static,
    F: Future<Output = Response> + Send + 'static,
{
    let requests = Arc::new(Semaphore::new(limits.requests));
    let server = Arc::new(Server { requests: Arc::clone(&requests), limits, handler });
    let connections = Arc::new(Semaphore::new(limits.connections));
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(limits.head_time).max_buf_size(HEAD_BYTES_MAX);
    let graceful = GracefulShutdown::new();
    let mut until = pin!(until);
    loop {
        let (stream, room) = tokio::select! {
            biased;
            () = &mut until => break,
            accepted = accept(&listener, &connections) => accepted,
        };
        let server = Arc::clone(&server);
        let service = service_fn(move |request| {
            let server = Arc::clone(&server);
            async move { Ok::<_, JoinError>(server.answer(request).await?.map(Full::new)) }
        });
        let stream = TokioIo::new(Patient::new(stream, limits.answer_time));
        let connection = graceful.watch(builder.serve_connection(stream, service));
        tokio::spawn(async move {
            // What breaks it has told whom it concerns: the other side.
            let _ = connection.await;
            drop(room);
        });
    }
    drop(listener);
    // Whose client has hung up belongs to no connection.
    let all = u32::try_from(limits.requests).unwrap_or(u32::MAX);
    let _ = timeout(CLOSING_TIME, async {
        graceful.shutdown().await;
        let _ = requests.acquire_many(all).await;
    })
    .await;
}

/// The next connection, once there is room for it.
async fn accept(
    listener: &TcpListener,
    connections: &Arc<Semaphore>,
) -> (TcpStream, Option<OwnedSemaphorePermit>) {
    // Never closed.
    let room = Arc::clone(connections).acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // Answers are small: nothing is won by waiting for more.
                let _ = stream.set_nodelay(true);
                return (stream, room);
            }
            Err(_) => sleep(ACCEPT_PAUSE).await,
        }
    }
}

struct Server<H> {
    limits: Limits,
    requests: Arc<Semaphore>,
    handler: H,
}

impl<H, F> Server<H>
where
    H: Fn(Request) -> F,
    F: Future<Output = Response> + Send + 'static,
{
    /// The answer; an error if the handler panicked, which closes the connection.
    async fn answer(&self, request: http::Request<Incoming>) -> Result<Response, JoinError> {
        // Never closed.
        let room = Arc::clone(&self.requests).acquire_owned().await.ok();
        let (head, body) = request.into_parts();
        let body = self.read(body).await;
        let work = (self.handler)(Request::from_parts(head, body));
        // A task of its own: a client that hangs up ends the one of its connection, wherever that waits.
        tokio::spawn(async move {
            let answer = work.await;
            drop(room);
            answer
        })
        .await
    }

    async fn read(&self, body: Incoming) -> Result<Bytes, Unread> {
        // What its head says need not be waited for.
        let said = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
        if said > self.limits.body_bytes {
            return Err(Unread::TooLarge);
        }
        let whole = Limited::new(body, self.limits.body_bytes).collect();
        match timeout(self.limits.body_time, whole).await {
            Err(_) => Err(Unread::TooSlow),
            Ok(Ok(whole)) => Ok(whole.to_bytes()),
            Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Unread::TooLarge),
            Ok(Err(_)) => Err(Unread::Broken),
        }
    }
}

#[cfg(test)]
mod tests;
