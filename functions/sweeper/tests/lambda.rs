//! The sweeper's program as Lambda runs it: a tick in, an orphan stopped, and missed starts performed.
#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::SystemTime;

use lambda_host::{STACK, Stage};
use loopback::{Answer, Call, Service};
use serde_json::{Value, json};
use wire::names::{parse_job_key, training_job_name};

const SWEEPER: &str = env!("CARGO_BIN_EXE_sweeper");

async fn stage(service: &Service) -> Stage {
    let mut stage = Stage::open().await;
    for name in ["SAGEMAKER", "CLOUDWATCH_LOGS", "EVENTBRIDGE"] {
        stage.set_variable(&format!("AWS_ENDPOINT_URL_{name}"), &service.endpoint);
    }
    stage.set_variable("EVENT_BUS_NAME", "bus");
    stage.set_variable("METRICS_FROM", "Subscription");
    stage
}

/// Returns the event of the schedule.
fn tick() -> Value {
    let sample = include_str!("../../../events/aws.events/scheduled-event.minute.json");
    serde_json::from_str(sample).unwrap()
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}

/// An account in which the job `orphan` of this stack runs until it is stopped.
fn account(orphan: &str, created: i64) -> impl Fn(&Call) -> Answer + Send + Sync + 'static {
    let job = json!({
        "TrainingJobName": orphan,
        "TrainingJobArn": format!("arn:aws:sagemaker:us-east-1:123456789012:training-job/{orphan}"),
        "TrainingJobStatus": "InProgress",
        "SecondaryStatus": "Training",
        "CreationTime": created / 1_000,
    });
    let stopped = AtomicBool::new(false);
    move |call| match call.operation() {
        "ListTrainingJobs" if stopped.load(Relaxed) => Answer::done(&json!({"TrainingJobSummaries": []})),
        "ListTrainingJobs" => Answer::done(&json!({"TrainingJobSummaries": [job]})),
        "StopTrainingJob" => {
            stopped.store(true, Relaxed);
            Answer::text(200, "")
        }
        "DescribeTrainingJob" => Answer::done(&job),
        "ListTags" => Answer::done(&json!({"Tags": [{"Key": "hyperband:stack", "Value": STACK}]})),
        "CreateTrainingJob" => Answer::done(&json!({"TrainingJobArn": "arn"})),
        _ => Answer::text(200, ""),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tick_stops_an_orphan_and_performs_missed_starts() {
    let submitted = now();
    let orphan = training_job_name("other-aaaaaa", parse_job_key("9-0-1").unwrap());
    let service = Service::start(account(&orphan, submitted - 1_200_000));
    let stage = stage(&service).await;
    let id = stage.submit_at(submitted).await;
    stage.decide().await;
    let invoked = stage.watch(SWEEPER, &tick()).await;
    let metrics = invoked.metrics();
    for (name, value) in
        [("JobsStarted", 4), ("ActionsPerformed", 4), ("OrphansStopped", 1), ("TuningsActive", 1)]
    {
        assert_eq!(metrics[name], value, "{name}");
    }
    assert!(metrics["SweepMs"].is_u64() && metrics["TrainingServiceCalls"].is_u64(), "{metrics:?}");
    let [line] = invoked.lines()[..] else { panic!("{:?}", invoked.log) };
    assert_eq!((&line["level"], &line["function"]), (&json!("WARN"), &json!("sweeper")));
    let answer = invoked.answer.unwrap();
    assert_eq!((&answer["orphansStopped"], &answer["settled"]["starts"]), (&json!(1), &json!(4)), "{answer}");
    assert_eq!((&answer["failed"], &answer["lastError"]), (&json!(0), &Value::Null), "{answer}");
    let calls = service.calls();
    let of = |operation: &str| calls.iter().filter(|call| call.operation() == operation).collect::<Vec<_>>();
    let stops = of("StopTrainingJob");
    assert_eq!(
        stops.iter().map(|call| &call.body).collect::<Vec<_>>(),
        [&json!({"TrainingJobName": orphan})]
    );
    assert_eq!(of("CreateTrainingJob").len(), 4, "MaxParallelTrainingJobs");
    assert_eq!(stage.rows(&format!("F#{id}"), "0-0-1#started").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_event_is_a_tick() {
    let service = Service::start(account("none", now()));
    let stage = stage(&service).await;
    for event in [json!({"source": "aws.scheduler", "time": "soon"}), json!({}), json!("tick"), Value::Null] {
        let swept = stage.watch(SWEEPER, &event).await.answer.unwrap();
        assert_eq!((&swept["failed"], &swept["listingError"]), (&json!(0), &Value::Null), "{event}: {swept}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rejected_listing_is_logged_and_blocks_nothing_else() {
    let service = Service::start(|call| match call.operation() {
        "ListTrainingJobs" => Answer::error(400, "AccessDeniedException", "not authorized"),
        _ => Answer::done(&json!({"TrainingJobArn": "arn"})),
    });
    let stage = stage(&service).await;
    let submitted = now();
    stage.submit_at(submitted).await;
    stage.decide().await;
    let invoked = stage.watch(SWEEPER, &tick()).await;
    assert_eq!(invoked.metrics()["SweepFailed"], 1);
    assert_eq!(invoked.lines()[0]["errorType"], "TrainingService");
    let answer = invoked.answer.unwrap();
    assert_eq!(answer["listingError"], "AccessDeniedException: not authorized", "{answer}");
    assert_eq!(answer["settled"]["starts"], 4, "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_sample_event_has_its_documented_result() {
    lambda_host::samples::check("sweeper", env!("CARGO_BIN_EXE_sweeper")).await;
}
