//! `logs`: the log of a training job, from a data directory or from CloudWatch Logs.

use std::io::{BufRead, BufReader};
use std::sync::{Arc, Mutex};

use loopback::{Answer, Service};
use serde_json::{Value, json};

use crate::world::{Ended, World, ended, request, until};

/// Each host prints its name. In trial 1 both fail once both have.
const HOSTS: &str = r"
printf '\033[31mhello\033[0m from\t%s\n' $SM_CURRENT_HOST
case $TRAINING_JOB_NAME in *-1-0-1)
  touch began-$SM_CURRENT_HOST
  while [ ! -e began-algo-1 ] || [ ! -e began-algo-2 ]; do sleep 0.02; done
  echo 'ValueError: no' >&2
  exit 1
esac
printf '[8]\tvalidation-auc:0.5\n'
";

fn limited(jobs: u32, hosts: u32) -> Value {
    let mut limited = request("t");
    limited["HyperParameterTuningJobConfig"]["ResourceLimits"] =
        json!({"MaxNumberOfTrainingJobs": jobs, "MaxParallelTrainingJobs": 1});
    limited["TrainingJobDefinition"]["ResourceConfig"]["InstanceCount"] = json!(hosts);
    limited
}

fn objects(ended: &Ended) -> Vec<Value> {
    ended.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn logs_prints_the_failed_job_or_the_job_of_a_trial_or_of_a_name() {
    let world = World::new(HOSTS);
    world.write_request("request.json", &limited(2, 2));
    let run = world.run(&[]).with_code(0);
    assert!(run.err.contains("         see: hyperband logs t 1\n"), "{run:?}");
    assert!(run.out.contains("\n  see: hyperband logs t 1\n"), "{run:?}");

    let failed = world.hyperband(&["logs", "t"]).with_code(0);
    assert!(failed.err.contains("-1-0-1: trial 1, Failed, exit code 1, host algo-"), "{failed:?}");
    // One of the hosts fails first, and the other is stopped.
    for line in ["algo-1  hello from\talgo-1\n", "algo-2  hello from\talgo-2\n", "  ValueError: no\n"] {
        assert!(failed.out.contains(line), "{line} in {failed:?}");
    }

    let one = world.hyperband(&["logs", "T", "0", "--host", "algo-2"]).with_code(0);
    assert_eq!(one.out, "hello from\talgo-2\n[8]\tvalidation-auc:0.5\n");
    let name = one.err.strip_prefix("log of ").unwrap().split(':').next().unwrap();
    let named = world.hyperband(&["logs", "t", name, "--host", "algo-2", "--follow"]).with_code(0);
    assert_eq!(named.out, one.out);

    let shown = objects(&world.hyperband(&["logs", "t", "0", "--output", "json"]).with_code(0));
    assert_eq!(shown.len(), 4);
    let [first, ..] = shown.as_slice() else { panic!("{shown:?}") };
    assert_eq!(
        (&first["job"], shown.iter().filter(|line| line["host"] == "algo-1").count()),
        (&json!(name), 2)
    );
    assert!(first["line"].as_str().unwrap().starts_with("\u{1b}[31mhello"), "{first}");
    assert!(first["timestamp"].as_str().unwrap().ends_with('Z'), "{first}");
}

#[test]
fn logs_says_which_tuning_trial_or_log_is_missing() {
    let world = World::new("printf '[8]\tvalidation-auc:0.5\n'");
    let none = world.hyperband(&["logs", "t"]).with_code(2);
    assert!(none.err.starts_with("error: no tuning was run in .hyperband\nhint: "), "{none:?}");
    world.write_request("request.json", &limited(1, 1));
    world.run(&[]).with_code(0);
    let wrong = world.hyperband(&["logs", "u"]).with_code(2);
    assert!(
        wrong.err.contains("there is no tuning 'u'") && wrong.err.contains("did you mean t?"),
        "{wrong:?}"
    );
    for trial in ["1", "t-0-0-1"] {
        let wrong = world.hyperband(&["logs", "t", trial]).with_code(2);
        assert!(wrong.err.contains(&format!("no trial and no training job '{trial}'")), "{wrong:?}");
        assert!(wrong.err.contains("a trial number, which `hyperband describe t` lists, or"), "{wrong:?}");
    }
    let wrong = world.hyperband(&["logs", "t", "--host", "algo-2"]).with_code(0);
    assert!(wrong.err.ends_with("has no line of algo-2\n") && wrong.out.is_empty(), "{wrong:?}");
    let wrong = world.hyperband(&["logs", "t", "--host", "../x"]).with_code(2);
    assert!(wrong.err.contains("expected a host of SageMaker"), "{wrong:?}");
    let jobs = world.path(".hyperband/training/jobs");
    for job in std::fs::read_dir(jobs).unwrap().flatten() {
        std::fs::remove_dir_all(job.path().join("logs")).unwrap();
    }
    let gone = world.hyperband(&["logs", "t"]).with_code(2);
    assert!(gone.err.contains("error: the data directory has no log of the training job t-"), "{gone:?}");
}

#[test]
fn logs_follows_a_running_job_to_its_end() {
    let world = World::new(
        "echo first; while [ ! -e go ]; do sleep 0.02; done; printf '[8]\tvalidation-auc:0.5\nlast\n'",
    );
    world.write_request("request.json", &limited(1, 1));
    let run = world.start(&[]);
    until("the job runs", || world.hyperband(&["logs", "t"]).out == "first\n");
    let mut following = world.command(&["logs", "t", "0", "-f"]).spawn().unwrap();
    let mut out = BufReader::new(following.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    assert_eq!(line, "first\n");
    world.write("go", "");
    let rest: Vec<String> = out.lines().map(Result::unwrap).collect();
    assert_eq!(rest, ["[8]\tvalidation-auc:0.5", "last"]);
    let followed = ended(following).with_code(0);
    assert!(followed.err.contains(": trial 0, Training\n"), "{followed:?}");
    ended(run).with_code(0);
}

impl World {
    /// Prints a log of a stack whose CloudWatch Logs is `logs`.
    fn logs_at(&self, endpoint: &str, logs: &Service, more: &[&str]) -> Ended {
        let arguments = [&["logs", "t", "--endpoint", endpoint], more].concat();
        ended(self.command(&arguments).env("AWS_ENDPOINT_URL", &logs.endpoint).spawn().unwrap())
    }
}

#[test]
fn logs_of_a_stack_come_from_cloudwatch_logs() {
    let world = World::new("printf '[8]\tvalidation-auc:0.5\n'");
    world.write_request("request.json", &limited(1, 1));
    let stack = world.stack();
    world.run(&[]).with_code(0);
    let asked: Arc<Mutex<Vec<Value>>> = Arc::default();
    let kept = Arc::clone(&asked);
    let logs = Service::start(move |call| {
        assert_eq!(call.operation(), "FilterLogEvents");
        let prefix = call.body["logStreamNamePrefix"].as_str().unwrap().to_owned();
        let job = prefix.split('/').next().unwrap();
        let event = |id: &str, host: &str, at: i64, message: &str| {
            let stream = format!("{job}/{host}-1789000000000");
            json!({"eventId": id, "logStreamName": stream, "timestamp": at, "message": message})
        };
        let page = if call.body["nextToken"] == "more" {
            // Some pages are empty, and an event may come twice.
            json!({"events": [
                event("2", "algo-2", 1_789_000_000_500, "b\n"), event("3", "algo-1", 1_789_000_001_000, "c"),
            ]})
        } else {
            let events = [
                event("1", "algo-1", 1_789_000_000_250, "a"),
                event("2", "algo-2", 1_789_000_000_500, "b\n"),
            ];
            json!({"events": events, "nextToken": "more"})
        };
        kept.lock().unwrap().push(call.body.clone());
        Answer::done(&page)
    });
    let printed = world.logs_at(&stack.endpoint, &logs, &["0"]).with_code(0);
    assert_eq!(printed.out, "a\nb\nc\n");
    assert!(
        printed.err.starts_with("log of t-") && printed.err.ends_with(": trial 0, Completed\n"),
        "{printed:?}"
    );
    let shown =
        objects(&world.logs_at(&stack.endpoint, &logs, &["--output", "json", "--follow"]).with_code(0));
    assert_eq!(shown.len(), 3);
    assert_eq!((&shown[1]["host"], &shown[1]["line"]), (&json!("algo-2"), &json!("b\n")));
    assert_eq!(shown[0]["timestamp"], "2026-09-10T00:26:40.250Z");
    world.logs_at(&stack.endpoint, &logs, &["--host", "algo-2"]).with_code(0);
    let asked = asked.lock().unwrap();
    let group = asked.iter().all(|body| body["logGroupName"] == "/aws/sagemaker/TrainingJobs");
    let last = asked.last().unwrap()["logStreamNamePrefix"].as_str().unwrap();
    assert!(group && last.ends_with("/algo-2-"), "{asked:?}");
}

#[test]
fn logs_of_a_stack_that_cannot_be_read_say_why() {
    let world = World::new("printf '[8]\tvalidation-auc:0.5\n'");
    world.write_request("request.json", &limited(1, 1));
    let stack = world.stack();
    world.run(&[]).with_code(0);
    let denied = Service::start(|_| Answer::error(400, "AccessDeniedException", "User is not authorized"));
    let failed = world.logs_at(&stack.endpoint, &denied, &[]).with_code(3);
    assert!(failed.err.contains("error: cannot read CloudWatch Logs: AccessDenied"), "{failed:?}");
    assert!(failed.err.contains("hint: your credentials need logs:FilterLogEvents"), "{failed:?}");
    let missing = Service::start(|_| Answer::error(400, "ResourceNotFoundException", "no such group"));
    let failed = world.logs_at(&stack.endpoint, &missing, &[]).with_code(3);
    assert!(failed.err.contains("hint: the account has no log of a training job"), "{failed:?}");
    let empty = Service::start(|_| Answer::done(&json!({"events": []})));
    let failed = world.logs_at(&stack.endpoint, &empty, &[]).with_code(2);
    assert!(failed.err.contains("error: CloudWatch Logs has no log of the training job t-"), "{failed:?}");
    let unset = world.hyperband(&["logs", "t", "--endpoint", &stack.endpoint]).with_code(2);
    assert!(unset.err.contains("AWS_ENDPOINT_URL_CLOUDWATCH_LOGS"), "{unset:?}");
}

/// `--follow` ended with an error before the account's first training job had logged its first line.
#[test]
fn regression_logs_of_a_stack_follows_a_running_job_from_before_its_first_line_to_its_end() {
    let world = World::new(
        "touch began; while [ ! -e go ]; do sleep 0.02; done; printf '[8]\tvalidation-auc:0.5\n'; touch ended",
    );
    world.write_request("request.json", &limited(1, 1));
    let stack = world.stack();
    let run = world.start(&[]);
    until("the job runs", || world.path("began").exists());
    let (go, is_ended) = (world.path("go"), world.path("ended"));
    let starts: Arc<Mutex<Vec<i64>>> = Arc::default();
    let kept = Arc::clone(&starts);
    let logs = Service::start(move |call| {
        let job = call.body["logStreamNamePrefix"].as_str().unwrap().trim_end_matches('/').to_owned();
        let start = call.body["startTime"].as_i64().unwrap();
        let event = |id: &str, at: i64, line: &str| {
            let stream = format!("{job}/algo-1-1789000000000");
            json!({"eventId": id, "logStreamName": stream, "timestamp": 1_789_000_000_000 + at, "message": line})
        };
        let (first, late) = (event("1", 20_000, "first"), event("2", 15_000, "late"));
        let mut starts = kept.lock().unwrap();
        starts.push(start);
        let mut events = match starts.len() {
            1 => {
                return Answer::error(
                    400,
                    "ResourceNotFoundException",
                    "The specified log group does not exist.",
                );
            }
            2 => vec![],
            3 => vec![first],
            4 => vec![late, first],
            _ => {
                std::fs::write(&go, "").unwrap();
                vec![event("3", 40_000, "second"), event("4", 40_000, "third")]
            }
        };
        if starts.len() > 5 && is_ended.exists() {
            events.push(event("5", 41_000, "last"));
        }
        events.retain(|event| event["timestamp"].as_i64().unwrap() >= start);
        Answer::done(&json!({"events": events}))
    });
    let followed = world.logs_at(&stack.endpoint, &logs, &["0", "--follow"]).with_code(0);
    assert_eq!(followed.out, "first\nlate\nsecond\nthird\nlast\n");
    assert!(followed.err.starts_with("log of t-") && followed.err.lines().count() == 1, "{followed:?}");
    let starts = starts.lock().unwrap();
    assert_eq!(starts[..3], [0, 0, 0]);
    assert_eq!((starts[3], starts[5]), (1_789_000_010_000, 1_789_000_030_000), "10 s before the newest line");
    ended(run).with_code(0);
}
