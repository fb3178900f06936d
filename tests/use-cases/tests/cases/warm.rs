//! Reads of a decider that has the tuning's state in its cache, and of an actuator that gets rows from the stream.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use port_tests::memory::MemoryTable;
use serde_json::json;
use tuning::log::fact::{Fact, JobEnd, JobKey, JobPhase, Recorded};
use tuning::log::reasons::StopWhy;
use tuning::log::ruling::{Judged, Order, ReadOrder, Verdict};
use tuning::step::Step;
use tuning::unit::epochs::Epochs;
use tuning::unit::ids::{BracketId, RungId, TrialId};
use tuning::unit::time::Time;
use use_cases::decide::{Decider, SNAPSHOT_EVERY};
use use_cases::perform::{ActionBatch, Effect, Performed};
use use_cases::ports::table::{Condition, Page, Query, Table, TableError, Write};
use use_cases::ports::training::Description;
use use_cases::store::{Store, StoreError};
use wire::events::stream::{RecordKind, encode_payload, encode_record};
use wire::item::{Item, Key};
use wire::sample;
use wire::stored::{self, ACTION_PREFIX};

use crate::looks::world::{BEGIN, World, now, request};
use crate::support::{
    Script, Service, TestBus, TestClock, action_row, actuator, description, order, start_of,
    table_with_tuning,
};

/// The in-memory table, which counts reads: all, of heads, of actions, and queries.
struct Counting {
    table: MemoryTable,
    gets: AtomicUsize,
    heads: AtomicUsize,
    actions: AtomicUsize,
    queries: AtomicUsize,
    /// Number of transactions that another decider wins. Each fails.
    lost: AtomicUsize,
    transactions: AtomicUsize,
}

impl Table for Counting {
    async fn get(&self, key: &Key) -> Result<Option<Item>, TableError> {
        self.gets.fetch_add(1, Ordering::Relaxed);
        self.heads.fetch_add(usize::from(key.sk == stored::HEAD), Ordering::Relaxed);
        self.actions.fetch_add(usize::from(key.pk.starts_with(ACTION_PREFIX)), Ordering::Relaxed);
        self.table.get(key).await
    }
    async fn write(&self, write: Write) -> Result<(), TableError> {
        self.table.write(write).await
    }
    async fn transact(&self, writes: Vec<Write>, token: &str) -> Result<(), TableError> {
        let tried = self.transactions.fetch_add(1, Ordering::Relaxed);
        assert!(tried < 100, "a decider must not try for ever");
        if tried < self.lost.load(Ordering::Relaxed) {
            return Err(TableError::Conflict(vec![0]));
        }
        self.table.transact(writes, token).await
    }
    async fn query(&self, query: &Query) -> Result<Page, TableError> {
        self.queries.fetch_add(1, Ordering::Relaxed);
        self.table.query(query).await
    }
}

impl Counting {
    fn of(table: &MemoryTable) -> Arc<Self> {
        let [gets, heads, actions, queries, lost, transactions] = [0; 6].map(AtomicUsize::new);
        Arc::new(Self { table: table.clone(), gets, heads, actions, queries, lost, transactions })
    }
}

/// A decider of its own beside the one of `world`.
struct Warm {
    table: Arc<Counting>,
    decider: Decider<Counting>,
    id: String,
}

impl Warm {
    /// Creates a decider that has read the present state.
    fn of(world: &World) -> Self {
        let table = Counting::of(&world.table);
        let warm = Self {
            decider: Decider { store: Arc::new(Store::new(Arc::clone(&table))) },
            table,
            id: world.id.clone(),
        };
        warm.reads(&[]);
        warm
    }

    /// Delivers facts through the stream. Returns the number of written steps, of reads of heads and of queries.
    fn reads(&self, facts: &[Recorded]) -> (usize, usize, usize) {
        self.table.heads.store(0, Ordering::Relaxed);
        self.table.queries.store(0, Ordering::Relaxed);
        let steps = now(self.decider.decide(&self.id, facts, false)).unwrap().len();
        (steps, self.table.heads.load(Ordering::Relaxed), self.table.queries.load(Ordering::Relaxed))
    }
}

fn bill(world: &mut World, job: JobKey) -> Recorded {
    let started = world.state().job(job).and_then(tuning::job::Job::started);
    let ended = Some(Time(world.now));
    world.recorded(Fact::JobDescribed {
        job,
        end: JobEnd::Completed,
        started,
        ended,
        billable_seconds: 60,
        message: None,
        interruptions: 0,
    })
}

#[test]
fn a_warm_decider_reads_the_head_only_for_facts_without_an_effect() {
    let mut world = World::new(2);
    world.phase(0, JobPhase::Training);
    let warm = Warm::of(&world);
    let job = world.job(0);
    let line = world.lines_of(job, &[(1, 0.5)]);
    let line = world.recorded(line);
    assert_eq!(warm.reads(std::slice::from_ref(&line)), (1, 0, 0), "a line is written without a read");
    assert_eq!(warm.reads(&[line]), (0, 1, 0), "a line without an effect is dropped after one read");
    let bill = bill(&mut world, job);
    // The query is of the job's stored facts.
    assert_eq!(warm.reads(&[bill]), (1, 0, 1), "a bill is written without a read of the head");
}

/// A stale state ignores a line of a job that it does not know. The line would be lost until the next ring.
#[test]
fn a_line_is_not_dropped_by_a_state_that_another_decider_has_changed() {
    let changes =
        json!({"HyperParameterTuningJobConfig": {"ResourceLimits": {"MaxParallelTrainingJobs": 1}}});
    let mut world = World::of(MemoryTable::new(), &sample::with(request("t", 2), changes));
    world.phase(0, JobPhase::Training);
    let warm = Warm::of(&world);
    world.logged(0, &[(9, 0.5)]);
    // Another decider orders the next job.
    world.billed(0, JobEnd::Completed, 60);
    let second = world.job(1);
    let line = world.lines_of(second, &[(1, 0.5)]);
    let line = world.recorded(line);
    let (steps, heads, _) = warm.reads(&[line]);
    assert_eq!(steps, 1, "the line is folded");
    assert!(heads > 0, "the state was read again");
    assert_eq!(world.state().trials[&second.trial].curve.len(), 1);
}

/// Another decider has written a step: the write fails, and the facts are folded into the new state.
#[test]
fn a_lost_race_folds_the_facts_again() {
    let mut world = World::new(2);
    world.phase(0, JobPhase::Training);
    let warm = Warm::of(&world);
    world.logged(0, &[(1, 0.5)]);
    let line = world.lines_of(world.job(0), &[(2, 0.6)]);
    let line = world.recorded(line);
    assert_eq!(warm.reads(&[line]).0, 1);
    assert_eq!(world.state().trials[&world.job(0).trial].curve.len(), 2);
}

/// Then the batch returns to the stream, so that a busy tuning does not block the others.
#[test]
fn a_decider_gives_up_after_eight_lost_races() {
    for (lost, steps) in [(7, Ok(1)), (8, Err(StoreError::from(TableError::Conflict(vec![0]))))] {
        let mut world = World::new(2);
        world.phase(0, JobPhase::Training);
        let line = world.lines_of(world.job(0), &[(1, 0.5)]);
        let line = world.recorded(line);
        let table = Counting::of(&world.table);
        table.lost.store(lost, Ordering::Relaxed);
        let decider = Decider { store: Arc::new(Store::new(Arc::clone(&table))) };
        let made = now(decider.decide(&world.id, &[line], false));
        assert_eq!(made.map(|steps| steps.len()), steps, "after {lost} lost races");
        assert_eq!(table.transactions.load(Ordering::Relaxed), 8, "after {lost} lost races");
    }
}

/// Readers may still follow the stored head to the previous snapshot. Older ones would pile up.
#[test]
fn the_last_two_snapshots_of_a_tuning_are_kept() {
    let mut world = World::new(1);
    world.phase(0, JobPhase::Training);
    let steps = |world: &World| now(world.store.load(&world.id)).unwrap().unwrap().head.step;
    for line in 0..250 {
        if steps(&world) >= 3 * SNAPSHOT_EVERY {
            break;
        }
        world.logged(0, &[(1 + line % 9, 0.5)]);
    }
    assert_eq!(steps(&world), 3 * SNAPSHOT_EVERY);
    let kept = [2, 3].map(|n| stored::snapshot_key_prefix(n * SNAPSHOT_EVERY));
    let rows = world.table.rows();
    let snapshots: Vec<_> = rows.iter().map(|row| &row.key.sk).filter(|sk| sk.starts_with("SNAP#")).collect();
    assert!(snapshots.iter().all(|sk| kept.iter().any(|prefix| sk.starts_with(prefix))), "{snapshots:?}");
    assert!(kept.iter().all(|prefix| snapshots.iter().any(|sk| sk.starts_with(prefix))), "{snapshots:?}");
}

/// Each ended job had a step of its own. With a thousand parallel jobs, these steps kept another decider from writing
/// until lines were minutes late.
#[test]
fn regression_the_stored_lines_of_many_ended_jobs_share_a_step() {
    let mut world = World::new(8);
    (0..8).for_each(|trial| world.phase(trial, JobPhase::Training));
    let warm = Warm::of(&world);
    let mut bills = Vec::new();
    for trial in 0..8 {
        let job = world.job(trial);
        let line = world.lines_of(job, &[(1, 0.5)]);
        let line = world.recorded(line);
        now(world.table.write(Write::Put(stored::fact_row(&world.id, &line), Condition::Always))).unwrap();
        bills.push(bill(&mut world, job));
    }
    assert_eq!(warm.reads(&bills), (2, 0, 8), "a step of lines and a step of bills");
}

/// A step with a part of a job's lines would decide about its trial without the others.
#[test]
fn a_step_has_all_stored_lines_of_a_job_or_none() {
    const LINES: u64 = 40;
    let mut world = World::new(2);
    (0..2).for_each(|trial| world.phase(trial, JobPhase::Training));
    let warm = Warm::of(&world);
    let mut bills = Vec::new();
    for trial in 0..2 {
        let job = world.job(trial);
        for epoch in 1..=LINES {
            let line = world.lines_of(job, &[(epoch, 0.5)]);
            let line = world.recorded(line);
            let row = stored::fact_row(&world.id, &line);
            now(world.table.write(Write::Put(row, Condition::Always))).unwrap();
        }
        bills.push(bill(&mut world, job));
    }
    let steps = now(warm.decider.decide(&warm.id, &bills, false)).unwrap();
    let lines = |step: &Step, trial: u32| {
        let of =
            |fact: &&Recorded| matches!(fact.fact, Fact::MetricsLogged { job, .. } if job.trial.0 == trial);
        step.facts.iter().filter(of).count()
    };
    for trial in 0..2 {
        let counts: Vec<usize> =
            steps.iter().map(|step| lines(step, trial)).filter(|count| *count > 0).collect();
        assert_eq!(counts, [40], "trial {trial}");
    }
}

#[test]
fn an_actuator_reads_the_row_of_an_action_only_if_the_record_is_stale() {
    let (table, id) = table_with_tuning(BEGIN);
    let job = JobKey { trial: TrialId(0), rung: RungId(0), attempt: 1 };
    let bill = order(&table, &id, Order::Read(ReadOrder::Bill { job }));
    let row = action_row(&table, &id, &bill).row(&id);
    let event = encode_payload([encode_record(1, RecordKind::Insert, &row.key, Some(&row))]);
    let clock = TestClock::at(BEGIN);
    let ended = Description {
        started: Some(Time(BEGIN)),
        ended: Some(Time(BEGIN)),
        billable_seconds: Some(1),
        ..description("job", "Completed", BEGIN)
    };
    let service = Service::new(&clock, Script { describe: Some(Ok(ended)), ..Script::default() });
    let counting = Counting::of(&table);
    let actuator = actuator(&counting, &service);
    for (performed, reads) in [(Effect::Other, 0), (Effect::AlreadySettled, 1)] {
        counting.actions.store(0, Ordering::Relaxed);
        let mut acts = ActionBatch::default();
        now(actuator.handle(&event, || true, &mut acts));
        assert_eq!(acts.parts[0].done.performed, Some(Performed::Done(performed)));
        assert_eq!(counting.actions.load(Ordering::Relaxed), reads);
    }
}

/// The event of a decision needed up to eighteen reads. Now the only read is that of the definition, for the request to
/// create a job.
#[test]
fn the_event_of_a_decision_reads_nothing() {
    let job = JobKey::new(3, 1, 2);
    let verdict = Verdict { rank: 1, seen: 9, allowed: 3, continues: true };
    let (bracket, rung) = (BracketId(1), RungId(0));
    let judged = Judged { bracket, rung, level: Epochs(4), value: None, verdict };
    let stop = Order::Stop { job, why: StopWhy::Rung { rung }, because: Some(judged) };
    let mut start = start_of(job);
    let Order::Start { promoted, .. } = &mut start else { unreachable!("a start") };
    *promoted = Some(judged);
    for (ordered, word, reads) in [(stop, "Stopped", 0), (start, "Promoted", 1)] {
        let (table, id) = table_with_tuning(BEGIN);
        let action = order(&table, &id, ordered);
        let row = action_row(&table, &id, &action).row(&id);
        let event = encode_payload([encode_record(1, RecordKind::Insert, &row.key, Some(&row))]);
        let script = Script { create: Some(Ok(())), stop: Some(Ok(())), ..Script::default() };
        let service = Service::new(&TestClock::at(BEGIN), script);
        let counting = Counting::of(&table);
        let mut actuator = actuator(&counting, &service);
        actuator.bus = TestBus { accepts: true, ..TestBus::default() };
        now(actuator.handle(&event, || true, &mut ActionBatch::default()));
        let published = actuator.bus.published.lock().unwrap();
        let expected = json!({
            "HyperParameterTuningJobName": id.rsplit_once('-').unwrap().0,
            "TuningId": id,
            "TrainingJobName": format!("{id}-3-1-2"),
            "Decision": word,
            "Trial": 3,
            "Bracket": 1,
            "Rung": 0,
            "Resource": 4,
            "ObjectiveValue": null,
            "Rank": 2,
            "Compared": 9,
            "MayGoOn": 3,
            "Time": BEGIN,
        });
        assert_eq!(*published, [expected]);
        let made = [&counting.gets, &counting.queries].map(|count| count.load(Ordering::Relaxed));
        assert_eq!(made, [reads, 0], "{word}");
    }
}
