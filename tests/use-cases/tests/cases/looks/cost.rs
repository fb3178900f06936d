//! The ledger compared with the bills of the training service.

use tuning::log::fact::{Fact, JobEnd, JobPhase};
use tuning::unit::money::MicroUsd;
use tuning::unit::time::Time;
use use_cases::cost::{CostError, Tally, booked, page};
use use_cases::ports::table::{Condition, Table, Write};
use wire::cost::{CostPage, CostTotals, JobCost, Note, SignedUsd};
use wire::stored;

use super::world::{Service, World, now};

const HOUR: i64 = 3_600_000;

/// Returns all pages of at most `limit` rows, and their sums.
fn pages(world: &World, service: &Service, limit: usize) -> (Vec<CostPage>, CostTotals) {
    let (mut all, mut tally, mut after) = (Vec::new(), Tally::default(), None::<String>);
    loop {
        let page = now(page(&world.store, service, &world.id, after.take(), limit)).unwrap().unwrap();
        let json = serde_json::to_value(&page).unwrap();
        assert_eq!(serde_json::from_value::<CostPage>(json).unwrap(), page);
        tally.add(&page);
        after.clone_from(&page.next_token);
        all.push(page);
        if after.is_none() {
            return (all, tally.totals());
        }
    }
}

fn jobs(pages: &[CostPage]) -> Vec<&JobCost> {
    pages.iter().flat_map(|page| &page.training_jobs).collect()
}

/// Creates a tuning of five jobs: billed, settled in full, cancelled, running, ordered.
fn five() -> (World, Service) {
    let mut world = World::new(5);
    let mut service = Service::default();
    let names: Vec<String> = (0..5).map(|trial| world.name(world.job(trial))).collect();
    let never = world.job(2);
    for trial in [0, 1, 3] {
        world.phase(trial, JobPhase::Training);
        world.logged(trial, &[(9, 0.5)]);
    }
    world.fact(Fact::JobNeverStarted { job: never });
    world.billed(0, JobEnd::Completed, 10);
    let fact = Fact::JobStateChanged {
        job: world.job(1),
        phase: JobPhase::Ended(JobEnd::Stopped),
        started: None,
        ended: None,
        message: None,
    };
    world.fact(fact);
    world.fact(Fact::TimePassed);
    world.now += HOUR;
    world.fact(Fact::TimePassed);
    service.has(&names[0], "Completed", Some(10));
    service.has(&names[1], "Stopped", Some(7));
    service.has(&names[3], "InProgress", None);
    (world, service)
}

#[test]
fn each_job_is_compared_with_its_present_bill() {
    let (world, service) = five();
    let (pages, totals) = pages(&world, &service, 100);
    let jobs = jobs(&pages);
    let notes: Vec<Option<Note>> = jobs.iter().map(|job| job.note).collect();
    let expected =
        [None, Some(Note::SettledInFull), Some(Note::NeverStarted), Some(Note::Running), Some(Note::Ordered)];
    assert_eq!(notes[..5], expected);
    let differing: Vec<u32> = jobs.iter().filter(|job| job.differs).map(|job| job.trial).collect();
    assert_eq!(differing, [1]);

    let billed = jobs[0];
    assert_eq!((billed.booked_usd, billed.computed_usd), (Some(MicroUsd(100_000)), Some(MicroUsd(100_000))));
    assert_eq!((billed.instance_count, billed.instance_type.as_str()), (2, "ml.m5.large"));
    assert_eq!(billed.price_usd_per_hour, Some(MicroUsd(18_000_000)));
    assert_eq!((billed.reserved_usd, billed.difference_usd), (None, None));

    // 900 s are booked, 7 s are billed.
    let settled = jobs[1];
    assert_eq!((settled.booked_usd, settled.booked_seconds), (Some(MicroUsd(9_000_000)), None));
    let difference = SignedUsd { negative: false, amount: MicroUsd(8_930_000) };
    assert_eq!(settled.difference_usd, Some(difference));
    assert_eq!(settled.says.as_deref(), Some("settled in full: the bill never arrived"));

    let running = jobs[3];
    assert_eq!((running.booked_usd, running.reserved_usd), (None, Some(MicroUsd(9_000_000))));
    assert_eq!((jobs[2].booked_usd, jobs[2].reserved_usd), (None, None));

    assert_eq!((totals.differing_jobs, totals.difference_usd), (1, difference));
    assert_eq!((totals.booked_usd, totals.computed_usd), (MicroUsd(9_100_000), MicroUsd(170_000)));
    assert_eq!(totals.ledger_difference_usd, Some(SignedUsd::default()), "the jobs add up to the ledger");
    assert_eq!(totals.spot_savings_percent, None, "nothing ran on spot instances");
    assert_eq!(pages[0].ledger.spent_usd, totals.booked_usd);
    assert_eq!(pages[0].ledger.reserved_usd, totals.reserved_usd);
}

#[test]
fn a_deleted_job_and_a_changed_bill_are_differences() {
    let (world, mut service) = five();
    let first = world.name(tuning::log::fact::JobKey::new(0, 0, 1));
    service.has(&first, "Completed", Some(12));
    let (all, totals) = pages(&world, &service, 100);
    let changed = jobs(&all)[0];
    assert_eq!((changed.note, changed.differs), (Some(Note::BillChanged), true));
    assert_eq!(changed.difference_usd, Some(SignedUsd { negative: true, amount: MicroUsd(20_000) }));
    assert_eq!((changed.billable_seconds, changed.booked_seconds), (Some(12), Some(10)));
    assert_eq!(totals.differing_jobs, 2);
    assert_eq!(totals.difference_usd, SignedUsd { negative: false, amount: MicroUsd(8_910_000) });

    service.jobs.remove(&first);
    let (all, totals) = pages(&world, &service, 100);
    let deleted = jobs(&all)[0];
    assert_eq!((deleted.note, deleted.differs), (Some(Note::UnknownToService), true));
    assert_eq!((deleted.difference_usd, deleted.training_job_status.as_deref()), (None, None));
    assert_eq!(deleted.says.as_deref(), Some("unknown to the service: the training job was deleted there"));
    // A cost without a counterpart is counted as differing, but not summed.
    assert_eq!(totals.differing_jobs, 2);
    assert_eq!(totals.difference_usd, SignedUsd { negative: false, amount: MicroUsd(8_930_000) });
}

#[test]
fn a_bill_for_a_job_booked_as_never_started_is_a_difference() {
    let (world, mut service) = five();
    let never = world.name(tuning::log::fact::JobKey::new(2, 0, 1));
    service.has(&never, "Stopped", Some(4));
    let (all, totals) = pages(&world, &service, 100);
    let job = jobs(&all)[2];
    assert_eq!((job.note, job.differs), (Some(Note::BilledThoughNeverStarted), true));
    assert_eq!(job.difference_usd, Some(SignedUsd { negative: true, amount: MicroUsd(40_000) }));
    assert_eq!(totals.differing_jobs, 2);
}

#[test]
fn a_job_booked_as_never_started_and_billed_for_no_second_is_no_difference() {
    let (world, mut service) = five();
    let never = world.name(tuning::log::fact::JobKey::new(2, 0, 1));
    service.has(&never, "Stopped", Some(0));
    let (all, totals) = pages(&world, &service, 100);
    let job = jobs(&all)[2];
    assert_eq!((job.note, job.differs, job.difference_usd), (Some(Note::NeverStarted), false, None));
    assert_eq!(totals.differing_jobs, 1, "the job that is settled in full");
}

#[test]
fn a_running_job_that_was_deleted_at_the_service_is_a_difference() {
    let (world, mut service) = five();
    service.jobs.remove(&world.name(world.job(3)));
    let (all, totals) = pages(&world, &service, 100);
    let job = jobs(&all)[3];
    assert_eq!((job.note, job.differs), (Some(Note::UnknownToService), true));
    assert_eq!((job.reserved_usd, job.computed_usd), (Some(MicroUsd(9_000_000)), None));
    assert_eq!(totals.differing_jobs, 2);
}

/// The service may describe the end of a job before it has its bill. A cost of 0 would look like a free job.
#[test]
fn an_ended_job_whose_bill_the_service_lacks_has_no_computed_cost() {
    let (world, mut service) = five();
    service.has(&world.name(world.job(3)), "Completed", None);
    let (all, _) = pages(&world, &service, 100);
    let job = jobs(&all)[3];
    assert_eq!((job.note, job.differs), (Some(Note::BillAwaited), false));
    assert_eq!((job.billable_seconds, job.computed_usd, job.difference_usd), (None, None, None));
}

#[test]
fn the_booked_costs_alone_differ_from_no_bill() {
    let (world, service) = five();
    let page = now(booked(&world.store, &world.id, None, 100)).unwrap().unwrap();
    let costs = &page.training_jobs;
    let notes: Vec<Option<Note>> = costs.iter().map(|job| job.note).collect();
    let expected =
        [None, Some(Note::SettledInFull), Some(Note::NeverStarted), Some(Note::Running), Some(Note::Ordered)];
    assert_eq!(notes[..5], expected);
    let (compared, _) = pages(&world, &service, 100);
    for (alone, compared) in costs.iter().zip(jobs(&compared)) {
        assert!(!alone.differs, "{alone:?}");
        assert_eq!((alone.booked_usd, alone.reserved_usd), (compared.booked_usd, compared.reserved_usd));
        assert_eq!((alone.billable_seconds, alone.computed_usd), (None, None));
    }
}

#[test]
fn an_unbooked_bill_is_not_a_difference() {
    let (world, mut service) = five();
    service.has(&world.name(world.job(3)), "Completed", Some(3));
    let (all, totals) = pages(&world, &service, 100);
    let job = jobs(&all)[3];
    assert_eq!((job.note, job.differs, job.difference_usd), (Some(Note::BillAwaited), false, None));
    assert_eq!((job.computed_usd, job.reserved_usd), (Some(MicroUsd(30_000)), Some(MicroUsd(9_000_000))));
    assert_eq!(totals.ledger_difference_usd, Some(SignedUsd::default()));
}

#[test]
fn pages_of_any_size_contain_every_job_once_in_order() {
    let (world, service) = five();
    let (whole, sums) = pages(&world, &service, 100);
    assert_eq!(whole.len(), 1);
    for limit in 1..5 {
        service.asked.lock().unwrap().clear();
        let (all, same) = pages(&world, &service, limit);
        assert_eq!((jobs(&all), same), (jobs(&whole), sums), "pages of {limit}");
        let most = limit + world.state().jobs().count();
        assert!(all.iter().all(|page| page.training_jobs.len() <= most), "the rows and the running jobs");
        let asked = service.asked.lock().unwrap();
        let names: Vec<&String> = jobs(&whole).iter().map(|job| &job.training_job_name).collect();
        assert_eq!(asked.iter().collect::<Vec<_>>(), names, "each is described once");
    }
}

#[test]
fn a_step_between_two_pages_suppresses_the_ledger_difference() {
    let (mut world, service) = five();
    let first = now(page(&world.store, &service, &world.id, None, 1)).unwrap().unwrap();
    world.billed(3, JobEnd::Completed, 3);
    let mut tally = Tally::default();
    tally.add(&first);
    let rest = now(page(&world.store, &service, &world.id, first.next_token.clone(), 9)).unwrap().unwrap();
    tally.add(&rest);
    assert_eq!(tally.totals().training_jobs, u64::try_from(jobs(&[first, rest]).len()).unwrap());
    assert_eq!(tally.totals().ledger_difference_usd, None);
}

#[test]
fn spot_savings_are_computed_from_billed_jobs() {
    let mut request = super::world::request("t", 2);
    request["TrainingJobDefinition"]["EnableManagedSpotTraining"] = true.into();
    request["TrainingJobDefinition"]["StoppingCondition"]["MaxWaitTimeInSeconds"] = 1_200.into();
    request["TrainingJobDefinition"]["CheckpointConfig"] =
        serde_json::json!({"S3Uri": "s3://example-bucket/c"});
    let mut world = World::of(port_tests::memory::MemoryTable::new(), &request);
    let mut service = Service::default();
    let name = world.name(world.job(0));
    world.phase(0, JobPhase::Training);
    world.logged(0, &[(9, 0.5)]);
    world.billed(0, JobEnd::Completed, 268);
    service.has(&name, "Completed", Some(268));
    service.jobs.get_mut(&name).unwrap().ended = Some(Time(super::world::BEGIN + 840_000));
    let (all, totals) = pages(&world, &service, 100);
    let job = jobs(&all)[0];
    assert_eq!((job.training_seconds, job.billable_seconds, job.differs), (Some(840), Some(268), false));
    assert_eq!(totals.spot_savings_percent, Some(68));
}

#[test]
fn a_failed_page_returns_the_reason() {
    let (world, mut service) = five();
    let bad = now(page(&world.store, &service, &world.id, Some("HEAD".to_owned()), 9)).unwrap_err();
    assert_eq!(bad, CostError::Token("HEAD".to_owned()));
    service.throttles = true;
    let error = now(page(&world.store, &service, &world.id, None, 9)).unwrap_err();
    assert!(matches!(error, CostError::Training { .. }), "{error:?}");
    assert_eq!(now(page(&world.store, &service, "gone-abc123", None, 9)), Ok(None));
}

#[test]
fn ten_thousand_jobs_are_compared_page_by_page() {
    let (world, mut service) = five();
    let (whole, _) = pages(&world, &service, 100);
    let key = stored::job_key(&world.id, tuning::log::fact::JobKey::new(0, 0, 1));
    let billed = stored::job(&now(world.table.get(&key)).unwrap().unwrap()).unwrap();
    for trial in 100..10_100 {
        let mut summary = billed.clone();
        summary.job.trial = tuning::unit::ids::TrialId(trial);
        service.has(&world.name(summary.job), "Completed", Some(10));
        let row = stored::job_row(&world.id, &summary);
        now(world.table.write(Write::Put(row, Condition::NotExists))).unwrap();
    }
    let (all, totals) = pages(&world, &service, 200);
    let most = 200 + world.state().jobs().count();
    assert!(all.len() >= 50 && all.iter().all(|page| page.training_jobs.len() <= most));
    assert_eq!(jobs(&all).len(), jobs(&whole).len() + 10_000);
    // They are not in the ledger, at ten cents each.
    let beyond = SignedUsd { negative: true, amount: MicroUsd(1_000_000_000) };
    assert_eq!(totals.ledger_difference_usd, Some(beyond));
}

#[test]
fn grants_are_listed_by_month() {
    let request = super::world::request("t", 1);
    let cap = Some(MicroUsd(100_000_000));
    let mut world = World::under(cap, port_tests::memory::MemoryTable::new(), &request);
    let amount = MicroUsd(9_000_000);
    world.fact(Fact::BudgetGranted { n: 1, month: "2026-09".to_owned(), amount, reached: None });
    let (all, totals) = pages(&world, &Service::default(), 100);
    let ledger = &all[0].ledger;
    assert_eq!(ledger.granted_usd, Some(amount));
    let months: Vec<_> =
        ledger.granted_usd_by_month.iter().map(|(month, amount)| (month.as_str(), amount.0)).collect();
    assert_eq!(months, [("2026-09", amount)]);
    assert_eq!(totals.reserved_usd, amount, "which pays its job");
    assert_eq!(pages(&five().0, &Service::default(), 100).0[0].ledger.granted_usd, None);
}
