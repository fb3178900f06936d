//! A whole tuning whose jobs reuse each other's warm pools.

use local::host::training_path;
use local::training::JobRecords;
use serde_json::json;
use tuning::definition::Instances;
use tuning::unit::money::MicroUsd;
use use_cases::ports::training::{Description, TrainingJobs};

use crate::support::{Fixture, request};

/// Returns the cost of a job and of its warm pool, from the record of the training service.
fn billed(instances: Instances, job: &Description) -> MicroUsd {
    let running = instances.cost(job.billable_seconds.unwrap()).unwrap();
    let kept = job.warm_pool.as_ref().map_or(0, |pool| {
        assert!(pool.retained_seconds.is_some(), "no warm pool is available after the tuning: {job:?}");
        pool.retained_seconds.unwrap()
    });
    running.plus(instances.cost(kept).unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_reuse_warm_pools_and_the_ledger_books_the_retained_time() {
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
    let row = use_cases::lookup::find(host.store(), "warm").await.unwrap();
    let loaded = host.store().load(&row.id).await.unwrap().unwrap();
    let instances = loaded.tuning.definition.job.instances(tuning::unit::ids::ChoiceId(0));
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
    assert!(many("") >= 1, "the last jobs have no warm pool: {statuses:?}");
    assert_eq!(many("Reused") + many("Terminated") + many(""), 8, "{statuses:?}");
    assert_eq!((loaded.state.money.ledger.spent, loaded.state.money.ledger.reserved), (sum, MicroUsd::ZERO));
    assert!(loaded.state.money.ledger.within_cap() && loaded.state.money.pools.is_empty());

    // The booked cost of each job equals its bill.
    let page = use_cases::cost::page(host.store(), &records, &row.id, None, 100).await.unwrap().unwrap();
    assert!(page.training_jobs.iter().all(|job| !job.differs && job.note.is_none()), "{page:#?}");
    let settled = page.training_jobs.iter().filter(|job| job.booked_retained_seconds.is_some()).count();
    assert_eq!(settled, 8 - many(""), "{page:#?}");
    host.shutdown().await;
}
