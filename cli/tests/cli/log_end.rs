//! The end of a job's log, which the live page shows: in a data directory, and from CloudWatch Logs.

use loopback::{Answer, Service};
use serde_json::{Value, json};
use stack_api::Stack;
use wire::describe::TrainingJobDetail;

use crate::http::{Reply, Served};
use crate::world::{World, request, until};

/// Fails as a Python program does, after a line with colors.
const FAILING: &str = r#"
printf '\033[31mhello\033[0m\n' >&2
exec python3 -c "
def load():
    raise ValueError('no data in <folder>')
load()
"
"#;

/// Prints the value of one epoch.
const ONE_EPOCH: &str = "printf '[8]\tvalidation-auc:0.5\n'";

fn limited(name: &str, jobs: u32, hosts: u32) -> Value {
    let mut limited = request(name);
    limited["HyperParameterTuningJobConfig"]["ResourceLimits"] =
        json!({"MaxNumberOfTrainingJobs": jobs, "MaxParallelTrainingJobs": 1});
    limited["TrainingJobDefinition"]["ResourceConfig"]["InstanceCount"] = json!(hosts);
    limited
}

impl Served {
    /// Submits a tuning, and returns the name of its first job when that has ended.
    fn first_job(&self, request: &Value) -> String {
        self.post("/tuning-jobs", request).with_status(201);
        let name = request["HyperParameterTuningJobName"].as_str().unwrap();
        let first = || {
            let jobs = self.get(&format!("/tuning-jobs/{name}/training-jobs")).with_status(200).json();
            jobs["TrainingJobSummaries"][0].clone()
        };
        until("the first job ends", || first()["TrainingEndTime"].is_number());
        first()["TrainingJobName"].as_str().unwrap().to_owned()
    }

    fn log(&self, tuning: &str, job: &str) -> Reply {
        self.get(&format!("/tuning-jobs/{tuning}/logs/{job}"))
    }
}

#[test]
fn the_log_of_a_failed_job_ends_with_its_traceback() {
    let world = World::new(FAILING);
    let served = world.serve(&[]);
    let job = served.first_job(&limited("t", 1, 1));
    let log = served.log("t", &job).with_status(200);
    assert!(log.head.contains("content-type: text/plain; charset=utf-8\r\n"), "{}", log.head);
    assert!(log.text().starts_with("hello\nTraceback (most recent call last):\n"), "{log:?}");
    assert!(log.text().ends_with("\nValueError: no data in <folder>\n"), "{log:?}");
    let printed = world.hyperband(&["logs", "t", &job]).with_code(0);
    assert_eq!(log.text(), printed.out);
    let foreign =
        served.send(&format!("GET /tuning-jobs/t/logs/{job}"), &["Origin: https://evil.example"], b"");
    assert!(foreign.with_status(403).text().contains("evil.example"));
    served.end("TERM").with_code(0);
}

#[test]
fn only_a_job_of_the_tuning_has_a_log() {
    let world = World::new(ONE_EPOCH);
    let served = world.serve(&[]);
    let (first, second) = (served.first_job(&limited("t", 1, 2)), served.first_job(&limited("u", 1, 1)));
    let hosts = served.log("t", &first).with_status(200);
    for host in ["algo-1", "algo-2"] {
        assert!(hosts.text().contains(&format!("{host}  [8]\tvalidation-auc:0.5\n")), "{hosts:?}");
    }
    assert_eq!(served.log("u", &second).with_status(200).text(), "[8]\tvalidation-auc:0.5\n");
    let missing = first.replace("-0-0-1", "-7-0-1");
    // A log outside of the folder of jobs, which a path in the name of a job would reach.
    let secret = world.path(".hyperband/training/logs");
    std::fs::create_dir(&secret).unwrap();
    let line = json!({"id": "1", "timestamp": 1, "message": "secret"});
    std::fs::write(secret.join("algo-1-1"), format!("{line}\n")).unwrap();
    for job in [second.as_str(), &missing, "..", "%2e%2e", "..%2f..", &format!("..%2fjobs%2f{first}"), "x"] {
        let refused = served.log("t", job).with_status(404);
        assert!(!refused.text().contains("secret"), "{refused:?}");
    }
    assert!(served.log("missing", &first).with_status(404).text().contains("missing"));
    let folder = world.path(&format!(".hyperband/training/jobs/{first}/logs"));
    std::fs::remove_dir_all(folder).unwrap();
    let gone = served.log("t", &first).with_status(404);
    assert!(gone.text().contains("the data directory has no line of the training job t-"), "{gone:?}");
    served.end("TERM").with_code(0);
}

#[test]
fn the_end_of_a_log_of_10_mb_is_bounded() {
    let world = World::new("yes \"$(printf '%01000d' 7)\" | head -n 10000; echo the last line");
    let served = world.serve(&[]);
    let job = served.first_job(&limited("t", 1, 1));
    let log = served.log("t", &job).with_status(200);
    let lines: Vec<&str> = log.text().lines().collect();
    assert!(log.text().len() <= 64 * 1024 && lines.len() == 66, "{} {}", log.text().len(), lines.len());
    let (last, rest) = lines.split_last().unwrap();
    assert!(*last == "the last line" && rest.iter().all(|line| line.len() == 1_000), "{last}");
    served.end("TERM").with_code(0);
}

/// Returns an event of a job's host.
fn event(job: &str, id: usize, host: &str, message: &str) -> Value {
    let stream = format!("{job}/{host}-1789000000000");
    json!({"eventId": id.to_string(), "logStreamName": stream, "timestamp": 1_789_000_000_000_usize + id,
        "message": message})
}

impl World {
    /// Runs a tuning on an emulated stack. Returns the stack and the name of the first job.
    fn ended_stack(&self, hosts: u32) -> (Stack, String) {
        self.write_request("request.json", &limited("t", 1, hosts));
        let stack = self.stack();
        self.run(&[]).with_code(0);
        let described = self.at(&stack, &["describe", "t", "--output", "json"]).with_code(0).json();
        let job = described["BestTrainingJob"]["TrainingJobName"].as_str().unwrap().to_owned();
        (stack, job)
    }

    /// Starts `proxy` for a stack whose CloudWatch Logs is `logs`.
    fn proxy(&self, stack: &Stack, logs: &Service) -> Served {
        let arguments = ["proxy", "--listen", "127.0.0.1:0", "--endpoint", &stack.endpoint];
        let mut command = self.command(&arguments);
        command.env("AWS_ENDPOINT_URL_CLOUDWATCH_LOGS", &logs.endpoint);
        Served::start(command)
    }
}

#[test]
fn the_log_of_a_job_of_a_stack_is_read_from_its_end() {
    let world = World::new(ONE_EPOCH);
    let (stack, job) = world.ended_stack(2);
    let logs = Service::start(move |call| {
        assert_eq!(call.operation(), "FilterLogEvents");
        let job = call.body["logStreamNamePrefix"].as_str().unwrap().trim_end_matches('/');
        let events = |ids: std::ops::RangeInclusive<usize>| -> Vec<Value> {
            let host = |id: usize| if id.is_multiple_of(2) { "algo-2" } else { "algo-1" };
            ids.rev().map(|id| event(job, id, host(id), &format!("line {id}\u{1b}[1m\n"))).collect()
        };
        // The newest lines first, an empty page, and a line that comes twice.
        Answer::done(&match call.body["nextToken"].as_str() {
            None => json!({"events": events(400..=500), "nextToken": "empty"}),
            Some("empty") => json!({"events": [], "nextToken": "older"}),
            Some("older") => json!({"events": events(201..=400), "nextToken": "oldest"}),
            token => panic!("{token:?}"),
        })
    });
    let served = world.proxy(&stack, &logs);
    let log = served.log("t", &job).with_status(200);
    let host = |id: usize| if id.is_multiple_of(2) { 2 } else { 1 };
    let expected: Vec<String> = (301..=500).map(|id| format!("algo-{}  line {id}", host(id))).collect();
    assert_eq!(log.text().lines().collect::<Vec<_>>(), expected);
    let calls = logs.calls();
    assert_eq!(calls.len(), 3);
    let described = served.get(&format!("/tuning-jobs/t/training-jobs/{job}")).json();
    let TrainingJobDetail { job: own, .. } = serde_json::from_value(described).unwrap();
    for call in &calls {
        let body = &call.body;
        assert_eq!(
            (&body["logGroupName"], &body["startFromHead"], &body["limit"]),
            (&json!("/aws/sagemaker/TrainingJobs"), &json!(false), &json!(200))
        );
        assert_eq!(body["logStreamNamePrefix"], format!("{job}/"));
        assert_eq!(body["startTime"], own.created_ms - 60_000);
        assert_eq!(body["endTime"], own.ended_ms.unwrap() + 60_000);
    }
    for unknown in [job.replace("-0-0-1", "-7-0-1").as_str(), "u-abc123-0-0-1", "..", "..%2fx"] {
        served.log("t", unknown).with_status(404);
    }
    served.log("missing", &job).with_status(404);
    assert_eq!(logs.calls().len(), 3, "a job of another tuning is not looked for");
    served.end("TERM").with_code(0);
}

#[test]
fn a_log_of_a_stack_that_cannot_be_read_says_why() {
    let world = World::new(ONE_EPOCH);
    let (stack, job) = world.ended_stack(1);
    let denied = Service::start(|_| Answer::error(400, "AccessDeniedException", "User is not authorized"));
    let served = world.proxy(&stack, &denied);
    let refused = served.log("t", &job).with_status(403).json();
    let message = refused["message"].as_str().unwrap();
    assert!(message.starts_with("cannot read CloudWatch Logs: AccessDeniedException: User"), "{message}");
    let hint = "; your credentials need logs:FilterLogEvents on the log group /aws/sagemaker/TrainingJobs";
    assert!(message.ends_with(hint), "{message}");
    served.end("TERM").with_code(0);

    let endless = Service::start(|_| Answer::done(&json!({"events": [], "nextToken": "more"})));
    let served = world.proxy(&stack, &endless);
    let none = served.log("t", &job).with_status(404);
    assert!(none.text().contains("CloudWatch Logs has no line of the training job t-"), "{none:?}");
    assert_eq!(endless.calls().len(), 10);
    served.end("TERM").with_code(0);
}
