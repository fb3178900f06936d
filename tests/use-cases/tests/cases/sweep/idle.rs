//! P8: without an active tuning the sweeper makes one query a minute, and one listing with a query an hour, nothing
//! else.

use use_cases::ports::usage::Usage;
use use_cases::sweep::CallKind;

use super::world::{MINUTE, World, now, unpaced};

#[test]
fn p8_an_idle_stack_makes_one_query_a_minute_and_one_listing_with_a_query_an_hour() {
    for cold in [true, false] {
        let world = World::new();
        let warm = world.sweeper("warm", unpaced());
        for minute in 0..24 * 60 {
            // The scheduler is a little early or late.
            let late = [0, 900, 100, 2_500][minute % 4];
            world.pass(late);
            let swept = if cold { world.sweep(unpaced()) } else { now(warm.sweep()).unwrap() };
            assert!(!swept.busy);
            world.pass(MINUTE - late);
        }
        let calls = world.calls();
        assert!(calls.iter().all(|call| call.sort == CallKind::List));
        assert_eq!(calls.len(), 24, "cold: {cold}");
        let Usage { reads, writes, transactions, queries, .. } = world.lock().table.usage();
        // Each listing takes and releases the lease, and is followed by a query for deleted tunings.
        assert_eq!((queries, writes, reads, transactions), (24 * 60 + 24, 48, 0, 0), "cold: {cold}");
    }
}

#[test]
fn p8_foreign_jobs_do_not_cause_more_listings() {
    let world = World::new();
    for hour in 0..5 {
        for n in 0..50 {
            world.create_job(&format!("theirs-abc12{hour}-{n}-0-1"), "theirs");
            world.create_job(&format!("something-else-{hour}-{n}"), "none");
        }
        for _ in 0..60 {
            world.sweep(unpaced());
            world.pass(MINUTE);
        }
    }
    let calls = world.calls();
    let of = |sort: CallKind| calls.iter().filter(|call| call.sort == sort).count();
    // A page has a hundred jobs.
    assert_eq!(of(CallKind::List), 1 + 2 + 3 + 4 + 5);
    // One job per tuning is checked.
    assert_eq!((of(CallKind::Tags), of(CallKind::Stop)), (1 + 2 + 3 + 4 + 5, 0));
}

#[test]
fn a_tuning_that_has_ended_leaves_the_stack_idle() {
    let world = World::new();
    let id = world.running("one", 1);
    world.stop_tuning(&id);
    for _ in 0..10 {
        world.pass(MINUTE);
        world.sweep(unpaced());
        world.decide(&id, &[]);
    }
    assert_eq!(world.lock().notices, 1);
    let before = world.lock().table.usage();
    world.pass(MINUTE);
    world.sweep(unpaced());
    let after = world.lock().table.usage();
    assert_eq!(after, Usage { queries: before.queries + 1, read_units: after.read_units, ..before });
}
