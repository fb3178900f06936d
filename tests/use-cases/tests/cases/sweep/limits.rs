//! The limits of one sweep, and that later sweeps do the rest of the work.

use std::collections::{BTreeMap, BTreeSet};

use tuning::log::fact::{Fact, JobEnd, Recorded};
use tuning::unit::time::{Millis, Time};
use use_cases::ports::table::{Condition, Table, Write};
use use_cases::sweep::{CallKind, Limits, Rate};
use wire::item::Item;
use wire::names::{parse_training_job_name, training_job_name};
use wire::stored;

use super::world::{BEGIN, Call, MINUTE, SECOND, World, now, unpaced};

fn of(calls: &[Call], sort: CallKind) -> impl Iterator<Item = &Call> {
    calls.iter().filter(move |call| call.sort == sort)
}

fn with(limits: Limits, sort: CallKind, per_sweep: u32) -> Limits {
    let mut limits = limits;
    limits.calls.of(sort).per_sweep = per_sweep;
    limits
}

#[test]
fn ten_thousand_silent_jobs_are_all_checked_before_any_is_checked_again() {
    let world = World::new();
    world.running("t000", 100);
    world.copy("t000", (1..100).map(|n| format!("t{n:03}")));
    world.pass(9 * MINUTE);
    let budget = 1_500;
    let limits = with(with(unpaced(), CallKind::Describe, budget), CallKind::Log, budget);
    let mut looked: BTreeMap<String, u32> = BTreeMap::new();
    let sweeps = 10_000_usize.div_ceil(1_500);
    let sweeper = world.sweeper("warm", limits);
    for sweep in 1..=sweeps {
        let swept = now(sweeper.sweep()).unwrap();
        assert_eq!((swept.tunings, swept.failed), (100, 0), "{:?}", swept.last_error);
        let calls = world.calls();
        assert!(
            of(&calls, CallKind::Describe).count() <= 1_500 && of(&calls, CallKind::Log).count() <= 1_500
        );
        assert!(of(&calls, CallKind::List).count() <= 30);
        for call in of(&calls, CallKind::Describe) {
            *looked.entry(call.name.clone()).or_default() += 1;
        }
        let again = looked.values().filter(|times| **times > 1).count();
        assert!(looked.len() == 10_000 || again == 0, "sweep {sweep}: {again} of {} again", looked.len());
        assert_eq!(looked.values().sum::<u32>(), u32::try_from(sweep * 1_500).unwrap());
        assert_eq!(swept.left, 8_500);
        world.pass(MINUTE);
    }
    assert_eq!(looked.len(), 10_000);
    assert_eq!(looked.values().max(), Some(&2));
}

#[test]
fn a_few_silent_jobs_are_checked_in_every_sweep() {
    let world = World::new();
    world.running("one", 3);
    world.running("two", 2);
    world.pass(10 * MINUTE);
    for _ in 0..4 {
        let swept = world.sweep(unpaced());
        assert_eq!((swept.looked, swept.left), (5, 0));
        world.pass(MINUTE);
    }
}

#[test]
fn describes_and_stops_are_paced() {
    let world = World::new();
    let stopping = world.running("stopping", 20);
    world.running("silent", 20);
    world.pass(10 * MINUTE);
    world.stop_tuning(&stopping);
    world.sweep(Limits::CLOUD);
    let calls = world.calls();
    for sort in [CallKind::Describe, CallKind::Stop] {
        let at: Vec<i64> = of(&calls, sort).map(|call| call.at).collect();
        assert!(at.len() >= 20, "{sort:?}");
        assert_eq!(at.windows(2).map(|pair| pair[1] - pair[0]).min(), Some(200), "{sort:?}");
    }
}

#[test]
fn stops_come_before_bills_and_starts_and_bills_before_checks() {
    let world = World::new();
    let silent = world.running("a-silent", 1);
    let starting = world.submit("b-starting", 1);
    let billed = world.running("c-billed", 1);
    let stopping = world.running("d-stopping", 1);
    let job = |id: &str| training_job_name(id, world.live(id)[0]);
    let names = [job(&stopping), job(&billed), job(&starting), job(&silent)];
    world.pass(10 * MINUTE);
    world.lock().jobs.get_mut(&names[1]).unwrap().status = "Completed";
    // It finds that the job has ended, but no decider or actuator reads the bill.
    world.sweep(with(unpaced(), CallKind::Create, 0));
    world.decide(&billed, &[]);
    world.stop_tuning(&stopping);
    world.calls();
    let swept = world.sweep(unpaced());
    let calls = world.calls();
    let first = |name: &String| calls.iter().position(|call| call.name == *name).unwrap();
    let order: Vec<usize> = names.iter().map(first).collect();
    let [stop, bill, start, check] = order[..] else { panic!("{order:?}") };
    assert!(stop < bill.min(start) && bill < check, "{order:?} {calls:?}");
    let settled = swept.settled;
    assert_eq!((settled.stops, settled.bills, settled.starts, swept.looked), (1, 1, 1, 2));
}

/// Two hundred actions of each kind, twenty of each per sweep: ten sweeps, whatever comes first.
#[test]
fn work_that_does_not_fit_is_done_by_later_sweeps() {
    let world = World::new();
    let mut limits = unpaced();
    for sort in [CallKind::Describe, CallKind::Log, CallKind::Create, CallKind::Stop] {
        limits.calls.of(sort).per_sweep = 20;
    }
    for n in 0..4 {
        world.submit(&format!("starting-{n}"), 50);
    }
    for n in 0..4 {
        let id = world.running(&format!("{n}-stopping"), 50);
        world.stop_tuning(&id);
    }
    let mut ended = Vec::new();
    for n in 0..4 {
        let id = world.running(&format!("{n}-ended"), 50);
        for key in world.live(&id) {
            world.lock().jobs.get_mut(&training_job_name(&id, key)).unwrap().status = "Completed";
        }
        ended.push(id);
    }
    let seen = |name: &str| parse_training_job_name(name).unwrap().0;
    world.pass(10 * MINUTE);
    // Sweeps that do nothing else find that these jobs have ended.
    let lookers = with(
        with(with(with(unpaced(), CallKind::Create, 0), CallKind::Stop, 0), CallKind::Describe, 1_000),
        CallKind::Log,
        1_000,
    );
    world.sweep(lookers);
    for id in &ended {
        world.decide(id, &[]);
    }
    world.calls();
    for sweep in 1..=10 {
        let swept = world.sweep(limits);
        let calls = world.calls();
        for sort in [CallKind::Describe, CallKind::Log, CallKind::Create, CallKind::Stop] {
            assert!(of(&calls, sort).count() <= 20, "{sort:?}");
        }
        let settled = swept.settled;
        assert_eq!((settled.starts, settled.stops, settled.bills), (20, 20, 20), "sweep {sweep}");
        assert!(
            of(&calls, CallKind::Describe).all(|call| ended.contains(&seen(&call.name))),
            "bills come first"
        );
        assert!(sweep == 10 || swept.left > 0);
        world.pass(MINUTE);
    }
    let settled = world.sweep(limits).settled;
    assert_eq!((settled.starts, settled.stops, settled.bills), (0, 0, 0));
}

/// Creates more tunings than a page of the table has: each with a job to stop, or with a silent job.
fn many() -> World {
    let world = World::new();
    let id = world.running("s000", 1);
    world.stop_tuning(&id);
    world.copy("s000", (1..130).map(|n| format!("s{n:03}")));
    let silent = World::new();
    silent.running("t000", 1);
    silent.copy("t000", (1..130).map(|n| format!("t{n:03}")));
    world.merge(&silent);
    world.pass(10 * MINUTE);
    world
}

#[test]
fn a_round_over_several_pages_visits_each_tuning_once() {
    let world = many();
    let limits = with(with(unpaced(), CallKind::Stop, 50), CallKind::Describe, 70);
    let mut calls = Vec::new();
    for sweep in 1..=3 {
        let swept = world.sweep(limits);
        assert_eq!(swept.tunings, 260);
        assert_eq!(swept.settled.stops, if sweep == 3 { 30 } else { 50 }, "sweep {sweep}");
        calls.extend(world.calls());
        world.pass(MINUTE);
    }
    let stopped: BTreeSet<&str> = of(&calls, CallKind::Stop).map(|call| call.name.as_str()).collect();
    assert_eq!(stopped.len(), 130);
    // Jobs to stop are silent too: 210 checks, each of another job.
    let looked: BTreeSet<&str> = of(&calls, CallKind::Describe).map(|call| call.name.as_str()).collect();
    assert_eq!((looked.len(), of(&calls, CallKind::Describe).count()), (210, 210));
}

#[test]
fn an_interrupted_round_is_continued_by_the_next_sweep() {
    let world = many();
    world.lock().table_ms = 50;
    let mut stops = Vec::new();
    for _ in 0..8 {
        let begun = world.lock().now;
        let swept = world.sweep(unpaced());
        assert!(swept.tunings < 260 && world.lock().now < begun + MINUTE + 2 * SECOND);
        stops.push(swept.settled.stops);
        world.pass(MINUTE);
    }
    assert_eq!(stops.iter().sum::<usize>(), 130, "{stops:?}");
}

#[test]
fn an_unreadable_row_does_not_block_other_tunings() {
    let world = World::new();
    let ids: Vec<String> = ["a", "b", "c"].iter().map(|name| world.running(name, 2)).collect();
    for id in &ids {
        world.stop_tuning(id);
    }
    let table = world.lock().table.clone();
    let head = Item::new(stored::head_key(&ids[0])).with("type", "head").with("version", 1);
    now(table.write(Write::Put(head, Condition::Always))).unwrap();
    // An unreadable job row of a tuning does not block the tuning's other jobs either.
    let job = world.live(&ids[1])[0];
    let action = stored::action_key(&ids[1], &format!("stop-{job}"));
    now(table
        .write(Write::Put(Item::new(action).with("type", "action").with("version", 1), Condition::Always)))
    .unwrap();
    let swept = world.sweep(unpaced());
    assert_eq!((swept.tunings, swept.failed, swept.settled.stops), (3, 2, 3));
    let failures: Vec<&String> = swept.failures.iter().map(|(id, _)| id).collect();
    assert_eq!(failures, [&ids[0], &ids[1]]);
    assert_eq!(swept.last_error.as_ref(), swept.failures.last().map(|(_, error)| error));
}

/// A notice or a grant that could not be performed blocked the stops behind it.
#[test]
fn regression_stops_are_made_although_a_notice_fails() {
    let world = World::new();
    let id = world.running("a", 3);
    // The bill of the first job is far above its maximum cost.
    let job = world.live(&id)[0];
    let fact = Fact::JobDescribed {
        job,
        end: JobEnd::Completed,
        started: Some(Time(BEGIN)),
        ended: Some(Time(BEGIN)),
        billable_seconds: 1_000_000,
        message: None,
        interruptions: 0,
    };
    world.decide(&id, &[Recorded { key: format!("described#{job}"), at: Time(BEGIN), fact }]);
    world.stop_tuning(&id);
    let table = world.lock().table.clone();
    let notice = Item::new(stored::action_key(&id, "notice-overrun")).with("type", "action");
    assert!(now(table.get(&notice.key)).unwrap().is_some(), "the overrun notice is ordered");
    now(table.write(Write::Put(notice, Condition::Always))).unwrap();
    let swept = world.sweep(unpaced());
    assert_eq!((swept.settled.stops, swept.failed), (2, 1), "{:?}", swept.last_error);
}

/// A log of more pages than a sweep may read is left to the next sweep and does not block the other bills for long.
#[test]
fn a_flooded_log_does_not_exceed_the_page_limit() {
    let world = World::new();
    let id = world.running("flooded", 2);
    for key in world.live(&id) {
        let mut inner = world.lock();
        let job = inner.jobs.get_mut(&training_job_name(&id, key)).unwrap();
        (job.status, job.log_pages) = ("Completed", 1_000);
    }
    world.pass(10 * MINUTE);
    let mut bills = 0;
    for _ in 0..20 {
        let swept = world.sweep(Limits::CLOUD);
        bills += swept.settled.bills;
        assert!(swept.calls.log <= 300);
        world.decide(&id, &[]);
        world.calls();
        world.pass(MINUTE);
    }
    assert_eq!(bills, 2);
}

#[test]
fn no_operation_starts_after_the_deadline() {
    let world = World::new();
    world.submit("starting", 100);
    world.running("silent", 100);
    world.pass(10 * MINUTE);
    let begun = world.lock().now;
    let slow = Rate { per_sweep: 100, every_ms: Millis(7 * SECOND) };
    let mut limits = Limits::CLOUD;
    limits.calls.create = slow;
    limits.calls.describe = slow;
    let swept = world.sweep(limits);
    let calls = world.calls();
    assert!(calls.iter().all(|call| call.at < begun + MINUTE));
    assert!(world.lock().now < begun + MINUTE);
    // The starts leave some time for checks of silent jobs.
    assert!(swept.settled.starts > 3 && swept.looked > 0, "{swept:?}");
    assert!(swept.left > 150);
}
