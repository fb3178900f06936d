//! `audit`: of a data directory, of a stack, and of an exported table.

use crate::world::{QUICK, World};

/// The rows of a tuning, as a table exports them.
const EXPORTED: &str = include_str!("../../../shared/audit/tests/stop.jsonl");

#[test]
fn a_tuning_of_a_data_directory_is_audited_with_its_outbox() {
    let world = World::new(QUICK);
    world.run(&[]).with_code(0);
    let audited = world.hyperband(&["audit", "T"]).with_code(0);
    assert!(audited.out.starts_with("t: ") && audited.out.ends_with(" facts, 0 violations\n"), "{audited:?}");
    assert_eq!(world.hyperband(&["audit"]).with_code(0).out, audited.out, "all tunings");
    let json = world.hyperband(&["audit", "t", "--output", "json"]).with_code(0).json();
    let audit = &json["Audits"][0];
    assert_eq!(audit["HyperParameterTuningJobName"], "t");
    assert_eq!((&audit["ViolationCount"], &audit["TrainingJobs"]), (&0.into(), &6.into()), "{json}");
    assert!(audit["Actions"].as_u64() > Some(6), "{json}");
    world.hyperband(&["audit", "other"]).with_code(2);
}

#[test]
fn a_stack_is_audited_without_its_outbox() {
    let world = World::new(QUICK);
    let stack = world.stack();
    world.at(&stack, &["submit", "request.json"]).with_code(0);
    let json = world.at(&stack, &["audit", "t", "--output", "json"]).with_code(0).json();
    assert_eq!(
        (&json["Audits"][0]["ViolationCount"], &json["Audits"][0]["Actions"]),
        (&0.into(), &().into())
    );
}

#[test]
fn an_exported_table_is_audited() {
    let world = World::new(QUICK);
    let export = |lines: &mut dyn Iterator<Item = &str>| {
        let items: Vec<String> = lines.map(|row| format!("{{\"Item\":{row}}}")).collect();
        world.write("rows.json", &(items.join("\n") + "\n"));
    };
    export(&mut EXPORTED.lines());
    let audited = world.hyperband(&["audit", "STOP", "--rows", "rows.json"]).with_code(0);
    assert_eq!(audited.out, "stop: 132 steps, 146 facts, 0 violations\n");
    export(&mut EXPORTED.lines().filter(|row| !row.contains("STEP#0000000040")));
    let broken = world.hyperband(&["audit", "--rows", "rows.json"]).with_code(1);
    assert!(broken.out.starts_with("stop: P5, step 41: it follows step 39 of "), "{broken:?}");
    assert!(broken.out.contains("\nstop: 131 steps, "), "{broken:?}");
    let other = world.hyperband(&["audit", "other", "--rows", "rows.json"]).with_code(2);
    assert!(other.err.contains("no tuning other among the rows"), "{other:?}");
    world.write("rows.json", "{\n");
    let unreadable = world.hyperband(&["audit", "--rows", "rows.json"]).with_code(2);
    assert!(
        unreadable.err.contains("cannot read the rows of rows.json: line 1: expected a row as DynamoDB JSON"),
        "{unreadable:?}"
    );
}
