//! A program that prints objective values without end fills neither the table nor its curve.

use std::sync::Arc;

use hyperband::plan::MAX_RESOURCE;
use tuning::log::fact::Fact;
use use_cases::job_events::About;
use use_cases::job_logs::JobLogs;
use use_cases::store::Store;
use wire::events::logs::{LogEvent, encode_batch};
use wire::stored;

use crate::support::{TestClock, now, table_with};

const CREATED: i64 = 1_788_990_000_000;
/// The lines of a batch.
const BATCH: i64 = 5_000;

/// Without a pattern for epochs, each value beyond the last epoch was a line of a fact and of a step: 6 MB of log became 473
/// MB of rows.
#[test]
fn regression_values_beyond_the_last_epoch_are_not_stored() {
    let (table, id) = table_with(CREATED, |request| {
        // The image of XGBoost has a pattern for epochs.
        request["TrainingJobDefinition"]["AlgorithmSpecification"]["TrainingImage"] = "own:1".into();
    });
    let logs = JobLogs::new(Arc::new(Store::new(Arc::new(table.clone()))), TestClock::at(CREATED));
    let batches = 10;
    for batch in 0..batches {
        let events = (batch * BATCH..(batch + 1) * BATCH).map(|n| LogEvent {
            id: format!("{n:056}"),
            timestamp: CREATED + n,
            message: format!("[3]#011train-auc:0.9#011validation-auc:0.{n}"),
        });
        let stream = format!("{id}-0-0-1/algo-1-{CREATED}");
        let event = encode_batch("/aws/sagemaker/TrainingJobs", &stream, events.collect());
        now(logs.handle(&event, &mut About::default())).expect("the table stores the lines");
    }
    let lines = |row| match stored::fact(row).ok()?.fact {
        Fact::MetricsLogged { lines, .. } => Some(lines),
        _ => None,
    };
    let mut lines: Vec<_> = table.rows().iter().filter_map(lines).flatten().collect();
    lines.sort_by_key(|line| line.at);
    let (first, rest) = lines.split_at(MAX_RESOURCE as usize);
    assert!(first.iter().enumerate().all(|(n, line)| line.id == format!("{n:056}")));
    // The last line of each later batch is a sign of life.
    assert_eq!(rest.len(), 6);
    assert_eq!(rest[5].id, format!("{:056}", batches * BATCH - 1));
}
