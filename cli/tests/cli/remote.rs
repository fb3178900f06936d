//! Tunings at an endpoint. The tests serve the HTTP API over the table of a data directory, in which `run` acts as the
//! stack.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier};

use dynamodb::DynamoTable;
use port_tests::memory::MemoryTable;
use serde_json::json;
use stack_api::{Stack, response};

use crate::world::{ENDLESS, Ended, QUICK, World, ended, request, signal, until};

/// Address of a stack's function for direct calls.
const FUNCTION: &str = "lambda:arn:aws:lambda:eu-west-2:111122223333:function:tune";
const ARN: &str = "arn:aws:sagemaker:eu-west-1:111122223333:hyper-parameter-tuning-job/t";

impl World {
    /// Serves the API over the table of this folder.
    pub(crate) fn stack(&self) -> Stack {
        Stack::start(self.table())
    }

    /// Attaches to the table of this folder.
    pub(crate) fn table(&self) -> DynamoTable {
        let folder = self.path(".hyperband");
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("table.sqlite");
        let runtime = tokio::runtime::Runtime::new().unwrap();
        // Creates the table like `run`, then attaches to it like the other commands.
        drop(runtime.block_on(dynamodb::Embedded::open(&path)).unwrap());
        let table = runtime.block_on(dynamodb::Embedded::attach(&path)).unwrap();
        table.table()
    }

    /// Runs the program with an endpoint.
    pub(crate) fn at(&self, stack: &Stack, arguments: &[&str]) -> Ended {
        self.hyperband(&[arguments, &["--endpoint", &stack.endpoint]].concat())
    }
}

#[test]
fn remote_and_local_tunings_have_the_same_output() {
    let world = World::new(QUICK);
    let stack = world.stack();
    let submitted = world.at(&stack, &["submit", "request.json"]).with_code(0);
    assert!(
        submitted.out.starts_with(&format!("submitted t: {ARN}\n\n  hyperband watch t --endpoint http")),
        "{submitted:?}"
    );
    let listed = world.at(&stack, &["list"]).with_code(0);
    assert!(listed.out.lines().nth(1).unwrap().starts_with("t     InProgress"), "{listed:?}");

    let run = world.start(&[]);
    let watched = world.at(&stack, &["watch", "t", "--interval", "0.1"]).with_code(0);
    let shown = ended(run).with_code(0);
    for event in
        ["trial 0: job ordered in bracket 0", "best so far", "rung 0 at epoch 3", "the tuning has ended"]
    {
        assert!(watched.err.contains(event), "{event} in {watched:?}");
    }
    // The model of a stack is in S3.
    let without_model = |out: &str| {
        let lines = out.lines().filter(|line| !line.starts_with("  best model"));
        lines.collect::<Vec<_>>().join("\n")
    };
    assert!(watched.out.contains("  best model s3://example-bucket/out/t-"), "{watched:?}");
    let summary = |ended: &Ended| without_model(ended.out.split("\n  hyperband").next().unwrap());
    assert_eq!(summary(&watched), summary(&shown));

    let (list, describe) = (&["list"][..], &["describe", "T"][..]);
    let folder = [list, describe].map(|words| without_model(&world.hyperband(words).with_code(0).out));
    let remote = [list, describe].map(|words| without_model(&world.at(&stack, words).with_code(0).out));
    assert_eq!(folder, remote);
    let result = world.at(&stack, &["watch", "t", "--output", "json"]).with_code(0).json();
    assert_eq!(result["TuningJob"]["HyperParameterTuningJobStatus"], "Completed");
    assert_eq!(result["TrainingJobs"].as_array().unwrap().len(), 6);
    let described = world.at(&stack, &["describe", "t", "--output", "json"]).with_code(0).json();
    assert_eq!(described, result["TuningJob"]);
    let over = world.at(&stack, &["stop", "t"]).with_code(2);
    assert!(over.err.starts_with("error: the tuning t has already ended: Completed\nhint: "), "{over:?}");
    assert_eq!(world.at(&stack, &["stop", "--all"]).with_code(0).out, "no tuning is active\n");
}

#[test]
fn an_ended_local_tuning_can_be_watched() {
    let world = World::new(QUICK);
    world.run(&[]).with_code(0);
    let watched = world.hyperband(&["watch", "t", "--interval", "0.1"]).with_code(0);
    assert!(
        watched.err.contains("trial 0: job ordered") && watched.err.contains("the tuning has ended"),
        "{watched:?}"
    );
    assert!(watched.out.starts_with("t: Completed, all training jobs were launched\n"), "{watched:?}");
}

#[test]
fn watching_a_failed_tuning_ends_with_exit_code_1() {
    let world = World::new("exit 3");
    let stack = world.stack();
    world.at(&stack, &["submit", "request.json"]).with_code(0);
    let failed = world.run(&[]).with_code(1);
    let watched = world.at(&stack, &["watch", "t"]).with_code(1);
    assert_eq!(watched.out.lines().next(), failed.out.lines().next());
}

/// `watch` added the steps of the new tuning to those of the deleted one.
#[test]
fn regression_watching_ends_when_another_tuning_has_the_name() {
    let world = World::new(QUICK);
    let pages = AtomicU32::new(0);
    let stack = Stack::with_rule(MemoryTable::default(), move |request, pass| {
        if request.path.contains("/decisions") && pages.fetch_add(1, Ordering::Relaxed) > 0 {
            return response(200, &json!({"TuningJobId": "t-another", "Decisions": []}));
        }
        pass()
    });
    world.at(&stack, &["submit", "request.json"]).with_code(0);
    let watched = world.at(&stack, &["watch", "t", "--interval", "0.1"]).with_code(3);
    assert!(
        watched.err.contains(
            "error: the tuning t was deleted, and another one has its name\nhint: watch the new one: hyperband watch t "
        ),
        "{watched:?}"
    );
}

#[test]
fn a_tuning_at_a_stack_can_be_stopped() {
    let world = World::new(ENDLESS);
    let stack = world.stack();
    let followed = world
        .command(&["submit", "request.json", "--watch", "--interval", "0.1", "--endpoint", &stack.endpoint])
        .spawn()
        .unwrap();
    until("it is submitted", || world.at(&stack, &["describe", "t"]).code == 0);
    let run = world.start(&["--grace-seconds", "1"]);
    until("it runs", || {
        let described = world.at(&stack, &["describe", "t", "--output", "json"]).with_code(0).json();
        described["TrainingJobStatusCounters"]["InProgress"] == 2
    });
    let asked = world.at(&stack, &["stop", "--all"]).with_code(2);
    assert!(
        asked.err.starts_with("error: this would stop t, and there is no terminal to ask for confirmation\n"),
        "{asked:?}"
    );
    let stopped = world.at(&stack, &["stop", "T", "--output", "json"]).with_code(0).json();
    let expected = json!({"HyperParameterTuningJobName": "t", "HyperParameterTuningJobStatus": "Stopping", "Running": true});
    assert_eq!(stopped, expected);
    ended(run).with_code(0);
    let followed = ended(followed).with_code(0);
    assert!(followed.out.starts_with("t: Stopped, a user stopped it\n"), "{followed:?}");
    assert!(followed.err.starts_with(&format!("submitted t: {ARN}\n")), "{followed:?}");
}

#[test]
fn all_tunings_of_a_stack_can_be_stopped() {
    let world = World::new(QUICK);
    let stack = Stack::start(MemoryTable::default());
    for name in ["a", "b"] {
        world.at(&stack, &["submit", "request.json", "--name", name]).with_code(0);
    }
    let first = world.at(&stack, &["stop", "--all", "--yes"]).with_code(0);
    assert_eq!(first.out, "a: stopping\nb: stopping\n");
    let second = world.at(&stack, &["stop", "--all", "--yes"]).with_code(0);
    assert_eq!(second.out, "a: already stopping\nb: already stopping\n");
}

#[test]
fn an_interrupted_watch_does_not_stop_the_tuning() {
    let world = World::new(QUICK);
    let stack = Stack::start(MemoryTable::default());
    world.at(&stack, &["submit", "request.json"]).with_code(0);
    let before = stack.requests().len();
    let watching =
        world.command(&["watch", "t", "--interval", "0.1", "--endpoint", &stack.endpoint]).spawn().unwrap();
    until("it looks", || stack.requests().len() >= before + 4);
    signal(&watching, "INT");
    let left = ended(watching).with_code(130);
    assert!(
        left.err.contains("stopped watching; t continues:\n  hyperband watch t --endpoint http"),
        "{left:?}"
    );
    assert_eq!(left.out, "");
    let described = world.at(&stack, &["describe", "t", "--output", "json"]).with_code(0).json();
    assert_eq!(described["HyperParameterTuningJobStatus"], "InProgress");
    assert!(stack.requests().iter().all(|request| !request.path.ends_with("/stop")));
}

#[test]
fn the_endpoint_of_the_environment_is_used_unless_a_folder_is_given() {
    let world = World::new(QUICK);
    let stack = Stack::start(MemoryTable::default());
    let with = |endpoint: &str, arguments: &[&str]| {
        ended(world.command(arguments).env("HYPERBAND_ENDPOINT", endpoint).spawn().unwrap())
    };
    let submitted = with(&stack.endpoint, &["submit", "request.json", "--output", "json"]).with_code(0);
    assert_eq!(
        submitted.json(),
        json!({"HyperParameterTuningJobArn": ARN, "HyperParameterTuningJobName": "t"})
    );
    let listed = with(&stack.endpoint, &["list", "--output", "json"]).with_code(0).json();
    assert_eq!(listed["HyperParameterTuningJobSummaries"].as_array().unwrap().len(), 1);
    let folder = with(&stack.endpoint, &["list", "--data-dir", "here"]).with_code(0);
    assert_eq!(folder.out, "no tuning was run in here\n");
    assert_eq!(with("", &["list"]).with_code(0).out, "no tuning was run in .hyperband\n");
    let wrong = with("nowhere", &["list"]).with_code(2);
    assert!(wrong.err.starts_with("error: HYPERBAND_ENDPOINT: invalid URL 'nowhere'"), "{wrong:?}");
}

#[test]
fn a_function_replaces_the_http_api_for_every_command() {
    let world = World::new(QUICK);
    let stack = Stack::start(MemoryTable::default());
    let at = |variable: &str, address: &str, arguments: &[&str]| {
        ended(
            world
                .command(arguments)
                .env(variable, address)
                .env("HYPERBAND_ENDPOINT", FUNCTION)
                .spawn()
                .unwrap(),
        )
    };
    let run = |arguments: &[&str]| at("AWS_ENDPOINT_URL_LAMBDA", &stack.endpoint, arguments);
    run(&["submit", "request.json"]).with_code(0);
    let listed = run(&["list", "--output", "json"]).with_code(0).json();
    assert_eq!(listed["HyperParameterTuningJobSummaries"].as_array().unwrap().len(), 1);
    let unknown = run(&["describe", "tt"]).with_code(2);
    assert_eq!(unknown.err, format!("error: there is no tuning 'tt' at {FUNCTION}\nhint: did you mean t?\n"));
    run(&["change", "t", "--max-parallel", "1"]).with_code(0);
    let watch = format!("  hyperband watch t --endpoint {FUNCTION}");
    let submitted = run(&["submit", "request.json", "--name", "t2", "--endpoint", FUNCTION]).with_code(0);
    assert!(submitted.out.contains(&watch.replace("watch t", "watch t2")), "{submitted:?}");
    // The variable of all services counts too.
    at("AWS_ENDPOINT_URL", &stack.endpoint, &["stop", "t"]).with_code(0);
    assert!(stack.requests().iter().all(|request| request.path.starts_with("/2015-03-31/functions/")));
    let wrong = at("AWS_ENDPOINT_URL_LAMBDA", "nowhere", &["list"]).with_code(2);
    assert!(wrong.err.starts_with("error: AWS_ENDPOINT_URL_LAMBDA: invalid URL 'nowhere'"), "{wrong:?}");
    let wrong = world.hyperband(&["list", "--endpoint", "lambda:a/b"]).with_code(2);
    assert!(wrong.err.contains("invalid function 'a/b': expected lambda:NAME"), "{wrong:?}");
}

#[test]
fn requests_are_signed_with_the_credentials_of_the_environment() {
    let world = World::new(QUICK);
    world.write(
        "credentials",
        "[tuner]\naws_access_key_id = AKIAFROMPROFILE\naws_secret_access_key = example\n",
    );
    let denied = json!({"message": "Forbidden"});
    let stack = Stack::with_rule(MemoryTable::default(), move |_, _| response(403, &denied));
    let mut command = world.command(&["list", "--endpoint", &stack.endpoint]);
    command.env("AWS_ACCESS_KEY_ID", "AKIAEXAMPLEABCD").env("AWS_SECRET_ACCESS_KEY", "example-secret");
    let refused = ended(command.env("AWS_REGION", "eu-west-3").spawn().unwrap()).with_code(3);
    for part in ["the access key that ends in ABCD", "execute-api:Invoke", "TuningUsersPolicyArn"] {
        assert!(refused.err.contains(part), "{part} in {refused:?}");
    }
    assert!(!refused.err.contains("example-secret") && !refused.err.contains("AKIAEXAMPLE"), "{refused:?}");
    let mut command = world.command(&["list", "--endpoint", &stack.endpoint]);
    command.env("AWS_PROFILE", "tuner").env("AWS_SHARED_CREDENTIALS_FILE", world.path("credentials"));
    let refused = ended(command.spawn().unwrap()).with_code(3);
    assert!(refused.err.contains("the access key that ends in FILE"), "{refused:?}");
    let signed: Vec<String> =
        stack.requests().iter().map(|one| one.header("authorization").unwrap().to_owned()).collect();
    assert!(
        signed[0].contains("Credential=AKIAEXAMPLEABCD/") && signed[0].contains("/eu-west-3/execute-api/"),
        "{signed:?}"
    );
    assert!(signed[1].contains("Credential=AKIAFROMPROFILE/"), "{signed:?}");
    // Without credentials, requests to this machine are unsigned.
    let refused = world.at(&stack, &["list"]).with_code(3);
    assert!(refused.err.contains("no AWS credentials were found"), "{refused:?}");
}

#[test]
fn violations_are_reported_before_the_request_is_sent_or_by_the_stack() {
    let world = World::new(QUICK);
    let stack = Stack::start(MemoryTable::default());
    let mut bad = request("t");
    bad["Controller"]["MaxCost"] = json!(4);
    world.write_request("bad.json", &bad);
    let refused = world.at(&stack, &["submit", "bad.json"]).with_code(2);
    assert!(
        refused.err.starts_with("error: the request is invalid\n")
            && refused.err.contains("Controller.MaxCost"),
        "{refused:?}"
    );
    assert!(stack.requests().is_empty());

    // Only the stack knows the price.
    let mut poor = request("t");
    poor["Controller"] = json!({"MaxCostUsd": 0.001});
    world.write_request("poor.json", &poor);
    let refused = world.at(&stack, &["submit", "poor.json"]).with_code(2);
    assert!(
        refused.err.starts_with("error: the request is invalid\n  ")
            && refused.err.contains("expected at least"),
        "{refused:?}"
    );
    poor["Controller"]["MaxCostUsd"] = json!(5);
    world.write_request("priced.json", &poor);
    world.at(&stack, &["submit", "priced.json"]).with_code(0);
    let taken = world.at(&stack, &["submit", "priced.json"]).with_code(2);
    assert!(
        taken.err.contains("already exists") && taken.err.contains("hint: use another --name"),
        "{taken:?}"
    );
    let unknown = world.at(&stack, &["describe", "tt"]).with_code(2);
    let expected = format!("error: there is no tuning 'tt' at {}\nhint: did you mean t?\n", stack.endpoint);
    assert_eq!(unknown.err, expected);
}

#[test]
fn an_invalid_endpoint_is_rejected_and_an_unreachable_one_is_reported() {
    let world = World::new(QUICK);
    for (arguments, expected) in [
        (&["list", "--endpoint", "http://example.com"][..], "requests to example.com must go over https://"),
        (&["list", "--endpoint", "example.com"], "invalid URL 'example.com': expected https://HOST"),
        (&["list", "--endpoint", "http://localhost", "--data-dir", "x"], "cannot be used with"),
        (&["watch", "t", "--endpoint", "http://localhost", "--interval", "0"], "at least 0.1 seconds"),
        (&["submit", "request.json"], "the endpoint of the stack is missing\nhint: "),
        (
            &["submit", "nothing.json", "--endpoint", "http://localhost"],
            "cannot read the request nothing.json",
        ),
    ] {
        let refused = world.hyperband(arguments).with_code(2);
        assert!(refused.err.contains(expected), "{arguments:?} {refused:?}");
    }
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let refused = world.hyperband(&["list", "--endpoint", &format!("http://{free}")]).with_code(3);
    assert!(refused.err.starts_with("error: cannot reach the endpoint: "), "{refused:?}");
    assert!(refused.err.contains("(tried 5 times)\nhint: check --endpoint"), "{refused:?}");
}

#[test]
fn watch_retries_while_the_endpoint_is_busy() {
    let world = World::new(QUICK);
    let asked = AtomicU32::new(0);
    let stack = Stack::with_rule(MemoryTable::default(), move |request, pass| {
        // The first update fails with all its retries.
        let busy = request.path.contains("/decisions") && asked.fetch_add(1, Ordering::Relaxed) < 5;
        if busy { response(429, &json!({"message": "Too Many Requests"})) } else { pass() }
    });
    world.at(&stack, &["submit", "request.json"]).with_code(0);
    let before = stack.requests().len();
    let watching =
        world.command(&["watch", "t", "--interval", "0.1", "--endpoint", &stack.endpoint]).spawn().unwrap();
    until("it looks again", || stack.requests().len() >= before + 10);
    signal(&watching, "TERM");
    let left = ended(watching).with_code(130);
    assert!(left.err.contains("Too Many Requests (tried 5 times)\nhint: the tuning continues"), "{left:?}");
    assert!(left.err.contains("the endpoint responds again"), "{left:?}");
}

#[test]
fn regression_a_tuning_with_few_configurations_can_be_watched() {
    let world = World::new(QUICK);
    // Describe adds the number of training jobs, which exceeds the number of configurations.
    let mut few = request("t");
    few["HyperParameterTuningJobConfig"]["ResourceLimits"] = json!({"MaxParallelTrainingJobs": 2});
    few["HyperParameterTuningJobConfig"]["ParameterRanges"] =
        json!({"CategoricalParameterRanges": [{"Name": "kind", "Values": ["a", "b", "c"]}]});
    world.write_request("request.json", &few);
    let stack = Stack::start(MemoryTable::default());
    let watching = ["submit", "request.json", "--watch", "--interval", "0.1", "--endpoint", &stack.endpoint];
    let watching = world.command(&watching).spawn().unwrap();
    until("it looks", || stack.requests().len() >= 6);
    signal(&watching, "INT");
    let left = ended(watching).with_code(130);
    assert!(left.err.contains("stopped watching; t continues"), "{left:?}");
}

#[test]
fn regression_the_submission_is_printed_as_json_if_it_cannot_be_watched() {
    let world = World::new(QUICK);
    let stack = Stack::with_rule(MemoryTable::default(), |request, pass| {
        let expired = json!({"message": "The security token included in the request is expired"});
        if request.method == "GET" { response(403, &expired) } else { pass() }
    });
    let failed = world.at(&stack, &["submit", "request.json", "--watch", "--output", "json"]).with_code(3);
    assert_eq!(failed.json(), json!({"HyperParameterTuningJobArn": ARN, "HyperParameterTuningJobName": "t"}));
    assert!(failed.err.contains("error: t was submitted and continues, but cannot be watched"), "{failed:?}");
}

#[test]
fn regression_ctrl_c_ends_a_watch_that_reads_its_result() {
    let world = World::new(QUICK);
    world.run(&[]).with_code(0);
    let (asked, release) = (Arc::new(AtomicU32::new(0)), Arc::new(Barrier::new(2)));
    let (counted, held) = (Arc::clone(&asked), Arc::clone(&release));
    let stack = Stack::with_rule(world.table(), move |request, pass| {
        if request.path.contains("/training-jobs") {
            counted.fetch_add(1, Ordering::Relaxed);
            held.wait();
        }
        pass()
    });
    let watching = world.command(&["watch", "t", "--endpoint", &stack.endpoint]).spawn().unwrap();
    until("it asks for the jobs", || asked.load(Ordering::Relaxed) > 0);
    signal(&watching, "INT");
    let left = ended(watching).with_code(130);
    release.wait();
    assert!(left.err.contains("\nt has ended:\n  hyperband describe t --endpoint"), "{left:?}");
}

#[test]
fn regression_suggestions_read_only_one_page_of_names() {
    let world = World::new(QUICK);
    let stack = Stack::with_rule(MemoryTable::default(), |request, pass| {
        let one = json!({
            "HyperParameterTuningJobName": "xgb-1", "HyperParameterTuningJobArn": "arn",
            "HyperParameterTuningJobStatus": "InProgress", "CreationTime": 1.5, "LastModifiedTime": 1.5,
            "Controller": {"Unreadable": "damaged"},
        });
        let page = json!({"HyperParameterTuningJobSummaries": [one], "NextToken": "more"});
        if request.path.contains('?') { response(200, &page) } else { pass() }
    });
    let all = format!("`hyperband list --endpoint {}` shows all tunings", stack.endpoint);
    for (name, hint) in [("xgb1", "did you mean xgb-1?"), ("resnet", all.as_str())] {
        let before = stack.requests().len();
        let unknown = world.at(&stack, &["describe", name]).with_code(2);
        assert!(unknown.err.ends_with(&format!("hint: {hint}\n")), "{unknown:?}");
        assert_eq!(stack.requests().len() - before, 2);
    }
}

#[test]
fn regression_control_characters_in_names_do_not_reach_the_terminal() {
    let world = World::new(QUICK);
    let mut hostile = request("t");
    let ranges = &mut hostile["HyperParameterTuningJobConfig"]["ParameterRanges"];
    ranges["CategoricalParameterRanges"] =
        json!([{"Name": "k\u{1b}[2J\u{9b}2J", "Values": ["v\u{1b}]0;x\u{7}"]}]);
    world.write_request("request.json", &hostile);
    let is_clean = |text: &str| !text.chars().any(|letter| letter.is_control() && letter != '\n');
    let run = world.run(&[]).with_code(0);
    assert!(run.err.contains("k\u{fffd}[2J\u{fffd}2J=v"), "{run:?}");
    let mut shown = vec![run];
    for command in [
        &["describe", "t"][..],
        &["watch", "t"],
        &["explain", "t", "0"],
        &["describe", "t", "--output", "json"],
    ] {
        shown.push(world.hyperband(command).with_code(0));
    }
    for shown in shown {
        assert!(is_clean(&shown.out) && is_clean(&shown.err), "{shown:?}");
    }
}
