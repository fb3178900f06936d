//! Events of training jobs: which of them are ours, and what their facts say about time and repetition.

use std::sync::Arc;

use port_tests::memory::MemoryTable;
use serde_json::{Value, json};
use tuning::unit::time::Time;
use use_cases::job_events::{About, JobEvents, Recorded};
use use_cases::ports::table::Table;
use use_cases::store::Store;
use wire::stored;

use crate::support::{TestClock, now, table_with_tuning};

/// When the job of the sample event was last modified, which is the time of its fact.
const SENT: i64 = 1_789_000_180_000;

/// Returns a table with the tuning of the sample event's job, and the tuning's ID.
fn tuned() -> (MemoryTable, String) {
    table_with_tuning(SENT - 1_000_000)
}

/// Returns the sample event, about the first job of a tuning and with these tags.
fn event(id: &str, tags: &Value) -> Value {
    let text = include_str!("../../../../events/aws.sagemaker/training-job-state-change.training.json");
    let mut event: Value = serde_json::from_str(text).unwrap();
    event["detail"]["TrainingJobName"] = json!(format!("{id}-0-0-1"));
    event["detail"]["Tags"] = tags.clone();
    event
}

/// Delivers an event at `at`. Returns the result and the number of new facts.
fn delivered(table: &MemoryTable, event: &Value, at: i64) -> (Recorded, usize) {
    let store = Arc::new(Store::new(Arc::new(table.clone())));
    let events = JobEvents { store, clock: TestClock::at(at), stack: "prod".to_owned() };
    let mut about = About::default();
    let recorded = now(events.handle(event, &mut about)).unwrap();
    (recorded, about.facts)
}

fn facts(table: &MemoryTable) -> Vec<tuning::log::fact::Recorded> {
    table.rows().iter().filter_map(|row| stored::fact(row).ok()).collect()
}

#[test]
fn an_event_with_a_tag_of_another_stack_or_tuning_is_not_ours() {
    let (_, id) = tuned();
    let cases = [
        (json!({"hyperband:stack": "prod", "hyperband:tuning": id}), true),
        (json!({}), true),
        (json!({"hyperband:stack": "dev", "hyperband:tuning": id}), false),
        (json!({"hyperband:stack": "prod", "hyperband:tuning": "other-3fa1c2"}), false),
    ];
    for (tags, is_ours) in cases {
        let (table, id) = tuned();
        let (recorded, new) = delivered(&table, &event(&id, &tags), SENT);
        assert_eq!(recorded, if is_ours { Recorded::Stored } else { Recorded::NotOurs }, "{tags}");
        assert_eq!((new, facts(&table).len()), (usize::from(is_ours), usize::from(is_ours)), "{tags}");
    }
}

/// The record of the first delivery may have been lost, so the decider reads all facts.
#[test]
fn a_repeated_delivery_stores_nothing_new_and_rings() {
    let (table, id) = tuned();
    let event = event(&id, &json!({}));
    let rings = || now(table.get(&stored::ring_key(&id))).unwrap().is_some();
    assert_eq!(delivered(&table, &event, SENT), (Recorded::Stored, 1));
    assert!(!rings(), "a new fact reaches the decider by its own record");
    assert_eq!(delivered(&table, &event, SENT + 1_000), (Recorded::Stored, 0));
    assert!(rings());
    assert_eq!(facts(&table).len(), 1);
}

/// Deadlines depend on the latest time of a fact.
#[test]
fn a_sender_whose_clock_is_ahead_cannot_advance_the_time_by_more_than_half_a_minute() {
    for (ahead, counted) in [(0, 0), (30_000, 30_000), (3_600_000, 30_000)] {
        let (table, id) = tuned();
        let at = SENT - ahead;
        assert_eq!(delivered(&table, &event(&id, &json!({})), at), (Recorded::Stored, 1));
        assert_eq!(facts(&table)[0].at, Time(at + counted), "{ahead} ms ahead");
    }
}
