//! A panic is logged as one line: this test starts its own program again, which panics as a function would.

use std::process::Command;

use lambda::Program;
use serde_json::{Value, json};

const PANICS: &str = "PANICS";

#[test]
fn a_panic_is_logged_as_one_line() {
    if std::env::var_os(PANICS).is_some() {
        let _program = Program::named("decider");
        panic!("the {} is gone", "ground");
    }
    let this = std::env::current_exe().unwrap();
    let arguments = ["--exact", "a_panic_is_logged_as_one_line", "--nocapture"];
    let output = Command::new(this).args(arguments).env(PANICS, "1").output().unwrap();
    assert!(!output.status.success());
    let out = String::from_utf8(output.stdout).unwrap();
    let line = out.lines().find_map(|line| serde_json::from_str::<Value>(&line[line.find('{')?..]).ok());
    let line = line.unwrap_or_else(|| panic!("{out}"));
    assert_eq!((&line["level"], &line["function"]), (&json!("ERROR"), &json!("decider")));
    assert_eq!((&line["errorType"], line.get("requestId")), (&json!("Panic"), None));
    let error = line["error"].as_str().unwrap();
    assert!(error.starts_with("the ground is gone (") && error.contains("panic.rs:"), "{error}");
}
