//! The pages of tunings with their event streams and logs, in addition to the routes of the API.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::stream::unfold;
use http_api::{Answered, ApiError};
use tokio::sync::{Semaphore, mpsc, watch};
use wire::events::http::{HttpRequest, HttpResponse};

use crate::routes::write;

/// Maximum number of event streams at once. Each has the document of its tuning in memory.
const STREAMS_MAX: usize = 16;
/// Maximum number of events that wait for a slow client.
const EVENTS_WAITING: usize = 4;

/// The pages of a server.
pub trait Pages: Send + Sync + 'static {
    /// The state of one event stream.
    type Stream: Send;

    /// Returns the page with the list of tunings.
    fn index(&self) -> impl Future<Output = Result<String, ApiError>> + Send;
    /// Returns the live page of the tuning `name`, which reads the event stream at `url`.
    fn page(&self, name: &str, url: &str) -> String;
    /// Returns the end of the log of the training job `job` of the tuning `name`, as text.
    fn log(&self, name: &str, job: &str) -> impl Future<Output = Result<String, ApiError>> + Send;
    /// Returns the curves of the metrics other than the objective, as JSON. `jobs` are the training jobs of one trial,
    /// separated by commas.
    fn metrics(&self, name: &str, jobs: &str) -> impl Future<Output = Result<String, ApiError>> + Send;
    /// Opens the event stream of the tuning `name`, or of the list of tunings.
    fn open(&self, name: Option<&str>) -> impl Future<Output = Result<Self::Stream, ApiError>> + Send;
    /// Sends the events of a stream until its client leaves.
    fn send(&self, stream: Self::Stream, to: mpsc::Sender<String>) -> impl Future<Output = ()> + Send;
}

struct Served<P> {
    pages: P,
    streams: Arc<Semaphore>,
    ended: watch::Receiver<()>,
}

/// Returns a router of pages. The streams end when the sender is dropped: a server that shuts down waits for them.
pub fn pages<P: Pages>(pages: P) -> (Router, watch::Sender<()>) {
    let (end, ended) = watch::channel(());
    let served = Arc::new(Served { pages, streams: Arc::new(Semaphore::new(STREAMS_MAX)), ended });
    let router = Router::new()
        .route("/", get(index::<P>))
        .route("/events", get(list_events::<P>))
        .route("/tuning-jobs/{name}/page", get(page::<P>))
        .route("/tuning-jobs/{name}/events", get(events::<P>))
        .route("/tuning-jobs/{name}/logs/{job}", get(log::<P>))
        .route("/tuning-jobs/{name}/metrics/{jobs}", get(metrics::<P>))
        .with_state(served);
    (router, end)
}

async fn index<P: Pages>(State(served): State<Arc<Served<P>>>) -> Response {
    text(served.pages.index().await, "text/html; charset=utf-8")
}

async fn page<P: Pages>(State(served): State<Arc<Served<P>>>, Path(name): Path<String>) -> Response {
    text(Ok(served.pages.page(&name, "events")), "text/html; charset=utf-8")
}

async fn log<P: Pages>(
    State(served): State<Arc<Served<P>>>,
    Path((name, job)): Path<(String, String)>,
) -> Response {
    text(served.pages.log(&name, &job).await, "text/plain; charset=utf-8")
}

async fn metrics<P: Pages>(
    State(served): State<Arc<Served<P>>>,
    Path((name, jobs)): Path<(String, String)>,
) -> Response {
    text(served.pages.metrics(&name, &jobs).await, "application/json")
}

async fn list_events<P: Pages>(State(served): State<Arc<Served<P>>>, headers: HeaderMap) -> Response {
    stream(served, None, &headers).await
}

async fn events<P: Pages>(
    State(served): State<Arc<Served<P>>>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Response {
    stream(served, Some(&name), &headers).await
}

/// Answers with an event stream. A client that accepts JSON only asks whether it would be refused, because an
/// `EventSource` does not show an error response.
async fn stream<P: Pages>(served: Arc<Served<P>>, name: Option<&str>, headers: &HeaderMap) -> Response {
    let Ok(permit) = Arc::clone(&served.streams).try_acquire_owned() else {
        return refused(ApiError::of_host(
            "ServiceUnavailable",
            503,
            format!("{STREAMS_MAX} pages are open, the maximum: close one"),
        ));
    };
    let stream = match served.pages.open(name).await {
        Ok(stream) => stream,
        Err(error) => return refused(error),
    };
    if headers.get("accept").is_some_and(|accepted| accepted == "application/json") {
        return StatusCode::NO_CONTENT.into_response();
    }
    let (to, texts) = mpsc::channel(EVENTS_WAITING);
    tokio::spawn(async move {
        let mut ended = served.ended.clone();
        tokio::select! {
            () = served.pages.send(stream, to) => {}
            // Fails when the sender is dropped.
            _ = ended.changed() => {}
        }
        drop(permit);
    });
    let body = unfold(texts, async |mut texts: mpsc::Receiver<String>| {
        let text = texts.recv().await?;
        Some((Ok::<_, Infallible>(text), texts))
    });
    Response::builder()
        .header("content-type", "text/event-stream")
        .header("cache-control", "no-store")
        .body(Body::from_stream(body))
        .unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
}

fn text(body: Result<String, ApiError>, kind: &str) -> Response {
    match body {
        Err(error) => refused(error),
        // A browser may not read a log as another type than text.
        Ok(body) => write(
            HttpResponse::new(200, body)
                .header("content-type", kind)
                .header("cache-control", "no-store")
                .header("x-content-type-options", "nosniff"),
        ),
    }
}

fn refused(error: ApiError) -> Response {
    write(Answered::refused(&HttpRequest::default(), error).response)
}
