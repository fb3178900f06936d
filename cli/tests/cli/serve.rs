//! `serve`: several tunings over HTTP, with training processes.

use std::io::{BufRead, BufReader, Write};

use serde_json::{Value, json};

use crate::http::{Served, read, serve};
use crate::world::{ENDLESS, World, ended, request, signal, until};

/// Prints nine epochs once the file `go` exists; the first before it. Records how many of them run at once.
const GATED: &str = r#"
here="$PWD/running/$TRAINING_JOB_NAME"
trap 'rmdir "$here"; exit 0' TERM
mkdir -p "$here"
ls "$PWD/running" | wc -l >> counts
i=0
while [ $i -lt 9 ]; do
  printf '[%d]\tvalidation-auc:0.%d%s\n' $i $((i + 1)) "${SM_HP_X#0.}"
  until [ -e go ]; do sleep 0.02; done
  i=$((i + 1))
done
rmdir "$here"
"#;

fn status(served: &Served, name: &str) -> Value {
    served.get(&format!("/tuning-jobs/{name}")).with_status(200).json()
}

fn until_completed(served: &Served, name: &str) {
    until(&format!("{name} has ended"), || {
        status(served, name)["HyperParameterTuningJobStatus"] != "InProgress"
    });
    let described = status(served, name);
    assert_eq!(described["HyperParameterTuningJobStatus"], "Completed", "{described:#}");
}

/// Asserts that the best training job of the tuning has the greatest value of its training jobs.
fn assert_best(served: &Served, name: &str) {
    let jobs = served.get(&format!("/tuning-jobs/{name}/training-jobs")).with_status(200).json();
    let value = |job: &Value| job["FinalHyperParameterTuningJobObjectiveMetric"]["Value"].as_f64();
    let jobs = jobs["TrainingJobSummaries"].as_array().unwrap();
    assert!(jobs.iter().all(|job| job["TrainingJobName"].as_str().unwrap().starts_with(&format!("{name}-"))));
    let greatest = jobs.iter().filter_map(value).fold(0.0, f64::max);
    let best = status(served, name)["BestTrainingJob"].clone();
    let x = best["TunedHyperParameters"]["x"].as_str().unwrap().to_owned();
    let expected: f64 = format!("0.9{}", x.strip_prefix("0.").unwrap()).parse().unwrap();
    assert_eq!((value(&best), greatest), (Some(expected), expected), "{best:#}");
}

/// Returns how many training processes have started.
fn starts(world: &World) -> usize {
    let counts = world.path("counts");
    if counts.exists() { world.read("counts").lines().count() } else { 0 }
}

/// Returns how many training jobs of the tuning are in progress.
fn in_progress(served: &Served, name: &str) -> Value {
    status(served, name)["TrainingJobStatusCounters"]["InProgress"].clone()
}

#[test]
fn two_tunings_share_the_slots_and_have_their_own_results() {
    let world = World::new(GATED);
    let served = world.serve(&["--slots", "2"]);
    for name in ["first", "second"] {
        let created = served.post("/tuning-jobs", &request(name)).with_status(201).json();
        assert!(created["HyperParameterTuningJobArn"].as_str().unwrap().ends_with(&format!("/{name}")));
    }
    // Four training jobs are in progress, of which two wait for a slot.
    for name in ["first", "second"] {
        until("both tunings have two jobs", || in_progress(&served, name) == 2);
    }
    until("two jobs train", || starts(&world) == 2);
    world.write("go", "");
    for name in ["first", "second"] {
        until_completed(&served, name);
        assert_best(&served, name);
        served.until_said(&format!("ended {name}: Completed, "));
    }
    let counts: Vec<u32> = world.read("counts").lines().map(|line| line.trim().parse().unwrap()).collect();
    assert_eq!((counts.len(), counts.iter().max()), (12, Some(&2)), "{counts:?}");
    let ended = served.end("TERM").with_code(0);
    for line in ["submitted first\n", "submitted second\n", "at most 2 training processes at once"] {
        assert!(ended.err.contains(line), "{line} in {ended:?}");
    }
    for name in ["first", "second"] {
        let replayed = world.hyperband(&["replay", name]);
        assert_eq!(replayed.code, 0, "{replayed:?}");
    }
}

#[test]
fn all_tunings_continue_after_a_kill_and_after_a_signal() {
    let world = World::new(GATED);
    let served = world.serve(&["--slots", "2"]);
    for name in ["first", "second"] {
        served.post("/tuning-jobs", &request(name)).with_status(201);
        until("both tunings have two jobs", || in_progress(&served, name) == 2);
    }
    until("two jobs train", || starts(&world) == 2);
    served.kill();
    until("no process is left", || world.processes().is_empty());
    std::fs::remove_dir_all(world.path("running")).unwrap();

    // The other commands work on the data directory, and name it interrupted.
    assert!(world.hyperband(&["list"]).with_code(0).out.contains("Interrupted"));
    let served = world.serve(&["--slots", "2"]);
    let in_use = world.start(&[]);
    let in_use = ended(in_use).with_code(3);
    assert!(
        in_use.err.contains("hint: another `hyperband run` or `hyperband serve` uses this"),
        "{in_use:?}"
    );
    let described = world.hyperband(&["describe", "second"]).with_code(0);
    assert!(!described.out.contains("interrupted"), "{described:?}");
    until("two jobs train", || starts(&world) == 4);
    let ended = served.end("INT").with_code(0);
    assert!(ended.err.contains("continuing first\ncontinuing second\n"), "{ended:?}");
    assert_eq!(world.processes(), Vec::<String>::new());

    world.write("go", "");
    let served = world.serve(&["--slots", "2"]);
    for name in ["first", "second"] {
        until_completed(&served, name);
        assert_best(&served, name);
    }
    let counts = world.read("counts");
    assert!(counts.lines().all(|line| ["1", "2"].contains(&line.trim())), "{counts}");
    served.end("TERM").with_code(0);
}

#[test]
fn clients_of_sagemaker_work() {
    let world = World::new(ENDLESS);
    let served = world.serve(&[]);
    let mut bare = request("t");
    bare["TrainingJobDefinition"].as_object_mut().unwrap().remove("RoleArn");
    let name = json!({"HyperParameterTuningJobName": "t"});
    let created = served.aws("CreateHyperParameterTuningJob", &bare).with_status(200);
    assert!(created.head.contains("content-type: application/x-amz-json-1.1"), "{created:?}");
    assert!(created.head.contains("x-amzn-requestid: "), "{created:?}");
    let taken = served.aws("CreateHyperParameterTuningJob", &bare).with_status(400).json();
    assert_eq!(taken["__type"], "ResourceInUse");
    let described = served.aws("DescribeHyperParameterTuningJob", &name).with_status(200).json();
    assert_eq!(described["TrainingJobDefinition"]["RoleArn"], "arn:aws:iam::000000000000:role/local");
    let listed = served.aws("ListHyperParameterTuningJobs", &json!({})).with_status(200).json();
    assert_eq!(listed["HyperParameterTuningJobSummaries"][0]["HyperParameterTuningJobName"], "t");
    served.aws("StopHyperParameterTuningJob", &name).with_status(200);
    until("t has stopped", || status(&served, "t")["HyperParameterTuningJobStatus"] == "Stopped");
    // The client of this project works too, and sends no defaults of this machine, which would be wrong for a stack.
    world.write_request("bare.json", &bare);
    let submit = ["submit", "bare.json", "--name", "v", "--endpoint", &served.url];
    world.hyperband(&submit).with_code(0);
    let shown = status(&served, "v");
    assert_eq!(shown["TrainingJobDefinition"]["RoleArn"], "arn:aws:iam::000000000000:role/local");
    let listed = world.hyperband(&["list", "--endpoint", &served.url]).with_code(0);
    assert!(listed.out.contains("Stopped"), "{listed:?}");
    served.until_said("ended t: Stopped, ");

    let mut bad = request("u");
    bad["HyperParameterTuningJobConfig"]["Strategy"] = json!("Best");
    for refused in [served.aws("CreateHyperParameterTuningJob", &bad), served.post("/tuning-jobs", &bad)] {
        let refused = refused.with_status(400).json();
        assert_eq!(refused["__type"], "ValidationException");
        assert!(refused["message"].as_str().unwrap().contains("Strategy"), "{refused}");
    }
    let mut unpriced = request("u");
    unpriced["Controller"] = json!({"MaxCostUsd": 1});
    let refused = served.post("/tuning-jobs", &unpriced).with_status(400).json();
    assert!(refused["message"].as_str().unwrap().contains("this machine has no price list"), "{refused}");
    let no_json = served.send("POST /tuning-jobs", &[], b"{").with_status(400).json();
    assert_eq!(no_json["__type"], "SerializationException");
    let ended = served.end("TERM").with_code(0);
    for line in ["submitted t\n", "stopping t\n"] {
        assert!(ended.err.contains(line), "{line} in {ended:?}");
    }
}

#[test]
fn requests_of_web_pages_and_oversized_requests_are_refused() {
    let world = World::new(ENDLESS);
    let served = world.serve(&[]);
    let port = served.address().rsplit_once(':').unwrap().1.to_owned();
    for host in [format!("localhost:{port}"), format!("[::1]:{port}"), "127.0.0.1".to_owned()] {
        served.send("GET /tuning-jobs", &[&format!("Host: {host}")], b"").with_status(200);
    }
    let rebound = served.send("GET /tuning-jobs", &["Host: rebound.example"], b"").with_status(403).json();
    assert_eq!(rebound["__type"], "AccessDeniedException");
    assert!(rebound["message"].as_str().unwrap().contains("rebound.example"), "{rebound}");
    let own = format!("Origin: {}", served.url);
    served.send("GET /tuning-jobs", &[&own], b"").with_status(200);
    let body = request("t").to_string();
    for origin in ["Origin: https://evil.example", "Origin: null"] {
        served.send("POST /tuning-jobs", &[origin], body.as_bytes()).with_status(403);
    }
    let large = vec![b' '; 6 * 1024 * 1024 + 1];
    let refused = served.send("POST /tuning-jobs", &[], &large).with_status(413).json();
    assert_eq!(refused["__type"], "RequestEntityTooLargeException");
    served.get("/nothing").with_status(404);
    served.send("PUT /tuning-jobs", &[], b"").with_status(405);
    let listed = served.get("/tuning-jobs").with_status(200).json();
    assert_eq!(listed["HyperParameterTuningJobSummaries"], json!([]), "no refused request had an effect");
    served.end("TERM").with_code(0);
}

#[test]
fn a_slow_client_blocks_no_other() {
    let world = World::new(ENDLESS);
    let served = world.serve(&[]);
    let slow: Vec<_> = (0..8)
        .map(|_| {
            let mut stream = served.connect();
            write!(stream, "POST /tuning-jobs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{{")
                .unwrap();
            stream
        })
        .collect();
    served.get("/tuning-jobs").with_status(200);
    for mut stream in slow {
        stream.write_all(b"}").unwrap();
        assert_eq!(read(stream).status, 400);
    }
    served.end("TERM").with_code(0);
}

#[test]
fn a_tuning_is_not_continued_with_another_command_without_the_option() {
    let world = World::new(ENDLESS);
    let served = world.serve(&[]);
    served.post("/tuning-jobs", &request("t")).with_status(201);
    until("jobs train", || !world.processes().is_empty());
    served.end("INT").with_code(0);
    let other = ["serve", "--listen", "127.0.0.1:0", "--", "true"];
    let refused = world.hyperband(&other).with_code(2);
    assert!(
        refused.err.contains("the tuning 't' was started with the command `sh train.sh`, not `true`"),
        "{refused:?}"
    );
    assert!(refused.err.contains("--command-changed"), "{refused:?}");
    // `resume` has the command.
    let mut child = world.command(&["resume", "t"]).spawn().unwrap();
    until("jobs train", || !world.processes().is_empty());
    signal(&child, "INT");
    child.wait().unwrap();
    let changed = ["serve", "--listen", "127.0.0.1:0", "--command-changed", "--", "true"];
    let served = Served::start(world.command(&changed));
    served.end("TERM").with_code(0);
}

#[test]
fn the_url_is_printed_as_json() {
    let world = World::new(ENDLESS);
    let mut child = world.command(&serve(&["--output", "json"])).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let printed: Value = serde_json::from_str(&line).unwrap();
    assert!(printed["Endpoint"].as_str().unwrap().starts_with("http://127.0.0.1:"), "{line}");
    signal(&child, "TERM");
    ended(child).with_code(0);
}

#[test]
fn start_up_errors_name_the_cause() {
    let world = World::new(ENDLESS);
    let undashed = world.hyperband(&["serve", "sh", "train.sh"]).with_code(2);
    assert!(undashed.err.contains("hyperband serve -- sh train.sh"), "{undashed:?}");
    let remote = ["serve", "--listen", "0.0.0.0:0", "--", "sh", "train.sh"];
    let refused = world.hyperband(&remote).with_code(2);
    assert!(
        refused.err.contains("--allow-remote") && refused.err.contains("no authentication"),
        "{refused:?}"
    );
    let allowed = ["serve", "--listen", "0.0.0.0:0", "--allow-remote", "--", "sh", "train.sh"];
    let ended = Served::start(world.command(&allowed)).end("TERM").with_code(0);
    assert!(ended.err.contains("warning: 0.0.0.0:"), "{ended:?}");

    let served = world.serve(&[]);
    let second = world.hyperband(&serve(&[])).with_code(3);
    assert!(
        second.err.contains("hint: another `hyperband run` or `hyperband serve` uses this"),
        "{second:?}"
    );
    let taken = ["serve", "--listen", served.address(), "--data-dir", "other", "--", "true"];
    let taken = world.hyperband(&taken).with_code(3);
    assert!(taken.err.contains("cannot listen on") && taken.err.contains("--listen"), "{taken:?}");
    world.hyperband(&["serve", "--slots", "0", "--", "true"]).with_code(2);
    world.hyperband(&["serve", "--", "no-such-program-anywhere"]).with_code(2);
    served.end("TERM").with_code(0);
}

/// A crash after the submission left a tuning without a recorded command, which another command then continued.
#[test]
fn regression_a_submission_is_refused_if_its_command_cannot_be_recorded() {
    let world = World::new(ENDLESS);
    let served = world.serve(&[]);
    world.write(".hyperband/runs", "not a folder");
    let refused = served.post("/tuning-jobs", &request("t")).with_status(503).json();
    assert!(refused["message"].as_str().unwrap().contains("command cannot be recorded"), "{refused}");
    served.until_said("error: cannot write the command to ");
    served.get("/tuning-jobs/t").with_status(404);
    std::fs::remove_file(world.path(".hyperband/runs")).unwrap();
    served.post("/tuning-jobs", &request("t")).with_status(201);
    served.end("TERM").with_code(0);
}

/// Two submissions of a name at the same time wrote the same file, and one of them failed.
#[test]
fn regression_submissions_of_one_name_at_the_same_time_get_the_same_answer() {
    let world = World::new(ENDLESS);
    let served = world.serve(&[]);
    let statuses = std::thread::scope(|scope| {
        let send = || served.post("/tuning-jobs", &request("t")).status;
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(send)).collect();
        let mut statuses: Vec<u16> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        statuses.sort_unstable();
        statuses
    });
    assert_eq!(statuses, [200, 200, 200, 200, 200, 200, 200, 201]);
    let mut capped = request("capped");
    capped["Controller"]["MaxCostUsd"] = json!(0.000_001);
    let refused = served.post("/tuning-jobs", &capped);
    assert!((400..500).contains(&refused.status), "{refused:?}");
    assert!(!world.path(".hyperband/runs/capped.submitted.json").exists());
    served.end("TERM").with_code(0);
}

/// Its jobs started before the record was written, so each failed start interrupted them once more.
#[test]
fn regression_no_job_starts_if_its_command_cannot_be_recorded() {
    let world = World::new(ENDLESS);
    let served = world.serve(&[]);
    served.post("/tuning-jobs", &request("t")).with_status(201);
    until("jobs train", || !world.processes().is_empty());
    served.end("INT").with_code(0);
    let records = || {
        let jobs = std::fs::read_dir(world.path(".hyperband/training/jobs")).unwrap();
        let mut jobs: Vec<_> = jobs.map(|job| job.unwrap().path().join("job.json")).collect();
        jobs.sort();
        jobs.iter().map(|job| std::fs::read_to_string(job).unwrap()).collect::<Vec<_>>()
    };
    let before = records();
    std::fs::rename(world.path(".hyperband/runs"), world.path("runs")).unwrap();
    world.write(".hyperband/runs", "not a folder");
    let failed = world.hyperband(&["serve", "--listen", "127.0.0.1:0", "--command-changed", "--", "true"]);
    assert!(failed.with_code(3).err.contains("cannot write the command to "));
    assert_eq!(records(), before);
    std::fs::remove_file(world.path(".hyperband/runs")).unwrap();
    std::fs::rename(world.path("runs"), world.path(".hyperband/runs")).unwrap();
    let served = world.serve(&[]);
    until("jobs train", || !world.processes().is_empty());
    served.end("TERM").with_code(0);
}
