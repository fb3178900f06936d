//! Messages of the training service have any length. Stored messages are cut to fit a row, because otherwise the table
//! would refuse the outcome on every retry.

use std::collections::BTreeMap;
use std::sync::Arc;

use port_tests::memory::MemoryTable;
use tuning::log::fact::{Fact, JobKey, Recorded};
use tuning::log::ruling::{Order, ReadOrder};
use tuning::unit::limits::MAX_MESSAGE_CHARS;
use tuning::unit::time::Time;
use use_cases::decide::Decider;
use use_cases::perform::{Actuator, Effect, Performed};
use use_cases::ports::training::{Description, TrainingJobsError};
use use_cases::sweep::{Limits, Sweeper};
use wire::stored;

use crate::support::{
    Script, Service, TestBus, TestClock, actuator, description, now, order, put, start_of, table_with_tuning,
};

const CREATED: i64 = 1_788_990_000_000;
const NOW: i64 = 1_789_000_000_000;
const JOB: JobKey = JobKey::new(0, 0, 1);

/// Returns a service that answers every call with a message larger than a row.
fn wordy() -> Service {
    let words = || "no ".repeat(150_000);
    let described = Description {
        started: Some(Time(NOW - 900_000)),
        ended: Some(Time(NOW - 800_000)),
        modified: Time(NOW - 800_000),
        billable_seconds: Some(100),
        failure_reason: Some(words()),
        ..description("job", "Failed", NOW - 1_000_000)
    };
    let refused = TrainingJobsError::Refused { code: "ValidationException".to_owned(), message: words() };
    let script = Script {
        create: Some(Err(refused)),
        stop: Some(Err(TrainingJobsError::LimitExceeded(words()))),
        describe: Some(Ok(described)),
        tags: Some(Ok(BTreeMap::new())),
        read: Some(Ok(1)),
        ..Script::default()
    };
    Service::new(&TestClock::at(NOW), script)
}

/// Returns a table with a tuning, and the actuator of its actions.
fn world() -> (MemoryTable, Actuator<MemoryTable, Service, TestBus, TestClock>, String) {
    let (table, id) = table_with_tuning(CREATED);
    put(&table, stored::active_row(&id));
    let actuator = actuator(&Arc::new(table.clone()), &wordy());
    (table, actuator, id)
}

/// Performs an order. Returns the result and the stored fact.
fn perform(ordered: Order) -> (Performed, Fact) {
    let (table, actuator, id) = world();
    let action = order(&table, &id, ordered);
    let performed = now(actuator.perform(&id, &action)).expect("the table accepts the outcome");
    let fact = table.rows().iter().find_map(|row| stored::fact(row).ok()).expect("a fact");
    (performed, fact.fact)
}

#[track_caller]
fn check_cut(message: &str) {
    assert_eq!(message.chars().count(), MAX_MESSAGE_CHARS);
}

#[test]
fn a_long_refusal_is_recorded() {
    let (performed, fact) = perform(start_of(JOB));
    let Fact::StartRefused { message, .. } = fact else { panic!("{performed:?}") };
    assert_eq!(performed, Performed::Done(Effect::Refused(message.clone())));
    check_cut(&message);
}

#[test]
fn a_long_reason_to_defer_is_recorded() {
    let stop = Order::Stop { job: JOB, why: tuning::log::reasons::StopWhy::TuningEnding, because: None };
    let (performed, fact) = perform(stop);
    let Fact::ActionDeferred { reason, .. } = fact else { panic!("{performed:?}") };
    assert!(matches!(performed, Performed::Deferred(_)), "{performed:?}");
    check_cut(&reason);
}

#[test]
fn a_long_failure_reason_is_recorded() {
    let (performed, fact) = perform(Order::Read(ReadOrder::Bill { job: JOB }));
    let Fact::JobDescribed { message, .. } = fact else { panic!("{performed:?}") };
    assert_eq!(performed, Performed::Done(Effect::Other));
    check_cut(&message.expect("a message"));
}

#[test]
fn a_long_failure_reason_found_by_the_sweeper_is_recorded() {
    let (table, actuator, id) = world();
    let store = Arc::clone(&actuator.store);
    let facts = [Fact::TuningSubmitted, Fact::JobStarted { job: JOB }];
    for (number, fact) in facts.into_iter().enumerate() {
        let recorded = Recorded { key: number.to_string(), at: Time(CREATED), fact };
        now(Decider { store: Arc::clone(&store) }.decide(&id, &[recorded], false)).expect("a step");
    }
    let sweeper = Sweeper::new(actuator, Limits::CLOUD, "one".to_owned());
    let swept = now(sweeper.sweep()).expect("a sweep");
    assert_eq!(swept.last_error, None);
    let found = table.rows().iter().filter_map(|row| stored::fact(row).ok()).find_map(|recorded| {
        match recorded.fact {
            Fact::JobStateChanged { message, .. } => message,
            _ => None,
        }
    });
    check_cut(&found.expect("a message found by the sweeper"));
}
