//! Tags that are added to a tuning, also while other callers add tags.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use port_tests::memory::MemoryTable;
use use_cases::ports::table::{Page, Query, Table, TableError, Write};
use use_cases::store::{Store, StoreError};
use use_cases::tags::{TagError, add, tags};
use wire::item::{Item, Key};
use wire::stored;

use super::world::{World, now};

fn of(tags: &[(&str, &str)]) -> BTreeMap<String, String> {
    tags.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// The in-memory table. Just before each of the first `rivals` writes, another caller adds a tag.
struct Busy {
    table: MemoryTable,
    id: String,
    rivals: usize,
    writes: AtomicUsize,
}

impl Busy {
    fn of(world: &World, rivals: usize) -> Arc<Self> {
        let (table, id) = (world.table.clone(), world.id.clone());
        Arc::new(Self { table, id, rivals, writes: AtomicUsize::new(0) })
    }
}

impl Table for Busy {
    async fn get(&self, key: &Key) -> Result<Option<Item>, TableError> {
        self.table.get(key).await
    }
    async fn write(&self, write: Write) -> Result<(), TableError> {
        let writes = self.writes.fetch_add(1, Ordering::Relaxed);
        if writes < self.rivals {
            let new = BTreeMap::from([(format!("rival-{writes}"), String::new())]);
            let other = Store::new(Arc::new(self.table.clone()));
            assert!(now(add(&other, &self.id, &new)).is_ok());
        }
        self.table.write(write).await
    }
    async fn transact(&self, writes: Vec<Write>, token: &str) -> Result<(), TableError> {
        self.table.transact(writes, token).await
    }
    async fn query(&self, query: &Query) -> Result<Page, TableError> {
        self.table.query(query).await
    }
}

#[test]
fn added_tags_are_kept_and_replace_earlier_values() {
    let world = World::new(1);
    let read = || now(tags(&world.store, &world.id)).unwrap().unwrap();
    assert_eq!(read(), of(&[]));
    let added = of(&[("team", "a"), ("stage", "test")]);
    assert_eq!(now(add(&world.store, &world.id, &added)).unwrap(), added);
    let all = of(&[("team", "b"), ("stage", "test")]);
    assert_eq!(now(add(&world.store, &world.id, &of(&[("team", "b")]))).unwrap(), all);
    assert_eq!(read(), all);
    assert_eq!(now(add(&world.store, "gone-abc123", &added)), Err(TagError::NotFound));
}

#[test]
fn a_tag_that_other_callers_delay_is_added_beside_theirs() {
    let world = World::new(1);
    let busy = Busy::of(&world, 4);
    let all = now(add(&Store::new(Arc::clone(&busy)), &world.id, &of(&[("own", "1")]))).unwrap();
    let rivals = [("rival-0", ""), ("rival-1", ""), ("rival-2", ""), ("rival-3", "")];
    assert_eq!(all, of(&[&[("own", "1")][..], &rivals[..]].concat()));
    assert_eq!(now(tags(&world.store, &world.id)).unwrap().unwrap(), all);
}

#[test]
fn a_caller_gives_up_after_five_conflicts_and_adds_nothing() {
    let world = World::new(1);
    let busy = Busy::of(&world, usize::MAX);
    let failed = now(add(&Store::new(Arc::clone(&busy)), &world.id, &of(&[("own", "1")]))).unwrap_err();
    let TagError::Store(StoreError::Table(TableError::Conflict(_))) = failed else { panic!("{failed:?}") };
    assert_eq!(busy.writes.load(Ordering::Relaxed), 5);
    assert!(!now(tags(&world.store, &world.id)).unwrap().unwrap().contains_key("own"));
}

#[test]
fn a_tuning_has_at_most_fifty_tags() {
    let world = World::new(1);
    let many = |numbers: std::ops::Range<u32>| {
        numbers.map(|number| (format!("tag-{number}"), String::new())).collect::<BTreeMap<_, _>>()
    };
    assert_eq!(now(add(&world.store, &world.id, &many(0..50))).unwrap().len(), 50);
    let refused = now(add(&world.store, &world.id, &many(49..51))).unwrap_err();
    let message = "too many tags: the tuning job would have 51, the maximum is 50";
    assert_eq!(refused, TagError::Refused(message.to_owned()));
    assert_eq!(now(tags(&world.store, &world.id)).unwrap().unwrap(), many(0..50));
}

#[test]
fn only_usual_characters_and_lengths_are_accepted() {
    let world = World::new(1);
    let (key, value) = ("k".repeat(128), "v".repeat(256));
    let (long_key, long_value) = ("k".repeat(129), "v".repeat(257));
    let cases = [
        ("cost center", "a b\u{a0}c", true),
        ("Straße_.:/=+-@", "é_.:/=+-@", true),
        (&*key, &*value, true),
        (&*long_key, "", false),
        ("", "", false),
        ("long", &*long_value, false),
        ("tab", "a\tb", false),
        ("line\n", "", false),
        ("mark!", "", false),
        ("quote", "\"", false),
        ("aws:own", "", false),
        ("AWS:own", "", false),
    ];
    for (key, value, is_accepted) in cases {
        let added = now(add(&world.store, &world.id, &of(&[(key, value)])));
        match added {
            Ok(all) => assert!(is_accepted && all.get(key).is_some_and(|stored| stored == value), "{key:?}"),
            Err(TagError::Refused(_)) => assert!(!is_accepted, "{key:?}: {value:?}"),
            Err(error) => panic!("{key:?}: {error}"),
        }
    }
    let stored = now(world.table.get(&stored::tags_key(&world.id))).unwrap().unwrap();
    assert_eq!(stored::tags(&stored).unwrap().0.len(), 3, "a refused tag is not stored");
}
