//! `hyperband change` on running tunings.

use port_tests::memory::MemoryTable;
use serde_json::json;
use stack_api::Stack;

use crate::world::{ENDLESS, QUICK, World, ended};

#[test]
fn limits_of_a_local_tuning_can_be_changed() {
    let world = World::new(ENDLESS);
    let run = world.start(&["--grace-seconds", "1"]);
    world.until_described("it runs", |described| described["TrainingJobStatusCounters"]["InProgress"] == 2);
    let changed = ["change", "T", "--max-cost", "4.5", "--max-parallel", "1", "--pause", "--output", "json"];
    let shown = world.hyperband(&changed).with_code(0).json();
    let expected = json!({
        "HyperParameterTuningJobName": "t",
        "MaxCostUsd": 4.5,
        "MaxParallelTrainingJobs": 1,
        "paused": true,
        "Running": true,
    });
    assert_eq!(shown, expected);
    world.until_described("it is changed", |described| {
        let own = &described["Controller"];
        own["CapUsd"] == 4.5 && own["MaxParallelTrainingJobs"] == 1 && own["Paused"] == true
    });
    let resumed = world.hyperband(&["change", "t", "--resume"]).with_code(0);
    assert_eq!(resumed.out, "changed t: resumed; running jobs continue\n");
    world.until_described("it has resumed", |described| described["Controller"]["Paused"] != true);

    world.hyperband(&["stop", "t"]).with_code(0);
    ended(run).with_code(0);
    let late = world.hyperband(&["change", "t", "--pause"]).with_code(2);
    let hint = "hint: `hyperband describe t` shows its result\n";
    assert_eq!(late.err, format!("error: the tuning t has already ended: Stopped\n{hint}"));
}

#[test]
fn limits_of_a_tuning_at_a_stack_can_be_changed() {
    let world = World::new(QUICK);
    let stack = Stack::start(MemoryTable::default());
    world.at(&stack, &["submit", "request.json"]).with_code(0);
    let changed =
        world.at(&stack, &["change", "t", "--max-cost", "12.50", "--max-parallel", "3"]).with_code(0);
    assert_eq!(changed.out, "changed t: cost cap $12.5000, at most 3 parallel jobs; running jobs continue\n");
    let asked = stack.requests().pop().unwrap();
    assert_eq!((asked.method.as_str(), asked.path.as_str()), ("PATCH", "/tuning-jobs/t"));
    assert_eq!(asked.body, br#"{"MaxCostUsd":12.5,"MaxParallelTrainingJobs":3}"#);

    let before = stack.requests().len();
    let refused = world.at(&stack, &["change", "t", "--max-cost", "1000000001"]).with_code(2);
    assert!(refused.err.contains("expected a number of US dollars above 0 and at most"), "{refused:?}");
    world.at(&stack, &["change", "t"]).with_code(2);
    assert_eq!(stack.requests().len(), before, "an invalid change is not sent");
    let unknown = world.at(&stack, &["change", "tt", "--pause"]).with_code(2);
    assert!(unknown.err.contains("hint: did you mean t?"), "{unknown:?}");
}
