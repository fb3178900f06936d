//! A trial is explained from what was recorded.

use serde_json::Value;

use crate::world::{ENDLESS, QUICK, World, ended, signal};

/// The trial whose job `describe` shows as the best.
fn best(world: &World) -> (String, String) {
    let described = world.hyperband(&["describe", "t", "--output", "json"]).with_code(0).json();
    let job = described["BestTrainingJob"]["TrainingJobName"].as_str().unwrap().to_owned();
    (described["BestTrainingJob"]["Controller"]["Trial"].to_string(), job)
}

#[test]
fn a_trial_is_explained_by_its_number_and_by_its_job() {
    let world = World::new(QUICK);
    world.run(&[]).with_code(0);
    let (trial, job) = best(&world);
    let told = world.hyperband(&["explain", "t", &trial]).with_code(0);
    assert!(told.out.starts_with(&format!("trial {trial} of t, bracket ")), "{told:?}");
    for part in
        ["parameters", "objective   validation:auc, Maximize", "TRAINING JOB", &job, "  step ", "billed"]
    {
        assert!(told.out.contains(part), "{part} in {}", told.out);
    }
    assert!(!told.out.contains('\x1b'), "escape codes in a pipe");
    assert_eq!(world.hyperband(&["explain", "T", &job]).with_code(0).out, told.out);
}

/// Every judgement of the tuning is told once, with as many arrivals as the rung then had.
#[test]
fn every_rung_of_every_trial_is_told_with_the_others() {
    let world = World::new(QUICK);
    world.run(&[]).with_code(0);
    let described = world.hyperband(&["describe", "t", "--output", "json"]).with_code(0).json();
    let mut arrived: Vec<(u64, u64, u64)> = Vec::new();
    for trial in 0..6 {
        let told = world.hyperband(&["explain", "t", &trial.to_string(), "--output", "json"]).with_code(0);
        let told = told.json();
        assert!(told["TrainingJobs"][0]["BillableSeconds"].as_u64() >= Some(1), "{told}");
        for rung in told["Entries"].as_array().unwrap().iter().map(|entry| &entry["Rung"]) {
            let Some(list) = rung["Arrivals"].as_array() else { continue };
            let number = |member: &str| rung[member].as_u64().unwrap();
            assert_eq!(list.len(), usize::try_from(number("Arrived")).unwrap());
            let own = &list[usize::try_from(number("Rank")).unwrap() - 1];
            assert_eq!((&own["Trial"], &own["Value"]), (&Value::from(trial), &rung["Value"]));
            assert_eq!(own["WentOn"], rung["WentOn"]);
            assert!(rung["Rule"].as_str().unwrap().starts_with(&format!("rank {} of ", number("Rank"))));
            arrived.push((number("Bracket"), number("Rung"), number("Arrived")));
        }
    }
    arrived.sort_unstable();
    let mut expected = Vec::new();
    for (bracket, shown) in (0..).zip(described["Controller"]["Brackets"].as_array().unwrap()) {
        for (rung, shown) in (0..).zip(shown["Rungs"].as_array().unwrap()) {
            expected.extend((1..=shown["Arrived"].as_u64().unwrap_or(0)).map(|nth| (bracket, rung, nth)));
        }
    }
    assert_eq!(arrived, expected);
    assert!(arrived.len() > 1);
}

#[test]
fn a_trial_that_is_not_there_is_answered_with_those_that_are() {
    let world = World::new(QUICK);
    world.run(&[]).with_code(0);
    for (asked, said) in [
        ("6", "t has no trial 6: there are trials 0 to 5"),
        ("best", "'best' is neither the number of a trial nor the name of a training job"),
        ("other-abc123-0-0-1", "the training job other-abc123-0-0-1 is not one of t"),
    ] {
        let told = world.hyperband(&["explain", "t", asked]).with_code(2);
        assert!(told.err.starts_with(&format!("error: {said}")), "{told:?}");
        assert!(told.err.contains("hint: TRIAL is a number of `hyperband describe t`"), "{told:?}");
    }
    world.hyperband(&["explain", "t"]).with_code(2);
    let told = world.hyperband(&["explain", "x", "0"]).with_code(2);
    assert!(told.err.contains("no tuning in .hyperband is named 'x'"), "{told:?}");
}

#[test]
fn a_trial_that_runs_is_explained_so_far() {
    let world = World::new(ENDLESS);
    let child = world.start(&["--grace-seconds", "1"]);
    world.until_described("a trial was compared", |described| {
        described["Controller"]["Brackets"][0]["Rungs"][0]["Arrived"] == 1
    });
    let told = world.hyperband(&["explain", "t", "0"]).with_code(0);
    assert!(
        told.out.contains("rank 1 of 1 that had arrived; best 1 of 1 goes on, so it went on"),
        "{told:?}"
    );
    assert!(told.out.contains("\nnow: it is at epoch 1"), "{told:?}");
    signal(&child, "INT");
    ended(child).with_code(130);
}
