//! The report of a tuning, which a response can contain up to a maximum size.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http_api::{Access, Api};
use port_tests::memory::MemoryTable;
use serde_json::{Value, json};
use tuning::unit::ids::TrialId;
use use_cases::ports::table::{Condition, Page, Query, Table, TableError, Write};
use use_cases::store::Store;
use use_cases::submit::{Guardrails, Submit};
use wire::events::http::HttpRequest;
use wire::item::{Item, Key};
use wire::sample::request;
use wire::stored::{self, Head};

use crate::{Listed, TestApi, Ticking, decided, open, place, rest};

/// The in-memory table, which counts its reads.
struct Counting {
    table: MemoryTable,
    reads: AtomicUsize,
}

impl Table for Counting {
    async fn get(&self, key: &Key) -> Result<Option<Item>, TableError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.table.get(key).await
    }
    async fn write(&self, write: Write) -> Result<(), TableError> {
        self.table.write(write).await
    }
    async fn transact(&self, writes: Vec<Write>, token: &str) -> Result<(), TableError> {
        self.table.transact(writes, token).await
    }
    async fn query(&self, query: &Query) -> Result<Page, TableError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.table.query(query).await
    }
}

/// Requests the report of `hb1` from a function without cached states. Returns the status, the body and the reads.
async fn report(table: &MemoryTable) -> (u16, String, usize) {
    let counting = Arc::new(Counting { table: table.clone(), reads: AtomicUsize::new(0) });
    let submit = Submit {
        other_tunings: None,
        store: Arc::new(Store::new(Arc::clone(&counting))),
        prices: Listed(None),
        clock: Ticking::default(),
        monthly_cap: None,
        guardrails: Guardrails::default(),
    };
    let api = Api { submit, access: Access::default(), stack: "prod".to_owned() };
    let request = HttpRequest {
        method: "GET".to_owned(),
        path: "/tuning-jobs/hb1/report".to_owned(),
        ..HttpRequest::default()
    };
    let response = api.handle(&request, &place()).await.response;
    let body = String::from_utf8(response.body).unwrap();
    (response.status, body, counting.reads.load(Ordering::Relaxed))
}

/// Submits `hb1` with a strategy, starts its jobs, and writes the table as it is after this many trials.
async fn with_trials(api: &TestApi, strategy: &str, trials: u32) {
    let mut body = request("hb1");
    body["HyperParameterTuningJobConfig"]["Strategy"] = json!(strategy);
    if strategy == "Random" {
        body["HyperParameterTuningJobConfig"]["StrategyConfig"] = Value::Null;
    }
    let (status, answer) = rest(api, "POST", "/tuning-jobs", &body).await;
    assert_eq!(status, 201, "{answer}");
    let store = &api.submit.store;
    let id = use_cases::lookup::find(store, "hb1").await.unwrap().id;
    decided(api, &id).await;
    let loaded = store.load(&id).await.unwrap().unwrap();
    let mut state = (*loaded.state).clone();
    state.search.next_trial = TrialId(trials);
    let counted: u32 = state.search.joined.iter().sum();
    state.search.joined[0] += trials - counted;
    let head = Head { snapshot: loaded.head.step, ..loaded.head };
    let mut rows = stored::snapshot_chunks(&id, head.step, &state).unwrap();
    rows.push(head.row(&id));
    for row in rows {
        store.table.write(Write::Put(row, Condition::Always)).await.unwrap();
    }
}

/// All steps of a large tuning were read, for up to the time limit of a response, before its report was refused.
#[tokio::test]
async fn regression_a_report_that_cannot_fit_is_refused_before_its_steps_are_read() {
    for (strategy, most) in [("Hyperband", 4_000), ("Random", 8_000)] {
        let api = open();
        with_trials(&api, strategy, most).await;
        let (status, page, _) = report(&api.submit.store.table).await;
        assert_eq!(status, 200, "{strategy}: {page:.200}");
        assert!(page.starts_with("<!doctype html>"), "{page:.100}");

        let api = open();
        with_trials(&api, strategy, most + 1).await;
        let (status, body, reads) = report(&api.submit.store.table).await;
        let error: Value = serde_json::from_str(&body).unwrap();
        assert_eq!((status, &error["__type"]), (400, &json!("ValidationException")), "{strategy}: {error}");
        let message = error["message"].as_str().unwrap();
        let size = format!("{} trials", most + 1);
        assert!(message.contains(&size) && message.contains("hyperband report hb1"), "{message}");
        // The row of the name, the head, the definition, the snapshot, and the steps after it.
        assert_eq!(reads, 5, "{strategy}");
    }
}
