//! Kept instances in the rows, the cost report and the explanations.

use port_tests::memory::MemoryTable;
use tuning::log::fact::{Fact, JobEnd, JobKey, JobPhase};
use tuning::log::pool::Retained;
use tuning::log::ruling::{AttemptRuling, Booking, Ruling};
use tuning::trial::summary::JobSummary;
use tuning::unit::ids::TrialId;
use tuning::unit::money::MicroUsd;
use tuning::unit::time::Time;
use use_cases::cost::{Tally, booked, page};
use use_cases::explain::explain;
use use_cases::ports::table::Table;
use use_cases::ports::training::WarmPool;
use wire::cost::{CostTotals, JobCost, Note, SignedUsd};
use wire::explain::Kind;
use wire::stored;

use super::world::{Service, World, now, request};

const FIRST: JobKey = JobKey::new(0, 0, 1);
/// Cost of a second of both instances, in micro-dollars.
const CENT: u64 = 10_000;
/// Instances are kept for 600 s, and for at most a minute longer.
const RESERVED: MicroUsd = MicroUsd(660 * CENT);

/// Creates a tuning of three jobs, one at a time. The first one runs and has reported all its epochs.
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

/// Like [`keeping`], but the first job has ended with ten billed seconds.
fn kept() -> World {
    let mut world = keeping(600);
    world.billed(0, JobEnd::Completed, 10);
    world
}

fn row(world: &World) -> JobSummary {
    stored::job(&now(world.table.get(&stored::job_key(&world.id, FIRST))).unwrap().unwrap()).unwrap()
}

/// Returns the first job's costs while the service describes its warm pool as `pool`.
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

/// Returns the note of the first job where no bill is read.
fn note_without_bill(world: &World) -> Option<Note> {
    now(booked(&world.store, &world.id, None, 100)).unwrap().unwrap().training_jobs[0].note
}

fn said(world: &World) -> Vec<String> {
    let explanation = now(explain(&world.store, &world.id, "0")).unwrap().unwrap();
    let kept = explanation.entries.into_iter().filter(|entry| entry.kind == Kind::InstancesKept);
    kept.map(|entry| entry.says).collect()
}

#[test]
fn the_cost_of_kept_instances_is_reserved() {
    let world = kept();
    let (job, totals) = books(&world, Some(("Available", None)));
    assert_eq!((job.note, job.differs), (Some(Note::InstancesKept), false));
    assert_eq!((job.booked_usd, job.computed_usd), (Some(MicroUsd(10 * CENT)), Some(MicroUsd(10 * CENT))));
    assert_eq!((job.reserved_usd, job.retained_seconds, job.difference_usd), (Some(RESERVED), None, None));
    assert_eq!(totals.ledger_difference_usd, Some(SignedUsd::default()), "the jobs add up to the ledger");
    // The service already has the final time, the ledger does not. This is not a difference.
    let (job, _) = books(&world, Some(("Reused", Some(30))));
    assert_eq!((job.note, job.differs, job.retained_seconds), (Some(Note::InstancesKept), false, None));
    assert_eq!((row(&world).retained_seconds, row(&world).retained_cost), (None, None));
    assert_eq!(note_without_bill(&world), Some(Note::InstancesKept));
    assert_eq!(said(&world), Vec::<String>::new());
}

#[test]
fn the_cost_of_kept_instances_is_booked_with_the_job() {
    let mut world = kept();
    world.fact(Fact::PoolOver { job: FIRST, retained: Retained::Seconds(30) });
    let row = row(&world);
    assert_eq!((row.retained_seconds, row.retained_cost), (Some(30), Some(MicroUsd(30 * CENT))));
    assert_eq!((row.billable_seconds, row.cost), (Some(10), Some(MicroUsd(10 * CENT))));
    assert_eq!(world.state().money.ledger.spent, MicroUsd(40 * CENT));
    let (job, totals) = books(&world, Some(("Reused", Some(30))));
    assert_eq!((job.note, job.differs, job.difference_usd), (None, false, None));
    assert_eq!(note_without_bill(&world), None);
    assert_eq!((job.booked_usd, job.computed_usd), (Some(MicroUsd(40 * CENT)), Some(MicroUsd(40 * CENT))));
    assert_eq!((job.retained_seconds, job.booked_retained_seconds), (Some(30), Some(30)));
    assert_eq!(job.reserved_usd, None);
    assert_eq!((totals.booked_usd, totals.computed_usd), (MicroUsd(40 * CENT), MicroUsd(40 * CENT)));
    assert_eq!((totals.billable_seconds, totals.retained_seconds), (10, 30));
    assert_eq!(totals.ledger_difference_usd, Some(SignedUsd::default()));
    assert_eq!(said(&world), ["its instances were kept for 30 s after it ended ($0.3000)"]);
}

#[test]
fn a_changed_retention_time_is_a_difference() {
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
fn an_unknown_retention_time_is_booked_in_full() {
    let mut world = kept();
    world.fact(Fact::PoolOver { job: FIRST, retained: Retained::Unknown });
    let row = row(&world);
    assert_eq!((row.retained_seconds, row.retained_cost), (None, Some(RESERVED)));
    let (job, _) = books(&world, Some(("Terminated", Some(600))));
    assert_eq!((job.note, job.differs), (Some(Note::KeptSettledInFull), true));
    assert_eq!(note_without_bill(&world), Some(Note::KeptSettledInFull));
    let beyond = SignedUsd { negative: false, amount: MicroUsd(60 * CENT) };
    assert_eq!(job.difference_usd, Some(beyond));
    assert_eq!(
        job.says.as_deref(),
        Some("the time for which the instances were kept is unknown: booked in full")
    );
    let (job, _) = books(&world, Some(("Terminated", Some(660))));
    assert_eq!((job.note, job.differs), (Some(Note::KeptSettledInFull), false), "the same by chance");
    let unknown = "the time for which its instances were kept is unknown: the full reservation for it counts as spent \
                   ($6.6000)";
    assert_eq!(said(&world), [unknown]);
}

#[test]
fn a_late_bill_closes_the_job_and_its_pool_in_one_step() {
    // Long enough, but before the decider gives up on the bill.
    let mut world = keeping(86_400);
    let ended = world.now;
    world.now += 660_000 + 3_600_000;
    world.fact(Fact::TimePassed);
    let started = world.state().job(FIRST).unwrap().started();
    let described = world.recorded(Fact::JobDescribed {
        job: FIRST,
        end: JobEnd::Completed,
        started,
        ended: Some(Time(ended)),
        billable_seconds: 10,
        message: None,
        interruptions: 0,
    });
    let read = world.recorded(Fact::RestRead { job: FIRST });
    world.hears(&[described, read]);
    let steps = now(world.store.all(&stored::tuning_partition(&world.id), "STEP#")).unwrap();
    let steps = steps.iter().map(|row| stored::step(row).unwrap().rulings);
    let closes =
        |ruling: &Ruling| matches!(ruling, Ruling::Booking(Booking::PoolClosed { seconds: None, .. }));
    let finishes = |ruling: &Ruling| {
        matches!(ruling, Ruling::Attempt(AttemptRuling::TrialFinished { trial: TrialId(0), .. }))
    };
    let both = steps.filter(|rulings| rulings.iter().any(closes) && rulings.iter().any(finishes)).count();
    assert_eq!(both, 1);
    let row = row(&world);
    assert_eq!((row.billable_seconds, row.cost), (Some(10), Some(MicroUsd(10 * CENT))));
    assert_eq!((row.retained_seconds, row.retained_cost), (None, Some(RESERVED)));
    let (_, totals) = books(&world, Some(("Terminated", Some(600))));
    assert_eq!(totals.ledger_difference_usd, Some(SignedUsd::default()));
}

#[test]
fn a_release_is_explained() {
    let mut world = kept();
    world.fact(Fact::StopRequested);
    let released = "release ordered for its kept instances: no training job can use them, or the money for \
                    one is missing";
    assert_eq!(said(&world), [released]);
    world.fact(Fact::PoolOver { job: FIRST, retained: Retained::Seconds(4) });
    assert_eq!(said(&world), [released, "its instances were kept for 4 s after it ended ($0.0400)"]);
    let other = now(explain(&world.store, &world.id, "1")).unwrap().unwrap();
    assert!(
        other.entries.iter().all(|entry| entry.kind != Kind::InstancesKept),
        "the release belongs to another trial"
    );
}
