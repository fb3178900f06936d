//! Tests of plans with numbers that can be calculated by hand.

use serde_json::{Value, json};

use super::*;

/// Returns the example with the brackets of Hyperband, after a change.
fn request(change: impl FnOnce(&mut Value)) -> Request {
    let hello = serde_json::from_str(include_str!("../../../examples/hello/request.json")).unwrap();
    let mut body = wire::sample::for_stack(hello);
    body["Controller"]["ReductionFactor"] = json!(3);
    change(&mut body);
    Request::check(body).unwrap_or_else(|error| panic!("{error}"))
}

fn outlook(change: impl FnOnce(&mut Value)) -> Outlook {
    Outlook::compute(request(change), 180_000, Some(30_000)).unwrap()
}

fn codes(outlook: &Outlook) -> Vec<&'static str> {
    outlook.warnings.iter().map(|warning| warning.code.name()).collect()
}

fn jobs(body: &mut Value, jobs: u32) {
    body["HyperParameterTuningJobConfig"]["ResourceLimits"]["MaxNumberOfTrainingJobs"] = json!(jobs);
}

#[test]
fn the_worst_case_follows_from_the_time_limits_and_is_at_most_the_cap() {
    // 120 s of waiting, 120 s to stop and 180 s to upload at 0.115 USD an hour.
    let one = MicroUsd(13_417);
    let free = outlook(|body| {
        body["Controller"].as_object_mut().unwrap().remove("MaxCostUsd");
    });
    assert_eq!(free.worst, Some((one, MicroUsd(one.0 * 30))));
    assert_eq!(outlook(|_| {}).worst, Some((one, MicroUsd(one.0 * 30))));
    assert_eq!(
        outlook(|body| body["Controller"]["MaxCostUsd"] = json!(0.1)).worst,
        Some((one, MicroUsd(100_000)))
    );
}

#[test]
fn the_worst_case_of_a_job_includes_its_warm_pool() {
    let on_demand = |body: &mut Value, seconds: u32| {
        let job = &mut body["TrainingJobDefinition"];
        job["EnableManagedSpotTraining"] = json!(false);
        job["StoppingCondition"] = json!({"MaxRuntimeInSeconds": 60});
        job["ResourceConfig"]["KeepAlivePeriodInSeconds"] = json!(seconds);
        body["Controller"]["MaxCostUsd"] = json!(5);
    };
    let plain = outlook(|body| on_demand(body, 0));
    let kept = outlook(|body| on_demand(body, 600));
    // 60 s of running, 120 s to stop, 180 s to upload, and 660 s in the warm pool, at 0.115 USD an hour.
    assert_eq!((plain.worst.unwrap().0, plain.kept), (MicroUsd(11_500), None));
    assert_eq!(kept.kept, Some(MicroUsd(21_084)));
    assert_eq!(kept.worst.unwrap().0, MicroUsd(11_500 + 21_084));
    let text = show::text(&kept);
    assert!(text.contains("\n              per job, $0.0211 of it for 600 s in a warm pool\n"), "{text}");
    assert!(!show::text(&plain).contains("warm pool"));
    assert_eq!(show::json(&kept)["WorstCaseKeptUsd"], json!(0.021_084));
    assert_eq!(show::json(&plain)["WorstCaseKeptUsd"], Value::Null);
}

#[test]
fn without_a_price_the_plan_has_no_cost() {
    let outlook = outlook(|body| {
        body["Controller"].as_object_mut().unwrap().remove("InstancePricesUsdPerHour");
    });
    assert_eq!((outlook.worst, outlook.cost(&outlook.hyperband.as_ref().unwrap().stop)), (None, None));
    assert!(show::text(&outlook).contains("InstancePricesUsdPerHour to {\"ml.m5.large\": <USD per hour>}"));
}

#[test]
fn the_jobs_choose_the_brackets() {
    let of = |number| outlook(|body| jobs(body, number)).hyperband.unwrap();
    assert_eq!((of(49).plan.chosen(), of(49).whole), (0..4, (4, 49)));
    let few = outlook(|body| jobs(body, 30));
    assert_eq!(few.hyperband.as_ref().unwrap().plan.chosen(), 0..2);
    let text = show::text(&few);
    assert!(text.contains("at most 30 training jobs; a full set has 49\n"), "{text}");
    assert!(text.contains("brackets      21 + 9 trials in the 2 of 4 brackets that they fill\n"), "{text}");
    let shown = show::json(&few);
    assert_eq!((&shown["AllBrackets"], &shown["FullSetTrainingJobs"]), (&json!(4), &json!(49)));
    assert_eq!(shown["Brackets"].as_array().unwrap().len(), 2);
}

#[test]
fn jobs_that_compare_no_trials_cause_a_warning() {
    let few = outlook(|body| jobs(body, 2));
    let warning = few.warnings.iter().find(|warning| warning.code.name() == "MaxJobsCompareNothing").unwrap();
    assert!(
        warning.message.starts_with("MaxNumberOfTrainingJobs 2 is too few to compare trials"),
        "{warning:?}"
    );
    assert!(warning.advice.contains("MaxNumberOfTrainingJobs to 3 or more"), "{warning:?}");
    assert!(!codes(&outlook(|body| jobs(body, 3))).contains(&"MaxJobsCompareNothing"));
}

/// Makes a request whose trials can be promoted, and whose cap pays for fewer jobs than it asks for.
fn promotable(body: &mut Value) {
    jobs(body, 500);
    body["Controller"]["ResourceHyperParameter"] = json!("epochs");
    body["TrainingJobDefinition"]["CheckpointConfig"] = json!({"S3Uri": "s3://example-bucket/checkpoints"});
    // 50 jobs of half an hour at 0.115 USD an hour.
    body["Controller"]["MaxCostUsd"] = json!(2.875);
}

/// `Auto` chose `Promote` also where long start-ups made `Stop` better.
#[test]
fn regression_auto_decides_by_the_times_of_the_plan_and_warns_if_the_controller_assumes_others() {
    let usual = Outlook::compute(request(promotable), 180_000, None).unwrap();
    assert_eq!(usual.hyperband.as_ref().unwrap().execution, RungExecution::Promote);
    let text = show::text(&usual);
    let reason = "\nrungs         Auto: Promote, because with 180 s per start-up and 60 s per epoch, MaxCostUsd and the \
                  training jobs pay for about ";
    assert!(text.contains(reason), "{text}");
    assert!(!codes(&usual).contains(&"RungExecutionDiffers"));

    let slow = Outlook::compute(request(promotable), 480_000, Some(6_700)).unwrap();
    assert_eq!(slow.hyperband.as_ref().unwrap().execution, RungExecution::Stop);
    assert!(codes(&slow).contains(&"RungExecutionDiffers"), "{:?}", slow.warnings);
    assert_eq!(show::json(&slow)["RungExecution"], json!("Stop"));
    // The controller decides without these times.
    let promotes = |execution| {
        let request = request(|body| {
            promotable(body);
            body["Controller"]["RungExecution"] = json!(execution);
        });
        request.definition(Time(0), "000000", &PriceAnswer::default()).unwrap().promotes().is_some()
    };
    assert!(promotes("Auto") && !promotes("Stop"));
}

/// `plan` without options shows what the controller chooses.
#[test]
fn the_default_start_up_is_the_one_that_the_controller_assumes() {
    let parsed = clap::Parser::try_parse_from(["hyperband", "plan", "request.json"]);
    let arguments: arguments::Arguments = parsed.unwrap();
    let arguments::Command::Plan(plan) = arguments.command else { panic!("plan") };
    assert_eq!(plan.startup_seconds.0, Times::ASSUMED.startup_ms);
}

/// Returns an example of each warning that only `plan` has.
pub(crate) fn examples() -> Vec<Warning> {
    let poor = outlook(|body| body["Controller"]["MaxCostUsd"] = json!(0.02));
    let short = outlook(|body| {
        body["TrainingJobDefinition"]["StoppingCondition"] =
            json!({"MaxRuntimeInSeconds": 3_600, "MaxWaitTimeInSeconds": 7_200});
        body["HyperParameterTuningJobConfig"]["ResourceLimits"]["MaxRuntimeInSeconds"] = json!(600);
    });
    let slow = Outlook::compute(request(promotable), 600_000, Some(10_000)).unwrap();
    [poor.warnings, short.warnings, slow.warnings].concat()
}

#[test]
fn the_head_says_how_many_jobs_run_at_once_and_what_limits_them() {
    let head = |change: fn(&mut Value)| {
        let text = show::text(&outlook(change));
        let (_, rest) = text.split_once("one full set of these brackets, ").unwrap();
        rest.split_once(';').unwrap().0.to_owned()
    };
    let all = "at most 4 jobs at once (MaxParallelTrainingJobs)";
    assert_eq!(head(|_| {}), all);
    // A job reserves at most 0.013417 USD.
    assert_eq!(head(|body| body["Controller"]["MaxCostUsd"] = json!(0.03)), format!("{all}, the cap pays 2"));
    let three = head(|body| body["Controller"]["MaxInstances"] = json!(3));
    assert_eq!(three, format!("{all}, MaxInstances allows 3"));
    let both = head(|body| {
        body["Controller"]["MaxInstances"] = json!(3);
        body["Controller"]["MaxCostUsd"] = json!(0.03);
    });
    assert_eq!(both, format!("{all}, the cap pays 2"), "the lower limit counts");
}

#[test]
fn limits_that_end_a_tuning_early_cause_warnings() {
    assert!(codes(&outlook(|body| body["Controller"]["MaxCostUsd"] = json!(0.02))).contains(&"CapEndsEarly"));
    assert!(codes(&outlook(|_| {})).contains(&"JobsCutByMaxRuntime"), "27 epochs of 30 s in 60 s");
    let roomy = outlook(|body| {
        body["TrainingJobDefinition"]["StoppingCondition"] =
            json!({"MaxRuntimeInSeconds": 3_600, "MaxWaitTimeInSeconds": 7_200});
        body["Controller"]["MaxCostUsd"] = json!(100);
        jobs(body, 49);
    });
    assert_eq!(codes(&roomy), Vec::<&str>::new());
    let short = outlook(|body| {
        body["TrainingJobDefinition"]["StoppingCondition"] =
            json!({"MaxRuntimeInSeconds": 3_600, "MaxWaitTimeInSeconds": 7_200});
        body["HyperParameterTuningJobConfig"]["ResourceLimits"]["MaxRuntimeInSeconds"] = json!(600);
        jobs(body, 49);
    });
    assert!(codes(&short).contains(&"TuningCutByMaxRuntime"));
    assert!(codes(&short).contains(&"CapAdmitsFewerJobs"), "{:?}", short.warnings);
}

#[test]
fn the_verdict_names_the_execution_with_the_smaller_bill() {
    for (startup, epoch) in [(180_000, 1_000), (180_000, 30_000), (10_000, 600_000), (0, 1_000)] {
        let outlook = Outlook::compute(request(|_| {}), startup, Some(epoch)).unwrap();
        let brackets = outlook.hyperband.unwrap();
        let verdict = brackets.verdict(startup, true);
        let cheaper = if brackets.promote.billed_ms < brackets.stop.billed_ms { "Promote" } else { "Stop" };
        assert!(verdict.starts_with(&format!("{cheaper} is cheaper here")), "{verdict}");
    }
    // Without start-up time, only the epochs count, and Promote trains fewer.
    let free = Outlook::compute(request(|_| {}), 0, Some(1_000)).unwrap().hyperband.unwrap();
    assert!(free.promote.epochs < free.stop.epochs && free.verdict(0, true).starts_with("Promote"));
}

#[test]
fn an_algorithm_without_working_checkpoints_restarts_promoted_trials() {
    let xgboost = outlook(|body| {
        jobs(body, 49);
        body["HyperParameterTuningJobConfig"]["HyperParameterTuningJobObjective"]["MetricName"] =
            json!("validation:auc");
        body["TrainingJobDefinition"]["AlgorithmSpecification"] =
            json!({"TrainingInputMode": "File", "AlgorithmName": "xgboost"});
    });
    let brackets = xgboost.hyperband.unwrap();
    // 27 x 1 + 9 x 3 + 3 x 9 + 27, 12 x 3 + 4 x 9 + 27, 6 x 9 + 2 x 27, 4 x 27.
    assert_eq!((brackets.resumes, brackets.promote.epochs), (false, 108 + 99 + 108 + 108));
    assert!(brackets.verdict(180_000, true).contains("restart at their first epoch"));
}

#[test]
fn without_epoch_seconds_the_plan_has_no_times() {
    let outlook = Outlook::compute(request(|_| {}), 180_000, None).unwrap();
    let text = show::text(&outlook);
    assert!(text.contains("add --epoch-seconds for times") && !text.contains("WALL TIME"), "{text}");
    let shown = show::json(&outlook);
    assert_eq!((&shown["EpochSeconds"], &shown["Expected"]["CostUsd"]), (&Value::Null, &Value::Null));
    assert!(shown["Verdict"].as_str().unwrap().contains("if an epoch takes longer than about"));
}

#[test]
fn random_search_has_no_brackets() {
    let outlook = outlook(|body| {
        let config = body["HyperParameterTuningJobConfig"].as_object_mut().unwrap();
        config["Strategy"] = json!("Random");
        config.remove("StrategyConfig");
    });
    assert!(outlook.hyperband.is_none() && outlook.worst.is_some());
    let text = show::text(&outlook);
    assert!(text.starts_with("hello: Random without brackets: each of the 30 training jobs runs"), "{text}");
}

#[test]
fn a_plan_says_why_it_compares_late_and_counts_the_initial_configurations() {
    let late = outlook(|body| {
        let controller = body["Controller"].as_object_mut().unwrap();
        controller.remove("ReductionFactor");
        controller.insert("InitialConfigurations".to_owned(), json!([{"learning_rate": 0.01}]));
    });
    let text = show::text(&late);
    let said = "brackets      30 trials in one bracket that compares late\n              because the model explores; set \
                ReductionFactor for the brackets of Hyperband\n";
    assert!(text.contains(said), "{text}");
    assert!(text.contains("\nfirst trials  1 of InitialConfigurations\n"), "{text}");
    let json = show::json(&late);
    assert!(json["BracketsReason"].as_str().unwrap().starts_with("because the model"), "{json}");
    assert_eq!(json["InitialConfigurations"], json!(1));
    // 30 jobs prefer the cost.
    let [cost, value] =
        ["Cost", "Value"].map(|prefer| json["Preferences"][prefer]["Epochs"].as_u64().unwrap());
    assert!(json["Expected"]["Epochs"].as_u64() == Some(cost) && cost < value, "{json}");
    assert!(
        text.contains("              with Prefer Value: 30 jobs, ") && !text.contains("Prefer Cost"),
        "{text}"
    );

    let given = outlook(|_| {});
    assert!(!show::text(&given).contains("compares late"));
    assert_eq!(show::json(&given)["BracketsReason"], Value::Null);
}

/// The plan expected 32 s for a tuning of 76 s: it ignored that the cap paid few jobs at once.
#[test]
fn regression_a_cap_that_pays_few_jobs_at_once_lengthens_the_tuning() {
    let wall = |cap: f64| {
        let outlook = outlook(|body| {
            body["Controller"]["MaxCostUsd"] = json!(cap);
            body["TrainingJobDefinition"]["StoppingCondition"] =
                json!({"MaxRuntimeInSeconds": 3_600, "MaxWaitTimeInSeconds": 7_200});
            body["HyperParameterTuningJobConfig"]["ResourceLimits"]["MaxParallelTrainingJobs"] = json!(9);
        });
        let least = outlook.worst.unwrap().0;
        assert!(least <= outlook.cap.unwrap(), "a tuning with this cap is accepted");
        outlook.hyperband.unwrap().own.wall_ms
    };
    let (free, short) = (wall(1_000.0), wall(0.3));
    assert!(short > free * 3 / 2, "{short} ms, {free} ms without a limit by the cap");
}

#[test]
fn a_start_up_above_the_training_of_a_job_causes_a_warning() {
    // 27 epochs of 10 s.
    let of = |startup| codes(&Outlook::compute(request(|_| {}), startup, Some(10_000)).unwrap());
    assert!(of(271_000).contains(&"StartupAboveTraining"));
    assert!(!of(270_000).contains(&"StartupAboveTraining"));
}

/// The plan said that 0 of 4 jobs can run in parallel.
#[test]
fn regression_a_cap_that_no_job_fits_is_refused_as_check_refuses_it() {
    let poor = || request(|body| body["Controller"]["MaxCostUsd"] = json!(0.01));
    let error = Outlook::compute(poor(), 180_000, None).unwrap_err().to_string();
    assert!(error.contains("Invalid MaxCostUsd 0.0100: expected at least 0.02"), "{error}");
    assert_eq!(error, crate::check::validate(&poor()).unwrap_err().to_string());
    let unpriced = request(|body| {
        body["Controller"]["MaxCostUsd"] = json!(0.01);
        body["Controller"].as_object_mut().unwrap().remove("InstancePricesUsdPerHour");
    });
    assert!(Outlook::compute(unpriced, 180_000, None).is_ok(), "a stack may know the price");
}

/// A stack reads a line seconds to minutes later, so a stopped trial trains past its rung.
#[test]
fn a_plan_shows_how_far_a_stopped_trial_trains_past_its_rung() {
    let timed = outlook(|_| {});
    let text = show::text(&timed);
    // 5, 182 and 62 s of epochs of 30 s, at 0.115 USD an hour.
    let table = "
a stopped trial trains past its rung until its stop takes effect; 30 s per epoch
STOP ON A STACK           TRAINS ON  EPOCHS     COST
Subscription, typical           5 s     0.1  $0.0002
Subscription, documented  3 min 2 s     6.0  $0.0059
Polling, typical          1 min 2 s     2.0  $0.0020
Polling, documented       3 min 2 s     6.0  $0.0059

this request";
    assert!(text.contains(table), "{text}");
    let shown = &show::json(&timed)["LateStops"];
    assert_eq!((&shown["EpochSeconds"], &shown["EpochSecondsAssumed"]), (&json!(30), &json!(false)));
    let late =
        json!({"DelaySeconds": 182, "TrainedSeconds": 182, "TrainedEpochs": 6.066, "CostUsd": 0.005_814});
    assert_eq!(shown["Subscription"]["Documented"], late);
    assert_eq!(shown["Polling"]["Typical"]["TrainedEpochs"], json!(2.066));

    // From the first rung at epoch 1, 26 epochs of a second are left.
    let short = Outlook::compute(request(|_| {}), 180_000, Some(1_000)).unwrap();
    let polled = &show::json(&short)["LateStops"]["Polling"]["Documented"];
    assert_eq!((&polled["DelaySeconds"], &polled["TrainedSeconds"]), (&json!(182), &json!(26)));
    assert_eq!(polled["TrainedEpochs"], json!(26));
}

#[test]
fn a_plan_of_late_stops_says_what_it_assumes_and_is_absent_where_no_trial_is_stopped() {
    let untimed = Outlook::compute(request(|_| {}), 180_000, None).unwrap();
    let text = show::text(&untimed);
    assert!(text.contains("until its stop takes effect; an assumed 1 min 0 s per epoch\n"), "{text}");
    let shown = &show::json(&untimed)["LateStops"];
    assert_eq!((&shown["EpochSeconds"], &shown["EpochSecondsAssumed"]), (&json!(60), &json!(true)));

    let unpriced = outlook(|body| {
        body["Controller"].as_object_mut().unwrap().remove("InstancePricesUsdPerHour");
    });
    assert!(show::text(&unpriced).contains("\nSTOP ON A STACK           TRAINS ON  EPOCHS\n"));
    assert_eq!(show::json(&unpriced)["LateStops"]["Polling"]["Typical"]["CostUsd"], Value::Null);

    let promoted = Outlook::compute(request(promotable), 180_000, None).unwrap();
    let alone = outlook(|body| jobs(body, 2));
    for outlook in [promoted, alone] {
        assert!(!show::text(&outlook).contains("a stopped trial"));
        assert_eq!(show::json(&outlook)["LateStops"], Value::Null);
    }
}

#[test]
fn the_plan_assumes_the_silence_after_which_a_sweep_reads_a_log() {
    let assumed = tuning::unit::time::Millis::from_seconds(wire::forecast::SILENCE_MS / 1_000);
    assert_eq!(use_cases::sweep::Limits::CLOUD.silence, use_cases::sweep::Silence::After(assumed));
}
