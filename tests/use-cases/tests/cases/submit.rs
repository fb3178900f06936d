//! Submissions: a tuning is stored completely or not at all.

use std::sync::Arc;

use port_tests::memory::MemoryTable;
use search::Configuration;
use serde_json::{Value, json};
use tuning::definition::Definition;
use tuning::log::fact::{Fact, JobEnd, JobKey, JobPhase, MetricLine, Recorded};
use tuning::money::grants::month_of;
use tuning::unit::money::{MicroUsd, Rate};
use tuning::unit::time::Time;
use use_cases::describe::{Place, describe};
use use_cases::ports::table::{Condition, Table, Write};
use use_cases::ports::{OtherTunings, OtherTuningsError, PricesError, Read};
use use_cases::store::Store;
use use_cases::submit::{Guardrails, Submit, SubmitError, Submitter};
use wire::events::logs::lines_to_facts;
use wire::request::ErrorCode;
use wire::sample::{self, request};
use wire::stored::MonthRow;

use crate::support::{PriceList, TestClock, now};
use crate::sweep::world::{self, World};

/// Submits `body`. Returns the result and the number of rows stored after it.
fn check(table: &MemoryTable, body: &Value) -> (Result<String, SubmitError>, usize) {
    check_under(None, table, body)
}

/// Like [`check`], on a stack with a monthly cap.
fn check_under(
    monthly_cap: Option<MicroUsd>,
    table: &MemoryTable,
    body: &Value,
) -> (Result<String, SubmitError>, usize) {
    let result = submit_with(PriceList::new(), monthly_cap, table, body).map(|definition| definition.id());
    (result, table.rows().len())
}

fn submit_with(
    prices: PriceList,
    monthly_cap: Option<MicroUsd>,
    table: &MemoryTable,
    body: &Value,
) -> Result<Definition, SubmitError> {
    submit_beside(None, prices, monthly_cap, table, body)
}

fn submit_beside(
    other_tunings: Option<Arc<dyn OtherTunings>>,
    prices: PriceList,
    monthly_cap: Option<MicroUsd>,
    table: &MemoryTable,
    body: &Value,
) -> Result<Definition, SubmitError> {
    let submitter = Submitter::default();
    submit_as(submitter, other_tunings, prices, monthly_cap, table, body)
}

fn submit_as(
    submitter: Submitter<'_>,
    other_tunings: Option<Arc<dyn OtherTunings>>,
    prices: PriceList,
    monthly_cap: Option<MicroUsd>,
    table: &MemoryTable,
    body: &Value,
) -> Result<Definition, SubmitError> {
    let store = Arc::new(Store::new(Arc::new(table.clone())));
    let clock = TestClock::at(1_790_000_000_000);
    let submit =
        Submit { store, other_tunings, prices, clock, monthly_cap, guardrails: Guardrails::default() };
    now(submit.submit_as(body.to_string().as_bytes(), submitter))
}

#[test]
fn a_valid_request_is_stored_completely() {
    let table = MemoryTable::new();
    let (id, rows) = check(&table, &request("good"));
    assert_eq!(rows, 5, "name, definition, head, active row, fact");
    let store = Store::new(Arc::new(table));
    let tuning = now(store.tuning(&id.unwrap())).unwrap().unwrap();
    assert_eq!(tuning.definition.cap.map(|cap| cap.0), Some(5_000_000));
    assert_eq!(tuning.definition.job.rate.map(|rate| rate.instance_hour), Some(115_000));
}

#[test]
fn an_invalid_request_is_a_validation_exception_and_stores_nothing() {
    let mut bad = Vec::new();
    for (path, value) in [
        ("/HyperParameterTuningJobName", json!("-")),
        ("/HyperParameterTuningJobConfig/ResourceLimits/MaxParallelTrainingJobs", json!(0)),
        ("/HyperParameterTuningJobConfig/ParameterRanges/ContinuousParameterRanges/0/MinValue", json!("2")),
        ("/TrainingJobDefinition/AlgorithmSpecification/MetricDefinitions/0/Regex", json!("(?=x)(y)")),
        ("/TrainingJobDefinition/ResourceConfig/InstanceType", json!("ml.m5.2xlarge")),
        ("/Controller/MaxCostUsd", json!(0.000_001)),
    ] {
        let mut request = request("bad");
        *request.pointer_mut(path).unwrap() = value;
        bad.push((path, request));
    }
    for (path, request) in bad {
        let table = MemoryTable::new();
        let (result, rows) = check(&table, &request);
        let Err(SubmitError::Request(error)) = result else { panic!("{path}: {result:?}") };
        assert_eq!(error.code, ErrorCode::ValidationException, "{path}");
        let field = path.rsplit('/').next().unwrap();
        let named = match field {
            "InstanceType" => "ml.m5.2xlarge",
            "MinValue" => "ContinuousParameterRanges[0]",
            field => field,
        };
        assert!(error.message.contains(named), "{path}: {error}");
        assert_eq!(rows, 0, "{path}: no row is stored");
    }
}

#[test]
fn names_are_case_insensitive() {
    let table = MemoryTable::new();
    let (first, rows) = check(&table, &request("Name"));
    first.unwrap();
    let (second, after) = check(&table, &request("nAME"));
    assert_eq!(second, Err(SubmitError::NameTaken("nAME".to_owned())));
    assert_eq!(rows, after, "no row is stored");
}

/// "The month's cap of a stack (UTC) is spent through grants."
#[test]
fn with_a_monthly_cap_a_tuning_uses_grants() {
    let table = MemoryTable::new();
    let (id, _) = check_under(Some(MicroUsd(1_000_000)), &table, &request("good"));
    let store = Store::new(Arc::new(table));
    assert!(now(store.tuning(&id.unwrap())).unwrap().unwrap().definition.grants);
}

#[test]
fn a_tuning_is_refused_if_the_month_cannot_pay_one_job() {
    let table = MemoryTable::new();
    let mut month = MonthRow::new(&month_of(Time(1_790_000_000_000)));
    // 900 seconds at 0.115 dollars an hour, and a little for the volume, are 0.028798 dollars.
    month.granted = MicroUsd(1_000_000 - 28_797);
    now(table.write(Write::Put(month.row(), Condition::Always))).unwrap();
    let (result, rows) = check_under(Some(MicroUsd(1_000_000)), &table, &request("good"));
    let Err(SubmitError::MonthlyCap(message)) = result else { panic!("{result:?}") };
    assert!(message.contains("has 0.0288 USD left") && message.contains("2026-09"), "{message}");
    assert_eq!(rows, 1);
    let (result, _) = check_under(Some(MicroUsd(1_000_001)), &table, &request("good"));
    assert!(result.is_ok(), "{result:?}");
}

#[test]
fn a_monthly_cap_requires_a_price_even_for_a_tuning_without_a_cap() {
    let mut request = request("dear");
    request["Controller"] = json!({});
    request["TrainingJobDefinition"]["ResourceConfig"]["InstanceType"] = json!("ml.m5.2xlarge");
    let (result, rows) = check_under(Some(MicroUsd(1_000_000)), &MemoryTable::new(), &request);
    let Err(SubmitError::Request(error)) = result else { panic!("{result:?}") };
    assert_eq!((error.violations[0].path.as_str(), rows), ("Controller.InstancePricesUsdPerHour", 0));
}

fn list(instance: Result<Option<u64>, PricesError>, volume: Result<Option<u64>, PricesError>) -> PriceList {
    PriceList { instance, volume }
}

fn silent() -> Result<Option<u64>, PricesError> {
    Err(PricesError::Unavailable("timed out".to_owned()))
}

/// The volume counted as free, so that the cap was lower than the bill.
#[test]
fn regression_with_a_cap_a_volume_of_unknown_price_is_refused() {
    let without_cap = |name: &str| {
        let mut request = request(name);
        request["Controller"] = json!({});
        request
    };
    for (monthly_cap, body) in [(None, request("own")), (Some(MicroUsd(1_000_000)), without_cap("month"))] {
        let table = MemoryTable::new();
        let prices = list(Ok(Some(115_000)), Ok(None));
        let Err(SubmitError::Request(error)) = submit_with(prices, monthly_cap, &table, &body) else {
            panic!("expected a refusal: the price of its volume is unknown")
        };
        assert!(error.message.contains("'ml.m5.large' and of its volume"), "{error}");
        assert!(table.rows().is_empty());
    }
}

/// With a price in the request, the price list was not asked, and 16 TiB were free.
#[test]
fn regression_a_volume_has_the_list_price_if_the_request_has_an_instance_price() {
    let mut body = request("given");
    body["Controller"]["InstancePricesUsdPerHour"] = json!({"ml.m5.large": 0.115});
    body["TrainingJobDefinition"]["ResourceConfig"]["VolumeSizeInGB"] = json!(16_384);
    let least = |volume| {
        let submitted = submit_with(list(silent(), volume), None, &MemoryTable::new(), &body);
        let definition = submitted.unwrap();
        let rate = definition.job.rate.unwrap();
        assert_eq!(rate.instance_hour, 115_000);
        (rate.volume_kilo_gib_hour, definition.least_cap().unwrap())
    };
    // 900 s at 0.115 dollars an hour, and of 16,384 GiB at 0.208334 dollars for 1,000 of them.
    assert_eq!(least(Ok(Some(208_334))), (208_334, MicroUsd(882_087)));
    // If the list has no volume price or is unavailable, the given price includes the volume.
    assert_eq!(least(Ok(None)), (0, MicroUsd(28_750)));
    assert_eq!(least(silent()), (0, MicroUsd(28_750)));
}

/// An unavailable price list prevented every tuning, even without a cap.
#[test]
fn regression_without_a_cap_a_tuning_needs_no_price_list() {
    let mut body = request("any");
    let submitted = |body: &Value, prices| submit_with(prices, None, &MemoryTable::new(), body);
    assert!(matches!(submitted(&body, list(silent(), silent())), Err(SubmitError::Prices(_))));
    assert!(matches!(submitted(&body, list(Ok(Some(1)), silent())), Err(SubmitError::Prices(_))));
    body["Controller"] = json!({});
    for prices in [list(silent(), silent()), list(Ok(Some(115_000)), silent())] {
        assert_eq!(submitted(&body, prices).unwrap().job.rate, None);
    }
    let rate = Rate { instance_hour: 115_000, volume_kilo_gib_hour: 191_781 };
    assert_eq!(submitted(&body, list(Ok(Some(115_000)), Ok(Some(191_781)))).unwrap().job.rate, Some(rate));
}

/// A tuning job of Automatic Model Tuning.
#[derive(Debug, Clone)]
struct OtherTuning {
    description: Value,
    trials: Vec<(Configuration, f64)>,
}

/// Automatic Model Tuning with one tuning job, `amt`.
#[derive(Debug)]
struct Automatic(Result<OtherTuning, OtherTuningsError>);

impl OtherTunings for Automatic {
    fn description<'a>(&'a self, name: &'a str) -> Read<'a, Option<Value>> {
        let found = (name == "amt").then(|| self.0.clone().map(|found| found.description)).transpose();
        Box::pin(std::future::ready(found))
    }

    fn trials<'a>(&'a self, name: &'a str, maximize: bool, _: usize) -> Read<'a, Vec<(Configuration, f64)>> {
        assert_eq!((name, maximize), ("amt", true));
        Box::pin(std::future::ready(self.0.clone().map(|found| found.trials)))
    }
}

fn with_channel(name: &str, channel: &Value) -> Value {
    let source = json!({"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://example-bucket/in"}});
    let mut channel = channel.clone();
    (channel["ChannelName"], channel["DataSource"]) = (json!("train"), source);
    sample::with(request(name), json!({"TrainingJobDefinition": {"InputDataConfig": [channel]}}))
}

/// Returns a tuning job with these trials, as `SageMaker` describes it: with a hyperparameter of its own, and with defaults
/// of the channel.
fn automatic(status: &str, trials: &[(&str, f64)]) -> OtherTuning {
    let mut description =
        with_channel("amt", &json!({"CompressionType": "None", "RecordWrapperType": "None"}));
    description.as_object_mut().unwrap().remove("Controller");
    description["TrainingJobDefinition"]["StaticHyperParameters"] =
        json!({"_tuning_objective_metric": "auc"});
    let configuration = |rate: &str| Configuration([("lr".to_owned(), rate.to_owned())].into());
    let trials = trials.iter().map(|(rate, value)| (configuration(rate), *value)).collect();
    description["HyperParameterTuningJobStatus"] = json!(status);
    OtherTuning { description, trials }
}

/// Returns the request of a tuning that starts from `parent`.
fn child_of(parent: &str) -> Value {
    let changes = json!({"WarmStartConfig": {
        "ParentHyperParameterTuningJobs": [{"HyperParameterTuningJobName": parent}],
        "WarmStartType": "IdenticalDataAndAlgorithm",
    }});
    sample::with(with_channel("child", &json!({})), changes)
}

/// Submits a tuning that starts from `parent`, beside this tuning job of Automatic Model Tuning.
fn warm_start(
    automatic: Result<OtherTuning, OtherTuningsError>,
    parent: &str,
) -> Result<Definition, SubmitError> {
    let automatic = Some(Arc::new(Automatic(automatic)) as _);
    submit_beside(automatic, PriceList::new(), None, &MemoryTable::new(), &child_of(parent))
}

#[test]
fn a_tuning_of_automatic_model_tuning_is_a_parent() {
    let definition = warm_start(Ok(automatic("Completed", &[("0.1", 0.75), ("0.2", 0.5)])), "amt").unwrap();
    let warm = definition.warm_start.unwrap();
    assert_eq!(warm.names, ["amt"]);
    let values: Vec<f64> = warm.parents[0].observations().iter().map(|(_, value)| *value).collect();
    assert_eq!(values, [0.75, 0.5]);
}

/// "`OverallBestTrainingJob` for Identical"
#[test]
fn the_best_job_of_a_parent_of_automatic_model_tuning_can_be_the_overall_best() {
    let overall = |body: &Value, has_best: bool| {
        let mut found = automatic("Completed", &[("0.1", 0.75)]);
        found.description["BestTrainingJob"] = json!({
            "TrainingJobName": "amt-007-1a2b3c4d",
            "TrainingJobArn": "arn:aws:sagemaker:us-east-1:111122223333:training-job/amt-007-1a2b3c4d",
            "CreationTime": 1.789e9, "TrainingStartTime": 1.789e9, "TrainingEndTime": 1_789_000_060.5,
            "TrainingJobStatus": "Completed", "TunedHyperParameters": {"lr": "0.1"},
            "FinalHyperParameterTuningJobObjectiveMetric": {"Type": "Maximize", "MetricName": "auc", "Value": 0.75},
            "ObjectiveStatus": "Succeeded"
        });
        if !has_best {
            found.description.as_object_mut().unwrap().remove("BestTrainingJob");
        }
        let table = MemoryTable::new();
        let automatic = Some(Arc::new(Automatic(Ok(found))) as _);
        let id = submit_beside(automatic, PriceList::new(), None, &table, body).unwrap().id();
        let store = Store::new(Arc::new(table));
        let place = Place::of_arn("arn:aws:lambda:us-east-1:111122223333:function:api");
        // `extend` takes the name over.
        assert_eq!(now(store.tuning(&id)).unwrap().unwrap().other_parents[0]["TuningJobName"], "amt");
        now(describe(&store, &place, &id)).unwrap().unwrap().overall_best_training_job
    };
    let best = overall(&child_of("amt"), true).unwrap();
    assert_eq!(overall(&child_of("amt"), false), None);
    assert_eq!((&*best.name, best.tuning_job_name.as_deref()), ("amt-007-1a2b3c4d", Some("amt")));
    assert_eq!(best.ended_ms, Some(1_789_000_060_500));
    let other_data = json!({"WarmStartConfig": {"WarmStartType": "TransferLearning"}});
    assert_eq!(overall(&sample::with(child_of("amt"), other_data), true), None);
}

/// The model would take its best value for good, although the program then failed.
#[test]
fn a_trial_that_failed_or_diverged_is_no_observation_of_a_parent() {
    let world = World::new();
    let mut body = world::request("parent", 4);
    body["Controller"] = json!({"MaxDivergedEpochs": 2});
    let id = world.submit_request(&body);
    let end_of = |job: JobKey, values: &[f64], end: JobEnd| {
        let at = Time(world.lock().now);
        let line = |(n, value): (i64, &f64)| MetricLine {
            id: format!("{n:020}"),
            at: Time(at.0 + n),
            index: None,
            value: Some(*value).filter(|value| value.is_finite()),
        };
        let facts = lines_to_facts("logs", job, "one/algo-1-1", (0..).zip(values).map(line).collect());
        world.decide(&id, &facts);
        let (started, message) = (Some(at), None);
        let (phase, ended) = (JobPhase::Ended(end), Some(at));
        let described = Fact::JobDescribed {
            job,
            end,
            started,
            ended,
            billable_seconds: 60,
            message: None,
            interruptions: 0,
        };
        let state = Fact::JobStateChanged { job, phase, started, ended, message };
        for (key, fact) in [("ended", state), ("described", described), ("read", Fact::RestRead { job })] {
            world.decide(&id, &[Recorded { key: format!("{key}#{job}"), at, fact }]);
        }
    };
    let nan = f64::NAN;
    let trials = [
        (&[0.5][..], JobEnd::Completed),
        (&[0.9], JobEnd::AlgorithmError),
        (&[0.8, nan, nan], JobEnd::Stopped),
        (&[0.7], JobEnd::Completed),
    ];
    for (job, (values, end)) in world.live(&id).into_iter().zip(trials) {
        end_of(job, values, end);
    }
    assert_eq!(world.live(&id), [], "all have ended");
    for _ in 0..3 {
        world.pass(world::MINUTE);
        world.sweep(world::unpaced());
        world.decide(&id, &[]);
    }
    let mut child = child_of("parent");
    child["TrainingJobDefinition"] = body["TrainingJobDefinition"].clone();
    let child = world.submit_request(&child);
    let tuning = now(Store::new(Arc::new(world.clone())).tuning(&child)).unwrap().unwrap();
    let warm = tuning.definition.warm_start.clone().unwrap();
    let mut values: Vec<f64> = warm.parents[0].observations().iter().map(|(_, value)| *value).collect();
    values.sort_by(f64::total_cmp);
    assert_eq!(values, [0.5, 0.7]);
}

#[test]
fn a_list_with_one_definition_is_a_parent_too() {
    let mut found = automatic("Stopped", &[("0.1", 0.75)]);
    let members = found.description.as_object_mut().unwrap();
    let mut job = members.remove("TrainingJobDefinition").unwrap();
    let config = members["HyperParameterTuningJobConfig"].as_object_mut().unwrap();
    job["DefinitionName"] = json!("only");
    job["TuningObjective"] = config.remove("HyperParameterTuningJobObjective").unwrap();
    job["HyperParameterRanges"] = config.remove("ParameterRanges").unwrap();
    members.insert("TrainingJobDefinitions".to_owned(), json!([job]));
    assert_eq!(warm_start(Ok(found), "amt").unwrap().warm_start.unwrap().names, ["amt"]);
}

#[test]
fn a_parent_of_automatic_model_tuning_that_cannot_be_one_is_refused_by_name() {
    let message = |found, parent| match warm_start(found, parent).unwrap_err() {
        SubmitError::Request(error) => error.to_string(),
        error => error.to_string(),
    };
    let running = message(Ok(automatic("InProgress", &[("0.1", 0.75)])), "amt");
    assert!(running.contains("the parent tuning job amt is InProgress; wait for its end"), "{running}");
    let none = message(Ok(automatic("Completed", &[])), "amt");
    assert!(none.contains("no trial of the parent tuning job amt counts"), "{none}");
    let unknown = message(Ok(automatic("Completed", &[])), "other");
    assert!(unknown.contains("no hyperparameter tuning job is named other"), "{unknown}");
    let refused = message(
        Err(OtherTuningsError::Refused {
            code: "AccessDeniedException".to_owned(),
            message: "no".to_owned(),
        }),
        "amt",
    );
    assert!(refused.contains("amt is not available: SageMaker refused"), "{refused}");
}

/// A parent shows its hyperparameters and values.
#[test]
fn a_submitter_who_sees_only_own_tunings_cannot_name_others_as_parents() {
    let table = MemoryTable::new();
    let submitted = |arn, sees_own_only, body: &Value| {
        let submitter = Submitter { arn: Some(arn), sees_own_only };
        let automatic = Some(Arc::new(Automatic(Ok(automatic("Completed", &[("0.1", 0.75)])))) as _);
        let result = submit_as(submitter, automatic, PriceList::new(), None, &table, body);
        result.map_err(|error| match error {
            SubmitError::Request(error) => error.to_string(),
            error => error.to_string(),
        })
    };
    submitted("arn:a", true, &with_channel("mine", &json!({}))).unwrap();
    let message = |arn, sees_own_only, parent| submitted(arn, sees_own_only, &child_of(parent)).unwrap_err();
    assert!(message("arn:a", true, "mine").contains("the parent tuning job mine is InProgress"));
    assert!(message("arn:b", false, "mine").contains("the parent tuning job mine is InProgress"));
    assert!(message("arn:b", true, "mine").contains("no hyperparameter tuning job is named mine"));
    assert!(message("arn:b", true, "amt").contains("no hyperparameter tuning job is named amt"));
    assert!(submitted("arn:b", false, &child_of("amt")).is_ok());
}
