//! `doctor` with a fake stack and a fake account. The stack tests run it with a real stack.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use loopback::{Answer, Call, Request, Service};
use port_tests::memory::MemoryTable;
use serde_json::{Value, json};
use stack_api::{Pass, Stack, response};

use crate::world::{Ended, World, ended, signal, until};

const DOCTOR: [&str; 7] = [
    "doctor",
    "--role=arn:aws:iam::111122223333:role/example",
    "--image=image:1",
    "--s3-output=s3://bucket/out",
    "--name=d",
    "--interval=0.1",
    "--yes",
];
/// The first job ends by itself. Later jobs must be stopped.
const FIRST_ENDS: &str = r"
echo 'epoch 1 of 1'
mkdir first 2>/dev/null && exit 0
while :; do sleep 1; done
";

/// Fakes SageMaker and CloudWatch Logs. Every requested job exists: it runs at its first description, then it has
/// ended.
fn account(change: impl Fn(&Call) -> Option<Answer> + Send + Sync + 'static) -> Service {
    let asked: Arc<Mutex<BTreeMap<String, u32>>> = Arc::default();
    Service::start(move |call| {
        let name = call.body["TrainingJobName"].as_str().unwrap_or_default().to_owned();
        let absent = || Answer::error(400, "ValidationException", "Requested resource not found.");
        if let Some(answer) = change(call) {
            return answer;
        }
        match call.operation() {
            "DescribeTrainingJob" | "StopTrainingJob" if !name.starts_with("d-") => absent(),
            "DescribeTrainingJob" => {
                let mut asked = asked.lock().unwrap();
                let times = asked.entry(name.clone()).or_default();
                *times += 1;
                Answer::done(&described(&name, *times))
            }
            "StopTrainingJob" => Answer::error(
                400,
                "ValidationException",
                "The request was rejected because the training job is in status Stopped.",
            ),
            "CreateTrainingJob" => Answer::error(400, "ResourceInUse", "Training job names must be unique"),
            "ListTags" => Answer::done(&json!({"Tags": [
                {"Key": "hyperband:stack", "Value": "s"}, {"Key": "hyperband:tuning", "Value": "t"},
                {"Key": "hyperband:decision", "Value": "d"},
            ]})),
            "ListTrainingJobs" => Answer::done(&json!({"TrainingJobSummaries": []})),
            _ => Answer::error(400, "AccessDeniedException", "User is not authorized"),
        }
    })
}

fn described(name: &str, times: u32) -> Value {
    let mut job = json!({
        "TrainingJobName": name, "TrainingJobArn": format!("arn:{name}"), "CreationTime": 1_789_000_000.0,
        "TrainingJobStatus": "InProgress", "SecondaryStatus": "Starting",
    });
    if times > 1 {
        job["TrainingJobStatus"] = json!("Stopped");
        job["SecondaryStatus"] = json!("Stopped");
    }
    job
}

impl World {
    fn examine(&self, stack: &Stack, account: &Service, more: &[&str]) -> Ended {
        ended(self.examining(stack, account, more))
    }

    fn examining(&self, stack: &Stack, account: &Service, more: &[&str]) -> std::process::Child {
        let arguments = [&DOCTOR[..], &["--endpoint", &stack.endpoint], more].concat();
        self.command(&arguments).env("AWS_ENDPOINT_URL", &account.endpoint).spawn().unwrap()
    }
}

fn stops(stack: &Stack) -> usize {
    stack.requests().iter().filter(|request| request.path == "/tuning-jobs/d/stop").count()
}

#[test]
fn doctor_prints_verdicts_and_stops_the_second_job() {
    let world = World::new(FIRST_ENDS);
    let (stack, account) = (world.stack(), account(|_| None));
    let examining = world.examining(&stack, &account, &["--output", "json"]);
    // A run before the response would submit the request itself, and it has no price list.
    until("it is submitted", || stack.requests().iter().any(|request| request.path.contains("/decisions")));
    let submitted = stack.requests().into_iter().find(|request| request.method == "POST").unwrap();
    let mut request: Value = serde_json::from_slice(&submitted.body).unwrap();
    assert_eq!(request["Controller"]["MaxCostUsd"], 0.5);
    world.write_request("request.json", &request);
    let run = world.start(&["--grace-seconds", "1"]);
    let examined = ended(examining).with_code(1);
    ended(run).with_code(0);
    assert_eq!(stops(&stack), 1, "{examined:?}");
    let shown = examined.json();
    assert_eq!(shown["HyperParameterTuningJobName"], "d");
    let checks = shown["Checks"].as_array().unwrap();
    let verdict = |id: &str| {
        let check = checks.iter().find(|check| check["Check"] == id).unwrap();
        check["Verdict"].as_str().unwrap().to_owned()
    };
    for id in [
        "events",
        "log-delivery",
        "tuning-ends",
        "prices",
        "clocks",
        "tags-show",
        "job-absent",
        "name-taken",
        "stop-ended",
    ] {
        assert_eq!(verdict(id), "yes", "{id}: {shown:#}");
    }
    // The account lists no jobs and denies access to logs. No request is signed.
    assert_eq!(verdict("listing"), "no", "{shown:#}");
    for id in ["log-streams", "log-ids", "signature", "spot-bill", "bill-shows"] {
        assert_eq!(verdict(id), "not tried", "{id}: {shown:#}");
    }
    let created: Vec<Call> =
        account.calls().into_iter().filter(|call| call.operation() == "CreateTrainingJob").collect();
    let [again] = created.as_slice() else { panic!("{created:?}") };
    let name = again.body["TrainingJobName"].as_str().unwrap();
    assert!(name.starts_with("d-") && name.ends_with("-0-0-1"), "a name in use: {name}");
    let definition = request["TrainingJobDefinition"].take();
    assert_eq!(again.body["StoppingCondition"], definition["StoppingCondition"]);
}

#[test]
fn an_interrupted_doctor_stops_its_tuning() {
    for name in ["INT", "TERM"] {
        let world = World::new("true");
        let (stack, account) = (Stack::start(MemoryTable::default()), account(|_| None));
        let examining = world.examining(&stack, &account, &[]);
        until("it looks", || stack.requests().iter().any(|request| request.path.contains("/decisions")));
        assert_eq!(stops(&stack), 0);
        signal(&examining, name);
        let ended = ended(examining).with_code(130);
        assert_eq!((stops(&stack), ended.out.as_str()), (1, ""), "{ended:?}");
    }
}

#[test]
fn a_failed_stop_is_reported_with_the_command_to_repeat_it() {
    let world = World::new("true");
    let account = account(|_| None);
    let stack = Stack::with_rule(MemoryTable::default(), |request: &Request, pass: Pass<'_>| {
        let fails = request.path.contains("/decisions") || request.path.ends_with("/stop");
        if fails { response(403, &json!({"message": "Forbidden"})) } else { pass() }
    });
    let examined = world.examine(&stack, &account, &[]).with_code(3);
    assert!(examined.err.contains("Forbidden"), "{examined:?}");
    assert!(examined.err.contains("hyperband stop d --endpoint http"), "{examined:?}");
}

#[test]
fn after_a_lost_response_only_the_own_tuning_is_stopped() {
    for (taken, stopped) in [(true, 1), (false, 0)] {
        let world = World::new("true");
        let account = account(|_| None);
        let (lost, looks) = (AtomicU32::new(0), AtomicU32::new(0));
        let stack = Stack::with_rule(MemoryTable::default(), move |request: &Request, pass: Pass<'_>| {
            let ours = request.path == "/tuning-jobs" && request.method == "POST";
            if ours && String::from_utf8_lossy(&request.body).contains("doctor:number") {
                lost.fetch_add(1, Ordering::Relaxed);
                if taken {
                    pass();
                }
                return response(502, &json!({"message": "Bad Gateway"}));
            }
            // The first Describe calls fail too.
            let look = request.path == "/tuning-jobs/d" && lost.load(Ordering::Relaxed) > 0;
            if look && looks.fetch_add(1, Ordering::Relaxed) < 5 {
                return response(502, &json!({"message": "Bad Gateway"}));
            }
            pass()
        });
        if !taken {
            let other = ["submit", "request.json", "--name", "d", "--endpoint", &stack.endpoint];
            world.hyperband(&other).with_code(0);
        }
        let examined = world.examine(&stack, &account, &[]).with_code(3);
        assert_eq!(stops(&stack), stopped, "{examined:?}");
    }
}

#[test]
fn without_confirmation_nothing_is_started() {
    let world = World::new("true");
    let (stack, account) = (Stack::start(MemoryTable::default()), account(|_| None));
    let arguments = [&DOCTOR[..6], &["--endpoint", &stack.endpoint]].concat();
    let mut command = world.command(&arguments);
    let refused = ended(command.env("AWS_ENDPOINT_URL", &account.endpoint).spawn().unwrap()).with_code(2);
    assert!(refused.err.contains("cost cap of $0.5") && refused.err.contains("--yes"), "{refused:?}");
    let nowhere = ended(world.command(&arguments).arg("--yes").spawn().unwrap()).with_code(2);
    assert!(nowhere.err.contains("AWS_ENDPOINT_URL_SAGEMAKER"), "{nowhere:?}");
    assert_eq!((stack.requests().len(), account.calls().len()), (0, 0));
    for (option, shown) in [("--max-cost=0.51", "up to 0.5"), ("--hyperparameter=x", "NAME=VALUE")] {
        let refused = world.hyperband(&[&arguments[..], &[option]].concat()).with_code(2);
        assert!(refused.err.contains(shown), "{refused:?}");
    }
    let unnamed = world.hyperband(&[&arguments[..], &["--role", "not-an-arn"]].concat());
    assert_eq!(unnamed.code, 2, "{unnamed:?}");
}

#[test]
fn a_missing_price_is_a_no_and_starts_nothing() {
    let world = World::new("true");
    let account = account(|_| None);
    let message = "Controller.InstancePricesUsdPerHour: there is no price of ml.m5.large";
    let stack = Stack::with_rule(MemoryTable::default(), move |request: &Request, pass: Pass<'_>| {
        if request.method != "POST" {
            return pass();
        }
        let violation = json!({"Path": "Controller.InstancePricesUsdPerHour", "Message": message});
        let body = json!({"__type": "ValidationException", "message": message, "Violations": [violation]});
        response(400, &body)
    });
    let examined = world.examine(&stack, &account, &[]).with_code(1);
    assert!(examined.out.contains("no         prices: "), "{examined:?}");
    assert!(
        examined.out.contains(message) && examined.out.contains("docs/UNVERIFIED.md, prices"),
        "{examined:?}"
    );
    assert!(examined.out.contains("1 no") && examined.out.ends_with("d cost nothing\n"), "{examined:?}");
    assert_eq!(stops(&stack), 0);
}
