//! Killed, interrupted, stopped and continued tunings.

use crate::world::{ENDLESS, QUICK, World, ended, exists, signal, until};

#[test]
fn after_a_kill_the_same_command_line_continues_the_tuning() {
    let world = World::new(ENDLESS);
    let mut child = world.start(&[]);
    world.until_described("a job trains", |tuning| tuning["TrainingJobStatusCounters"]["InProgress"] == 2);
    until("it shows a value", || world.hyperband(&["list"]).out.contains("0.5"));
    child.kill().unwrap();
    child.wait().unwrap();
    until("its processes are gone", || world.processes().is_empty());
    // The rest is quick.
    world.write("train.sh", QUICK);
    world.write_request("request.json", &{
        let mut request = crate::world::request("t");
        request["HyperParameterTuningJobConfig"]["RandomSeed"] = 7.into();
        request
    });
    let ended = world.run(&["--output", "json"]).with_code(0);
    assert!(ended.err.starts_with("t: continuing; "), "{ended:?}");
    let result = ended.json();
    assert_eq!(result["TuningJob"]["HyperParameterTuningJobStatus"], "Completed");
    world.hyperband(&["replay", "t"]).with_code(0);
}

#[test]
fn ctrl_c_stops_the_processes_and_shows_how_to_continue() {
    for name in ["INT", "TERM"] {
        let world = World::new(ENDLESS);
        let child = world.start(&["--grace-seconds", "1"]);
        until("two jobs train", || {
            world.processes().iter().filter(|line| line.contains("train.sh")).count() >= 2
        });
        signal(&child, name);
        let ended = ended(child).with_code(130);
        assert!(ended.err.contains("interrupted: stopping the training processes"), "{ended:?}");
        assert!(ended.err.contains("t has not ended; to continue it:\n  hyperband resume t\n"), "{ended:?}");
        assert_eq!(ended.out, "");
        assert_eq!(world.processes(), Vec::<String>::new());
    }
}

#[test]
fn a_second_ctrl_c_exits_at_once() {
    // The training program ignores SIGTERM, so that a shutdown takes the whole grace time.
    let world = World::new(&format!("trap '' TERM; touch ready-$$\n{ENDLESS}"));
    let child = world.start(&["--grace-seconds", "3000"]);
    until("a job trains", || {
        let files = std::fs::read_dir(world.path("")).unwrap().flatten();
        files.filter(|file| file.file_name().to_string_lossy().starts_with("ready-")).count() >= 2
    });
    signal(&child, "INT");
    signal(&child, "INT");
    let ended = ended(child);
    assert_eq!(ended.code, 130, "{ended:?}");
    until("the processes follow", || world.processes().is_empty());
}

#[test]
fn a_stop_from_another_process_ends_a_run() {
    let world = World::new(ENDLESS);
    let child = world.start(&["--output", "json"]);
    world.until_described("two jobs run", |tuning| tuning["TrainingJobStatusCounters"]["InProgress"] == 2);
    let listed = world.hyperband(&["list"]).with_code(0);
    assert!(listed.out.contains("InProgress"), "{listed:?}");
    let stopped = world.hyperband(&["stop", "T"]).with_code(0);
    assert!(stopped.out.starts_with("stopping t: no more jobs start"), "{stopped:?}");
    let described = world.hyperband(&["describe", "t", "--output", "json"]).with_code(0).json();
    let status = described["HyperParameterTuningJobStatus"].as_str().unwrap();
    assert!(status == "Stopping" || status == "Stopped", "{status}");
    let result = ended(child).with_code(0).json();
    assert_eq!(result["TuningJob"]["HyperParameterTuningJobStatus"], "Stopped");
    assert_eq!(result["TuningJob"]["Controller"]["EndReason"], "Stopped");
    assert_eq!(world.processes(), Vec::<String>::new());
    let again = world.hyperband(&["stop", "t"]).with_code(2);
    assert!(again.err.contains("has already ended: Stopped"), "{again:?}");
}

#[test]
fn a_stop_without_an_active_run_takes_effect_at_the_next_run() {
    let world = World::new(ENDLESS);
    let child = world.start(&["--grace-seconds", "1"]);
    world.until_described("two jobs run", |tuning| tuning["TrainingJobStatusCounters"]["InProgress"] == 2);
    signal(&child, "INT");
    ended(child).with_code(130);

    let other = ["run", "request.json", "--name", "other", "--", "sh", "train.sh"];
    let refused = world.hyperband(&other).with_code(2);
    assert!(
        refused.err.contains("error: the data directory has another tuning that has not ended: 't'"),
        "{refused:?}"
    );
    assert!(refused.err.contains("hyperband stop t"), "{refused:?}");
    assert!(refused.err.contains("hyperband resume t"), "{refused:?}");

    let changed = world.hyperband(&["change", "t", "--max-parallel", "1"]).with_code(0);
    assert!(changed.out.ends_with("when you continue the tuning:\n  hyperband resume t\n"), "{changed:?}");
    let delete = || world.hyperband(&["delete", "t", "--yes"]).with_code(2).err;
    assert!(delete().ends_with("to its end: hyperband stop t; hyperband resume t\n"), "{}", delete());
    let stopped = world.hyperband(&["stop", "t"]).with_code(0);
    assert!(stopped.out.contains("takes effect when you continue the tuning"), "{stopped:?}");
    assert!(delete().ends_with("when you continue it: hyperband resume t\n"), "{}", delete());
    let unnamed = world.hyperband(&["describe", ""]).with_code(2).err;
    assert_eq!(unnamed, "error: the name of the tuning is empty\nhint: `hyperband list` shows all tunings\n");
    let ended = world.run(&[]).with_code(0);
    assert!(ended.out.starts_with("t: Stopped, a user stopped it\n"), "{ended:?}");
}

#[test]
fn limits_of_a_stopping_tuning_cannot_be_changed() {
    // The training program ignores SIGTERM, so that the stop takes the whole grace time.
    let world = World::new(&format!("trap '' TERM\n{ENDLESS}"));
    let mut child = world.start(&["--grace-seconds", "3000"]);
    world.until_described("two jobs run", |tuning| tuning["TrainingJobStatusCounters"]["InProgress"] == 2);
    world.hyperband(&["stop", "t"]).with_code(0);
    let change = || world.hyperband(&["change", "t", "--max-parallel", "1"]);
    until("the controller knows the stop", || change().code == 2);
    assert_eq!(change().err, "error: the tuning t is stopping: its limits cannot be changed\n");
    child.kill().unwrap();
    child.wait().unwrap();
    until("its processes are gone", || world.processes().is_empty());
}

#[test]
fn two_runs_cannot_share_a_data_directory() {
    let world = World::new(ENDLESS);
    let child = world.start(&["--grace-seconds", "1"]);
    until("the table is there", || exists(&world.path(".hyperband/table.sqlite")));
    world.until_described("two jobs run", |tuning| tuning["TrainingJobStatusCounters"]["InProgress"] == 2);
    let second = world.run(&[]).with_code(3);
    assert!(
        second.err.contains("hint: another `hyperband run` or `hyperband serve` uses this data"),
        "{second:?}"
    );
    signal(&child, "INT");
    ended(child).with_code(130);
}
