//! Target `service`: the use cases that receive raw JSON, on an in-memory table. For any delivery, no write is
//! invalid, the decider reads all its own records, and the log of the tuning replays.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};

use port_tests::memory::{Change, MemoryTable};
use serde_json::Value;
use tuning::definition::Definition;
use tuning::log::fact::{Fact, Recorded};
use tuning::unit::time::Time;
use use_cases::decide::{Decided, Decider};
use use_cases::describe::{Place, describe};
use use_cases::job_events::{About, JobEvents, RecordError};
use use_cases::job_logs::JobLogs;
use use_cases::lookup::{LookupError, find, stop};
use use_cases::ports::table::{Condition, Table, Write};
use use_cases::ports::{Clock, Prices, PricesError};
use use_cases::replay::replay;
use use_cases::store::Store;
use use_cases::submit::{Guardrails, Submit, SubmitError};
use wire::events::payload;
use wire::events::stream::{RecordKind, encode_payload, encode_record};
use wire::request::{PriceAnswer, Request};
use wire::stored::{self, Head, IndexRow};

use crate::check_error_text;
use crate::logs::{delivery, gzip};

const CREATED: Time = Time(1_789_000_000_000);
const NOW: Time = Time(1_789_003_600_000);
/// The stack, the tuning and its request are those of the samples in `events/`.
const STACK: &str = "prod";
const INCARNATION: &str = "3fa1c2";
const REQUEST: &[u8] =
    include_bytes!("../../../events/aws.sagemaker.api/create-hyper-parameter-tuning-job.request.json");
/// Maximum number of deliveries in an input. More deliveries only take time.
const DELIVERIES_MAX: usize = 24;

#[derive(Debug, Clone, Copy)]
struct FixedTime;

impl Clock for FixedTime {
    fn now(&self) -> Time {
        NOW
    }
}

impl Prices for FixedTime {
    async fn instance_hour(&self, _: &str) -> Result<Option<u64>, PricesError> {
        Ok(Some(115_000))
    }

    async fn volume_kilo_gib_hour(&self) -> Result<Option<u64>, PricesError> {
        Ok(None)
    }
}

/// Deliveries are separated by a zero byte. The first character of each is its receiver.
pub(crate) fn run(input: &[u8]) {
    let world = World::new();
    for one in input.split(|byte| *byte == 0).take(DELIVERIES_MAX) {
        world.deliver(one);
        world.pump();
    }
    world.check_end();
}

struct World {
    table: MemoryTable,
    store: Arc<Store<MemoryTable>>,
    id: String,
}

impl World {
    /// Returns a table with one newly submitted tuning.
    fn new() -> Self {
        static SUBMITTED: OnceLock<(Definition, String)> = OnceLock::new();
        let (definition, request) = SUBMITTED.get_or_init(|| {
            let request = Request::parse(REQUEST).unwrap_or_else(|error| panic!("{error}"));
            let prices = PriceAnswer::uniform(&request, 461_000, 0);
            let definition = request.definition(CREATED, INCARNATION, &prices);
            (definition.unwrap_or_else(|error| panic!("{error}")), request.body().to_string())
        });
        let table = MemoryTable::recording();
        let id = definition.id();
        let submitted = Recorded { key: "submitted".to_owned(), at: CREATED, fact: Fact::TuningSubmitted };
        let index =
            IndexRow { name: definition.name.clone(), id: id.clone(), created: CREATED, submitter: None };
        for row in [
            index.row(),
            stored::meta_row(definition, request),
            Head::first(CREATED).row(&id),
            stored::active_row(&id),
            stored::fact_row(&id, &submitted),
        ] {
            assert_eq!(now(table.write(Write::Put(row, Condition::NotExists))), Ok(()));
        }
        let store = Arc::new(Store::new(Arc::new(table.clone())));
        let world = Self { table, store, id };
        world.pump();
        world
    }

    fn deliver(&self, one: &[u8]) {
        let Some((kind, rest)) = one.split_first() else { return };
        let store = || Arc::clone(&self.store);
        match kind {
            b'e' => {
                let Ok(event) = payload(rest) else { return };
                let events = JobEvents { store: store(), clock: FixedTime, stack: STACK.to_owned() };
                check_recorded(now(events.handle(&event, &mut About::default())).err());
            }
            b'l' => {
                let logs = JobLogs::new(store(), FixedTime);
                check_recorded(now(logs.handle(&delivery(&gzip(rest)), &mut About::default())).err());
            }
            b'd' => {
                let Ok(event) = payload(rest) else { return };
                let failed = self.decide(&event);
                let sent = event.get("Records").and_then(Value::as_array).map_or(0, Vec::len);
                assert!(failed.len() <= sent, "more records failed than were sent");
            }
            b's' => {
                let submit = Submit {
                    other_tunings: None,
                    store: store(),
                    prices: FixedTime,
                    clock: FixedTime,
                    monthly_cap: None,
                    guardrails: Guardrails::default(),
                };
                if let Err(SubmitError::Store(error)) = now(submit.submit(rest)) {
                    panic!("{error}");
                }
            }
            _ => {
                let name = String::from_utf8_lossy(rest);
                if name.len() <= 32 && !name.is_empty() {
                    let found = now(find(&self.store, &name)).is_ok();
                    match now(stop(&self.store, &name, NOW)) {
                        Ok(()) | Err(LookupError::AlreadyEnded(_)) => assert!(found),
                        Err(LookupError::NotFound(_)) => assert!(!found),
                        Err(LookupError::Store(error)) => panic!("{error}"),
                    }
                }
            }
        }
    }

    /// Passes the table's stream records to the decider until the table stops changing.
    fn pump(&self) {
        loop {
            let changes = self.table.changes();
            if changes.is_empty() {
                return;
            }
            let failed = self.decide(&encode_payload(changes.iter().map(record)));
            assert!(failed.is_empty(), "the decider failed on its own records: {failed:?}");
        }
    }

    fn decide(&self, event: &Value) -> Vec<Value> {
        let mut decided = Decided::default();
        now(Decider { store: Arc::clone(&self.store) }.handle(event, || true, &mut decided));
        let answer = decided.answer();
        let Value::Array(failed) = answer["batchItemFailures"].clone() else { panic!("{answer}") };
        failed
    }

    fn check_end(&self) {
        let replayed = now(replay(&self.store, &self.id));
        let difference = replayed.map(|replayed| replayed.and_then(|replayed| replayed.difference));
        assert_eq!(difference, Ok(None), "P5: replay gives other rulings");
        let place = Place::of_arn("arn:aws:lambda:us-east-1:111122223333:function:api");
        let shown = now(describe(&self.store, &place, &self.id));
        let Ok(Some(shown)) = shown else { panic!("{shown:?}") };
        assert_eq!(shown.base.name, "hb1");
    }
}

fn record(change: &Change) -> Value {
    let kind = match (&change.old, &change.new) {
        (None, _) => RecordKind::Insert,
        (Some(_), Some(_)) => RecordKind::Modify,
        (Some(_), None) => RecordKind::Remove,
    };
    encode_record(change.sequence, kind, &change.key, change.new.as_ref())
}

/// Checks the error of a recording use case. The in-memory table is always available, so a store error means an
/// invalid row, and such a delivery would be retried forever.
fn check_recorded(error: Option<RecordError>) {
    match error {
        None => {}
        Some(error @ RecordError::Unreadable(_)) => check_error_text(&error),
        Some(RecordError::Store(error)) => panic!("{error}"),
    }
}

/// Returns the value of a future of the in-memory table, which is ready at once.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the in-memory table is always ready"),
    }
}
