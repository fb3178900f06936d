//! A whole tuning whose jobs leave their instances to one another.

use local::host::training_path;
use local::training::JobRecords;
use serde_json::json;
use service::ports::training::{Description, TrainingJobs};
use tuning::definition::Instances;
use tuning::money::MicroUsd;

use crate::support::{Fixture, request};

/// What a job and the instances kept after it cost by the training service's record.
fn billed(instances: Instances, job: &Description) -> MicroUsd {
    let running = instances.cost(job.billable_seconds.unwrap()).unwrap();
    let kept = job.warm_pool.as_ref().map_or(0, |pool| {
        assert!(pool.retained_seconds.is_some(), "nothing is kept when a tuning has ended: {job:?}");
        pool.retained_seconds.unwrap()
    });
    running.plus(instances.cost(kept).unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn instances_are_kept_from_job_to_job_and_all_that_costs_is_booked() {
    let script = "i=0; while [ $i -lt 9 ]; do echo \"[$i]#011validation-auc:0.$i$SM_HP_DEPTH\"; i=$((i+1)); \
                  sleep 0.02; done";
    let mut body = request("warm", 8);
    let job = body["TrainingJobDefinition"].as_object_mut().unwrap();
    let mut resources = job.remove("HyperParameterTuningResourceConfig").unwrap();
    resources["KeepAlivePeriodInSeconds"] = json!(600);
    job.insert("ResourceConfig".to_owned(), resources);
    let fixture = Fixture::new(script);
    let (described, jobs) = fixture.run(&body).await;
    assert_eq!(described["HyperParameterTuningJobStatus"], "Completed", "{described:#}");
    let controller = &described["Controller"];
    assert_eq!(
        (&controller["EndReason"], controller["ReservedUsd"].as_f64()),
        (&json!("MaxJobs"), Some(0.0))
    );

    let host = fixture.open().await;
    let row = service::lookup::find(host.store(), "warm").await.unwrap();
    let loaded = host.store().load(&row.id).await.unwrap().unwrap();
    let instances = loaded.tuning.definition.job.instances(0);
    let records = JobRecords::at(&training_path(&fixture.data()));
    let (mut sum, mut statuses) = (MicroUsd::ZERO, Vec::new());
    for job in &jobs {
        let job = records.describe(job["TrainingJobName"].as_str().unwrap()).await.unwrap();
        sum = sum.plus(billed(instances, &job));
        statuses.push(job.warm_pool.map(|pool| pool.status).unwrap_or_default());
    }
    let many = |status: &str| statuses.iter().filter(|other| *other == status).count();
    assert_eq!(statuses.len(), 8);
    assert!(many("Reused") >= 1, "{statuses:?}");
    assert!(many("") >= 1, "after the last job nothing is kept: {statuses:?}");
    assert_eq!(many("Reused") + many("Terminated") + many(""), 8, "{statuses:?}");
    assert_eq!((loaded.state.ledger.spent, loaded.state.ledger.reserved), (sum, MicroUsd::ZERO));
    assert!(loaded.state.ledger.within_cap() && loaded.state.pools.is_empty());

    // The books of each job agree with the service's.
    let page = service::cost::page(host.store(), &records, &row.id, None, 100).await.unwrap().unwrap();
    assert!(page.training_jobs.iter().all(|job| !job.differs && job.note.is_none()), "{page:#?}");
    let settled = page.training_jobs.iter().filter(|job| job.booked_retained_seconds.is_some()).count();
    assert_eq!(settled, 8 - many(""), "{page:#?}");
    host.shutdown().await;
}
