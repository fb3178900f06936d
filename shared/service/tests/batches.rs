//! A batch of which not all is done in time: what was done is known, the rest is delivered again.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use serde_json::{Value, json};
use service::batch::Progress;
use service::decide::{Decided, Decider};
use service::memory::MemoryTable;
use service::store::Store;
use tuning::fact::{Fact, Recorded};
use wire::events::stream::{RecordKind, encode_payload, encode_record};
use wire::stored;

fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("nothing here waits"),
    }
}

/// Facts of tunings that the table does not have: each is done with at once.
fn event(ids: &[&str]) -> Value {
    let record = |(n, id): (u64, &&str)| {
        let fact = Recorded { key: "stop-requested".to_owned(), at: 1, fact: Fact::StopRequested };
        let row = stored::fact_row(id, &fact);
        encode_record(n, RecordKind::Insert, &row.key, Some(&row))
    };
    encode_payload((1..).zip(ids).map(record))
}

#[test]
fn no_tuning_is_begun_when_the_time_is_over_and_its_records_are_delivered_again() {
    let decider = Decider { store: Arc::new(Store::new(Arc::new(MemoryTable::recording()))) };
    let (asked, mut done) = (AtomicUsize::new(0), Decided::default());
    let goes_on = || asked.fetch_add(1, Ordering::Relaxed) == 0;
    let mut event = event(&["b-3fa1c2", "a-3fa1c2", "b-3fa1c2"]);
    event["Records"].as_array_mut().expect("a list").push(json!({"dynamodb": {"SequenceNumber": "9"}}));
    now(decider.handle(&event, goes_on, &mut done));
    let parts: Vec<_> = done.parts.iter().map(|part| (part.tuning.as_str(), part.progress.clone())).collect();
    assert_eq!(parts, [("a-3fa1c2", Progress::Done), ("b-3fa1c2", Progress::Open)]);
    let sequence = |n: u64| format!("{n:021}");
    assert_eq!(done.failed().collect::<Vec<_>>(), ["9", &sequence(1), &sequence(3)]);
    assert_eq!(done.unreadable[0].sequence.as_deref(), Some("9"));
}
