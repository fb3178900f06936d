//! The contract of every training service, as a test suite for any implementation: processes, the wire protocol, a
//! model in virtual time.
//!
//! A [`Stage`] provides what a case needs beyond the ports. Cases assume a service without other users and without
//! faults. They wait only through the stage's pauses, so that they work in real and in virtual time.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;

use serde_json::{Value, json};

use tuning::unit::time::{Millis, Time};
use use_cases::ports::training::{
    Description, JobLogs, LogLine, TrainingJobListing, TrainingJobs, TrainingJobsError,
};

/// The program of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// Runs until it is stopped.
    Endless,
    /// Prints `one` and `two`, and exits successfully.
    Ends,
    /// Fails.
    Fails,
}

/// A training service under test.
pub trait Stage: Sync {
    /// The type of the service.
    type Jobs: TrainingJobs + TrainingJobListing;
    /// Returns the service.
    fn jobs(&self) -> &Self::Jobs;
    /// Returns a valid name for job `number` of the suite.
    fn name(&self, number: u32) -> String;
    /// Returns the `CreateTrainingJob` request of an on-demand job `name`. `None` if the stage has no such program.
    fn request(&self, name: &str, program: Program) -> Option<Value>;
    /// Waits for a moment.
    fn pause(&self) -> impl Future<Output = ()> + Send;
}

/// Number of moments that a case waits for a state of a job.
const MOMENTS_MAX: u32 = 20_000;

/// Runs every case except that of logs. Uses the job numbers 0 to 99.
///
/// # Panics
/// If the service violates the contract.
pub async fn all<S: Stage>(stage: &S) {
    a_missing_job_is_not_found(stage).await;
    the_name_of_a_job_cannot_be_reused(stage).await;
    a_job_that_ends_is_billed(stage).await;
    a_failed_job_has_a_failure_reason(stage).await;
    a_job_is_stopped_once(stage).await;
    running_jobs_are_listed_once_oldest_first(stage).await;
    kept_instances_are_released_once(stage).await;
}

/// Runs the case of logs: `logs` returns the output of a job, in order, page by page.
///
/// # Panics
/// If the service violates the contract.
pub async fn logs<S: Stage>(stage: &S, logs: &impl JobLogs) {
    let absent = logs.read(&stage.name(90), "algo-1", Time::EPOCH, None).await;
    assert!(
        matches!(&absent, Err(TrainingJobsError::NotFound(_)))
            || absent.as_ref().is_ok_and(|page| page.items.is_empty()),
        "{absent:?}"
    );
    let name = create(stage, 91, Program::Ends).await.expect("a stage with logs needs a program that prints");
    ended(stage, &name).await;
    let mut lines = Vec::new();
    for _ in 0..MOMENTS_MAX {
        lines = all_lines(logs, &name, Time::EPOCH).await;
        if lines.len() >= 2 {
            break;
        }
        stage.pause().await;
    }
    let texts: Vec<&str> = lines.iter().map(|line| line.message.as_str()).collect();
    assert_eq!(texts, ["one", "two"]);
    let stream = &lines[0].stream;
    assert!(stream.starts_with(&format!("{name}/algo-1-")), "{stream}");
    assert!(lines.iter().all(|line| line.stream == *stream));
    let ids: BTreeSet<&str> = lines.iter().map(|line| line.id.as_str()).collect();
    assert_eq!(ids.len(), 2, "every line has its own ID");
    assert!(lines[0].timestamp <= lines[1].timestamp);
    assert_eq!(all_lines(logs, &name, lines[1].timestamp + Millis(1)).await, [], "no later lines");
}

async fn a_missing_job_is_not_found<S: Stage>(stage: &S) {
    let (jobs, name) = (stage.jobs(), stage.name(0));
    assert_not_found("describe", &jobs.describe(&name).await.map(drop));
    assert_not_found("stop", &jobs.stop(&name).await);
    assert_not_found("release", &jobs.release(&name).await);
    assert_not_found("tags", &jobs.tags(&name).await.map(drop));
}

async fn the_name_of_a_job_cannot_be_reused<S: Stage>(stage: &S) {
    let jobs = stage.jobs();
    let name = stage.name(1);
    let request = request(stage, &name, Program::Endless).expect("every stage needs an endless program");
    jobs.create(&request).await.expect("create");
    let seen = jobs.describe(&name).await.expect("describe");
    assert_eq!((seen.name.as_str(), seen.status.as_str()), (name.as_str(), "InProgress"));
    assert!(seen.created > Time::EPOCH && seen.modified >= seen.created, "{seen:?}");
    assert_eq!((seen.ended, seen.billable_seconds, seen.failure_reason), (None, None, None));
    let tags = jobs.tags(&name).await.expect("tags");
    assert_eq!(tags, BTreeMap::from([("suite".to_owned(), "contract".to_owned())]));
    assert_taken(&jobs.create(&request).await);
    jobs.stop(&name).await.expect("stop");
    ended(stage, &name).await;
    assert_taken(&jobs.create(&request).await);
    assert_eq!(jobs.tags(&name).await.expect("tags"), tags, "an ended job keeps its tags");
}

async fn a_job_that_ends_is_billed<S: Stage>(stage: &S) {
    let Some(name) = create(stage, 2, Program::Ends).await else { return };
    let seen = ended(stage, &name).await;
    assert_eq!((seen.status.as_str(), seen.secondary_status.as_str()), ("Completed", "Completed"));
    let (started, over) = (seen.started.expect("it ran"), seen.ended.expect("it ended"));
    assert!(seen.created <= started && started <= over, "{seen:?}");
    let seconds = (over - started).seconds_rounded_up();
    let billed = seen.billable_seconds.expect("a bill");
    assert!(billed.abs_diff(seconds) <= 1, "{billed} s were billed of {seconds} s on demand");
    assert_eq!((seen.failure_reason, seen.interruptions), (None, 0));
    assert_ended(&stage.jobs().stop(&name).await);
}

async fn a_failed_job_has_a_failure_reason<S: Stage>(stage: &S) {
    let Some(name) = create(stage, 3, Program::Fails).await else { return };
    let seen = ended(stage, &name).await;
    assert_eq!((seen.status.as_str(), seen.secondary_status.as_str()), ("Failed", "Failed"));
    let reason = seen.failure_reason.expect("a reason");
    assert!(reason.starts_with("AlgorithmError"), "{reason}");
    assert!(seen.billable_seconds.is_some(), "a failed job is billed too");
    assert_ended(&stage.jobs().stop(&name).await);
}

async fn a_job_is_stopped_once<S: Stage>(stage: &S) {
    let jobs = stage.jobs();
    let name = create(stage, 4, Program::Endless).await.expect("every stage needs an endless program");
    until(stage, &name, "it runs", |seen| seen.secondary_status == "Training").await;
    jobs.stop(&name).await.expect("stop");
    let again = jobs.stop(&name).await;
    assert!(matches!(again, Ok(()) | Err(TrainingJobsError::AlreadyEnded(_))), "{again:?}");
    let seen = ended(stage, &name).await;
    assert_eq!((seen.status.as_str(), seen.secondary_status.as_str()), ("Stopped", "Stopped"));
    assert!(seen.billable_seconds.is_some() && seen.failure_reason.is_none(), "{seen:?}");
    assert_ended(&jobs.stop(&name).await);
    let later = jobs.describe(&name).await.expect("describe");
    assert_eq!(later, seen, "an ended job does not change");
}

async fn running_jobs_are_listed_once_oldest_first<S: Stage>(stage: &S) {
    let jobs = stage.jobs();
    let mut created: Vec<(Time, String)> = Vec::new();
    for number in 10..16 {
        let name =
            create(stage, number, Program::Endless).await.expect("every stage needs an endless program");
        created.push((jobs.describe(&name).await.expect("describe").created, name));
        stage.pause().await;
    }
    created.sort();
    let names = |from: Time| -> Vec<String> {
        created.iter().filter(|(at, _)| *at >= from).map(|(_, name)| name.clone()).collect()
    };
    assert_eq!(listed(jobs, Time::EPOCH).await, names(Time::EPOCH));
    let third = created[2].0;
    assert_eq!(listed(jobs, third).await, names(third), "the bound is inclusive");
    assert_eq!(listed(jobs, created[5].0 + Millis(1)).await, names(created[5].0 + Millis(1)));
    for (_, name) in &created[..2] {
        jobs.stop(name).await.expect("stop");
        ended(stage, name).await;
    }
    assert_eq!(listed(jobs, Time::EPOCH).await, names(Time::EPOCH)[2..], "ended jobs are not listed");
    for (_, name) in &created[2..] {
        jobs.stop(name).await.expect("stop");
        ended(stage, name).await;
    }
    assert_eq!(listed(jobs, Time::EPOCH).await, Vec::<String>::new());
}

async fn kept_instances_are_released_once<S: Stage>(stage: &S) {
    let jobs = stage.jobs();
    let name = stage.name(20);
    let mut asks = request(stage, &name, Program::Endless).expect("every stage needs an endless program");
    asks["ResourceConfig"]["KeepAlivePeriodInSeconds"] = json!(600);
    jobs.create(&asks).await.expect("create");
    until(stage, &name, "it runs", |seen| seen.secondary_status == "Training").await;
    jobs.stop(&name).await.expect("stop");
    ended(stage, &name).await;
    let pool = |seen: &Description| seen.warm_pool.as_ref().map(|pool| pool.status.clone());
    let seen = jobs.describe(&name).await.expect("describe");
    assert_eq!(pool(&seen).as_deref(), Some("Available"));
    jobs.release(&name).await.expect("release");
    until(stage, &name, "its instances are released", |seen| pool(seen).as_deref() == Some("Terminated"))
        .await;
    let over =
        jobs.describe(&name).await.expect("describe").warm_pool.expect("the description has a warm pool");
    assert!(over.retained_seconds.is_some_and(|seconds| seconds <= 600), "{over:?}");
    let again = jobs.release(&name).await;
    assert!(matches!(again, Err(TrainingJobsError::Refused { .. })), "{again:?}");
}

/// Returns the request of a job, with a tag.
fn request<S: Stage>(stage: &S, name: &str, program: Program) -> Option<Value> {
    let mut request = stage.request(name, program)?;
    request["Tags"] = json!([{"Key": "suite", "Value": "contract"}]);
    Some(request)
}

async fn create<S: Stage>(stage: &S, number: u32, program: Program) -> Option<String> {
    let name = stage.name(number);
    let request = request(stage, &name, program)?;
    stage.jobs().create(&request).await.expect("create");
    Some(name)
}

async fn until<S: Stage>(
    stage: &S,
    name: &str,
    what: &str,
    holds: impl Fn(&Description) -> bool,
) -> Description {
    for _ in 0..MOMENTS_MAX {
        let seen = stage.jobs().describe(name).await.expect("describe");
        if holds(&seen) {
            return seen;
        }
        stage.pause().await;
    }
    panic!("timed out waiting for {name}: {what}: {:?}", stage.jobs().describe(name).await);
}

async fn ended<S: Stage>(stage: &S, name: &str) -> Description {
    let over = |seen: &Description| matches!(seen.status.as_str(), "Completed" | "Failed" | "Stopped");
    until(stage, name, "it ends", over).await
}

/// Returns the names of the jobs in progress since `from`, of all pages.
async fn listed(jobs: &impl TrainingJobListing, from: Time) -> Vec<String> {
    let (mut names, mut next) = (Vec::new(), None::<String>);
    loop {
        let page = jobs.in_progress(from, next.as_deref()).await.expect("list");
        assert!(page.items.iter().all(|job| job.created >= from), "{page:?}");
        names.extend(page.items.into_iter().map(|job| job.name));
        next = page.next;
        if next.is_none() {
            return names;
        }
    }
}

/// Returns the lines since `from`, of all pages. Empty while the job has no log.
async fn all_lines(logs: &impl JobLogs, name: &str, from: Time) -> Vec<LogLine> {
    let (mut lines, mut next) = (Vec::new(), None::<String>);
    loop {
        let page = match logs.read(name, "algo-1", from, next.as_deref()).await {
            Err(TrainingJobsError::NotFound(_)) => return lines,
            read => read.expect("read"),
        };
        lines.extend(page.items);
        next = page.next;
        if next.is_none() {
            return lines;
        }
    }
}

fn assert_not_found(what: &str, result: &Result<(), TrainingJobsError>) {
    assert!(matches!(result, Err(TrainingJobsError::NotFound(_))), "{what}: {result:?}");
}

fn assert_taken(result: &Result<(), TrainingJobsError>) {
    assert!(matches!(result, Err(TrainingJobsError::NameTaken(_))), "{result:?}");
}

fn assert_ended(result: &Result<(), TrainingJobsError>) {
    assert!(matches!(result, Err(TrainingJobsError::AlreadyEnded(_))), "{result:?}");
}
