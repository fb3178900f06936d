//! Start and end of `training-service`. Other tests cover its API.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Child;

use serde_json::Value;

use crate::world::{ENDLESS, World, ended, signal, until};

/// A job of one process.
const JOB: &str = r#"{"TrainingJobName":"job","RoleArn":"r","AlgorithmSpecification":{"TrainingImage":"local"},
    "OutputDataConfig":{"S3OutputPath":"s3://b/o"},"ResourceConfig":{"InstanceCount":1,"InstanceType":"ml.m5.large"}}"#;

fn start(world: &World, options: &[&str]) -> Child {
    let command = ["--", "sh", "train.sh"];
    let arguments = [&["training-service", "--listen", "127.0.0.1:0"], options, &command].concat();
    world.command(&arguments).spawn().unwrap()
}

/// The first line of its standard output.
fn line(child: &mut Child) -> String {
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    line
}

fn create(endpoint: &str) -> String {
    let mut stream = TcpStream::connect(endpoint.strip_prefix("http://").unwrap()).unwrap();
    let head =
        "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/x-amz-json-1.1\r\n";
    let target = "X-Amz-Target: SageMaker.CreateTrainingJob";
    write!(stream, "{head}{target}\r\nContent-Length: {}\r\n\r\n{JOB}", JOB.len()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn the_service_prints_its_address_and_ends_its_processes() {
    for name in ["INT", "TERM"] {
        let world = World::new(ENDLESS);
        let mut child = start(&world, &["--output", "json", "--grace-seconds", "1"]);
        let shown: Value = serde_json::from_str(&line(&mut child)).unwrap();
        let answer = create(shown["Endpoint"].as_str().unwrap());
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("training-job/job"), "{answer}");
        until("the job trains", || world.processes().iter().any(|line| line.contains("train.sh")));
        signal(&child, name);
        let ended = ended(child).with_code(0);
        assert!(ended.err.contains("job InProgress Training\n"), "{ended:?}");
        assert!(!ended.err.contains("warning"), "no warning for loopback: {ended:?}");
        assert_eq!(world.processes(), Vec::<String>::new());
    }
}

#[test]
fn the_service_warns_before_it_listens_beyond_this_machine() {
    let world = World::new(ENDLESS);
    let arguments = ["training-service", "--listen", "0.0.0.0:0", "--", "sh", "train.sh"];
    let mut child = world.command(&arguments).spawn().unwrap();
    assert!(line(&mut child).starts_with("listening on http://0.0.0.0:"));
    signal(&child, "TERM");
    let ended = ended(child).with_code(0);
    assert!(
        ended.err.contains("warning: 0.0.0.0:") && ended.err.contains("there is no authentication"),
        "{ended:?}"
    );
}

#[test]
fn start_up_errors_name_the_cause() {
    let world = World::new(ENDLESS);
    let mut child = start(&world, &[]);
    let first = line(&mut child);
    let address = first.trim().strip_prefix("listening on http://").unwrap();
    let taken = ["training-service", "--listen", address, "--data-dir", "other", "--", "sh", "train.sh"];
    let refused = world.hyperband(&taken).with_code(3);
    assert!(refused.err.contains(address) && refused.err.contains("--listen"), "{refused:?}");
    let same_folder = ["training-service", "--listen", "127.0.0.1:0", "--", "sh", "train.sh"];
    let refused = world.hyperband(&same_folder).with_code(3);
    assert!(refused.err.contains("another training service uses this data directory"), "{refused:?}");
    world.hyperband(&["training-service", "--", "no-such-program-anywhere"]).with_code(2);
    let bad = ["training-service", "--events-endpoint", "nowhere", "--", "true"];
    assert!(world.hyperband(&bad).with_code(2).err.contains("such as http://"));
    signal(&child, "TERM");
    ended(child).with_code(0);
}
