//! A whole tuning on the local host: the real use cases, the embedded table and real processes.

use crate::support::{Fixture, request};
use tuning::unit::money::MicroUsd;

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
    assert_eq!(described.base.status, "Completed", "{described:#?}");
    let totals = &described.controller.totals;
    assert_eq!((totals.end_reason.as_deref(), totals.reserved_usd), (Some("MaxJobs"), MicroUsd(0)));
    let counters = described.base.counters.unwrap();
    assert_eq!(counters.completed + counters.stopped, 8, "{counters:?}");
    assert!(described.best_training_job.unwrap().final_objective.is_some());

    let replayed = use_cases::replay::replay(host.store(), &definition.id()).await.unwrap().unwrap();
    assert_eq!(replayed.difference, None);
    let jobs =
        use_cases::describe::jobs(host.store(), &local::host::place(), &definition.id()).await.unwrap();
    assert_eq!(jobs.unwrap().len(), 8);
    host.shutdown().await;
}

/// A program saves its model after its last epoch, as most do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_with_its_last_epoch_saves_its_model_and_completes() {
    let fixture = Fixture::new(
        "i=0; while [ $i -lt 9 ]; do echo \"[$i]#011validation-auc:0.$i$SM_HP_DEPTH\"; i=$((i+1)); sleep 0.02; \
         done; sleep 1; echo saved > $SM_MODEL_DIR/model",
    );
    let (_, jobs) = fixture.run(&request("saves", 8)).await;
    let mut trained = 0;
    for job in &jobs {
        let folder = fixture.data().join("training/jobs").join(job["TrainingJobName"].as_str().unwrap());
        let logs = std::fs::read_dir(folder.join("logs")).unwrap();
        let lines = logs.map(|log| std::fs::read_to_string(log.unwrap().path()).unwrap()).collect::<String>();
        // A job can train on while its rung is judged.
        let judged =
            job["Controller"]["StopReason"].as_str().is_some_and(|reason| reason.starts_with("Rung"));
        if lines.contains("[8]") && !judged {
            trained += 1;
            assert_eq!(job["TrainingJobStatus"], "Completed", "{job:#}");
            assert_eq!(
                std::fs::read_to_string(folder.join("hosts/algo-1/model/model")).unwrap(),
                "saved\n",
                "{job:#}"
            );
        }
    }
    assert!(trained > 0, "{jobs:#?}");
}
