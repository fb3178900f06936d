//! Read-only access to training jobs, during and after the run of their service.

use local::training::JobRecords;
use use_cases::ports::training::{TrainingJobs, TrainingJobsError};

use crate::world::{World, request, until};

#[tokio::test(flavor = "multi_thread")]
async fn records_and_service_return_the_same_description() {
    let world = World::new("while :; do sleep 1; done").await;
    let records = JobRecords::at(&world.root());
    world.create(&request("job")).await;
    until("it trains", || world.states("job").contains(&"Training".to_owned())).await;
    let shown = records.describe("job").await.unwrap();
    assert_eq!(shown, world.service.describe("job").await.unwrap());
    assert_eq!((shown.status.as_str(), shown.billable_seconds), ("InProgress", None));
    world.service.stop("job").await.unwrap();
    world.ended("job").await;
    let shown = records.describe("job").await.unwrap();
    assert_eq!(shown, world.service.describe("job").await.unwrap());
    assert!(shown.billable_seconds.is_some());
    assert_eq!(records.tags("job").await, world.service.tags("job").await);
    let World { folder, service, .. } = world;
    service.shutdown().await;
    drop(service);
    assert_eq!(records.describe("job").await, Ok(shown));
    drop(folder);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_job_is_not_found_and_changes_are_refused() {
    let world = World::new("exit 0").await;
    let records = JobRecords::at(&world.root());
    world.create(&request("job")).await;
    world.ended("job").await;
    for name in ["", "other", "..", "../jobs/job", "job/", ".new-job", "job.json"] {
        let found = records.describe(name).await;
        assert!(matches!(found, Err(TrainingJobsError::NotFound(_))), "{name}: {found:?}");
    }
    let refused =
        |done: Result<(), TrainingJobsError>| matches!(done, Err(TrainingJobsError::Refused { .. }));
    assert!(refused(records.create(&request("another")).await) && refused(records.stop("job").await));
    std::fs::write(world.root().join("jobs/job/job.json"), "{").unwrap();
    let damaged = records.describe("job").await.unwrap();
    assert_eq!((damaged.status.as_str(), damaged.billable_seconds), ("Failed", None));
    let nowhere = JobRecords::at(&world.root().join("nowhere"));
    assert!(matches!(nowhere.describe("job").await, Err(TrainingJobsError::NotFound(_))));
    assert!(!world.root().join("nowhere").exists(), "reading creates nothing");
}
