//! Target `request`: the body of a tuning request. It is refused with paths, or everything derived from it is valid
//! and reads back the same.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use tuning::definition::{Definition, JobLimits};
use tuning::log::ruling::Launch;
use tuning::state::State;
use tuning::unit::time::Time;
use wire::describe::RequestEcho;
use wire::events::logs::MetricPattern;
use wire::names::MAX_TUNING_NAME_CHARS;
use wire::request::{ErrorCode, MAX_VIOLATIONS, PriceAnswer, Request, RequestError, TrainingJob};

const CREATED: i64 = 1_789_000_000_000;
const INCARNATION: &str = "abc123";
/// Maximum length of an error message, in bytes: far more than twenty violations with their lists of known fields need.
const MESSAGE_BYTES_MAX: usize = 100_000;
/// Maximum length of a hyperparameter value in `CreateTrainingJob`, in characters.
const VALUE_CHARS_MAX: usize = 2_500;
/// Maximum number of hyperparameters in `CreateTrainingJob`.
const HYPERPARAMETERS_MAX: usize = 100;
const TAGS_MAX: usize = 50;
const URI_CHARS_MAX: usize = 1_024;

pub(crate) fn run(input: &[u8]) {
    match Request::parse(input) {
        Ok(request) => check_accepted(&request),
        Err(error) => check_refused(&error),
    }
    // Stored requests are read without validation, so reading must accept any JSON.
    if let Ok(body) = serde_json::from_slice::<Value>(input) {
        let stored = Request::from_stored(body);
        if let Ok(definition) = stored.definition(Time(CREATED), INCARNATION, &prices(&stored)) {
            let _ = definition.plan();
        }
        let _ = (training_job(&stored, &BTreeMap::new()), described(&stored), stored.tags());
        let _ = (stored.plan(), stored.cap(), stored.metric_regex(), stored.max_jobs());
    }
}

fn check_refused(error: &RequestError) {
    assert!(!error.message.is_empty() && error.message.len() <= MESSAGE_BYTES_MAX, "{}", error.message.len());
    match error.code {
        ErrorCode::SerializationException => assert!(error.violations.is_empty(), "{error:?}"),
        ErrorCode::ValidationException => {
            assert!((1..=MAX_VIOLATIONS).contains(&error.violations.len()), "{error:?}");
            for violation in &error.violations {
                assert!(error.message.contains(&violation.message), "{error:?}");
                assert!(violation.message.contains(&violation.path), "no path: {violation:?}");
                // An empty path means the whole request, or a member with an empty name.
                let whole =
                    ["request", "Unknown field ''"].iter().any(|text| violation.message.contains(text));
                assert!(!violation.path.is_empty() || whole, "{violation:?}");
            }
        }
    }
}

fn check_accepted(request: &Request) {
    let text = request.body().to_string();
    assert_eq!(
        Request::parse(text.as_bytes()).as_ref(),
        Ok(request),
        "the stored request reads back the same"
    );
    assert_eq!(Request::check(request.body().clone()).as_ref(), Ok(request));
    let name = request.name();
    assert!((1..=MAX_TUNING_NAME_CHARS).contains(&name.len()), "{name}");
    let regex = request.metric_regex().unwrap_or_default();
    assert!(MetricPattern::new(&regex, request.epoch_pattern()).is_ok(), "{regex}");
    match request.definition(Time(CREATED), INCARNATION, &prices(request)) {
        Ok(definition) => check_definition(request, &definition),
        Err(error) => check_refused(&error),
    }
    if let Err(error) = request.definition(Time(CREATED), INCARNATION, &PriceAnswer::default()) {
        check_refused(&error);
    }
    let definition = described(request).definition;
    assert!(definition["ResourceConfig"].is_object() || is_configured(request));
}

fn is_configured(request: &Request) -> bool {
    request.at("TrainingJobDefinition.HyperParameterTuningResourceConfig.InstanceConfigs").is_some()
}

fn check_definition(request: &Request, definition: &Definition) {
    let text = serde_json::to_string(definition).unwrap_or_default();
    assert_eq!(serde_json::from_str::<Definition>(&text).ok().as_ref(), Some(definition), "{text}");
    assert_eq!(Some(definition.plan()), request.plan().as_ref());
    assert!(definition.limits.max_parallel >= 1 && definition.limits.max_jobs >= 1);
    if let (Some(cap), Some(least)) = (definition.cap, definition.least_cap()) {
        assert!(least <= cap, "a cap below the cost of one job was accepted");
    }
    let state = State::new(definition);
    for trial in [0, 1, 2, 10_000].map(tuning::unit::ids::TrialId) {
        let configuration = state.draw(definition, trial).configuration;
        assert_eq!(configuration, state.draw(definition, trial).configuration);
        let point = definition.space.encode(&configuration);
        assert!(point.is_ok(), "{configuration:?} is outside its space: {point:?}");
        assert_eq!(configuration.0.len(), definition.space.dimensions());
        check_training_job(request, definition, &configuration.0);
    }
}

fn check_training_job(request: &Request, definition: &Definition, configuration: &BTreeMap<String, String>) {
    let job = training_job(request, configuration);
    assert_eq!(job, training_job(request, configuration));
    assert!(job.get("Controller").is_none() && job.get("StaticHyperParameters").is_none());
    let parameters = job["HyperParameters"].as_object().map(serde_json::Map::len).unwrap_or_default();
    assert!((1..=HYPERPARAMETERS_MAX).contains(&parameters), "{parameters} hyperparameters");
    for (name, value) in job["HyperParameters"].as_object().into_iter().flatten() {
        let length = value.as_str().map(|value| value.chars().count());
        assert!(length.is_some_and(|length| length <= VALUE_CHARS_MAX), "{name}: {value}");
    }
    for (name, value) in configuration {
        assert_eq!(job["HyperParameters"][name.as_str()].as_str(), Some(value.as_str()), "{name}");
    }
    let tags: Vec<&Value> = job["Tags"].as_array().into_iter().flatten().collect();
    let keys: BTreeSet<Option<&str>> = tags.iter().map(|tag| tag["Key"].as_str()).collect();
    assert!(tags.len() <= TAGS_MAX && keys.len() == tags.len(), "{tags:?}");
    let uri = job["CheckpointConfig"]["S3Uri"].as_str().unwrap_or_default();
    assert!(uri.chars().count() <= URI_CHARS_MAX, "{uri}");
    let resources = &job["ResourceConfig"];
    assert_eq!(resources["InstanceCount"].as_u64(), Some(u64::from(definition.job.instance_count)));
    assert!(resources["InstanceType"].as_str().is_some_and(|kind| !kind.is_empty()), "{resources}");
}

fn prices(request: &Request) -> PriceAnswer {
    PriceAnswer::uniform(request, 115_000, 191_781)
}

fn training_job(request: &Request, configuration: &BTreeMap<String, String>) -> Value {
    let tags = ["hyperband:stack", "hyperband:tuning", "hyperband:decision"];
    let tags = tags.map(|tag| (tag.to_owned(), "x".to_owned())).into();
    let tuning_id = format!("{}-{INCARNATION}", request.name());
    request.create_training_job(&TrainingJob {
        name: "hb1-abc123-7-0-1",
        tuning_id: &tuning_id,
        trial: 7,
        configuration,
        limits: JobLimits {
            max_runtime_seconds: 600,
            max_wait_seconds: request.is_spot().then_some(900),
            keep_alive_seconds: request.keep_alive_seconds(),
        },
        tags: &tags,
        resource: None,
        launch: Launch::default(),
    })
}

fn described(request: &Request) -> RequestEcho {
    RequestEcho::of(request, "arn:aws:sagemaker:us-east-1:111122223333:hyper-parameter-tuning-job/hb1")
}
