//! A live document of a tuning whose steps are in a table.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use curves::Setting;
use port_tests::memory::MemoryTable;
use report::{Live, read};
use serde_json::json;
use use_cases::ports::table::{Condition, Table, Write};
use use_cases::store::Store;
use wire::item::Item;
use wire::stored;

use crate::assert_same;
use crate::simulated::{Simulated, place, request};

/// Returns the output of a future that does not wait, like those of the in-memory table.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("a future must not wait here"),
    }
}

fn put(store: &Store<MemoryTable>, row: Item) {
    now(store.table.write(Write::Put(row, Condition::Always))).unwrap();
}

#[test]
fn a_live_document_opens_at_the_last_step_of_the_table() {
    let setting = Setting { workers: 3, ..Setting::default() };
    let played = Simulated::play(request("t", 24, 9, json!({})), &setting);
    let tuning = &played.tuning;
    let store = Store::new(Arc::new(MemoryTable::new()));
    let body = tuning.request.body().to_string();
    put(&store, stored::meta_row(&tuning.definition, &body));
    put(&store, played.loaded(0).head.row(&tuning.id));
    assert!(now(read(&store, &place(), "other-000000")).unwrap().is_none());
    let mut taken = 0;
    for steps in played.steps.chunks(17) {
        for step in steps {
            put(&store, stored::step_row(&tuning.id, step));
        }
        taken += steps.len();
        put(&store, played.loaded(taken).head.row(&tuning.id));
        let live = now(Live::open(&store, &place(), &tuning.id)).unwrap().unwrap();
        assert_eq!(live.step(), u64::try_from(taken).unwrap());
        assert_eq!(live.is_ended(), taken == played.steps.len());
    }
    let known = now(Live::open(&store, &place(), &tuning.id)).unwrap().unwrap().document();
    assert_same(&known, &now(read(&store, &place(), &tuning.id)).unwrap().unwrap());
}
