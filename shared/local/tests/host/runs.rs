//! A whole tuning on the local host: the real use cases, the embedded table and real processes.

use crate::support::{Fixture, request};
use serde_json::Value;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tuning_completes_and_its_replay_gives_the_same_decisions() {
    let fixture = Fixture::new(
        "i=0; while [ $i -lt 9 ]; do echo \"[$i]#011validation-auc:0.$i$SM_HP_DEPTH\"; \
                                i=$((i+1)); sleep 0.02; done",
    );
    let host = fixture.open().await;
    let definition = host.submit(request("tune", 8).to_string().as_bytes()).await.unwrap();
    host.ended(&definition.id()).await.unwrap();

    let described = host.describe(&definition.id()).await.unwrap().unwrap();
    assert_eq!(described["HyperParameterTuningJobStatus"], "Completed", "{described:#}");
    assert_eq!(described["Controller"]["EndReason"], "MaxJobs");
    let counters = &described["TrainingJobStatusCounters"];
    let ended = counters["Completed"].as_u64().unwrap() + counters["Stopped"].as_u64().unwrap();
    assert_eq!(ended, 8, "{counters}");
    assert!(described["BestTrainingJob"]["FinalHyperParameterTuningJobObjectiveMetric"]["Value"].is_number());
    assert!(described["Controller"]["SpentUsd"].as_f64().unwrap() >= 0.0);
    assert_eq!(described["Controller"]["ReservedUsd"].as_f64(), Some(0.0));

    let replayed = use_cases::replay::replay(host.store(), &definition.id()).await.unwrap().unwrap();
    assert_eq!(replayed.difference, None);
    let jobs =
        use_cases::describe::jobs(host.store(), &local::host::place(), &definition.id()).await.unwrap();
    let names: Vec<Value> = jobs.unwrap().iter().map(|job| job["TrainingJobName"].clone()).collect();
    assert_eq!(names.len(), 8);
    host.shutdown().await;
}
