//! A disk without room: told at once, nothing that was stored is lost, and the tuning goes on when there is room.

use std::fs::File;
use std::process::{Command, Stdio};

use crate::world::{QUICK, World, signal, until};

/// A limit on the size of files stands for a full disk: what goes beyond it fails as a write to a full disk does.
#[test]
fn a_full_disk_is_told_and_the_same_command_line_goes_on_later() {
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
    until("it is told", || world.read("err").contains("warning: the table "));
    assert!(world.read("err").contains("hint: nothing is lost"), "{}", world.read("err"));
    signal(&child, "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130), "{}", world.read("err"));
    until("its processes are gone", || world.processes().is_empty());

    let ended = world.run(&["--output", "json"]).with_code(0);
    assert_eq!(ended.json()["TuningJob"]["HyperParameterTuningJobStatus"], "Completed", "{ended:?}");
    world.hyperband(&["replay", "t"]).with_code(0);
}
