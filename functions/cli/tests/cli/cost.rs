//! What was booked against what the training service of the folder bills.

use crate::world::{ENDLESS, QUICK, World, ended, request, signal};

#[test]
fn the_books_agree_with_the_training_service() {
    let world = World::new(QUICK);
    world.run(&[]).with_code(0);
    let told = world.hyperband(&["cost", "t"]).with_code(0);
    for part in
        ["cap        $5.0000", "reserved   $0.0000", "1 x ml.m5.large", "$0.1150", "6 training jobs: "]
    {
        assert!(told.out.contains(part), "{part} in {}", told.out);
    }
    assert!(told.out.contains("no difference between what was booked and what is billed"), "{told:?}");
    assert!(!told.out.contains("add up"), "{told:?}");
    let json = world.hyperband(&["cost", "t", "--output", "json"]).with_code(0).json();
    assert_eq!(json["HyperParameterTuningJobName"], "t");
    assert_eq!(json["Ledger"]["SpentUsd"], json["Totals"]["BookedUsd"]);
    assert_eq!(json["Totals"]["BookedUsd"], json["Totals"]["ComputedUsd"]);
    assert_eq!(json["Totals"]["LedgerDifferenceUsd"], 0);
    let jobs = json["TrainingJobs"].as_array().unwrap();
    assert_eq!(jobs.len(), 6);
    assert!(jobs.iter().all(|job| job["Differs"] == false && job["BillableSeconds"].as_u64() >= Some(1)));
    assert!(jobs.iter().all(|job| job["TrainingJobStatus"].is_string()), "{jobs:?}");
}

#[test]
fn a_bill_that_is_another_now_and_a_job_that_is_gone_are_named() {
    let world = World::new(QUICK);
    world.run(&[]).with_code(0);
    let json = world.hyperband(&["cost", "t", "--output", "json"]).with_code(0).json();
    let name = |n: usize| json["TrainingJobs"][n]["TrainingJobName"].as_str().unwrap().to_owned();
    let file = format!(".hyperband/training/jobs/{}/job.json", name(1));
    let record = world.read(&file);
    let mut changed: serde_json::Value = serde_json::from_str(&record).unwrap();
    changed["billable_seconds"] = (changed["billable_seconds"].as_u64().unwrap() + 3_600).into();
    world.write(&file, &changed.to_string());
    std::fs::remove_dir_all(world.path(&format!(".hyperband/training/jobs/{}", name(4)))).unwrap();

    let told = world.hyperband(&["cost", "t"]).with_code(0);
    let line = |name: &str| told.out.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    assert!(
        line(&name(1))
            .ends_with("-$0.1150  DIFFERS: the service tells another bill than the one that was booked"),
        "{told:?}"
    );
    assert!(line(&name(4)).ends_with("DIFFERS: unknown to the service: deleted there"), "{told:?}");
    assert!(told.out.contains("2 training jobs differ: -$0.1150 booked beyond what is billed"), "{told:?}");
    let json = world.hyperband(&["cost", "t", "--output", "json"]).with_code(0).json();
    assert_eq!(
        (&json["Totals"]["DifferingJobs"], &json["Totals"]["DifferenceUsd"]),
        (&2.into(), &(-0.115).into())
    );
    assert_eq!(json["TrainingJobs"][4]["Note"], "UnknownToService");
}

#[test]
fn what_runs_is_reserved() {
    let world = World::new(ENDLESS);
    let child = world.start(&["--grace-seconds", "1"]);
    world.until_described("a trial was compared", |described| {
        described["Controller"]["Brackets"][0]["Rungs"][0]["Arrived"] == 1
    });
    let told = world.hyperband(&["cost", "t"]).with_code(0);
    assert!(told.out.contains("running: reserved $0.0288"), "{told:?}");
    signal(&child, "INT");
    ended(child).with_code(130);
}

#[test]
fn without_a_price_there_are_seconds() {
    let world = World::new(QUICK);
    let mut plain = request("t");
    let controller = plain["Controller"].as_object_mut().unwrap();
    controller.remove("MaxCostUsd");
    controller.remove("InstancePricesUsdPerHour");
    world.write_request("request.json", &plain);
    world.run(&[]).with_code(0);
    let told = world.hyperband(&["cost", "t"]).with_code(0);
    assert!(told.out.contains("price      none in the request"), "{told:?}");
    assert!(told.out.contains("cap        none") && told.out.contains(" s billed"), "{told:?}");
    let json = world.hyperband(&["cost", "t", "--output", "json"]).with_code(0).json();
    assert!(json["TrainingJobs"][0].get("BookedUsd").is_none(), "{json}");
    assert!(json["TrainingJobs"][0]["BillableSeconds"].is_number(), "{json}");
}

#[test]
fn what_keeping_instances_cost_is_in_the_books() {
    let world = World::new(QUICK);
    let mut keeping = request("t");
    keeping["TrainingJobDefinition"]["ResourceConfig"]["KeepAlivePeriodInSeconds"] = 600.into();
    world.write_request("request.json", &keeping);
    world.run(&[]).with_code(0);
    let told = world.hyperband(&["cost", "t"]).with_code(0);
    assert!(told.out.contains("reserved   $0.0000") && told.out.contains(" s after its end"), "{told:?}");
    assert!(told.out.contains("no difference between what was booked and what is billed"), "{told:?}");
    assert!(!told.out.contains("add up"), "{told:?}");
    let json = world.hyperband(&["cost", "t", "--output", "json"]).with_code(0).json();
    let jobs = json["TrainingJobs"].as_array().unwrap();
    let kept: Vec<u64> = jobs.iter().filter_map(|job| job["RetainedSeconds"].as_u64()).collect();
    assert!(!kept.is_empty() && kept.len() < jobs.len(), "nothing is kept after the last: {kept:?}");
    assert_eq!(json["Totals"]["RetainedSeconds"], kept.iter().sum::<u64>());
    assert_eq!(json["Totals"]["BookedUsd"], json["Totals"]["ComputedUsd"]);
}
