//! The pages of `serve` and `proxy`: the list of tunings, and the live page of each tuning, with the last lines of its
//! logs.

use std::collections::BTreeMap;
use std::time::Duration;

use api_client::ClientError;
use http_api::ApiError;
use report::html::List;
use report::{Delta, Head, Live, html};
use serde_json::json;
use server::Pages;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tuning::step::Step;
use use_cases::lookup;
use wire::describe::TuningSummary;

use crate::failure::Failure;
use crate::location::Location;
use crate::logs::end as logs;
use crate::metrics::curves;
use crate::output::print_err;
use crate::stored_tuning::StoredTuning;
use crate::text::{or_dash, usd, utc, value};
use crate::tunings::{Home, Tunings};

/// How often a stream looks for new steps on this machine.
const LOOK_LOCAL: Duration = Duration::from_millis(500);
/// How often a stream looks for new steps on a stack.
const LOOK_STACK: Duration = Duration::from_secs(2);
/// How often a stream of an ended tuning looks for later bills.
const LOOK_ENDED: Duration = Duration::from_secs(10);
/// How often the stream of the list looks for changes.
const LOOK_LIST: Duration = Duration::from_secs(3);
/// Number of looks without a change after which a stream sends a comment. It shows that the connection is open.
const QUIET_LOOKS: u32 = 20;
/// Maximum number of tunings in the list.
const LISTED: usize = 100;

/// Maximum number of jobs of a trial whose metrics a page reads at once.
const JOBS_MAX: usize = 100;
/// Maximum number of values of a curve on a page.
const POINTS_MAX: usize = 1_000;

pub(crate) enum Stream {
    List,
    Tuning(Box<Followed>),
}

pub(crate) struct Followed {
    live: Live,
    name: String,
    id: String,
}

impl Pages for Tunings {
    type Stream = Stream;

    async fn index(&self) -> Result<String, ApiError> {
        let heads = ["Name", "Status", "Best value", "Training jobs", "Cost", "Submitted"];
        let empty = "There are no tunings yet: submit one with hyperband submit.";
        Ok(html::list("Tunings", &heads, &self.list().await?, empty, "/events"))
    }

    fn page(&self, name: &str, url: &str) -> String {
        html::live(name, url)
    }

    async fn log(&self, name: &str, job: &str) -> Result<String, ApiError> {
        let found = self.client.training_job(name, job).await.map_err(|error| of_client(&error))?.job;
        let described = self.client.describe(name).await.map_err(|error| of_client(&error))?;
        let (text, place) = match &self.home {
            Home::Folder(data) => {
                let text = logs::of_folder(&data.training_jobs(), &described, &found.name).await;
                (text, "the data directory")
            }
            Home::Stack(stack) => (logs::of_stack(stack, &described, &found).await, "CloudWatch Logs"),
        };
        let text = text.map_err(|failure| of_failure(&failure))?;
        if text.is_empty() {
            let message = format!("{place} has no line of the training job {job}");
            return Err(ApiError::of_host("ResourceNotFound", 404, message));
        }
        Ok(text)
    }

    async fn metrics(&self, name: &str, job_names: &str) -> Result<String, ApiError> {
        let Home::Folder(data) = &self.home else {
            let message = "the metrics of a stack's training jobs are in CloudWatch, in the namespace \
                           /aws/sagemaker/TrainingJobs";
            return Err(ApiError::of_host("ResourceNotFound", 404, message));
        };
        let names: Vec<&str> = job_names.split(',').collect();
        if names.len() > JOBS_MAX {
            return Err(ApiError::of_host(
                "ValidationException",
                400,
                format!("too many training jobs: expected at most {JOBS_MAX}, separated by commas"),
            ));
        }
        // The names of a path of the data directory come from the table.
        let mut found = Vec::new();
        for job in &names {
            let detail = self.client.training_job(name, job).await;
            found.push(detail.map_err(|error| of_client(&error))?.job.name);
        }
        let id = lookup::find(&data.store, name).await?.id;
        let loaded = data.store.load(&id).await?.ok_or_else(|| unknown(name))?;
        let jobs = data.training_jobs();
        let read = spawn_blocking(move || curves(&jobs, &loaded, &found)).await;
        let curves = read.map_err(|error| unavailable(&error))?.map_err(|error| unavailable(&error))?;
        let thinned: BTreeMap<_, Vec<_>> =
            curves.into_iter().map(|(name, curve)| (name, thinned(curve))).collect();
        Ok(json!(thinned).to_string())
    }

    async fn open(&self, name: Option<&str>) -> Result<Stream, ApiError> {
        match name {
            None => Ok(Stream::List),
            Some(name) => Box::pin(self.follow(name)).await.map(Box::new).map(Stream::Tuning),
        }
    }

    async fn send(&self, stream: Stream, to: mpsc::Sender<String>) {
        match stream {
            Stream::List => self.send_list(&to).await,
            Stream::Tuning(followed) => self.send_tuning(*followed, &to).await,
        }
    }
}

impl Tunings {
    async fn follow(&self, name: &str) -> Result<Followed, ApiError> {
        let described = self.client.describe(name).await.map_err(|error| of_client(&error))?;
        let opened = StoredTuning::open_described(self, described).await;
        let StoredTuning { store, row, place, .. } =
            opened.map_err(|failure| internal(&failure.message()))?;
        let live = Box::pin(Live::open(&store, &place, &row.id)).await?;
        let mut live = live.ok_or_else(|| unknown(name))?;
        if let Home::Stack(_) = &self.home {
            // The copied rows do not say where the models are. After them, so that no number is older.
            let described = self.client.describe(name).await.map_err(|error| of_client(&error))?;
            live.advance([], &described);
        }
        Ok(Followed { live, name: row.name, id: row.id })
    }

    async fn send_tuning(&self, mut followed: Followed, to: &mpsc::Sender<String>) {
        let mut quiet = Quiet::default();
        let mut document = followed.live.document();
        show_model(&mut document.head);
        let mut text = html::document_event(&document);
        loop {
            if !text.is_empty() && to.send(std::mem::take(&mut text)).await.is_err() {
                return;
            }
            if followed.live.is_settled() {
                return;
            }
            let look = if followed.live.is_ended() { LOOK_ENDED } else { self.poll_interval() };
            if !waited(look, to).await {
                return;
            }
            match self.changes(&mut followed).await {
                Ok(delta) => {
                    text = quiet.or_comment(delta.map(|mut delta| {
                        show_model(&mut delta.head);
                        html::delta_event(&delta)
                    }));
                }
                // The page connects again by itself, and shows that it does.
                Err(_) => return,
            }
        }
    }

    async fn send_list(&self, to: &mpsc::Sender<String>) {
        let (mut quiet, mut known) = (Quiet::default(), None);
        loop {
            let Ok(list) = self.list().await else { return };
            let changed = (known.as_ref() != Some(&list)).then(|| html::list_event(&list));
            known = Some(list);
            let text = quiet.or_comment(changed);
            if !text.is_empty() && to.send(text).await.is_err() || !waited(LOOK_LIST, to).await {
                return;
            }
        }
    }

    /// Returns how often a stream looks for new steps.
    fn poll_interval(&self) -> Duration {
        match &self.home {
            Home::Folder(_) => LOOK_LOCAL,
            Home::Stack(_) => LOOK_STACK,
        }
    }

    /// Returns the newest tunings.
    async fn list(&self) -> Result<List, ApiError> {
        let page = self.client.newest().await.map_err(|error| of_client(&error))?;
        let rows: Vec<_> = page.tunings.iter().map(row).collect();
        let note =
            if rows.len() < LISTED { "" } else { "The newest 100 tunings. `hyperband list` shows all." };
        Ok(List { rows, note })
    }

    /// Returns the changes of a document since the last look; `None` if there are none.
    async fn changes(&self, stream: &mut Followed) -> Result<Option<Delta>, ApiError> {
        let mut steps: Vec<Step> = Vec::new();
        let mut after = stream.live.step();
        loop {
            let page = self.client.decisions::<Step>(&stream.name, after).await;
            let page = page.map_err(|error| of_client(&error))?;
            if page.tuning_job_id != stream.id {
                return Err(unknown(&stream.id));
            }
            steps.extend(page.steps);
            match steps.last() {
                Some(last) if page.next_token.is_some() && last.n > after => after = last.n,
                _ => break,
            }
        }
        if steps.is_empty() {
            return Ok(None);
        }
        let described = self.client.describe(&stream.name).await.map_err(|error| of_client(&error))?;
        Ok(Some(stream.live.advance(&steps, &described)))
    }
}

/// Returns some of the points, with the first and the last one.
fn thinned(curve: BTreeMap<u64, f64>) -> Vec<(u64, f64)> {
    let step = curve.len().div_ceil(POINTS_MAX).max(1);
    let last = curve.len().saturating_sub(1);
    let points = curve.into_iter().enumerate();
    points.filter(|(place, _)| place.is_multiple_of(step) || *place == last).map(|(_, point)| point).collect()
}

/// Shows the folder of the best model, if it is on this machine and has files.
fn show_model(head: &mut Head) {
    head.model = head.model.take().map(|uri| Location::of_uri(&uri).text());
}

/// Waits for the next look of a stream. Returns `false` if its client has left.
async fn waited(span: Duration, to: &mpsc::Sender<String>) -> bool {
    tokio::select! {
        () = sleep(span) => true,
        () = to.closed() => false,
    }
}

/// Counts the looks without a change.
#[derive(Default)]
struct Quiet(u32);

impl Quiet {
    /// Returns an event, or now and then a comment, which shows that the connection is open, or an empty text.
    fn or_comment(&mut self, event: Option<String>) -> String {
        self.0 = if event.is_some() { 0 } else { self.0.saturating_add(1) };
        let comment = if self.0 > 0 && self.0.is_multiple_of(QUIET_LOOKS) { ":\n\n" } else { "" };
        event.unwrap_or_else(|| comment.to_owned())
    }
}

fn row(tuning: &TuningSummary) -> (String, String, Vec<String>) {
    let base = &tuning.base;
    let (best, jobs, cost) = match tuning.totals() {
        None => ("unreadable".to_owned(), String::new(), String::new()),
        Some(totals) => {
            let cap = totals.cap_usd.map_or_else(String::new, |cap| format!(" of {}", usd(cap)));
            let cost = if totals.price_unknown { "unknown".to_owned() } else { usd(totals.spent_usd) + &cap };
            let best = or_dash(totals.best_seen, |best| value(best.value));
            (best, totals.training_jobs_launched.to_string(), cost)
        }
    };
    let cells = vec![base.status.clone(), best, jobs, cost, utc(base.created_ms)];
    (format!("/tuning-jobs/{}/page", base.name), base.name.clone(), cells)
}

/// Returns the error of a stack, with its code.
fn of_client(error: &ClientError) -> ApiError {
    if error.is("ResourceNotFound") {
        return ApiError::of_host("ResourceNotFound", 404, error.to_string());
    }
    if let ClientError::Host(cause) = error {
        return internal(cause);
    }
    unavailable(error)
}

/// Prints the cause of an internal failure, which a client of the server does not get.
fn internal(cause: &str) -> ApiError {
    print_err(&format!("a page failed: {cause}\n"));
    ApiError::of_host("InternalFailure", 500, "internal error: see the standard error of the server")
}

/// Returns the error of a log.
fn of_failure(failure: &Failure) -> ApiError {
    let message = failure.message();
    if failure.is_denied() {
        return ApiError::of_host("AccessDeniedException", 403, message);
    }
    unavailable(&message)
}

fn unavailable(error: &dyn std::fmt::Display) -> ApiError {
    ApiError::of_host("ServiceUnavailable", 503, error.to_string())
}

fn unknown(name: &str) -> ApiError {
    ApiError::of_host("ResourceNotFound", 404, format!("no hyperparameter tuning job is named {name}"))
}
