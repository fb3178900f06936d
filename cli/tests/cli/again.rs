//! Tunings that are continued by name, run again from the start, or continued with another command.

use crate::world::{ENDLESS, QUICK, World, ended, exists, signal, until};

/// Starts the tuning t, waits until it trains, and interrupts it.
fn interrupted(options: &[&str]) -> World {
    let world = World::new(ENDLESS);
    let child = world.start(&[&["--grace-seconds", "1"], options].concat());
    until("two jobs train", || {
        world.processes().iter().filter(|line| line.contains("train.sh")).count() >= 2
    });
    signal(&child, "INT");
    ended(child).with_code(130);
    world
}

#[test]
fn an_interrupted_tuning_is_shown_as_interrupted_and_resumes_by_its_name() {
    let world = interrupted(&[]);
    let listed = world.hyperband(&["list"]).with_code(0);
    assert!(listed.out.contains("t     Interrupted     2        0"), "{listed:?}");
    let described = world.hyperband(&["describe", "t"]).with_code(0);
    assert!(
        described.out.starts_with("t: InProgress, interrupted\n  to continue it: hyperband resume t\n"),
        "{described:?}"
    );
    assert!(described.out.contains("2: 2 interrupted"), "{described:?}");
    let json = world.hyperband(&["describe", "t", "--output", "json"]).with_code(0).json();
    assert_eq!(json["Controller"]["Interrupted"], true);
    let json = world.hyperband(&["list", "--output", "json"]).with_code(0).json();
    assert_eq!(json["HyperParameterTuningJobSummaries"][0]["Controller"]["Interrupted"], true);

    world.write("train.sh", QUICK);
    // The request's file is no longer needed.
    std::fs::remove_file(world.path("request.json")).unwrap();
    // From another folder, the training program still runs in the folder of the first run.
    let data = world.path(".hyperband");
    let mut resume =
        world.command(&["resume", "t", "--output", "json", "--data-dir", data.to_str().unwrap()]);
    let result = ended(resume.current_dir("/").spawn().unwrap()).with_code(0).json();
    assert_eq!(result["TuningJob"]["HyperParameterTuningJobStatus"], "Completed");
    // The interrupted jobs continued, so no trial needed a second job.
    let controller = &result["TuningJob"]["Controller"];
    assert_eq!(controller["TrainingJobsLaunched"], controller["TrialsStarted"], "{controller}");
    let described = world.hyperband(&["describe", "t"]).with_code(0);
    assert!(!described.out.contains("interrupted"), "{described:?}");
}

#[test]
fn a_tuning_without_a_recorded_command_line_is_not_resumed() {
    let world = interrupted(&[]);
    std::fs::remove_dir_all(world.path(".hyperband/runs")).unwrap();
    let refused = world.hyperband(&["resume", "t"]).with_code(2);
    assert!(refused.err.contains("the command line of 't' is not recorded"), "{refused:?}");
    assert!(refused.err.contains("hint: repeat the `hyperband run` command line"), "{refused:?}");
}

/// Another program continued a tuning silently, and its trials were compared with those of the first.
#[test]
fn regression_another_command_does_not_continue_a_tuning() {
    let world = interrupted(&[]);
    world.write("other.sh", QUICK);
    let other = ["run", "request.json", "--", "sh", "other.sh"];
    let refused = world.hyperband(&other).with_code(2);
    assert!(
        refused
            .err
            .contains("error: the tuning 't' was started with the command `sh train.sh`, not `sh other.sh`"),
        "{refused:?}"
    );
    assert!(refused.err.contains("`hyperband resume t` continues it as it was"), "{refused:?}");
    assert_eq!(world.processes(), Vec::<String>::new());
    world.hyperband(&["run", "request.json", "--command-changed", "--", "sh", "other.sh"]).with_code(0);
    let ended = world.hyperband(&["describe", "t", "--output", "json"]).with_code(0).json();
    assert_eq!(ended["HyperParameterTuningJobStatus"], "Completed");
}

/// A kill between the submission and the record of its id left the tuning without a recorded command line.
#[test]
fn regression_a_crash_right_after_the_submission_keeps_the_command_line() {
    let world = interrupted(&[]);
    let runs = world.path(".hyperband/runs");
    let records: Vec<_> = std::fs::read_dir(&runs).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(records.len(), 1, "only the record of the id is left: {records:?}");
    // The state after such a crash: the tuning exists, and its command line is that of the submission.
    std::fs::rename(&records[0], runs.join("t.submitted.json")).unwrap();
    world.write("other.sh", QUICK);
    let refused = world.hyperband(&["run", "request.json", "--", "sh", "other.sh"]).with_code(2);
    assert!(refused.err.contains("was started with the command `sh train.sh`"), "{refused:?}");
    world.write("train.sh", QUICK);
    world.hyperband(&["resume", "t"]).with_code(0);
    assert!(records[0].exists() && !runs.join("t.submitted.json").exists());
}

#[test]
fn fresh_replaces_an_ended_and_an_interrupted_tuning() {
    let world = World::new(QUICK);
    let first = world.run(&["--output", "json"]).with_code(0).json();
    let again = world.run(&["--output", "json"]).with_code(0);
    assert!(
        again.err.contains("t has already ended; this is its result (to run it again, add --fresh"),
        "{again:?}"
    );
    assert_eq!(again.json(), first);
    let mut request = crate::world::request("t");
    request["HyperParameterTuningJobConfig"]["ResourceLimits"]["MaxNumberOfTrainingJobs"] = 4.into();
    world.write_request("request.json", &request);
    let refused = world.run(&[]).with_code(2);
    assert!(refused.err.contains("hint: add --fresh to delete it and run the new request"), "{refused:?}");
    let fresh = world.run(&["--fresh", "--output", "json"]).with_code(0);
    assert!(fresh.err.starts_with("deleted the earlier tuning t-"), "{fresh:?}");
    let fresh = fresh.json();
    assert_eq!(fresh["TrainingJobs"].as_array().unwrap().len(), 4);
    assert_ne!(fresh["TrainingJobs"][0]["TrainingJobName"], first["TrainingJobs"][0]["TrainingJobName"]);

    let world = interrupted(&[]);
    world.write("train.sh", QUICK);
    world.run(&["--fresh"]).with_code(0);
    let listed = world.hyperband(&["list", "--output", "json"]).json();
    assert_eq!(listed["HyperParameterTuningJobSummaries"].as_array().unwrap().len(), 1);
    assert_eq!(listed["HyperParameterTuningJobSummaries"][0]["HyperParameterTuningJobStatus"], "Completed");
}

#[test]
fn fresh_does_not_run_another_interrupted_tuning_with_its_command() {
    let world = interrupted(&[]);
    let other = ["run", "request.json", "--name", "other", "--fresh", "--", "sh", "train.sh"];
    let refused = world.hyperband(&other).with_code(2);
    assert!(refused.err.contains("another tuning that has not ended: 't'"), "{refused:?}");
    assert_eq!(world.processes(), Vec::<String>::new());
}

/// The earlier tuning was deleted before the new request was rejected.
#[test]
fn regression_fresh_deletes_nothing_for_an_invalid_request() {
    let world = World::new(QUICK);
    world.run(&[]).with_code(0);
    let mut unpriced = crate::world::request("t");
    unpriced["Controller"]["InstancePricesUsdPerHour"] = serde_json::Value::Null;
    world.write_request("request.json", &unpriced);
    let refused = world.run(&["--fresh"]).with_code(2);
    assert!(refused.err.contains("MaxCostUsd needs a price"), "{refused:?}");
    world.hyperband(&["describe", "t"]).with_code(0);
}

#[test]
fn fresh_does_not_replace_a_running_tuning() {
    let world = World::new(ENDLESS);
    let child = world.start(&["--grace-seconds", "1"]);
    world.until_described("two jobs run", |tuning| tuning["TrainingJobStatusCounters"]["InProgress"] == 2);
    let refused = world.run(&["--fresh"]).with_code(2);
    assert!(refused.err.contains("error: the tuning 't' is running"), "{refused:?}");
    signal(&child, "INT");
    ended(child).with_code(130);
}

#[test]
fn a_pause_is_shown_with_its_time() {
    let world = World::new(ENDLESS);
    let child = world.start(&["--grace-seconds", "1"]);
    world.until_described("two jobs run", |tuning| tuning["TrainingJobStatusCounters"]["InProgress"] == 2);
    world.hyperband(&["change", "t", "--pause"]).with_code(0);
    world.until_described("it is paused", |tuning| tuning["Controller"]["PausedSince"].is_number());
    let described = world.hyperband(&["describe", "t"]).with_code(0);
    assert!(described.out.starts_with("t: InProgress, paused by the user since 20"), "{described:?}");
    let listed = world.hyperband(&["list"]).with_code(0);
    assert!(listed.out.contains("t     Paused"), "{listed:?}");
    world.hyperband(&["change", "t", "--resume"]).with_code(0);
    world.until_described("it is resumed", |tuning| tuning["Controller"]["PausedSince"].is_null());
    signal(&child, "INT");
    ended(child).with_code(130);
}

#[test]
fn a_command_without_its_dashes_is_refused_with_the_right_line() {
    let world = World::new(QUICK);
    let refused = world.hyperband(&["run", "request.json", "sh", "train.sh", "--quick"]).with_code(2);
    assert!(refused.err.contains("error: unexpected argument 'sh'"), "{refused:?}");
    assert!(refused.err.contains("hyperband run request.json -- sh train.sh --quick\n"), "{refused:?}");
    let missing = world.hyperband(&["run", "request.json"]).with_code(2);
    assert!(missing.err.contains("error: the training command is missing"), "{missing:?}");
    assert!(missing.err.contains("hyperband run request.json -- python3 train.py\n"), "{missing:?}");
    assert!(!exists(&world.path(".hyperband")));
}
