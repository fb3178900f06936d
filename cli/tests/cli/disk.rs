//! A full disk: the program warns at once, loses no data, and continues the tuning once there is space.

use std::fs::File;
use std::process::{Command, Stdio};

use crate::world::{QUICK, World, signal, until};

/// Simulates a full disk with a limit on the file size.
#[test]
fn a_full_disk_causes_a_warning_and_the_same_command_line_continues_later() {
    let world = World::new(QUICK);
    let limited = "trap '' XFSZ; ulimit -f 400; exec \"$0\" run request.json -- sh train.sh";
    let mut child = Command::new("sh")
        .args(["-c", limited, env!("CARGO_BIN_EXE_hyperband")])
        .current_dir(world.path("."))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(world.path("err")).unwrap())
        .spawn()
        .unwrap();
    until("the warning is shown", || world.read("err").contains("warning: the table "));
    assert!(world.read("err").contains("hint: no data is lost"), "{}", world.read("err"));
    signal(&child, "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130), "{}", world.read("err"));
    until("its processes are gone", || world.processes().is_empty());

    let ended = world.run(&["--output", "json"]).with_code(0);
    assert_eq!(ended.json()["TuningJob"]["HyperParameterTuningJobStatus"], "Completed", "{ended:?}");
    world.hyperband(&["replay", "t"]).with_code(0);
}
