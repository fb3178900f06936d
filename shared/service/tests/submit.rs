//! Submitting: all of a tuning is stored, or nothing.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use serde_json::{Value, json};
use service::memory::MemoryTable;
use service::ports::table::{Condition, Table, Write};
use service::ports::{Clock, Prices, PricesError};
use service::store::Store;
use service::submit::{Guardrails, Submit, SubmitError};
use tuning::money::MicroUsd;
use wire::request::ErrorCode;
use wire::stored::{MonthRow, month_of};

struct At(i64);

impl Clock for At {
    fn now(&self) -> i64 {
        self.0
    }
}

/// Knows one instance type.
struct Listed;

impl Prices for Listed {
    async fn instance_hour(&self, instance_type: &str) -> Result<Option<u64>, PricesError> {
        Ok((instance_type == "ml.m5.large").then_some(115_000))
    }

    async fn volume_kilo_gib_hour(&self) -> Result<Option<u64>, PricesError> {
        Ok(Some(191_781))
    }
}

/// Futures of the table in memory are ready at once.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("nothing here waits"),
    }
}

fn request(name: &str) -> Value {
    json!({
        "HyperParameterTuningJobName": name,
        "HyperParameterTuningJobConfig": {
            "Strategy": "Hyperband",
            "StrategyConfig": {"HyperbandStrategyConfig": {"MinResource": 1, "MaxResource": 9}},
            "HyperParameterTuningJobObjective": {"Type": "Maximize", "MetricName": "auc"},
            "ResourceLimits": {"MaxNumberOfTrainingJobs": 8, "MaxParallelTrainingJobs": 2},
            "ParameterRanges": {"ContinuousParameterRanges": [{"Name": "lr", "MinValue": "0.1", "MaxValue": "1"}]}
        },
        "TrainingJobDefinition": {
            "AlgorithmSpecification": {
                "TrainingImage": "image", "TrainingInputMode": "File",
                "MetricDefinitions": [{"Name": "auc", "Regex": "auc=(\\S+)"}]
            },
            "RoleArn": "arn:aws:iam::111122223333:role/example-training-role",
            "OutputDataConfig": {"S3OutputPath": "s3://example-bucket/out"},
            "ResourceConfig": {"InstanceCount": 1, "InstanceType": "ml.m5.large", "VolumeSizeInGB": 1},
            "StoppingCondition": {"MaxRuntimeInSeconds": 600}
        },
        "Controller": {"MaxCostUsd": 5}
    })
}

/// What submitting `body` gives, and how many rows are stored after it.
fn check(table: &MemoryTable, body: &Value) -> (Result<String, SubmitError>, usize) {
    check_under(None, table, body)
}

/// The same on a stack with a month's cap.
fn check_under(
    monthly_cap: Option<MicroUsd>,
    table: &MemoryTable,
    body: &Value,
) -> (Result<String, SubmitError>, usize) {
    let store = Arc::new(Store::new(Arc::new(table.clone())));
    let submit = Submit {
        store,
        prices: Listed,
        clock: At(1_790_000_000_000),
        monthly_cap,
        guardrails: Guardrails::default(),
    };
    let result = now(submit.submit(body.to_string().as_bytes())).map(|definition| definition.id());
    (result, table.rows().len())
}

#[test]
fn a_good_request_is_stored_whole() {
    let table = MemoryTable::new();
    let (id, rows) = check(&table, &request("good"));
    assert_eq!(rows, 5, "name, definition, head, list of the active, fact");
    let store = Store::new(Arc::new(table));
    let tuning = now(store.tuning(&id.unwrap())).unwrap().unwrap();
    assert_eq!(tuning.definition.cap.map(|cap| cap.0), Some(5_000_000));
    assert_eq!(tuning.definition.job.rate.map(|rate| rate.instance_hour), Some(115_000));
}

#[test]
fn a_bad_request_is_a_validation_exception_and_leaves_nothing() {
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
        assert_eq!(rows, 0, "{path}: nothing is stored");
    }
}

#[test]
fn a_name_is_taken_without_regard_to_case() {
    let table = MemoryTable::new();
    let (first, rows) = check(&table, &request("Name"));
    first.unwrap();
    let (second, after) = check(&table, &request("nAME"));
    assert_eq!(second, Err(SubmitError::NameTaken("nAME".to_owned())));
    assert_eq!(rows, after, "nothing is stored");
}

/// "The month's cap of a stack (UTC) is spent through grants."
#[test]
fn under_a_month_s_cap_a_tuning_gets_its_money_in_grants() {
    let table = MemoryTable::new();
    let (id, _) = check_under(Some(MicroUsd(1_000_000)), &table, &request("good"));
    let store = Store::new(Arc::new(table));
    assert!(now(store.tuning(&id.unwrap())).unwrap().unwrap().definition.grants);
}

#[test]
fn a_month_that_cannot_pay_one_job_takes_no_tuning() {
    let table = MemoryTable::new();
    let mut month = MonthRow::new(&month_of(1_790_000_000_000));
    // 900 seconds of 0.115 dollars an hour, and a little for the volume, are 0.028798 dollars.
    month.granted = MicroUsd(1_000_000 - 28_797);
    now(table.write(Write::Put(month.row(), Condition::Always))).unwrap();
    let (result, rows) = check_under(Some(MicroUsd(1_000_000)), &table, &request("good"));
    let Err(SubmitError::MonthlyCap(message)) = result else { panic!("{result:?}") };
    assert!(message.contains("0.0288 USD are not granted") && message.contains("2026-09"), "{message}");
    assert_eq!(rows, 1);
    let (result, _) = check_under(Some(MicroUsd(1_000_001)), &table, &request("good"));
    assert!(result.is_ok(), "{result:?}");
}

#[test]
fn a_month_s_cap_needs_a_price_even_where_the_tuning_has_no_cap() {
    let mut request = request("dear");
    request["Controller"] = json!({});
    request["TrainingJobDefinition"]["ResourceConfig"]["InstanceType"] = json!("ml.m5.2xlarge");
    let (result, rows) = check_under(Some(MicroUsd(1_000_000)), &MemoryTable::new(), &request);
    let Err(SubmitError::Request(error)) = result else { panic!("{result:?}") };
    assert_eq!((error.violations[0].path.as_str(), rows), ("Controller.InstancePricesUsdPerHour", 0));
}
