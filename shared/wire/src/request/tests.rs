//! Tests of requests as clients send them, and of the definition made from them.

mod definitions;
mod jobs;
mod lifted;
mod rungs;
mod strategies;
mod table;

use hyperband::plan::{Plan, strictness};
use search::{Domain, SamplerKind, Scaling};
use serde_json::json;
use tuning::definition::{Definition, EpochRule, Strategy};
use tuning::unit::money::{MicroUsd, Rate};
use tuning::unit::time::Time;

use super::*;
use crate::algorithm::{ALGORITHMS, Emission};

const SAMPLE: &str =
    include_str!("../../../../events/aws.sagemaker.api/create-hyper-parameter-tuning-job.request.json");

fn sample() -> Value {
    serde_json::from_str(SAMPLE).unwrap()
}

/// Returns the validated sample request after `change`.
fn request(change: impl FnOnce(&mut Value)) -> Request {
    let mut body = sample();
    change(&mut body);
    Request::check(body).unwrap_or_else(|error| panic!("{error}"))
}

fn definition(change: impl FnOnce(&mut Value), price: Option<u64>) -> Result<Definition, RequestError> {
    let request = request(change);
    let unknown = PriceAnswer { volume_kilo_gib_hour: Some(191_781), ..PriceAnswer::default() };
    let prices = price.map_or(unknown, |price| PriceAnswer::uniform(&request, price, 191_781));
    request.definition(Time(1_700_000_000_000), "3fa1c2", &prices)
}

#[test]
fn the_sample_request_is_converted_to_a_definition() {
    let request = Request::parse(SAMPLE.as_bytes()).unwrap();
    assert_eq!(request.body(), &sample());
    let made = definition(|_| {}, Some(461_000)).unwrap();
    assert_eq!(
        (made.name.as_str(), made.id().as_str(), made.created),
        ("hb1", "hb1-3fa1c2", Time(1_700_000_000_000))
    );
    assert_eq!(
        (made.seed, made.sampler, made.cap, made.settings.max_interruptions),
        (7, SamplerKind::Model, None, 3)
    );
    let plan = Plan::hyperband(1, 30, 2).unwrap().highest(30, strictness(30));
    assert_eq!(made.strategy, Strategy::Hyperband { plan, rungs: tuning::definition::RungExecution::Stop });
    assert_eq!(made.objective, Objective::Maximize);
    assert_eq!((made.limits.max_jobs, made.limits.max_parallel), (30, 4));
    assert_eq!((made.limits.max_runtime_seconds, made.limits.max_instances), (None, None));
    assert_eq!((made.limits.target, made.limits.not_improving), (None, None));
    assert_eq!((made.job.instance_count, made.job.volume_gib, made.job.spot), (3, 30, true));
    assert_eq!((made.job.max_runtime_seconds, made.job.max_wait_seconds), (2_400, Some(3_600)));
    assert_eq!(made.job.rate, Some(Rate { instance_hour: 461_000, volume_kilo_gib_hour: 191_781 }));
    assert_eq!(
        made.epochs,
        EpochRule { captured: true, base: 0, per_attempt: true, is_base_assumed: false },
        "XGBoost's"
    );
    let domains: Vec<_> =
        made.space.parameters().iter().map(|p| (p.name.as_str(), p.domain.clone())).collect();
    assert_eq!(
        domains,
        [
            ("max_depth", Domain::Integer { min: 1, max: 10, scaling: Scaling::Linear }),
            ("eta", Domain::Continuous { min: 0.01, max: 1.0, scaling: Scaling::Logarithmic }),
        ]
    );
}

#[test]
fn absent_fields_take_their_defaults() {
    let made = definition(
        |body| {
            let config = body["HyperParameterTuningJobConfig"].as_object_mut().unwrap();
            config.remove("RandomSeed");
            config["ResourceLimits"] = json!({"MaxParallelTrainingJobs": 4});
            config["StrategyConfig"] = json!({});
            let job = &mut body["TrainingJobDefinition"];
            job["EnableManagedSpotTraining"] = json!(false);
            job["StoppingCondition"] = json!({});
        },
        None,
    )
    .unwrap();
    // num_round is 30: a full set of the brackets of 1 to 30 has 27 + 12 + 6 + 4 trials.
    assert_eq!(made.plan(), &Plan::hyperband(1, 30, 2).unwrap().highest(49, strictness(49)));
    assert_eq!(made.limits.max_jobs, 49);
    assert_eq!(
        (made.job.max_runtime_seconds, made.job.max_wait_seconds, made.job.rate),
        (86_400, None, None)
    );
    // The first 8 bytes of SHA-256 of "hb1-3fa1c2". Stored tunings depend on this value.
    let without_seed = |body: &mut Value| {
        body["HyperParameterTuningJobConfig"].as_object_mut().unwrap().remove("RandomSeed");
    };
    assert_eq!(made.seed, definition(without_seed, None).unwrap().seed);
    assert_eq!(made.seed, SEED_OF_HB1_3FA1C2);
    let other = request(without_seed).definition(Time(0), "3fa1c3", &PriceAnswer::default()).unwrap();
    assert_ne!(made.seed, other.seed);
}

const SEED_OF_HB1_3FA1C2: u64 = 0x8bee_e980_e4c6_d25a;

#[test]
fn the_largest_resource_is_inferred_from_static_hyperparameters() {
    let inferred = |statics: Value, controller: Value| {
        let made = request(|body| {
            body["HyperParameterTuningJobConfig"].as_object_mut().unwrap().remove("StrategyConfig");
            body["TrainingJobDefinition"]["StaticHyperParameters"] = statics;
            body["Controller"] = controller;
        });
        made.max_resource()
    };
    for name in ["epochs", "numepochs", "n-epochs", "n_epochs", "num_epochs", "num_round", "num_boost_round"]
    {
        assert_eq!(inferred(json!({name: "12"}), json!({})), Some(12), "{name}");
    }
    // Framework estimators send JSON.
    assert_eq!(inferred(json!({"epochs": "\"12\""}), json!({})), Some(12));
    assert_eq!(inferred(json!({"epochs": "5", "num_round": "9"}), json!({})), Some(5));
    assert_eq!(
        inferred(json!({"epochs": "5", "rounds": "9"}), json!({"ResourceHyperParameter": "rounds"})),
        Some(9)
    );
}

/// Returns a request for a built-in algorithm with only the required fields.
fn built_in(name: &str, metric: &str, statics: Value) -> Request {
    request(|body| {
        let config = body["HyperParameterTuningJobConfig"].as_object_mut().unwrap();
        config.remove("StrategyConfig");
        config["HyperParameterTuningJobObjective"]["MetricName"] = json!(metric);
        let job = body["TrainingJobDefinition"].as_object_mut().unwrap();
        job.insert("StaticHyperParameters".to_owned(), statics);
        job.insert(
            "AlgorithmSpecification".to_owned(),
            json!({"TrainingInputMode": "File", "AlgorithmName": name}),
        );
    })
}

#[test]
fn a_built_in_algorithm_supplies_the_defaults_of_the_request() {
    for algorithm in ALGORITHMS.iter().filter(|algorithm| algorithm.emits_while_running()) {
        let metric = algorithm.metrics.iter().find(|metric| metric.emission != Emission::AtEnd).unwrap();
        // Without a known default the request must set the epochs.
        let epochs = algorithm.resource.map_or("epochs", |resource| resource.name);
        let known = algorithm.resource.and_then(|resource| resource.default);
        let statics = if known.is_some() { json!({}) } else { json!({epochs: "12"}) };
        let made = built_in(algorithm.names[0], metric.name, statics);
        assert_eq!(made.max_resource(), known.or(Some(12)), "{algorithm}");
        assert_eq!(
            made.resource_hyperparameter(),
            known.map(|_| epochs),
            "a static hyperparameter is not overridden"
        );
        let rule = made.definition(Time(0), "a", &PriceAnswer::default()).unwrap().epochs;
        let expected = algorithm.epochs.map_or(
            EpochRule { captured: false, base: 1, per_attempt: false, is_base_assumed: false },
            |own| EpochRule {
                captured: true,
                base: own.base,
                per_attempt: own.per_attempt,
                is_base_assumed: false,
            },
        );
        assert_eq!(rule, expected, "{algorithm}");
    }
}

#[test]
fn a_built_in_with_its_objective_at_the_end_has_no_resource() {
    let made = built_in("linear-learner", "validation:mse", json!({"epochs": "9"}));
    assert_eq!(made.epoch_pattern(), None, "the line of a final value has no epoch");
    let kmeans = built_in("kmeans", "test:msd", json!({"epochs": "9"}));
    assert_eq!((kmeans.resource_hyperparameter(), kmeans.max_resource()), (None, Some(9)));
    let body = |name: &str, metric: &str| {
        let mut body = built_in("kmeans", "test:msd", json!({"epochs": "9"})).body().clone();
        let job = &mut body["TrainingJobDefinition"];
        job["StaticHyperParameters"] = json!({});
        job["AlgorithmSpecification"]["AlgorithmName"] = json!(name);
        body["HyperParameterTuningJobConfig"]["HyperParameterTuningJobObjective"]["MetricName"] =
            json!(metric);
        body
    };
    let error = Request::check(body("kmeans", "test:msd")).unwrap_err();
    assert!(error.message.contains("MaxResource parameter is not provided"), "{error}");
    let error = Request::check(body("kmeans", "validation:msd")).unwrap_err();
    assert!(
        error.message.contains("Metrics of K-Means that need no definition: test:msd, test:ssd"),
        "{error}"
    );
}

#[test]
fn the_epochs_of_a_built_in_are_set_unless_the_request_sets_them() {
    let name = |change: &dyn Fn(&mut Value)| {
        let made = request(|body| change(body));
        made.resource_hyperparameter().map(str::to_owned)
    };
    let statics = |body: &mut Value| body["TrainingJobDefinition"]["StaticHyperParameters"] = json!({});
    assert_eq!(name(&statics).as_deref(), Some("num_round"));
    assert_eq!(name(&|_| {}), None, "num_round is static");
    let tuned = |body: &mut Value| {
        statics(body);
        body["HyperParameterTuningJobConfig"]["ParameterRanges"]["IntegerParameterRanges"][0]["Name"] =
            json!("num_round");
    };
    assert_eq!(name(&tuned), None);
    let given = json!({"ResourceHyperParameter": "num_round"});
    assert_eq!(name(&|body| body["Controller"] = given.clone()).as_deref(), Some("num_round"));
    // Validation may reject this request, but the jobs of a promoted trial must end at their rungs.
    let mut body = sample();
    body["Controller"] = json!({"RungExecution": "Promote"});
    assert_eq!(Request::from_stored(body).resource_hyperparameter(), Some("num_round"));
}

#[test]
fn with_a_model_one_bracket_compares_late() {
    let plan = |jobs: u32, controller: Value| {
        let change = |body: &mut Value| {
            body["HyperParameterTuningJobConfig"]["ResourceLimits"]["MaxNumberOfTrainingJobs"] = json!(jobs);
            body["Controller"] = controller;
        };
        definition(change, None).unwrap().plan().clone()
    };
    // 30 epochs, compared at an eighth, a quarter and half of them.
    let late = |strictness| Plan::hyperband(1, 30, 2).unwrap().highest(50, strictness);
    for (jobs, strictness) in [(8, 100), (30, 100), (51, 70), (86, 20), (100, 0), (500, 0)] {
        assert_eq!(plan(jobs, json!({})), late(strictness), "{jobs} jobs");
        assert_eq!(plan(jobs, json!({"Prefer": "Value"})), late(0), "{jobs} jobs");
        assert_eq!(plan(jobs, json!({"Prefer": "Cost"})), late(100), "{jobs} jobs");
    }
    let late = late(0);
    let levels =
        |plan: &Plan| plan.brackets()[0].rungs().iter().map(|rung| rung.resource).collect::<Vec<_>>();
    assert_eq!(levels(&late), [3, 7, 15, 30]);
    // Fewer jobs cannot fill three comparisons.
    assert_eq!(levels(&plan(7, json!({}))), [7, 15, 30]);
    let usual = Plan::hyperband(1, 30, 3).unwrap();
    assert_eq!(plan(50, json!({"ReductionFactor": 3})), usual);
    assert_eq!(plan(50, json!({"Sampler": "Sobol"})), usual);
}

#[test]
fn defaults_of_a_built_in_algorithm_apply_to_no_other_program() {
    let rule = |controller: Value| {
        let own = |body: &mut Value| {
            body["TrainingJobDefinition"]["AlgorithmSpecification"]["TrainingImage"] =
                json!("h.example/own:1");
            body["HyperParameterTuningJobConfig"]["StrategyConfig"] =
                json!({"HyperbandStrategyConfig": {"MinResource": 1, "MaxResource": 9}});
            body["Controller"] = controller;
        };
        definition(own, None).unwrap().epochs
    };
    let xgboost = r"^(?:\[\d\d:\d\d:\d\d\]\s)?\[(\d+)\](?:#011|\t)";
    let other = EpochRule { captured: true, base: 1, is_base_assumed: true, per_attempt: false };
    for pattern in [xgboost, r"\[([0-9]+)\]#011", r"\[(\d+)\]", "epoch=([0-9]+)"] {
        assert_eq!(rule(json!({"EpochPattern": pattern})), other, "{pattern}");
        let xgboost = built_in("xgboost", "validation:auc", json!({"num_round": "12"}));
        let mut body = xgboost.body().clone();
        body["Controller"]["EpochPattern"] = json!(pattern);
        let made =
            Request::check(body).unwrap().definition(Time(0), "a", &PriceAnswer::default()).unwrap().epochs;
        let expected = if pattern.starts_with("epoch") {
            other
        } else {
            EpochRule { captured: true, base: 0, is_base_assumed: false, per_attempt: true }
        };
        assert_eq!(made, expected, "{pattern} with the built-in algorithm");
    }
    let chosen = json!({"EpochPattern": xgboost, "EpochBase": 1, "EpochNumbering": "Absolute"});
    assert_eq!(rule(chosen), EpochRule { is_base_assumed: false, ..other });
    let zero = json!({"EpochPattern": "epoch=([0-9]+)", "EpochBase": 0, "EpochNumbering": "PerAttempt"});
    assert_eq!(rule(zero), EpochRule { captured: true, base: 0, is_base_assumed: false, per_attempt: true });
}

#[test]
fn a_cap_needs_a_price_and_room_for_one_job() {
    let capped = |controller: Value, price| definition(|body| body["Controller"] = controller, price);
    let error = capped(json!({"MaxCostUsd": 5}), None).unwrap_err();
    assert_eq!(error.violations[0].path, "Controller.InstancePricesUsdPerHour");
    assert_eq!(
        error.message,
        "1 validation error detected: MaxCostUsd needs the price of instance type 'ml.m5.2xlarge' and of its volume, \
         but the price list lacks at least one of them; set the price of both for one hour in \
         Controller.InstancePricesUsdPerHour, for example {\"ml.m5.2xlarge\": <USD per hour>}; on a stack, ask its owner \
         to set InstancePrices (at 'Controller.InstancePricesUsdPerHour')"
    );
    // 3 x (0.461 + 30 GiB) for 60 s to start, MaxWait as sent (2400 + 900 s), 120 s to stop and 120 s to upload: 1.40026
    // USD.
    let error = capped(json!({"MaxCostUsd": 1.4}), Some(461_000)).unwrap_err();
    assert_eq!(error.violations[0].path, "Controller.MaxCostUsd");
    assert!(error.message.contains("Invalid MaxCostUsd 1.4000: expected at least 1.41"), "{error}");
    assert!(error.message.contains("(3 x ml.m5.2xlarge at its time limits, with 60 s for"), "{error}");
    assert_eq!(capped(json!({"MaxCostUsd": 1.41}), Some(461_000)).unwrap().cap, Some(MicroUsd(1_410_000)));
}

#[test]
fn counted_epochs_are_bounded_and_captured_epochs_are_not() {
    let made = |controller: Value| {
        definition(
            |body| {
                let config = &mut body["HyperParameterTuningJobConfig"];
                config["StrategyConfig"]["HyperbandStrategyConfig"]["MaxResource"] = json!(20_000);
                config["ResourceLimits"]["MaxParallelTrainingJobs"] = json!(11);
                body["TrainingJobDefinition"]["AlgorithmSpecification"]["TrainingImage"] = json!("mine");
                body["Controller"] = controller;
            },
            None,
        )
    };
    let error = made(json!({})).unwrap_err();
    assert_eq!(error.violations[0].path, "Controller.EpochPattern");
    assert!(error.message.contains("at most 200000, but is 220000"), "{error}");
    assert!(made(json!({"EpochPattern": "epoch ([0-9]+)"})).is_ok());
}

#[test]
fn prices_are_rounded_up_and_caps_down() {
    let controller = json!({
        "MaxCostUsd": 20.000_000_9,
        "InstancePricesUsdPerHour": {"ml.m5.2xlarge": 0.461_000_1, "ml.m5.large": 0.115},
    });
    let made = definition(|body| body["Controller"] = controller, Some(1)).unwrap();
    assert_eq!(made.cap, Some(MicroUsd(20_000_000)));
    assert_eq!(made.job.rate.unwrap().instance_hour, 461_001, "the request's price overrides the price list");
}

/// The volume used to cost nothing, so the bill could exceed the cap.
#[test]
fn regression_a_cap_needs_the_listed_price_of_the_volume_too() {
    let listed = |controller: Value, volume| {
        let request = request(|body| body["Controller"] = controller);
        let prices =
            PriceAnswer { volume_kilo_gib_hour: volume, ..PriceAnswer::uniform(&request, 461_000, 0) };
        request.definition(Time(0), "3fa1c2", &prices)
    };
    let error = listed(json!({"MaxCostUsd": 20}), None).unwrap_err();
    assert_eq!(error.violations[0].path, "Controller.InstancePricesUsdPerHour");
    assert!(error.message.contains("'ml.m5.2xlarge' and of its volume"), "{error}");
    assert_eq!(
        listed(json!({}), None).unwrap().job.rate,
        None,
        "without a cap the price is shown as unknown"
    );
    // A price in the request includes the volume if the price list lacks the volume.
    let own = json!({"MaxCostUsd": 20, "InstancePricesUsdPerHour": {"ml.m5.2xlarge": 0.5}});
    for (volume, counted) in [(None, 0), (Some(191_781), 191_781)] {
        let rate = Rate { instance_hour: 500_000, volume_kilo_gib_hour: counted };
        assert_eq!(listed(own.clone(), volume).unwrap().job.rate, Some(rate));
    }
}

#[test]
fn requests_of_the_python_sdk_are_accepted() {
    // Version 2: all three lists, statics as JSON, the resource configuration of tuning.
    let second = request(|body| {
        body["TrainingJobDefinition"]["StaticHyperParameters"] = json!({
            "epochs": "10",
            "sagemaker_program": "\"train.py\"",
            "sagemaker_submit_directory": "\"s3://example-bucket/source.tar.gz\"",
            "sagemaker_container_log_level": "20",
            "sagemaker_job_name": "\"job\"",
            "sagemaker_region": "\"us-east-1\"",
        });
        body["HyperParameterTuningJobConfig"]["ParameterRanges"]["CategoricalParameterRanges"] =
            json!([{"Name": "optimizer", "Values": ["\"adam\"", "\"sgd\""]}]);
        body["TrainingJobDefinition"]["Environment"] = json!({"A": "1"});
        body["TrainingJobDefinition"]["RetryStrategy"] = json!({"MaximumRetryAttempts": 2});
    });
    assert_eq!(second.built_in(), None, "script mode");
    assert_eq!(second.instance_type(), "ml.m5.2xlarge");
    // Version 3: lists that are not empty, ResourceConfig, members that are null, compression of the output.
    let third = request(|body| {
        body["HyperParameterTuningJobConfig"]["ParameterRanges"] = json!({
            "ContinuousParameterRanges": [{"Name": "lr", "MinValue": "0.001", "MaxValue": "0.1", "ScalingType": "Auto"}],
        });
        body["HyperParameterTuningJobConfig"].as_object_mut().unwrap().remove("RandomSeed");
        body["WarmStartConfig"] = Value::Null;
        let job = body["TrainingJobDefinition"].as_object_mut().unwrap();
        job.remove("HyperParameterTuningResourceConfig");
        job.remove("CheckpointConfig");
        job["OutputDataConfig"]["CompressionType"] = json!("GZIP");
        job["AlgorithmSpecification"].as_object_mut().unwrap().remove("MetricDefinitions");
        job.insert(
            "ResourceConfig".to_owned(),
            json!({
                "InstanceType": "ml.m5.xlarge", "InstanceCount": 2, "VolumeSizeInGB": 30,
                "KeepAlivePeriodInSeconds": 0, "InstanceGroups": null,
            }),
        );
    });
    assert_eq!(
        (third.instance_type(), third.instance_count(), third.first_choice().volume_gib),
        ("ml.m5.xlarge", 2, 30)
    );
    assert!(third.body().get("WarmStartConfig").is_none(), "null is absent");
    assert!(third.metric_regex().unwrap().contains("validation-auc"));
    assert_eq!(third.definition(Time(0), "a", &PriceAnswer::default()).unwrap().space.dimensions(), 1);
}

#[test]
fn accessors_return_the_fields_of_the_request() {
    let request = request(|body| {
        body["Controller"] = json!({"MetricHost": "algo-2", "ResourceHyperParameter": "num_round"});
    });
    assert_eq!((request.name(), request.metric_host()), ("hb1", "algo-2"));
    assert_eq!(request.resource_hyperparameter(), Some("num_round"));
    assert_eq!(request.checkpoint_uri(), Some("s3://example-bucket/ckpt/hb1/"));
    assert_eq!(request.tags(), BTreeMap::from([("team".to_owned(), "example".to_owned())]));
    assert!(request.metric_regex().unwrap().starts_with(r".*\[[0-9]+\].*#011validation-auc:"));
    assert_eq!(request.epoch_pattern(), Some(r"\[([0-9]+)\](?:#011|\t)"));
}

#[test]
fn a_stored_request_is_read_back_without_validation() {
    let request = request(|_| {});
    assert_eq!(Request::from_stored(request.body().clone()), request);
    let empty = Request::from_stored(json!(null));
    assert_eq!((empty.name(), empty.instance_count(), empty.max_jobs()), ("", 1, 1));
    assert!(empty.definition(Time(0), "a", &PriceAnswer::default()).is_err());
}

#[test]
fn a_body_that_is_not_an_object_has_its_own_error_code() {
    let error = Request::parse(b"[1]").unwrap_err();
    assert_eq!(
        (error.code.as_str(), error.message.as_str()),
        ("SerializationException", "The body must be a JSON object")
    );
    let error = Request::parse(b"{}").unwrap_err();
    assert_eq!(error.code.as_str(), "ValidationException");
    let paths: Vec<_> = error.violations.iter().map(|violation| violation.path.as_str()).collect();
    assert_eq!(
        paths,
        ["HyperParameterTuningJobName", "HyperParameterTuningJobConfig", "TrainingJobDefinition"]
    );
}

#[test]
fn each_supported_value_of_the_table_is_read_as_a_variant() {
    let read = [
        "HyperParameterTuningJobConfig.Strategy",
        "HyperParameterTuningJobConfig.HyperParameterTuningJobObjective.Type",
        "HyperParameterTuningJobConfig.TrainingJobEarlyStoppingType",
        "Controller.RungExecution",
        "Controller.Scheduling",
        "Controller.Sampler",
        "Controller.EpochNumbering",
        "Controller.SpotFallback",
        "Controller.Refit",
    ];
    for path in read {
        let row = crate::constraint::rows().find(|row| row.path == path).unwrap();
        let supported = |value: &&str| row.unsupported.is_none_or(|not| !not.values.contains(value));
        for value in row.values.iter().copied().filter(supported) {
            let body = path.rsplit('.').fold(json!(value), |inner, member| json!({ member: inner }));
            let fields = format!("{:?}", Request::from_stored(body).fields());
            assert!(fields.contains(&format!("Some({value})")), "{path}: {value}");
        }
    }
}
