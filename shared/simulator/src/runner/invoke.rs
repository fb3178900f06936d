//! One invocation of a function: the use case with its ports, wired as the `main` of the function does.

use std::sync::Arc;

use serde_json::{Value, json};
use tuning::definition::Definition;
use tuning::log::fact::JobKey;
use tuning::unit::money::MicroUsd;
use tuning::unit::time::Millis;
use use_cases::change::{self, ChangeError};
use use_cases::decide::{Decided, Decider};
use use_cases::describe::Place;
use use_cases::job_events::{About, JobEvents, RecordError};
use use_cases::job_logs::JobLogs;
use use_cases::lookup::{self, LookupError};
use use_cases::pace::Pace;
use use_cases::perform::{ABANDONED, ActionBatch, Actuator, CLAIM, LOG_LAG};
use use_cases::ports::Clock;
use use_cases::store::Store;
use use_cases::submit::{Guardrails, Submit, SubmitError};
use use_cases::sweep::{Limits, Silence, Sweeper};
use wire::request::Request;

use super::look;
use super::{Outcome, Ports, Process, Running, Task};
use crate::check::Book;
use crate::plan::{Logs, Starts};
use crate::site::Function;
use crate::tally::InvocationResult;
use crate::world::queue::{Consumer, Record, What};
use crate::world::stream::event_of;
use crate::world::watch::STACK;
use crate::world::{World, lock};

/// The first wait of a deferred action, in ms, as deployed.
const DEFER: Millis = Millis::from_seconds(5);

/// Returns the function that a delivery is for.
pub(super) fn function_of(what: &What) -> Function {
    match what {
        What::JobEvent(_) | What::Junk(_, true) => Function::JobEvents,
        What::Logs(_) | What::Junk(_, false) => Function::JobLogs,
        What::Starts(_) => Function::Actuator,
    }
}

/// Describes a task for the trace.
pub(super) fn text(task: &Task, batch: Option<&[Record]>) -> String {
    let keys = |record: &Record| {
        let keys = &record.value["dynamodb"]["Keys"];
        format!("{}/{}", keys["pk"]["S"].as_str().unwrap_or("?"), keys["sk"]["S"].as_str().unwrap_or("?"))
    };
    let batch: Vec<String> = batch.into_iter().flatten().map(keys).collect();
    match task {
        Task::Delivery(delivery) => match &delivery.what {
            What::JobEvent(event) => {
                format!("{} {}", event["detail"]["TrainingJobName"], event["detail"]["SecondaryStatus"])
            }
            What::Logs(batch) => format!("{} x {}", batch.log_stream, batch.events.len()),
            What::Starts(starts) => starts.to_string(),
            What::Junk(..) => "junk".to_owned(),
        },
        Task::Submit(_)
        | Task::UserStop(_)
        | Task::UserStopJob(..)
        | Task::UserChange(..)
        | Task::Look(_)
        | Task::Batch(..)
        | Task::Repeat
        | Task::Sweep => {
            format!("{task:?} {batch:?}")
        }
    }
}

/// Returns the future of a task.
pub(super) fn invoke(process: Process, task: &Task, batch: Option<&[Record]>) -> Running {
    match task {
        Task::Submit(case) => submit(process, *case),
        Task::UserStop(case) => user_stop(process, *case),
        Task::UserStopJob(case, job) => user_stop_job(process, *case, *job),
        Task::UserChange(case, n, resumes) => user_change(process, *case, *n, *resumes),
        Task::Look(case) => look::look(process, *case),
        Task::Delivery(delivery) => match &delivery.what {
            What::JobEvent(event) | What::Junk(event, true) => job_event(process, event.clone()),
            What::Logs(batch) => job_logs(process, batch.encode()),
            What::Junk(event, false) => job_logs(process, event.clone()),
            What::Starts(starts) => records(process, Consumer::Actuator, starts.clone()),
        },
        Task::Batch(consumer, _) => records(process, *consumer, event_of(batch.unwrap_or_default())),
        Task::Repeat => {
            let event = event_of(batch.unwrap_or_default());
            let keys = &event["Records"][0]["dynamodb"]["Keys"]["pk"]["S"];
            let action = keys.as_str().is_some_and(|pk| pk.starts_with(wire::stored::ACTION_PREFIX));
            records(process, if action { Consumer::Actuator } else { Consumer::Decider }, event)
        }
        Task::Sweep => sweep(process),
    }
}

fn submit(process: Process, case: usize) -> Running {
    let (body, parent) = request(&lock(&process.port.world), case);
    Box::pin(async move {
        let Process { store, port, .. } = &process;
        let use_case = Submit {
            other_tunings: None,
            store: Arc::clone(store),
            prices: port.clone(),
            clock: port.clone(),
            monthly_cap: monthly_cap(port),
            guardrails: Guardrails::default(),
        };
        let outcome = match use_case.submit(body.as_bytes()).await {
            Ok(definition) if parent.is_some() && !has_observations(&definition) => {
                let mut world = lock(&port.world);
                let now = world.now;
                world.check.violation(now, &format!("{} has no observations of {parent:?}", definition.name));
                Outcome::Done
            }
            // An earlier attempt may have succeeded although its response was lost.
            Ok(_) | Err(SubmitError::NameTaken(_)) => Outcome::Done,
            Err(SubmitError::Request(error)) => {
                let mut world = lock(&port.world);
                let now = world.now;
                world.check.violation(now, &format!("a valid request was refused: {error}"));
                Outcome::Done
            }
            // The user does not retry.
            Err(SubmitError::MonthlyCap(_)) => {
                lock(&port.world).check.refused_for_month += 1;
                Outcome::Done
            }
            Err(SubmitError::Prices(_) | SubmitError::Parent { .. } | SubmitError::Store(_)) => {
                Outcome::Retry
            }
        };
        (process, outcome)
    })
}

/// Returns the body of a request and the parent in it: the first ended tuning with a result that can be one.
fn request(world: &World, case: usize) -> (String, Option<String>) {
    let case = &world.cases[case];
    let own = Request::from_stored(case.request.clone());
    let books = world.check.books.values().filter(|_| case.has_parent);
    let can_be = |book: &&Book| {
        let request = Request::from_stored(book.case.request.clone());
        let name = &book.case.name;
        let has_result = book.ended.is_some() && book.has_good_trial();
        // A result on another number of instances is outside the ranges.
        let has_sizes = book.case.choices.sizes == case.choices.sizes;
        *name != case.name && has_result && has_sizes && own.check_parent(name, &request).is_ok()
    };
    let parent = books.filter(can_be).map(|book| book.case.name.clone()).next();
    let mut body = case.request.clone();
    if let Some(parent) = &parent {
        body["WarmStartConfig"] = json!({
            "ParentHyperParameterTuningJobs": [{"HyperParameterTuningJobName": parent}],
            "WarmStartType": "TransferLearning",
        });
    }
    (body.to_string(), parent)
}

fn has_observations(definition: &Definition) -> bool {
    let warm_start = definition.warm_start.iter();
    warm_start.flat_map(|warm| &warm.parents).any(|parent| !parent.observations().is_empty())
}

fn user_stop(process: Process, case: usize) -> Running {
    let name = lock(&process.port.world).cases[case].name.clone();
    Box::pin(async move {
        let now = process.port.now();
        let outcome = match lookup::stop(&process.store, &name, now).await {
            Ok(()) | Err(LookupError::AlreadyEnded(_)) => Outcome::Done,
            Err(LookupError::NotFound(_) | LookupError::Store(_)) => Outcome::Retry,
        };
        (process, outcome)
    })
}

fn user_stop_job(process: Process, case: usize, job: JobKey) -> Running {
    let name = lock(&process.port.world).cases[case].name.clone();
    Box::pin(async move {
        let now = process.port.now();
        let found = lookup::find(&process.store, &name).await;
        let stopped = match found {
            Ok(row) => {
                let stopped = lookup::stop_job_found(&process.store, &row.id, job, now).await;
                if stopped.is_ok() {
                    lock(&process.port.world).check.job_stops_accepted.push((row.id, job));
                }
                stopped
            }
            Err(error) => Err(error),
        };
        let outcome = match stopped {
            Ok(()) | Err(LookupError::AlreadyEnded(_) | LookupError::NotFound(_)) => Outcome::Done,
            Err(LookupError::Store(_)) => Outcome::Retry,
        };
        (process, outcome)
    })
}

fn user_change(process: Process, case: usize, n: usize, resumes: bool) -> Running {
    let (name, body) = {
        let world = lock(&process.port.world);
        let case = &world.cases[case];
        (case.name.clone(), case.changes[n].body(resumes).to_string())
    };
    Box::pin(async move {
        let now = process.port.now();
        let outcome = match change::change(&process.store, &name, body.as_bytes(), now).await {
            Ok(()) | Err(ChangeError::Lookup(LookupError::AlreadyEnded(_))) => Outcome::Done,
            Err(error @ (ChangeError::Refused(_) | ChangeError::Raise(_))) => {
                let mut world = lock(&process.port.world);
                let now = world.now;
                world.check.violation(now, &format!("the valid change {body} was refused: {error}"));
                Outcome::Done
            }
            Err(ChangeError::Lookup(LookupError::NotFound(_) | LookupError::Store(_))) => Outcome::Retry,
        };
        (process, outcome)
    })
}

fn recorded<T>(result: &Result<T, RecordError>) -> Outcome {
    match result {
        // An unreadable delivery goes to the failure queue at once.
        Ok(_) | Err(RecordError::Unreadable(_)) => Outcome::Done,
        Err(RecordError::Store(_)) => Outcome::Retry,
    }
}

fn job_event(process: Process, mut event: Value) -> Running {
    // AWS documents an event without tags, so about half have none here. The ID decides, not a draw.
    let ends_even = |id: &str| id.bytes().last().is_some_and(|byte| byte % 2 == 0);
    if event["id"].as_str().is_some_and(ends_even) {
        event["detail"]["Tags"] = json!({});
    }
    Box::pin(async move {
        let Process { store, port, .. } = &process;
        let use_case = JobEvents { store: Arc::clone(store), clock: port.clone(), stack: STACK.to_owned() };
        let mut about = About::default();
        let result = use_case.handle(&event, &mut about).await;
        lock(&port.world).count_log(InvocationResult::Recorded(&result, &about));
        let outcome = recorded(&result);
        (process, outcome)
    })
}

fn job_logs(process: Process, event: Value) -> Running {
    Box::pin(async move {
        let Process { store, port, .. } = &process;
        let use_case = JobLogs::new(Arc::clone(store), port.clone());
        let mut about = About::default();
        let result = use_case.handle(&event, &mut about).await;
        lock(&port.world).count_log(InvocationResult::Recorded(&result, &about));
        let outcome = recorded(&result);
        (process, outcome)
    })
}

fn records(process: Process, consumer: Consumer, event: Value) -> Running {
    Box::pin(async move {
        let answer = match consumer {
            Consumer::Decider => {
                let mut done = Decided::default();
                let decider = Decider { store: Arc::clone(&process.store) };
                decider.handle(&event, || true, &mut done).await;
                lock(&process.port.world).count_log(InvocationResult::Decided(&done));
                done.answer()
            }
            Consumer::Actuator => {
                let mut done = ActionBatch::default();
                let cap = monthly_cap(&process.port);
                let actuator = actuator(&process.store, &process.port, cap);
                let starts = lock(&process.port.world).plan.starts;
                if starts == Starts::HandedOver {
                    actuator.handle_handing_over(&event, &process.port, || true, &mut done).await;
                } else {
                    actuator.handle(&event, || true, &mut done).await;
                }
                lock(&process.port.world).count_log(InvocationResult::ActionBatch(&done));
                done.answer()
            }
        };
        let failures = answer["batchItemFailures"].as_array().into_iter().flatten();
        let failed = failures.filter_map(|failure| failure["itemIdentifier"].as_str().map(str::to_owned));
        let failed = failed.collect();
        (process, Outcome::Failed(failed))
    })
}

/// Returns the actuator of a process, wired as deployed.
pub(crate) fn actuator<P: Clone>(
    store: &Arc<Store<P>>,
    port: &P,
    monthly_cap: Option<MicroUsd>,
) -> Actuator<P, P, P, P> {
    Actuator {
        store: Arc::clone(store),
        jobs: port.clone(),
        bus: port.clone(),
        clock: port.clone(),
        pace: Some(Pace::default()),
        stack: STACK.to_owned(),
        log_lag_ms: LOG_LAG,
        bills_are_final: false,
        claim_ms: CLAIM,
        defer_ms: DEFER,
        abandoned_ms: ABANDONED,
        place: Place::of_arn("arn:aws:lambda:us-east-1:111122223333:function:simulated"),
        monthly_cap,
    }
}

fn monthly_cap(port: &Ports) -> Option<MicroUsd> {
    lock(&port.world).plan.monthly_cap.map(MicroUsd)
}

fn sweep(process: Process) -> Running {
    Box::pin(async move {
        let owner = format!("process {}", process.number);
        let began = process.port.now();
        let logs = lock(&process.port.world).plan.logs;
        let silence = if logs == Logs::Delivered { Silence::Delivered } else { Limits::CLOUD.silence };
        let (limits, cap) = (Limits { silence, ..Limits::CLOUD }, monthly_cap(&process.port));
        let swept = Sweeper::new(actuator(&process.store, &process.port, cap), limits, owner).sweep().await;
        let took = process.port.now() - began;
        lock(&process.port.world).count_log(InvocationResult::Swept(&swept, took.0));
        let is_whole = swept.is_ok_and(|swept| swept.failures.is_empty());
        (process, if is_whole { Outcome::Done } else { Outcome::Retry })
    })
}
