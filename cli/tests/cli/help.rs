//! Snapshots of the help. To update them: `HYPERBAND_UPDATE=1 cargo nextest run -p cli help`.

use std::path::Path;

use crate::world::{QUICK, World};

#[test]
fn help_equals_the_snapshots() {
    let world = World::new(QUICK);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/help");
    for command in [
        "",
        "init",
        "run",
        "plan",
        "simulate",
        "check",
        "submit",
        "list",
        "describe",
        "watch",
        "logs",
        "explain",
        "cost",
        "change",
        "stop",
        "delete",
        "replay",
        "audit",
        "report",
        "export",
        "doctor",
        "serve",
        "proxy",
        "training-service",
        "completions",
    ] {
        let arguments: Vec<&str> = [command, "--help"].into_iter().filter(|word| !word.is_empty()).collect();
        let help = world.hyperband(&arguments).with_code(0).out;
        assert!(!help.contains('\x1b') && !help.contains("__host"), "{help}");
        let file = folder.join(format!("{}.txt", if command.is_empty() { "hyperband" } else { command }));
        if std::env::var_os("HYPERBAND_UPDATE").is_some() {
            std::fs::write(&file, &help).unwrap();
        }
        let recorded = std::fs::read_to_string(&file).unwrap();
        assert_eq!(help, recorded, "{}", file.display());
    }
}

#[test]
fn version_and_completions_are_printed() {
    let world = World::new(QUICK);
    let version = world.hyperband(&["--version"]).with_code(0).out;
    assert_eq!(version, format!("hyperband {}\n", env!("CARGO_PKG_VERSION")));
    for shell in ["bash", "zsh", "fish"] {
        let script = world.hyperband(&["completions", shell]).with_code(0).out;
        assert!(
            script.contains("hyperband") && script.contains("data-dir") && script.contains("endpoint"),
            "{shell}"
        );
    }
    world.hyperband(&["completions", "cmd.exe"]).with_code(2);
}

#[test]
fn the_host_shim_rejects_users() {
    let world = World::new(QUICK);
    let ended = world.hyperband(&["__host"]).with_code(125);
    assert!(ended.err.contains("only the controller starts the host shim"), "{ended:?}");
}
