//! Passes the samples in `events/` to the real program of a function, and compares each result with the table in
//! `events/README.md`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use loopback::{Answer, Service};
use serde_json::{Value, json};
use tuning::log::fact::{Fact, Recorded};
use tuning::unit::time::Time;
use use_cases::ports::table::{Condition, Query, Table, Write};
use use_cases::store::Store;
use wire::request::{PriceAnswer, Request};
use wire::stored::{self, Head, INDEX, IndexRow};

use crate::{SUBMITTED, Stage};

/// Incarnation of the tuning in the samples.
const INCARNATION: &str = "3fa1c2";
/// Name of the stack in the samples.
const SAMPLE_STACK: &str = "prod";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../events")
}

/// Returns the rows of the table for `function`: file and expected result.
fn rows(function: &str) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(folder().join("README.md")).unwrap();
    let cells = text.lines().filter_map(|line| {
        let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
        Some((cells.next()?.to_owned(), cells.next()?.to_owned(), cells.next()?.to_owned()))
    });
    let of_function = cells.filter(|(_, who, _)| who.trim_matches('`') == function);
    of_function.map(|(file, _, outcome)| (file.trim_matches('`').to_owned(), outcome)).collect()
}

/// Returns a stage with the tuning of the samples, unless the sample creates it.
async fn stage(service: &Service, function: &str, file: &str) -> Stage {
    let mut stage = Stage::open().await;
    for name in ["SAGEMAKER", "CLOUDWATCH_LOGS", "EVENTBRIDGE", "LAMBDA", "PRICING"] {
        stage.set_variable(&format!("AWS_ENDPOINT_URL_{name}"), &service.endpoint);
    }
    stage.set_variable("EVENT_BUS_NAME", "bus");
    stage.set_variable("METRICS_FROM", "Subscription");
    stage.set_variable("STACK_NAME", SAMPLE_STACK);
    if file.contains("create") {
        return stage;
    }
    let create = folder().join("aws.sagemaker.api/create-hyper-parameter-tuning-job.request.json");
    let request = Request::parse(&std::fs::read(create).unwrap()).unwrap();
    let prices = PriceAnswer::uniform(&request, 461_000, 0);
    let definition = request.definition(Time(SUBMITTED), INCARNATION, &prices).unwrap();
    let id = definition.id();
    let submitted =
        Recorded { key: "submitted".to_owned(), at: Time(SUBMITTED), fact: Fact::TuningSubmitted };
    let index =
        IndexRow { name: definition.name.clone(), id: id.clone(), created: Time(SUBMITTED), submitter: None };
    for row in [
        index.row(),
        stored::meta_row(&definition, &request.body().to_string()),
        Head::first(Time(SUBMITTED)).row(&id),
        stored::active_row(&id),
        stored::fact_row(&id, &submitted),
    ] {
        stage.table.table().write(Write::Put(row, Condition::Always)).await.unwrap();
    }
    if function == "actuator" {
        stage.decide().await;
    }
    stage
}

/// Returns the stored facts and steps: sort key and kind.
async fn stored_kinds(stage: &Stage) -> BTreeSet<(String, String)> {
    let table = Arc::new(stage.table.table());
    let names = table.query(&Query::prefix(INDEX, "", 10)).await.unwrap().items;
    let store = Store::new(Arc::clone(&table));
    let mut found = BTreeSet::new();
    for name in &names {
        let id = IndexRow::read(name).unwrap().id;
        for row in store.all(&stored::fact_partition(&id), "").await.unwrap() {
            let fact = serde_json::to_value(stored::fact(&row).unwrap().fact).unwrap();
            let kind =
                fact.as_object().map_or_else(|| fact.as_str(), |map| map.keys().next().map(String::as_str));
            found.insert((row.key.sk.clone(), format!("fact `{}`", kind.unwrap())));
        }
        for row in store.all(&stored::tuning_partition(&id), "STEP#").await.unwrap() {
            found.insert((row.key.sk.clone(), "step".to_owned()));
        }
    }
    found
}

/// Passes every sample for `function` to its `program` and checks the result.
pub async fn check(function: &str, program: &str) {
    let rows = rows(function);
    assert!(!rows.is_empty(), "the table has no row for {function}");
    for (file, outcome) in rows {
        let service = Service::start(|call| match call.operation() {
            "CreateTrainingJob" => Answer::done(&json!({"TrainingJobArn": "arn"})),
            "GetProducts" => Answer::done(&json!({"PriceList": []})),
            "ListTrainingJobs" => Answer::done(&json!({"TrainingJobSummaries": []})),
            "PutEvents" => Answer::done(&json!({"FailedEntryCount": 0, "Entries": [{"EventId": "1"}]})),
            other => Answer::error(400, "ResourceNotFound", other),
        });
        let stage = stage(&service, function, &file).await;
        let event: Value = serde_json::from_slice(&std::fs::read(folder().join(&file)).unwrap()).unwrap();
        let before = stored_kinds(&stage).await;
        let answer = stage.invoke(program, &event).await;
        let after = stored_kinds(&stage).await;
        let mut results: Vec<String> = Vec::new();
        match &answer {
            Err(error) => {
                results.push(format!("error `{}`", error["errorType"].as_str().unwrap_or_default()));
            }
            Ok(answer) if answer["statusCode"].is_number() => results.push(answer["statusCode"].to_string()),
            Ok(answer) if answer["busy"] == false => results.push("sweep".to_owned()),
            Ok(answer) => {
                assert!(answer["batchItemFailures"].as_array().is_none_or(Vec::is_empty), "{file}: {answer}");
            }
        }
        let new: BTreeSet<&String> = after.difference(&before).map(|(_, kind)| kind).collect();
        results.extend(new.into_iter().cloned());
        if results.is_empty() {
            results.push("nothing".to_owned());
        }
        assert_eq!(results.join(", "), outcome, "{file}: {answer:?}");
    }
}
