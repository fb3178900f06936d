//! The stored rows of a tuning, its place in the list of tunings, and its replay.

use std::sync::Arc;

use port_tests::memory::MemoryTable;
use tuning::log::fact::{Fact, JobEnd, JobPhase};
use tuning::unit::time::Time;
use use_cases::lookup::{self, LookupError};
use use_cases::ports::table::{Condition, Page, Pages, Query, Table, TableError, Write};
use use_cases::replay::replay;
use use_cases::rows::{Position, page};
use use_cases::store::Store;
use wire::item::{Item, Key};
use wire::stored;

use super::world::{World, now, request};
use crate::support::put;

/// The in-memory table with pages of any size, like a file.
struct Unpaged(MemoryTable);

impl Table for Unpaged {
    async fn get(&self, key: &Key) -> Result<Option<Item>, TableError> {
        self.0.get(key).await
    }
    async fn write(&self, write: Write) -> Result<(), TableError> {
        self.0.write(write).await
    }
    async fn transact(&self, writes: Vec<Write>, token: &str) -> Result<(), TableError> {
        self.0.transact(writes, token).await
    }
    async fn query(&self, query: &Query) -> Result<Page, TableError> {
        let (mut items, mut pages) = (Vec::new(), Pages::of(query.clone()));
        while let Some(more) = pages.next(&self.0).await? {
            items.extend(more);
        }
        Ok(Page { items, next: None })
    }
}

/// Returns the keys of each page of a tuning's rows.
fn pages(table: &impl Table, world: &World, limit: usize) -> Vec<Vec<Key>> {
    let row = now(lookup::find(&world.store, "t")).unwrap();
    let (mut all, mut position) = (Vec::new(), None);
    loop {
        let page = now(page(table, &row, position, limit)).unwrap();
        all.push(page.rows.into_iter().map(|row| row.key).collect());
        assert!(all.len() < 100, "the pages have an end");
        let Some(next) = page.next else { return all };
        // A client sends the position back as a text.
        position = Some(Position::read(&next.text()).unwrap());
    }
}

fn trained() -> World {
    let mut world = World::new(2);
    for trial in 0..2 {
        world.phase(trial, JobPhase::Training);
        world.logged(trial, &[(9, 0.5)]);
        world.billed(trial, JobEnd::Completed, 5);
    }
    world.fact(Fact::TimePassed);
    world
}

#[test]
fn the_pages_of_a_tuning_have_its_name_then_its_own_rows_then_its_facts() {
    let mut world = World::new(1);
    let fact = world.recorded(Fact::StopRequested);
    now(use_cases::record::deliver(&world.table, &world.id, &[fact], Time(world.now))).unwrap();
    let named = now(lookup::find(&world.store, "t")).unwrap().row().key;
    let keys = world.table.rows().into_iter().map(|row| row.key);
    let of = |pk: String| keys.clone().filter(move |key| key.pk == pk);
    let own = of(stored::tuning_partition(&world.id)).chain(of(stored::fact_partition(&world.id)));
    let expected: Vec<Key> = std::iter::once(named).chain(own).collect();
    assert!(expected.len() > 4);
    for limit in [1, 2, 3, 100] {
        let pages = pages(&world.table, &world, limit);
        assert_eq!(pages.concat(), expected, "pages of {limit}");
        assert!(pages[1..].iter().all(|page| page.len() <= limit));
    }
    assert_eq!(pages(&world.table, &world, 100).len(), 2, "one page of each partition");
}

/// The answer of a Lambda function has at most 6 MB.
#[test]
fn a_page_of_large_rows_ends_early_and_the_next_one_continues() {
    let world = World::new(1);
    let table = Unpaged(world.table.copy());
    let pk = stored::fact_partition(&world.id);
    for number in 0..20 {
        let key = Key::new(pk.clone(), format!("large-{number:02}"));
        put(&table.0, Item::new(key).with("data", vec![0; 300_000]));
    }
    let pages = pages(&table, &world, 100);
    let large: Vec<usize> =
        pages.iter().map(|page| page.iter().filter(|key| key.sk.starts_with("large")).count()).collect();
    assert_eq!(large, [0, 7, 7, 6]);
}

#[test]
fn the_list_of_tunings_continues_after_any_page() {
    let world = World::new(1);
    let names = ["a", "b", "t"];
    for name in &names[..2] {
        World::of(world.table.clone(), &request(name, 1));
    }
    for limit in 1..4 {
        let (mut found, mut after) = (Vec::new(), None);
        for _ in 0..=names.len() {
            let (rows, next) = now(lookup::list(&world.store, after, limit)).unwrap();
            assert!(rows.len() <= limit);
            found.extend(rows.into_iter().map(|row| row.name));
            after = next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(found, names, "pages of {limit}");
    }
}

#[test]
fn only_a_tuning_that_has_not_ended_can_be_stopped() {
    let mut world = World::new(1);
    let stop = |world: &World| now(lookup::stop(&world.store, "T", Time(world.now)));
    world.phase(0, JobPhase::Training);
    assert_eq!(stop(&world), Ok(()));
    world.catch_up();
    assert_eq!(now(world.store.head(&world.id)).unwrap().unwrap().status, "Stopping");
    assert_eq!(stop(&world), Ok(()), "a second request has no effect");
    assert_eq!(
        now(lookup::stop(&world.store, "other", Time(0))),
        Err(LookupError::NotFound("other".to_owned()))
    );
    let ended = trained();
    let refused = LookupError::AlreadyEnded("Completed".to_owned());
    assert_eq!(stop(&ended), Err(refused));
}

#[test]
fn a_replay_decides_every_step_again() {
    let world = trained();
    let steps = now(world.store.all(&stored::tuning_partition(&world.id), "STEP#")).unwrap();
    let steps: Vec<_> = steps.iter().map(|row| stored::step(row).unwrap()).collect();
    let count = |list: Vec<usize>| u64::try_from(list.into_iter().sum::<usize>()).unwrap();
    let replayed = now(replay(&world.store, &world.id)).unwrap().unwrap();
    assert_eq!(replayed.steps, steps.last().unwrap().n);
    assert_eq!(replayed.facts, count(steps.iter().map(|step| step.facts.len()).collect()));
    assert_eq!(replayed.rulings, count(steps.iter().map(|step| step.rulings.len()).collect()));
    assert_eq!((replayed.difference, &replayed.state), (None, &world.state()));
    assert_eq!(now(replay(&world.store, "gone-abc123")).unwrap().map(|replayed| replayed.steps), None);
}

#[test]
fn a_replay_ends_at_the_first_step_with_other_rulings() {
    let world = trained();
    let copy = world.table.copy();
    let rows = now(world.store.all(&stored::tuning_partition(&world.id), "STEP#")).unwrap();
    let mut steps = rows.iter().map(|row| stored::step(row).unwrap());
    let original = steps.find(|step| !step.rulings.is_empty()).unwrap();
    let mut changed = original.clone();
    changed.rulings.clear();
    now(copy.write(Write::Put(stored::step_row(&world.id, &changed), Condition::Always))).unwrap();
    let replayed = now(replay(&Store::new(Arc::new(copy)), &world.id)).unwrap().unwrap();
    let (step, recorded, decided) = replayed.difference.unwrap();
    assert_eq!((step, &*recorded), (changed.n, "[]"));
    assert_eq!(decided, serde_json::to_string(&original.rulings).unwrap());
}
