//! `proxy`: signs requests and forwards them to a stack.

use std::net::TcpListener;
use std::process::Command;

use port_tests::memory::MemoryTable;
use serde_json::json;
use stack_api::{Stack, response};

use crate::http::Served;
use crate::world::{QUICK, World, request};

const FUNCTION: &str = "lambda:arn:aws:lambda:eu-west-2:111122223333:function:tune";

fn command(world: &World, endpoint: &str) -> Command {
    let mut command = world.command(&["proxy", "--listen", "127.0.0.1:0", "--endpoint", endpoint]);
    command.env("AWS_ACCESS_KEY_ID", "AKIAEXAMPLEABCD").env("AWS_SECRET_ACCESS_KEY", "example-secret");
    command.env("AWS_REGION", "eu-west-3");
    command
}

#[test]
fn requests_of_both_protocols_are_signed_and_forwarded() {
    let world = World::new(QUICK);
    let stack = Stack::start(MemoryTable::default());
    let proxy = Served::start(command(&world, &stack.endpoint));
    let created = proxy.aws("CreateHyperParameterTuningJob", &request("t")).with_status(200);
    assert!(created.head.contains("content-type: application/x-amz-json-1.1"), "{created:?}");
    assert!(created.head.contains("x-amzn-requestid: request-1"), "{created:?}");
    let listed =
        proxy.aws("ListHyperParameterTuningJobs", &json!({"NameContains": "t"})).with_status(200).json();
    assert_eq!(listed["HyperParameterTuningJobSummaries"][0]["HyperParameterTuningJobName"], "t");
    let listed = proxy.get("/tuning-jobs?NameContains=t&SortOrder=Ascending").with_status(200).json();
    assert_eq!(listed["HyperParameterTuningJobSummaries"][0]["HyperParameterTuningJobName"], "t");
    let missing = proxy.get("/tuning-jobs/none").with_status(404);
    assert!(missing.head.contains("x-amzn-errortype: resourcenotfound"), "{missing:?}");
    let mut bare = request("bare");
    bare["TrainingJobDefinition"].as_object_mut().unwrap().remove("RoleArn");
    world.write_request("bare.json", &bare);
    let refused = world.hyperband(&["submit", "bare.json", "--endpoint", &proxy.url]).with_code(2);
    assert!(refused.err.contains("RoleArn"), "a stack has no default: {refused:?}");
    // The commands with --endpoint work through it.
    let described = world.hyperband(&["describe", "t", "--endpoint", &proxy.url]).with_code(0);
    assert!(described.out.starts_with("t: InProgress"), "{described:?}");

    proxy.send("GET /tuning-jobs", &["Host: rebound.example"], b"").with_status(403);
    proxy.send("POST /tuning-jobs/t/stop", &["Origin: https://evil.example"], b"").with_status(403);
    let requests = stack.requests();
    for request in &requests {
        let signature = request.header("authorization").unwrap();
        assert!(signature.contains("Credential=AKIAEXAMPLEABCD/"), "{signature}");
        assert!(signature.contains("/eu-west-3/execute-api/aws4_request"), "{signature}");
        assert!(!request.path.contains("stop"), "no refused request reaches the stack: {request:?}");
    }
    assert_eq!(requests[0].header("x-amz-target"), Some("SageMaker.CreateHyperParameterTuningJob"));
    assert_eq!(requests[2].path, "/tuning-jobs?NameContains=t&SortOrder=Ascending");
    proxy.end("TERM").with_code(0);
}

#[test]
fn failures_of_the_connection_and_denials_are_errors_of_the_protocol() {
    let world = World::new(QUICK);
    let unused = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", unused.local_addr().unwrap());
    drop(unused);
    let proxy = Served::start(command(&world, &endpoint));
    let failed = [
        proxy.aws("StopHyperParameterTuningJob", &json!({"HyperParameterTuningJobName": "t"})),
        proxy.post("/tuning-jobs/t/stop", &json!({})),
    ];
    for failed in failed {
        let failed = failed.with_status(503).json();
        assert_eq!(failed["__type"], "ServiceUnavailable");
        assert!(failed["message"].as_str().unwrap().starts_with("cannot reach the endpoint: "), "{failed}");
    }
    let ended = proxy.end("INT").with_code(0);
    assert!(ended.err.contains("POST /tuning-jobs/t/stop: cannot reach the endpoint: "), "{ended:?}");

    let denied = json!({"message": "Forbidden"});
    let stack = Stack::with_rule(MemoryTable::default(), move |_, _| response(403, &denied));
    let proxy = Served::start(command(&world, &stack.endpoint));
    let denied = proxy.get("/tuning-jobs").with_status(403).json();
    assert_eq!(denied["__type"], "AccessDeniedException");
    assert!(denied["message"].as_str().unwrap().contains("execute-api:Invoke"), "{denied}");
    assert!(!denied.to_string().contains("example-secret"));
    proxy.end("TERM").with_code(0);
}

#[test]
fn a_function_serves_the_paths_of_tuning_jobs_only() {
    let world = World::new(QUICK);
    let stack = Stack::start(MemoryTable::default());
    let mut command = command(&world, FUNCTION);
    command.env("AWS_ENDPOINT_URL_LAMBDA", &stack.endpoint);
    let proxy = Served::start(command);
    proxy.post("/tuning-jobs", &request("t")).with_status(201);
    let listed = proxy.get("/tuning-jobs?NameContains=t").with_status(200).json();
    assert_eq!(listed["HyperParameterTuningJobSummaries"][0]["HyperParameterTuningJobName"], "t");
    let refused = proxy.aws("ListHyperParameterTuningJobs", &json!({})).with_status(400).json();
    assert!(refused["message"].as_str().unwrap().contains("ApiUrl"), "{refused}");
    proxy.end("TERM").with_code(0);
}

#[test]
fn the_endpoint_and_a_local_address_are_required() {
    let world = World::new(QUICK);
    assert!(world.hyperband(&["proxy"]).with_code(2).err.contains("--endpoint"));
    let remote = ["proxy", "--listen", "0.0.0.0:0", "--endpoint", "http://127.0.0.1:1"];
    assert!(world.hyperband(&remote).with_code(2).err.contains("acts with your AWS credentials"));
}
