//! Batches that end early: finished parts have their results, and the rest is delivered again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use port_tests::memory::MemoryTable;
use serde_json::{Value, json};
use tuning::log::fact::{Fact, JobEnd, JobPhase, Recorded};
use tuning::unit::time::Time;
use use_cases::batch::Progress;
use use_cases::decide::{Decided, Decider};
use use_cases::ports::table::{Condition, Table, TableError, Write};
use use_cases::store::{Store, StoreError};
use wire::events::stream::{RecordKind, encode_payload, encode_record};
use wire::item::Item;
use wire::stored::{self, StoredError};

use crate::looks::world::World;
use crate::support::{now, put, table_with_tuning};

/// Returns an event with facts of tunings that are not in the table. Each is processed at once.
fn event(ids: &[&str]) -> Value {
    let record = |(n, id): (u64, &&str)| {
        let fact = Recorded { key: "stop-requested".to_owned(), at: Time(1), fact: Fact::StopRequested };
        let row = stored::fact_row(id, &fact);
        encode_record(n, RecordKind::Insert, &row.key, Some(&row))
    };
    encode_payload((1..).zip(ids).map(record))
}

#[test]
fn without_time_left_no_tuning_is_started_and_its_records_are_delivered_again() {
    let decider = Decider { store: Arc::new(Store::new(Arc::new(MemoryTable::recording()))) };
    let (asked, mut done) = (AtomicUsize::new(0), Decided::default());
    let goes_on = || asked.fetch_add(1, Ordering::Relaxed) == 0;
    let mut event = event(&["b-3fa1c2", "a-3fa1c2", "b-3fa1c2"]);
    event["Records"].as_array_mut().expect("a list").push(json!({"dynamodb": {"SequenceNumber": "9"}}));
    now(decider.handle(&event, goes_on, &mut done));
    let parts: Vec<_> = done.parts.iter().map(|part| (part.tuning.as_str(), part.progress.clone())).collect();
    assert_eq!(parts, [("a-3fa1c2", Progress::Done), ("b-3fa1c2", Progress::Open)]);
    let sequence = |n: u64| format!("{n:021}");
    assert_eq!(done.failed().collect::<Vec<_>>(), [&sequence(1), &sequence(3)]);
    assert_eq!(done.unreadable[0].sequence.as_deref(), Some("9"), "it is reported, and not delivered again");
}

/// A tuning of newer code blocked its shard for ten tries, and the records behind it went to the failure queue.
#[test]
fn regression_a_permanent_failure_does_not_block_its_shard() {
    let table = MemoryTable::recording();
    let mut head = stored::Head::first(Time(1)).row("a-3fa1c2");
    head = head.with("type", "no head");
    now(table.write(Write::Put(head, Condition::Always))).expect("it is written");
    let decider = Decider { store: Arc::new(Store::new(Arc::new(table))) };
    let mut done = Decided::default();
    now(decider.handle(&event(&["a-3fa1c2", "b-3fa1c2"]), || true, &mut done));
    let progress: Vec<_> = done.parts.iter().map(|part| &part.progress).collect();
    assert!(
        matches!(progress[..], [Progress::Failed(StoreError::Stored(_)), Progress::Done]),
        "the failure is reported: {progress:?}"
    );
    assert_eq!(done.answer(), json!({"batchItemFailures": []}));
    // Temporary errors are delivered again.
    let errors = [
        (TableError::Throttled, true),
        (TableError::Unavailable("no answer".to_owned()), true),
        (TableError::Conflict(vec![0]), true),
        (TableError::Refused("AccessDenied".to_owned()), false),
    ];
    for (error, again) in errors {
        done.parts[0].progress = Progress::Failed(error.into());
        assert_eq!(done.failed().count(), usize::from(again));
    }
}

/// While a release was deployed, the old decider received a fact of the new release. It dropped it as unreadable.
#[test]
fn regression_a_fact_of_a_newer_release_is_delivered_again() {
    let row = |data: &str, version: i64| {
        let fact = Recorded { key: "teleported".to_owned(), at: Time(1), fact: Fact::StopRequested };
        stored::fact_row("a-3fa1c2", &fact).with(stored::DATA, data).with("version", version)
    };
    let decided = |row: &Item| {
        let decider = Decider { store: Arc::new(Store::new(Arc::new(MemoryTable::recording()))) };
        let event = encode_payload([encode_record(1, RecordKind::Insert, &row.key, Some(row))]);
        let mut done = Decided::default();
        now(decider.handle(&event, || true, &mut done));
        done
    };
    let newer =
        [(r#"{"JobTeleported":{"to":"elsewhere"}}"#, 1), (r#""Paused""#, 1), (r#""StopRequested""#, 2)];
    for (data, version) in newer {
        let row = row(data, version);
        let done = decided(&row);
        assert_eq!(done.failed().count(), 1, "{data}: {done:?}");
        assert!(done.unreadable.is_empty(), "{data}");
        assert!(
            matches!(stored::fact(&row), Err(StoredError::NewerFact { .. })),
            "a stored fact is not skipped either: {data}"
        );
    }
    let damaged = decided(&row("{\"Stop", 1));
    assert_eq!((damaged.failed().count(), damaged.unreadable.len()), (0, 1), "it blocks no shard");
}

/// A fact of a newer release is stored, and another fact makes the decider read it.
#[test]
fn a_stored_fact_of_a_newer_release_is_not_skipped() {
    let (table, id) = table_with_tuning(1);
    let fact = Recorded { key: "teleported".to_owned(), at: Time(1), fact: Fact::StopRequested };
    let newer = stored::fact_row(&id, &fact).with(stored::DATA, r#"{"Teleported":{}}"#);
    put(&table, newer.clone());
    let decider = Decider { store: Arc::new(Store::new(Arc::new(table.clone()))) };
    let error = now(decider.decide(&id, &[], true)).expect_err("it is not skipped");
    assert!(matches!(&error, StoreError::Stored(StoredError::NewerFact { .. })), "{error}");
    assert!(!error.is_permanent(), "it is retried");
    put(&table, newer.with(stored::DATA, "{"));
    now(decider.decide(&id, &[], true)).expect("a damaged row does not block");
}

#[test]
fn a_tuning_of_newer_rules_is_left_to_a_newer_release() {
    let (table, id) = table_with_tuning(1);
    let meta = now(table.get(&stored::meta_key(&id))).unwrap().unwrap();
    let (mut definition, request) = stored::meta(&meta).unwrap();
    definition.rules_version += 1;
    put(&table, stored::meta_row(&definition, &request));
    let error = now(Store::new(Arc::new(table)).load(&id)).expect_err("these rules are not known");
    assert!(matches!(&error, StoreError::Stored(StoredError::Newer { version: 2, .. })), "{error}");
}

/// A tuning of this name may be submitted again.
#[test]
fn a_deleted_tuning_is_unknown_at_once() {
    let (table, id) = table_with_tuning(1);
    let ended = stored::Head { status: "Completed".to_owned(), ..stored::Head::first(Time(1)) };
    put(&table, ended.row(&id));
    let index = stored::IndexRow::key(id.rsplit_once('-').unwrap().0);
    put(&table, Item::new(index).with("id", id.as_str()));
    let store = Store::new(Arc::new(table));
    assert!(now(store.tuning(&id)).unwrap().is_some());
    now(use_cases::delete::delete_found(&store, &id, Time(2))).unwrap();
    assert!(now(store.tuning(&id)).unwrap().is_none());
}

/// A delivery showed the end of a job and two later times. The second time settled the job in full, although its bill was
/// stored.
#[test]
fn regression_a_stored_bill_counts_before_times_that_arrive_with_the_end_of_its_job() {
    let mut world = World::new(1);
    world.phase(0, JobPhase::Training);
    let job = world.job(0);
    let started = world.state().job(job).and_then(tuning::job::Job::started);
    let ended = Some(Time(world.now + 1_000));
    let bill = world.recorded(Fact::JobDescribed {
        job,
        end: JobEnd::Completed,
        started,
        ended,
        billable_seconds: 60,
        message: None,
        interruptions: 0,
    });
    put(&world.table, stored::fact_row(&world.id, &bill));
    let phase = JobPhase::Ended(JobEnd::Completed);
    let end = world.recorded(Fact::JobStateChanged { job, phase, started, ended, message: None });
    let mut late = vec![end];
    for seconds in [100, 3_700] {
        world.now += seconds * 1_000;
        late.push(world.recorded(Fact::TimePassed));
    }
    world.hears(&late);
    let state = world.state();
    let (_, billed) = state.billed_jobs().find(|(key, _)| *key == job).unwrap();
    assert_eq!(billed.bill.seconds(), Some(60), "{billed:?}");
}
