//! Instances that are kept after jobs, as the rows, the books and the explanations show them.

use service::cost::{Tally, page};
use service::explain::explain;
use service::memory::MemoryTable;
use service::ports::table::Table;
use service::ports::training::WarmPool;
use tuning::fact::{Fact, JobEnd, JobKey, JobPhase};
use tuning::money::MicroUsd;
use tuning::pool::Retained;
use tuning::ruling::Ruling;
use tuning::summary::JobSummary;
use wire::cost::{CostTotals, JobCost, Note, SignedUsd};
use wire::explain::Kind;
use wire::stored;

use crate::world::{Service, World, now, request};

const FIRST: JobKey = JobKey { trial: 0, rung: 0, attempt: 1 };
/// A second of both instances.
const CENT: u64 = 10_000;
/// Kept for 600 s, and a minute more at most.
const RESERVED: MicroUsd = MicroUsd(660 * CENT);

/// A tuning of three jobs, one at a time, of which the first runs and shows all its epochs.
fn keeping(runtime_seconds: u32) -> World {
    let mut body = request("t", 3);
    body["HyperParameterTuningJobConfig"]["ResourceLimits"]["MaxParallelTrainingJobs"] = 1.into();
    let job = &mut body["TrainingJobDefinition"];
    job["ResourceConfig"]["KeepAlivePeriodInSeconds"] = 600.into();
    job["StoppingCondition"]["MaxRuntimeInSeconds"] = runtime_seconds.into();
    let mut world = World::of(MemoryTable::new(), &body);
    world.phase(0, JobPhase::Training);
    world.logged(0, &[(9, 0.5)]);
    world
}

/// The first job has ended, with ten seconds billed.
fn kept() -> World {
    let mut world = keeping(600);
    world.billed(0, JobEnd::Completed, 10);
    world
}

fn row(world: &World) -> JobSummary {
    stored::job(&now(world.table.get(&stored::job_key(&world.id, FIRST))).unwrap().unwrap()).unwrap()
}

/// The first job by both books, the service telling `pool` of what is kept after it.
fn books(world: &World, pool: Option<(&str, Option<u64>)>) -> (JobCost, CostTotals) {
    let mut service = Service::default();
    let name = world.name(FIRST);
    service.has(&name, "Completed", Some(10));
    service.jobs.get_mut(&name).unwrap().warm_pool =
        pool.map(|(status, retained_seconds)| WarmPool { status: status.to_owned(), retained_seconds });
    let page = now(page(&world.store, &service, &world.id, None, 100)).unwrap().unwrap();
    let mut tally = Tally::default();
    tally.add(&page);
    (page.training_jobs[0].clone(), tally.totals())
}

fn said(world: &World) -> Vec<String> {
    let explanation = now(explain(&world.store, &world.id, "0")).unwrap().unwrap();
    let kept = explanation.entries.into_iter().filter(|entry| entry.kind == Kind::InstancesKept);
    kept.map(|entry| entry.says).collect()
}

#[test]
fn while_they_are_kept_what_that_may_cost_is_reserved() {
    let world = kept();
    let (job, totals) = books(&world, Some(("Available", None)));
    assert_eq!((job.note, job.differs), (Some(Note::InstancesKept), false));
    assert_eq!((job.booked_usd, job.computed_usd), (Some(MicroUsd(10 * CENT)), Some(MicroUsd(10 * CENT))));
    assert_eq!((job.reserved_usd, job.retained_seconds, job.difference_usd), (Some(RESERVED), None, None));
    assert_eq!(totals.ledger_difference_usd, Some(SignedUsd::default()), "the jobs add up to the ledger");
    // The service knows already, the ledger not yet: nothing differs for that.
    let (job, _) = books(&world, Some(("Reused", Some(30))));
    assert_eq!((job.note, job.differs, job.retained_seconds), (Some(Note::InstancesKept), false, None));
    assert_eq!((row(&world).retained_seconds, row(&world).retained_cost), (None, None));
    assert_eq!(said(&world), Vec::<String>::new());
}

#[test]
fn what_keeping_them_cost_is_booked_with_the_job() {
    let mut world = kept();
    world.fact(Fact::PoolOver { job: FIRST, retained: Retained::Seconds(30) });
    let row = row(&world);
    assert_eq!((row.retained_seconds, row.retained_cost), (Some(30), Some(MicroUsd(30 * CENT))));
    assert_eq!((row.billable_seconds, row.cost), (Some(10), Some(MicroUsd(10 * CENT))));
    assert_eq!(world.state().ledger.spent, MicroUsd(40 * CENT));
    let (job, totals) = books(&world, Some(("Reused", Some(30))));
    assert_eq!((job.note, job.differs, job.difference_usd), (None, false, None));
    assert_eq!((job.booked_usd, job.computed_usd), (Some(MicroUsd(40 * CENT)), Some(MicroUsd(40 * CENT))));
    assert_eq!((job.retained_seconds, job.booked_retained_seconds), (Some(30), Some(30)));
    assert_eq!(job.reserved_usd, None);
    assert_eq!((totals.booked_usd, totals.computed_usd), (MicroUsd(40 * CENT), MicroUsd(40 * CENT)));
    assert_eq!((totals.billable_seconds, totals.retained_seconds), (10, 30));
    assert_eq!(totals.ledger_difference_usd, Some(SignedUsd::default()));
    assert_eq!(said(&world), ["its instances were kept for 30 s after its end ($0.3000)"]);
}

#[test]
fn another_time_than_the_one_that_was_booked_is_a_difference() {
    let mut world = kept();
    world.fact(Fact::PoolOver { job: FIRST, retained: Retained::Seconds(30) });
    let (job, totals) = books(&world, Some(("Reused", Some(45))));
    assert_eq!((job.note, job.differs), (Some(Note::BillChanged), true));
    let difference = SignedUsd { negative: true, amount: MicroUsd(15 * CENT) };
    assert_eq!((job.difference_usd, totals.difference_usd), (Some(difference), difference));
    assert_eq!((job.retained_seconds, job.booked_retained_seconds), (Some(45), Some(30)));
    assert_eq!(totals.differing_jobs, 1);
}

#[test]
fn what_nobody_could_tell_is_booked_in_full_and_set_against_what_is_told_now() {
    let mut world = kept();
    world.fact(Fact::PoolOver { job: FIRST, retained: Retained::Unknown });
    let row = row(&world);
    assert_eq!((row.retained_seconds, row.retained_cost), (None, Some(RESERVED)));
    let (job, _) = books(&world, Some(("Terminated", Some(600))));
    assert_eq!((job.note, job.differs), (Some(Note::KeptSettledInFull), true));
    let beyond = SignedUsd { negative: false, amount: MicroUsd(60 * CENT) };
    assert_eq!(job.difference_usd, Some(beyond));
    assert_eq!(job.says.as_deref(), Some("how long its instances were kept is not known: booked in full"));
    let (job, _) = books(&world, Some(("Terminated", Some(660))));
    assert_eq!((job.note, job.differs), (Some(Note::KeptSettledInFull), false), "by chance all of it");
    let unknown = "nobody could tell how long its instances were kept: all that was reserved for it counts as spent \
                   ($6.6000)";
    assert_eq!(said(&world), [unknown]);
}

#[test]
fn a_bill_that_comes_after_all_that_time_closes_both_in_one_step() {
    // Long enough that nobody misses it meanwhile.
    let mut world = keeping(86_400);
    let ended = world.now;
    world.now += 660_000 + 3_600_000;
    world.fact(Fact::TimePassed);
    let started = world.state().job(FIRST).unwrap().started;
    world.fact(Fact::JobDescribed {
        job: FIRST,
        end: JobEnd::Completed,
        started,
        ended: Some(ended),
        billable_seconds: 10,
        message: None,
        interruptions: 0,
    });
    let steps = now(world.store.all(&stored::tuning_partition(&world.id), "STEP#")).unwrap();
    let steps = steps.iter().map(|row| stored::step(row).unwrap().rulings);
    let closes = |ruling: &Ruling| matches!(ruling, Ruling::PoolClosed { seconds: None, .. });
    let finishes = |ruling: &Ruling| matches!(ruling, Ruling::TrialFinished { trial: 0, .. });
    let both = steps.filter(|rulings| rulings.iter().any(closes) && rulings.iter().any(finishes)).count();
    assert_eq!(both, 1);
    let row = row(&world);
    assert_eq!((row.billable_seconds, row.cost), (Some(10), Some(MicroUsd(10 * CENT))));
    assert_eq!((row.retained_seconds, row.retained_cost), (None, Some(RESERVED)));
    let (_, totals) = books(&world, Some(("Terminated", Some(600))));
    assert_eq!(totals.ledger_difference_usd, Some(SignedUsd::default()));
}

#[test]
fn letting_them_go_is_explained() {
    let mut world = kept();
    world.fact(Fact::StopRequested);
    let released = "its instances were kept: no training job will take them, or one lacks the money for it, so they are let go";
    assert_eq!(said(&world), [released]);
    world.fact(Fact::PoolOver { job: FIRST, retained: Retained::Seconds(4) });
    assert_eq!(said(&world), [released, "its instances were kept for 4 s after its end ($0.0400)"]);
    let other = now(explain(&world.store, &world.id, "1")).unwrap().unwrap();
    assert!(other.entries.iter().all(|entry| entry.kind != Kind::InstancesKept), "not its own");
}
