//! The log of a training job of a stack, from CloudWatch Logs, with the credentials of the user.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use api_client::{Service, ServiceError, Stack, Target};
use local::training::LoggedLine;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tuning::unit::time::{Millis, Time};
use wire::describe::TrainingJobSummary;

use super::Printer;
use super::choice::has_ended;
use super::has_ended_now;
use crate::arguments::Logs;
use crate::failure::Failure;
use crate::output::print_err;
use crate::remote::{LOG_GROUP, LOGS_VARIABLE, service};
use crate::tunings::Tunings;

/// Time between two reads of the log of a running job.
const READ_EVERY: Duration = Duration::from_secs(2);
/// Time between two requests whether the job has ended.
const ASK_EVERY: Duration = Duration::from_secs(10);
/// CloudWatch Logs may show a line so much later than a line of a later time.
const LATE: Millis = Millis::from_seconds(10);
/// How long after its end the last lines of a job may show.
const LATE_AFTER_END: Duration = Duration::from_secs(5);
/// The lines of a job are at most so much older than its order, or newer than its end.
const AROUND: Millis = Millis::from_seconds(60);
/// CloudWatch Logs returns the newest events first only since this time, 2024-01-01.
const NEWEST_FIRST_SINCE: Time = Time(1_704_067_200_000);
/// The maximum number of pages for the end of a log. A page may be empty although more follow.
const END_PAGES_MAX: u32 = 10;

/// The error code for a missing log group.
const NO_GROUP: &str = "ResourceNotFoundException";

pub(super) async fn print_log(
    tunings: &Tunings,
    stack: &Stack,
    job: &TrainingJobSummary,
    options: &Logs,
    printer: &mut Printer,
) -> Result<(), Failure> {
    let mut log = CloudLog {
        service: service(stack, Target::Logs, LOGS_VARIABLE)?,
        job: job.name.clone(),
        host: options.host.clone(),
        newest: Time(0),
        recent: BTreeMap::new(),
    };
    let mut ended = has_ended(job);
    let mut asked = Instant::now();
    loop {
        let waits = options.follow && !ended;
        match log.print_new(printer).await {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            // The first line of an account's first training job creates the log group.
            Err(error) if waits && error.is(NO_GROUP) => {}
            Err(error) => return Err(refused(error)),
        }
        if !waits {
            break;
        }
        sleep(READ_EVERY).await;
        if asked.elapsed() >= ASK_EVERY {
            asked = Instant::now();
            ended = has_ended_now(tunings, options, job).await?;
            if ended {
                sleep(LATE_AFTER_END).await;
            }
        }
    }
    match (printer.lines(), &options.host) {
        (0, Some(host)) if ended => print_err(&format!("the log of {} has no line of {host}\n", job.name)),
        (0, _) if ended => return Err(super::no_log(job, "CloudWatch Logs")),
        (0, _) => print_err("the log has no line yet; --follow waits for lines\n"),
        _ => {}
    }
    Ok(())
}

#[derive(Debug)]
struct CloudLog<'a> {
    service: Service<'a>,
    job: String,
    host: Option<String>,
    /// The latest time of a line.
    newest: Time,
    /// The IDs of printed lines whose times can come again, with their times.
    recent: BTreeMap<String, Time>,
}

impl CloudLog<'_> {
    /// Prints all lines that are new. Returns false if standard output is closed.
    async fn print_new(&mut self, printer: &mut Printer) -> Result<bool, ServiceError> {
        let prefix = self.host.as_ref().map_or_else(String::new, |host| format!("{host}-"));
        let mut members = json!({
            "logGroupName": LOG_GROUP,
            "logStreamNamePrefix": format!("{}/{prefix}", self.job),
            "startTime": (self.newest - LATE).max(Time(0)).0,
        });
        loop {
            let page = self.service.read("FilterLogEvents", &members).await?;
            for event in page["events"].as_array().into_iter().flatten() {
                if !self.print(event, printer) {
                    return Ok(false);
                }
            }
            let since = self.newest - LATE;
            self.recent.retain(|_, at| *at >= since);
            // A page can be empty although more follow.
            match page["nextToken"].as_str().filter(|token| !token.is_empty()) {
                Some(token) => members["nextToken"] = json!(token),
                None => return Ok(true),
            }
        }
    }

    /// Prints an event unless it was printed. Returns false if standard output is closed.
    fn print(&mut self, event: &Value, printer: &mut Printer) -> bool {
        let (id, LoggedLine { host, timestamp, message }) = line(event);
        if self.recent.insert(id, timestamp).is_some() {
            return true;
        }
        self.newest = self.newest.max(timestamp);
        printer.print(&host, timestamp, &message)
    }
}

/// Returns the last lines of `job`, oldest first: at least `lines`, or of `bytes` bytes, if the log has so many.
///
/// Asks for the newest events first, in a few pages around the time of the job. `GetLogEvents` can do that too, but only
/// for one stream, so it needs a request for each host, a list of their streams, and two more permissions.
pub(super) async fn last_lines(
    stack: &Stack,
    job: &TrainingJobSummary,
    (lines, bytes): (usize, usize),
) -> Result<Vec<LoggedLine>, Failure> {
    let service = service(stack, Target::Logs, LOGS_VARIABLE)?;
    let mut members = json!({
        "logGroupName": LOG_GROUP,
        "logStreamNamePrefix": format!("{}/", job.name),
        "startFromHead": false,
        "startTime": (Time(job.created_ms) - AROUND).max(NEWEST_FIRST_SINCE).0,
        "limit": lines,
    });
    if let Some(ended) = job.ended_ms {
        members["endTime"] = json!((Time(ended) + AROUND).0);
    }
    let mut found: Vec<LoggedLine> = Vec::new();
    let (mut ids, mut size) = (BTreeSet::new(), 0_usize);
    for _ in 0..END_PAGES_MAX {
        let page = service.read("FilterLogEvents", &members).await.map_err(refused)?;
        for (id, line) in page["events"].as_array().into_iter().flatten().map(line) {
            if ids.insert(id) {
                size = size.saturating_add(line.message.len());
                found.push(line);
            }
        }
        match page["nextToken"].as_str().filter(|token| !token.is_empty()) {
            Some(token) if found.len() < lines && size < bytes => members["nextToken"] = json!(token),
            _ => break,
        }
    }
    found.reverse();
    Ok(found)
}

fn line(event: &Value) -> (String, LoggedLine) {
    let text = |member: &str| event[member].as_str().unwrap_or_default();
    let timestamp = Time(event["timestamp"].as_i64().unwrap_or(0));
    let stream = text("logStreamName").rsplit('/').next().unwrap_or_default();
    let host = stream.rsplit_once('-').map_or(stream, |(host, _)| host).to_owned();
    (text("eventId").to_owned(), LoggedLine { host, timestamp, message: text("message").to_owned() })
}

fn refused(error: ServiceError) -> Failure {
    let hint = if error.is_denied() {
        Some(format!("your credentials need logs:FilterLogEvents on the log group {LOG_GROUP}"))
    } else if error.is(NO_GROUP) {
        Some("the account has no log of a training job: check the Region and the account".to_owned())
    } else {
        None
    };
    let failure = Failure::endpoint(error).context("cannot read CloudWatch Logs");
    failure.hint_if_any(hint)
}
