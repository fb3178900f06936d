//! The checks at the end of a history: every tuning ended, no action was lost, and replay gives the same state (P2,
//! P3, P5).

use port_tests::memory::MemoryTable;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tuning::log::reasons::EndReason;
use use_cases::replay::replay;
use use_cases::store::Store;
use wire::row_json;
use wire::stored::{
    ACTION_PREFIX, ACTIVE, ActionRow, ActionStatus, action_partition, active_id, tuning_partition,
};

use super::Money;
use crate::world::World;
use crate::world::ports::now;
use crate::world::program::NONSENSE;
use crate::world::training::{Job, LogStream, Owner};

/// The longest wait of a spot job beyond its running time, in seconds.
const SPOT_WAIT_SECONDS: i64 = 900;
/// The margin of a time limit after the first timed job, in percent of the usual time.
const MARGIN_PERCENT_FEW: i64 = 280;

/// Checks the whole history and records the violations.
pub(crate) fn check(world: &mut World) {
    let mut wrong = Vec::new();
    if !world.check.all_ended(world.cases.len()) {
        wrong.push(format!(
            "P3: some tunings have not ended {} h after the last fault: {}",
            hours(world),
            states(world)
        ));
    }
    for job in &world.training.jobs {
        // One that lasts for hours beyond its limits can end after the history. A stop order has no effect on one that the
        // service itself is stopping.
        let in_full = world.check.is_settled_in_full(&job.id, job.key);
        let stops = job.stop_asked || job.now.status == "Stopping";
        let excused = job.fate.is_unbounded() && stops && in_full;
        if !job.is_ended() && job.owner != Owner::Foreign && !excused {
            wrong.push(format!("P7: job {} still runs at the end", job.now.name));
        }
    }
    super::deadlines::overdue(world, &mut wrong);
    let table = world.table.clone();
    let store = Store::new(Arc::new(table.clone()));
    let ids: Vec<String> = world.check.books.keys().cloned().collect();
    for id in &ids {
        check_actions(world, id, &mut wrong);
        check_replay(world, &store, id, &mut wrong);
        wrong.extend(world.check.wrong_rows(&store, id));
        check_audit(world, id, &mut wrong);
        check_cap_is_used(world, id, &mut wrong);
        wrong.extend(world.check.books.get(id).and_then(|book| book.missing_last_rung(id)));
        wrong.extend(world.missing_refit(id));
        wrong.extend(world.exceeds_cap(id));
    }
    wrong.extend(world.check.months_at_end());
    let at_rest = now(store.all(ACTIVE, "")).map(|rows| rows.iter().all(|row| active_id(row).is_none()));
    if at_rest != Ok(true) {
        wrong.push("P8: an ended tuning is still in the list of active tunings".to_owned());
    }
    for message in wrong {
        world.check.violation(world.now, &message);
    }
}

fn hours(world: &World) -> i64 {
    (world.now - world.start - world.plan.safety_ms.max(world.plan.outages_end())) / crate::plan::HOUR
}

fn states(world: &World) -> String {
    let text = |(id, book): (&String, &super::Book)| {
        format!("{id}: step {}, {:?}, trials {:?}", book.steps, book.replica.status, book.replica.trials)
    };
    let mut all: String = world.check.books.iter().map(text).collect();
    all.truncate(2_000);
    all
}

/// Checks that every ordered action of an ended tuning has its outcome.
fn check_actions(world: &World, id: &str, wrong: &mut Vec<String>) {
    let Some(book) = world.check.books.get(id).filter(|book| book.ended.is_some()) else { return };
    let made: BTreeMap<String, &Job> = world.training.of(id).map(|job| (job.key.to_string(), job)).collect();
    let never_created: BTreeSet<String> = book
        .jobs
        .iter()
        .filter(|(_, book)| book.no_retry && !book.created)
        .map(|(key, _)| key.to_string())
        .collect();
    for item in world.table.rows().iter().filter(|item| item.key.pk == format!("{ACTION_PREFIX}{id}")) {
        let Ok(row) = ActionRow::read(item) else { continue };
        let (kind, job) = row.action.split_once('-').unwrap_or_default();
        let made = made.get(job).copied();
        let (exists, asked) = (made.is_some(), made.is_some_and(|job| job.stop_asked));
        // The system cannot know whether a deleted job ever existed.
        let deleted = made.is_some_and(|job| job.deleted);
        let refused = never_created.contains(job);
        let fine = match (kind, row.status) {
            ("start", ActionStatus::Done) => exists || refused,
            ("start", ActionStatus::Cancelled) => !exists || deleted,
            ("start", ActionStatus::Pending | ActionStatus::Performing) => {
                // The outcome became known before the row was updated.
                exists || refused
            }
            // The stop of a job that was never created cancels its start.
            ("stop", ActionStatus::Done) => asked || !exists || deleted,
            // Nothing is left to do: the job has ended and its instances are released, which is checked elsewhere.
            ("stop" | "bill" | "read" | "rest" | "look" | "pool" | "release", _)
            | ("grant" | "return", ActionStatus::Done) => true,
            // The fact can arrive before the row is updated. Then nothing needs to be performed again.
            ("grant" | "return", ActionStatus::Pending | ActionStatus::Performing) => {
                book.replica.money.grants.is_settled()
            }
            ("notice", _) => {
                let out = world.check.notices.get(&book.case.name);
                out.is_some_and(|notices| notices.contains(&row.action))
            }
            _ => false,
        };
        if !fine {
            wrong.push(format!(
                "P2: action {id}/{} is still {:?} at the end (job exists: {exists})",
                row.action, row.status
            ));
        }
    }
}

/// Checks the stored rows with code that shares only their format with the decider.
fn check_audit(world: &World, id: &str, wrong: &mut Vec<String>) {
    let partitions = [tuning_partition(id), action_partition(id)];
    let rows = world.table.rows();
    let own = rows.iter().filter(|row| partitions.contains(&row.key.pk));
    let rows: Vec<_> = own.map(row_json::encode).collect();
    match audit::audit(id, &rows) {
        Ok(report) => {
            wrong.extend(report.violations.first().map(|first| format!("audit of {id}: {first}")));
        }
        Err(error) => wrong.push(format!("audit of {id}: {error}")),
    }
}

fn check_replay(world: &World, store: &Store<MemoryTable>, id: &str, wrong: &mut Vec<String>) {
    let Some(book) = world.check.books.get(id) else { return };
    match now(replay(store, id)) {
        Ok(Some(replayed)) => {
            if let Some((n, recorded, decided)) = replayed.difference {
                wrong
                    .push(format!("P5: replay of step {n} of {id} gives {decided}, the step has {recorded}"));
            } else if replayed.state != book.replica {
                wrong.push(format!("P5: the state of {id} by replay differs from the state by its steps"));
            }
        }
        other => wrong.push(format!("P5: {id} cannot be replayed: {other:?}")),
    }
    let failed = |job: &&Job| job.id == *id && job.now.status == "Failed";
    let best_job = book.replica.results.best.as_ref().map(|best| best.job);
    if let Some(job) = world.training.jobs.iter().filter(failed).find(|job| Some(job.key) == best_job) {
        wrong.push(format!("Best: the best training job of {id} is {}, which failed", job.now.name));
    }
    let best = book.replica.search.incumbent.as_ref().map(|best| best.value.to_bits());
    if best == Some(NONSENSE.to_bits()) {
        wrong.push(format!("P6: the best value of {id} comes from a host other than the first"));
    }
    match now(store.load(id)) {
        Ok(Some(loaded)) if *loaded.state == book.replica && loaded.head.step == book.steps => {}
        Ok(Some(_)) => {
            wrong.push(format!("P5: the state of {id} by its snapshot differs from the state by its steps"));
        }
        other => wrong.push(format!("P5: {id} cannot be loaded: {other:?}")),
    }
    let (spent, reserved) = book.money();
    let ledger = &book.replica.money.ledger;
    if (ledger.spent.0, ledger.reserved.0) != (spent, reserved) {
        wrong.push(format!(
            "P1: the ledger of {id} is {ledger:?}, the checker counts {spent} spent and {reserved} reserved"
        ));
    }
    let hidden = |key| book.jobs.get(&key).is_some_and(|job| job.money == Money::Released);
    let billed = world.training.of(id).filter(|job| !(job.deleted && hidden(job.key)));
    let billed: u64 = billed.map(|job| world.cases[job.case].cost(job.choice, job.charged_seconds())).sum();
    let billed = billed + world.kept_cost(id, |job| !hidden(job.key));
    // A bill above its reservation that came too late cannot be known.
    let unknown = world
        .training
        .of(id)
        .any(|job| job.overran && book.jobs.get(&job.key).is_none_or(|own| own.settled_in_full));
    if book.ended.is_some() && !unknown && billed > spent {
        wrong.push(format!("P1: the bills of {id} sum to {billed}, its ledger has only {spent} spent"));
    }
}

/// Checks a tuning that ended at its cap: the unused part must be below 5 % of the cap, or below what the next job can
/// cost.
fn check_cap_is_used(world: &World, id: &str, wrong: &mut Vec<String>) {
    let Some(book) = world.check.books.get(id).filter(|book| !book.has_grants) else { return };
    let (Some(cap), Some((EndReason::CostCap, _))) = (book.limits.cap, &book.ended) else { return };
    // The search is over when the refit starts, even if the cap is raised afterwards.
    let at_refit = book.jobs.values().filter(|job| job.launch.refit).filter_map(|job| job.limits.0).min();
    let cap = at_refit.map_or(cap, |at_refit| cap.min(at_refit));
    let unused = cap.saturating_sub(book.money().0);
    // Every reservation contains the margin, also the one held back for a refit.
    let margin = book.margin * if book.case.choices.refit { 2 } else { 1 };
    if unused >= (cap / 20).max(next_job_cost(world, id, book) + margin) {
        wrong.push(format!("P1: {id} ended at its cap of {cap} micro-dollars with {unused} unused"));
    }
}

/// Returns the highest cost of the next job, in micro-dollars: at its time limits, or with Hyperband less, once a log
/// showed how long a job takes. A refit needs another one.
fn next_job_cost(world: &World, id: &str, book: &super::Book) -> u64 {
    let choices = &book.case.choices;
    let limit = choices.longest_seconds();
    let cost = |seconds: i64| {
        let kept =
            book.case.choice_ids().map(|choice| book.keeping_cost(choice, choices.longest_keep())).max();
        book.case.dearest(seconds + book.case.beyond_seconds()) + kept.unwrap_or(0)
    };
    // After an interruption, the first line of the last run shows no start-up.
    let shows_times = |job: &Job| {
        let runs: Vec<_> = job.streams.iter().filter(|stream| stream.name.contains("/algo-1-")).collect();
        let values = |run: &&LogStream| run.lines.iter().filter(|line| line.message.contains("auc=")).count();
        runs.last().is_some_and(|last| values(last) > usize::from(runs.len() > 1))
    };
    // The search is over when the refit starts.
    let is_refit = |job: &Job| book.jobs.get(&job.key).is_some_and(|own| own.launch.refit);
    let is_timed =
        world.training.of(id).any(|job| job.logged.is_some() && shows_times(job) && !is_refit(job));
    let epochs = choices.hyperband.filter(|_| is_timed).map(|(_, most, _)| most);
    let shortened = epochs.map_or(limit, |epochs| {
        SPOT_WAIT_SECONDS + slowest_job_seconds(world, id, epochs) * MARGIN_PERCENT_FEW / 100
    });
    let one = cost(limit.min(shortened));
    if choices.refit { one + cost(limit) } else { one }
}

/// Returns how long a job of the slowest configuration so far takes, with all epochs, the longest tail and a start-up of ten
/// minutes. The next trial may belong to a bracket whose first rung showed a longer tail than the last rung.
fn slowest_job_seconds(world: &World, id: &str, epochs: u32) -> i64 {
    let slowest = world.training.of(id).map(|job| job.program.epoch_ms).max().unwrap_or(0);
    let tail = world.longest_tail(id, true).max(world.longest_tail(id, false));
    (slowest.saturating_mul(epochs.into()) + tail) / 1_000 + 600
}
