//! `hyperband cost`: booked costs and bills of the local training service.

use crate::world::{ENDLESS, QUICK, World, ended, full_set, request, signal};

#[test]
fn booked_costs_equal_the_bills() {
    let world = World::new(QUICK);
    world.run(&[]).with_code(0);
    let shown = world.hyperband(&["cost", "t"]).with_code(0);
    for part in
        ["cap        $5.0000", "reserved   $0.0000", "1 x ml.m5.large", "$0.1150", "6 training jobs: "]
    {
        assert!(shown.out.contains(part), "{part} in {}", shown.out);
    }
    assert!(shown.out.contains("the booked costs equal the bills"), "{shown:?}");
    assert!(!shown.out.contains("differs from the sum"), "{shown:?}");
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
fn a_changed_bill_and_a_deleted_job_are_marked() {
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

    let shown = world.hyperband(&["cost", "t"]).with_code(0);
    let line = |name: &str| shown.out.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    assert!(
        line(&name(1))
            .ends_with("-$0.1150  DIFFERS: the service now reports another bill than the booked one"),
        "{shown:?}"
    );
    assert!(
        line(&name(4)).ends_with("DIFFERS: unknown to the service: the training job was deleted there"),
        "{shown:?}"
    );
    let expected = "booked costs and bills differ for 2 training jobs: -$0.1150 booked minus billed";
    assert!(shown.out.contains(expected), "{shown:?}");
    let json = world.hyperband(&["cost", "t", "--output", "json"]).with_code(0).json();
    assert_eq!(
        (&json["Totals"]["DifferingJobs"], &json["Totals"]["DifferenceUsd"]),
        (&2.into(), &(-0.115).into())
    );
    assert_eq!(json["TrainingJobs"][4]["Note"], "UnknownToService");
}

#[test]
fn a_running_job_shows_its_reservation() {
    let world = World::new(ENDLESS);
    world.write_request("request.json", &full_set("t"));
    let child = world.start(&["--grace-seconds", "1"]);
    world.until_described("a trial was compared", |described| {
        described["Controller"]["Brackets"][0]["Rungs"][0]["Arrived"] == 1
    });
    let shown = world.hyperband(&["cost", "t"]).with_code(0);
    assert!(shown.out.contains("not ended: reserved $0.028750"), "{shown:?}");
    signal(&child, "INT");
    ended(child).with_code(130);
}

#[test]
fn without_a_price_only_seconds_are_shown() {
    let world = World::new(QUICK);
    let mut plain = request("t");
    let controller = plain["Controller"].as_object_mut().unwrap();
    controller.remove("MaxCostUsd");
    controller.remove("InstancePricesUsdPerHour");
    world.write_request("request.json", &plain);
    world.run(&[]).with_code(0);
    let shown = world.hyperband(&["cost", "t"]).with_code(0);
    assert!(shown.out.contains("price      unknown; set Controller.InstancePricesUsdPerHour"), "{shown:?}");
    assert!(
        !shown.out.contains("$0") && shown.out.contains(" billed seconds, at an unknown price"),
        "{shown:?}"
    );
    let json = world.hyperband(&["cost", "t", "--output", "json"]).with_code(0).json();
    assert!(json["TrainingJobs"][0].get("BookedUsd").is_none(), "{json}");
    assert!(json["TrainingJobs"][0]["BillableSeconds"].is_number(), "{json}");
}

#[test]
fn the_cost_of_warm_pools_is_booked() {
    let world = World::new(QUICK);
    let mut keeping = request("t");
    keeping["TrainingJobDefinition"]["ResourceConfig"]["KeepAlivePeriodInSeconds"] = 600.into();
    world.write_request("request.json", &keeping);
    world.run(&[]).with_code(0);
    let shown = world.hyperband(&["cost", "t"]).with_code(0);
    assert!(
        shown.out.contains("reserved   $0.0000") && shown.out.contains(" s in the warm pool"),
        "{shown:?}"
    );
    assert!(shown.out.contains("the booked costs equal the bills"), "{shown:?}");
    assert!(!shown.out.contains("differs from the sum"), "{shown:?}");
    let json = world.hyperband(&["cost", "t", "--output", "json"]).with_code(0).json();
    let jobs = json["TrainingJobs"].as_array().unwrap();
    let kept: Vec<u64> = jobs.iter().filter_map(|job| job["RetainedSeconds"].as_u64()).collect();
    assert!(!kept.is_empty() && kept.len() < jobs.len(), "the last job keeps no instances: {kept:?}");
    assert_eq!(json["Totals"]["RetainedSeconds"], kept.iter().sum::<u64>());
    assert_eq!(json["Totals"]["BookedUsd"], json["Totals"]["ComputedUsd"]);
    // The costs of the single jobs contain the instances that were kept, as the sum does.
    let served = world.serve(&[]);
    let jobs = served.get("/tuning-jobs/t/training-jobs").with_status(200).json();
    let jobs = jobs["TrainingJobSummaries"].as_array().unwrap();
    let costs: f64 = jobs.iter().filter_map(|job| job["Controller"]["CostUsd"].as_f64()).sum();
    let spent = served.get("/tuning-jobs/t").json()["Controller"]["SpentUsd"].as_f64().unwrap();
    assert!((costs - spent).abs() < 1e-9, "{costs} of {spent}");
}
