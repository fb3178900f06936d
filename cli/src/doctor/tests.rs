//! Tests each check with expected and unexpected responses.

use std::collections::BTreeSet;

use api_client::{ClientError, ServiceError};
use serde_json::{Value, json};
use tuning::log::fact::{Fact, JobEnd, JobKey, JobPhase, MetricLine, Recorded};
use tuning::unit::money::MicroUsd;
use tuning::unit::time::Time;
use wire::describe::{Totals, TuningJob};

use super::account::Answer;
use super::checks::CHECKS;
use super::evidence::{Evidence, Job};
use super::verdict::Verdict;

const START: i64 = 1_789_000_000_000;
const END: i64 = START + 200_000;
const KEY: JobKey = JobKey::new(0, 0, 1);
const SECOND: JobKey = JobKey::new(1, 0, 1);
const ENDED: &str = "The request was rejected because the training job is in status Completed.";
const ABSENT: &str = "Requested resource not found.";

fn refused(code: &str, message: &str) -> ServiceError {
    ServiceError::Refused { status: 400, code: code.to_owned(), message: message.to_owned() }
}

fn tuning() -> TuningJob {
    let described = json!({
        "HyperParameterTuningJobName": "hb1", "HyperParameterTuningJobArn": "arn",
        "HyperParameterTuningJobStatus": "Stopped", "CreationTime": seconds(START - 69_500),
        "LastModifiedTime": seconds(END), "HyperParameterTuningJobConfig": {}, "TrainingJobDefinition": {},
        "ConsumedResources": {"RuntimeInSeconds": 60},
        "Controller": {"SpentUsd": 0.003, "ReservedUsd": 0, "TrainingJobsLaunched": 2, "TrialsStarted": 2,
            "Brackets": []},
    });
    serde_json::from_value(described).unwrap()
}

fn totals(seen: &mut Evidence) -> &mut Totals {
    &mut seen.tuning.as_mut().unwrap().controller.totals
}

fn denied() -> ServiceError {
    refused("AccessDeniedException", "User is not authorized to perform: sagemaker:X")
}

fn broken() -> ServiceError {
    ServiceError::Failed(ClientError::Foreign("status 200: <html>".to_owned()))
}

fn seconds(ms: i64) -> Value {
    json!(f64::from(i32::try_from(ms - START).unwrap()) / 1_000.0 + 1_789_000_000.0)
}

fn described(name: &str) -> Value {
    json!({
        "TrainingJobName": name, "TrainingJobStatus": "Stopped", "SecondaryStatus": "MaxRuntimeExceeded",
        "CreationTime": seconds(START - 60_000), "TrainingStartTime": seconds(START), "TrainingEndTime": seconds(END),
        "BillableTimeInSeconds": 200,
        // A download of 20 s, the rest of the limit for the program, and an upload of 20 s.
        "SecondaryStatusTransitions": transitions(&[
            ("Starting", -60, 0), ("Downloading", 0, 20), ("Training", 20, 180), ("Uploading", 180, 200),
        ]),
    })
}

/// Statuses with their seconds from the start.
type Phases = &'static [(&'static str, i64, i64)];

/// Returns transitions at these seconds from the start.
fn transitions(phases: &[(&str, i64, i64)]) -> Value {
    let all = phases.iter().map(|(status, start, end)| {
        let [start, end] = [start, end].map(|at| seconds(START + at * 1_000));
        json!({"Status": status, "StartTime": start, "EndTime": end, "StatusMessage": ""})
    });
    Value::Array(all.collect())
}

fn tags(keys: &[&str]) -> Value {
    json!({"Tags": keys.iter().map(|key| json!({"Key": key, "Value": "v"})).collect::<Vec<Value>>()})
}

const OURS: [&str; 3] = ["hyperband:stack", "hyperband:tuning", "hyperband:decision"];

fn fact(key: &str, at: i64, fact: Fact) -> (i64, Recorded) {
    (at + 2_000, Recorded { key: key.to_owned(), at: Time(at), fact })
}

fn state(key: &str, ended: Option<i64>) -> (i64, Recorded) {
    let phase = JobPhase::Ended(JobEnd::MaxRuntime);
    fact(
        key,
        END,
        Fact::JobStateChanged {
            job: KEY,
            phase,
            started: Some(Time(START)),
            ended: ended.map(Time),
            message: None,
        },
    )
}

fn line(key: &str, id: &str) -> (i64, Recorded) {
    let lines = vec![MetricLine { id: id.to_owned(), at: Time(START), index: None, value: Some(1.0) }];
    fact(key, START, Fact::MetricsLogged { job: KEY, stream: "s".to_owned(), lines, began: None })
}

/// Observations that confirm all assumptions.
fn seen() -> Evidence {
    let first = Job {
        name: "doctor-a-000000-0-0-1".to_owned(),
        first: Some(START - 58_000),
        last: described("doctor-a-000000-0-0-1"),
        bill: Some((END + 20_000, 200)),
        final_bill: Some(200),
        listed: Some(Ok(START - 57_000)),
        tags: Some(Ok(tags(&OURS))),
        tagged: Some(START - 58_000),
        ..Job::default()
    };
    let starting = json!({"TrainingJobStatus": "InProgress", "SecondaryStatus": "Starting"});
    let stopped = json!({
        "TrainingJobStatus": "Stopped", "SecondaryStatus": "Stopped", "CreationTime": seconds(END),
    });
    let second = Job {
        name: "doctor-a-000000-1-0-1".to_owned(),
        first: Some(END + 1_000),
        last: stopped,
        before_stop: Some(starting),
        ..Job::default()
    };
    let page = |name: &str, created: i64| json!({"TrainingJobSummaries": [{"TrainingJobName": name, "CreationTime": seconds(created)}]});
    let pages = vec![page(&first.name, START - 60_000), page(&second.name, END)];
    Evidence {
        signed: true,
        spot: false,
        image: "683313688378.dkr.ecr.us-east-1.amazonaws.com/sagemaker-xgboost:1.7-1".to_owned(),
        unpriced: None,
        submitted: Some((START - 70_000, START - 69_000)),
        tuning: Some(tuning()),
        over: true,
        facts: vec![
            fact("started", START - 60_000, Fact::JobStarted { job: KEY }),
            state("state#0-0-1#Stopped#MaxRuntimeExceeded#1", Some(END)),
            line("logs#0-0-1#s#7#x", "7"),
            fact("stopped", END, Fact::StopAccepted { job: SECOND }),
        ],
        jobs: [(KEY, first), (SECOND, second)].into(),
        absent: Some((
            Err(refused("ValidationException", ABSENT)),
            Err(refused("ValidationException", ABSENT)),
        )),
        ended_stop: Some(Err(refused("ValidationException", ENDED))),
        taken: Some(Err(refused("ResourceInUse", "Training job names must be unique"))),
        taken_skipped: None,
        streams: Some(Ok(
            json!({"logStreams": [{"logStreamName": "doctor-a-000000-0-0-1/algo-1-1789000000"}]}),
        )),
        lines: Some(Ok(json!({"events": [{"eventId": "7", "message": "1"}]}))),
        listed: Some((START / 1_000 - 61, Ok(pages))),
    }
}

fn verdict(id: &str, seen: &Evidence) -> Verdict {
    let check = CHECKS.iter().find(|check| check.id == id).unwrap();
    (check.judge)(seen)
}

/// Applies `change` to [`seen`] and asserts the verdict of the check `id`.
#[track_caller]
fn check(id: &str, word: &str, change: impl FnOnce(&mut Evidence)) {
    let mut seen = seen();
    change(&mut seen);
    let found = verdict(id, &seen);
    assert_eq!(found.word(), word, "{id}: {found:?}");
    assert!(!found.evidence().is_empty(), "{id}");
}

fn first(seen: &mut Evidence) -> &mut Job {
    seen.jobs.get_mut(&KEY).unwrap()
}

#[test]
fn confirmed_assumptions_are_yes_and_unobserved_ones_are_not_tried() {
    let (all, nothing) = (seen(), Evidence::default());
    for wanted in CHECKS {
        let expected = match wanted.id {
            // No spot instances, and no failed job.
            "spot-bill" | "failure-class" => "not tried",
            _ => "yes",
        };
        let found = verdict(wanted.id, &all);
        assert_eq!(found.word(), expected, "{}: {found:?}", wanted.id);
        assert_eq!(verdict(wanted.id, &nothing).word(), "not tried", "{}", wanted.id);
    }
}

#[test]
fn money() {
    check("spot-bill", "yes", |seen| seen.spot = true);
    // The bill of an uninterrupted job proves nothing about the maximum (regression).
    let through = |status: &str| json!([{"Status": "Starting"}, {"Status": status}, {"Status": "Completed"}]);
    for (status, word) in [("Training", "not tried"), ("Interrupted", "yes")] {
        check("spot-bill", word, |seen| {
            seen.spot = true;
            first(seen).last["SecondaryStatus"] = json!("Completed");
            first(seen).last["SecondaryStatusTransitions"] = through(status);
        });
    }
    check("spot-bill", "no", |seen| {
        seen.spot = true;
        first(seen).final_bill = Some(601);
    });
    for (bill, word) in [(198, "yes"), (202, "yes"), (197, "no"), (203, "no"), (0, "no")] {
        check("bill-interval", word, |seen| first(seen).final_bill = Some(bill));
    }
    check("bill-interval", "not tried", |seen| seen.spot = true);
    check("bill-shows", "no", |seen| first(seen).final_bill = Some(201));
    check("bill-shows", "yes", |seen| first(seen).bill = Some((END + 3_600_000, 200)));
    check("bill-shows", "no", |seen| first(seen).bill = Some((END + 3_600_001, 200)));
    check("bill-shows", "not tried", |seen| first(seen).bill = None);
    // An accepted request need not have a price (regression).
    check("prices", "not tried", |seen| totals(seen).spent_usd = MicroUsd(0));
    check("prices", "not tried", |seen| totals(seen).price_unknown = true);
    check("prices", "no", |seen| seen.unpriced = Some("no price for ml.x".to_owned()));
}

#[test]
fn bills_and_limits_of_a_job_with_download_and_upload() {
    check("bill-past-limit", "yes", |seen| first(seen).final_bill = Some(480));
    check("bill-past-limit", "no", |seen| first(seen).final_bill = Some(481));
    check("bill-past-limit", "not tried", |seen| seen.spot = true);
    let past = |bill| {
        let mut seen = seen();
        first(&mut seen).final_bill = Some(bill);
        verdict("bill-past-limit", &seen).evidence().to_owned()
    };
    assert_eq!(
        past(198),
        "198 s were billed, the time limit was 180 s; download 20.0 s, program 160.0 s, upload 20.0 s; the bill \
         contains the whole upload"
    );
    assert!(past(197).ends_with("the bill does not contain the whole upload"), "{}", past(197));

    // The phases of the job, and the verdicts about its bill and its limit.
    let jobs: [(Phases, &str, &str); 6] = [
        (&[("Downloading", 0, 20), ("Training", 20, 200), ("Uploading", 200, 220)], "yes", "no"),
        (&[("Downloading", 0, 20), ("Training", 20, 197), ("Uploading", 197, 207)], "yes", "yes"),
        (&[("Downloading", 0, 9), ("Training", 9, 180), ("Uploading", 180, 200)], "not tried", "not tried"),
        (&[("Downloading", 0, 20), ("Training", 20, 180), ("Uploading", 180, 189)], "not tried", "yes"),
        (&[("Downloading", 0, 20), ("Training", 20, 180)], "not tried", "yes"),
        (&[("Downloading", 0, 180)], "not tried", "yes"),
    ];
    for (phases, bill, limit) in jobs {
        let change =
            |seen: &mut Evidence| first(seen).last["SecondaryStatusTransitions"] = transitions(phases);
        check("bill-past-limit", bill, change);
        check("limit-start", limit, change);
    }
    for id in ["bill-past-limit", "limit-start"] {
        check(id, "not tried", |seen| first(seen).last["SecondaryStatus"] = json!("Completed"));
        check(id, "not tried", |seen| first(seen).last["SecondaryStatusTransitions"] = Value::Null);
    }
}

#[test]
fn events_and_failures() {
    check("events", "no", |seen| seen.facts = vec![state("described-state#Stopped#1", Some(END))]);
    check("events", "no", |seen| seen.facts.clear());
    for (ended, word) in [(END + 1_000, "yes"), (END + 1_001, "no"), (END / 1_000, "no")] {
        check("event-times", word, |seen| seen.facts = vec![state("state#x", Some(ended))]);
    }
    check("event-times", "not tried", |seen| seen.facts = vec![state("described-state#x", Some(1))]);
    check("event-times", "not tried", |seen| seen.facts = vec![state("state#x", None)]);
    for (reason, word) in [("AlgorithmError: exit code 1", "yes"), ("ClientError: no", "yes"), ("Oops", "no")]
    {
        check("failure-class", word, |seen| {
            first(seen).last["TrainingJobStatus"] = json!("Failed");
            first(seen).last["FailureReason"] = json!(reason);
        });
    }
}

#[test]
fn names_and_listings() {
    check("name-taken", "no", |seen| seen.taken = Some(Err(refused("ConflictException", "exists"))));
    check("name-taken", "no", |seen| seen.taken = Some(Ok(json!({"TrainingJobArn": "a"}))));
    check("name-taken", "not tried", |seen| seen.taken = Some(Err(denied())));
    check("name-taken", "not tried", |seen| seen.taken = Some(Err(broken())));
    check("job-shows", "no", |seen| first(seen).first = None);
    check("job-shows", "no", |seen| first(seen).first = Some(START + 1));
    check("job-shows", "no", |seen| first(seen).listed = Some(Ok(START + 540_001)));
    check("job-shows", "not tried", |seen| first(seen).listed = None);
    check("job-shows", "not tried", |seen| first(seen).listed = Some(Err(denied())));
    check("job-shows", "not tried", |seen| first(seen).hidden = Some(denied()));
    check("tags-show", "no", |seen| first(seen).tags = Some(Ok(tags(&OURS[..2]))));
    check("tags-show", "not tried", |seen| first(seen).tags = Some(Err(denied())));
    let listed = |change: fn(&mut Vec<Value>)| {
        move |seen: &mut Evidence| change(seen.listed.as_mut().unwrap().1.as_mut().unwrap())
    };
    check("listing", "no", listed(|pages| pages.reverse()));
    check("listing", "no", listed(|pages| drop(pages.pop())));
    check(
        "listing",
        "no",
        listed(|pages| {
            pages[0]["TrainingJobSummaries"][0]["CreationTime"] = json!(1_000);
        }),
    );
    check(
        "listing",
        "not tried",
        listed(|pages| {
            pages.pop();
            pages[0]["NextToken"] = json!("more");
        }),
    );
    check("listing", "no", |seen| {
        seen.listed = Some((1, Err(refused("ValidationException", "SortBy"))));
    });
    check("objective-hyperparameter", "not tried", |seen| "image:1".clone_into(&mut seen.image));
    for (message, word) in
        [("Hyperparameter _tuning_objective_metric is reserved", "no"), ("no role", "not tried")]
    {
        check("objective-hyperparameter", word, |seen| {
            let refusal =
                Fact::StartRefused { job: KEY, message: message.to_owned(), name_is_foreign: false };
            seen.facts = vec![fact("refused", START, refusal)];
        });
    }
}

#[test]
fn stops() {
    check("stop-ended", "yes", |seen| {
        seen.ended_stop = Some(Err(refused("ConflictException", "already in terminal state")));
    });
    check("stop-ended", "no", |seen| seen.ended_stop = Some(Err(refused("ValidationException", "no"))));
    check("stop-ended", "no", |seen| seen.ended_stop = Some(Err(refused("InternalError", ENDED))));
    check("stop-ended", "no", |seen| seen.ended_stop = Some(Ok(Value::Null)));
    check("stop-ended", "not tried", |seen| seen.ended_stop = Some(Err(denied())));
    let absent = |described: Answer, stopped: Answer| {
        move |seen: &mut Evidence| seen.absent = Some((described, stopped))
    };
    let not_found = || Err(refused("ResourceNotFound", "nothing"));
    check("job-absent", "yes", absent(not_found(), not_found()));
    check("job-absent", "yes", absent(not_found(), Err(denied())));
    check("job-absent", "no", absent(not_found(), Ok(Value::Null)));
    check("job-absent", "no", absent(Err(refused("ValidationException", "?")), not_found()));
    check("job-absent", "not tried", absent(Err(denied()), not_found()));
    let stopped = |member: &'static str, value: Value| {
        move |seen: &mut Evidence| seen.jobs.get_mut(&SECOND).unwrap().last[member] = value
    };
    check("stop-starting", "no", stopped("TrainingJobStatus", json!("Completed")));
    check("stop-starting", "not tried", stopped("TrainingJobStatus", json!("Stopping")));
    check("stop-starting", "not tried", stopped("TrainingStartTime", seconds(END)));
    check("stop-starting", "no", |seen| seen.jobs.get_mut(&SECOND).unwrap().final_bill = Some(1));
    check("stop-starting", "not tried", |seen| {
        let training = json!({"SecondaryStatus": "Training", "TrainingStartTime": seconds(END)});
        seen.jobs.get_mut(&SECOND).unwrap().before_stop = Some(training);
    });
    check("rights", "not tried", |seen| seen.facts.truncate(1));
    check("rights", "no", |seen| {
        let message = "AccessDeniedException: not authorized to perform sagemaker:AddTags".to_owned();
        seen.facts =
            vec![fact("refused", START, Fact::StartRefused { job: KEY, message, name_is_foreign: false })];
    });
}

#[test]
fn logs() {
    let named = |name: &'static str| {
        move |seen: &mut Evidence| seen.streams = Some(Ok(json!({"logStreams": [{"logStreamName": name}]})))
    };
    check("log-streams", "yes", named("job/algo-2-1789000000123"));
    check("log-streams", "no", named("job/algo-1"));
    check("log-streams", "no", named("job/algo-1/x-1"));
    check("log-streams", "not tried", |seen| seen.streams = Some(Ok(json!({"logStreams": []}))));
    check("log-streams", "not tried", |seen| seen.streams = Some(Err(denied())));
    check("log-ids", "no", |seen| seen.lines = Some(Ok(json!({"events": [{"eventId": "8"}]}))));
    check("log-ids", "not tried", |seen| seen.lines = Some(Ok(json!({"events": [], "nextToken": "more"}))));
    check("log-ids", "not tried", |seen| seen.facts = vec![line("read#x", "7")]);
    check("log-ids", "not tried", |seen| seen.lines = Some(Err(denied())));
    check("log-delivery", "no", |seen| seen.facts = vec![line("read#x", "7")]);
    for (late, word) in [(60_000, "yes"), (60_001, "no")] {
        check("log-delivery", word, |seen| seen.facts[2].0 = START + late);
    }
}

#[test]
fn the_stack() {
    check("signature", "not tried", |seen| seen.signed = false);
    check("tuning-ends", "no", |seen| seen.over = false);
    check("tuning-ends", "no", |seen| {
        seen.over = false;
        seen.facts.clear();
    });
    for (created, word) in
        [(START - 130_000, "yes"), (START - 130_001, "no"), (START - 9_000, "yes"), (START - 8_999, "no")]
    {
        check("clocks", word, |seen| seen.tuning.as_mut().unwrap().base.created_ms = created);
    }
}

#[test]
fn the_checks_are_those_of_the_document() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/UNVERIFIED.md");
    let text = std::fs::read_to_string(path).unwrap();
    let ids: BTreeSet<&str> = CHECKS.iter().map(|check| check.id).collect();
    assert_eq!(ids.len(), CHECKS.len(), "duplicate id");
    let rows = text.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| assumption |"));
    let last = rows.map(|row| row.trim_end_matches(" |").rsplit(" | ").next().unwrap_or_default());
    let named: Vec<&str> = last.filter(|cell| *cell != "-").collect();
    let named: BTreeSet<&str> = named.iter().map(|cell| cell.trim_matches('`')).collect();
    assert_eq!(named, ids);
}
