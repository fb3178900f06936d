//! The checks when a history is over: everything ended, nothing was lost, replay gives the same (P2, P3, P5).

use service::memory::MemoryTable;
use service::replay::replay;
use service::store::Store;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tuning::ruling::EndReason;
use wire::stored::{ACTION_PREFIX, ACTIVE, ActionRow, ActionStatus, active_id};

use super::Money;
use crate::fault::Kind;
use crate::world::World;
use crate::world::ports::now;
use crate::world::program::NONSENSE;
use crate::world::training::{Job, Owner};

/// What is wrong at the end.
pub(crate) fn check(world: &mut World) {
    let mut wrong = Vec::new();
    if !world.check.all_ended(world.cases.len()) {
        wrong.push(format!("P3: not ended {} h after the last fault: {}", hours(world), standing(world)));
    }
    for job in &world.training.jobs {
        if !job.is_ended() && job.owner != Owner::Foreign {
            wrong.push(format!("P7: job {} still runs", job.now.name));
        }
    }
    super::owed::overdue(world, &mut wrong);
    let table = world.table.clone();
    let store = Store::new(Arc::new(table.clone()));
    let ids: Vec<String> = world.check.books.keys().cloned().collect();
    for id in &ids {
        rows(world, id, &mut wrong);
        replayed(world, &store, id, &mut wrong);
        ended_well(world, id, &mut wrong);
        used_up(world, id, &mut wrong);
        wrong.extend(world.check.books.get(id).and_then(|book| book.short_of_the_top(id)));
        wrong.extend(world.owed_refit(id));
    }
    wrong.extend(world.check.months_at_end());
    let at_rest = now(store.all(ACTIVE, "")).map(|rows| rows.iter().all(|row| active_id(row).is_none()));
    if at_rest != Ok(true) {
        wrong.push("P8: an ended tuning is still on the list of active ones".to_owned());
    }
    for message in wrong {
        world.check.violation(world.now, &message);
    }
}

fn hours(world: &World) -> i64 {
    (world.now - world.start - world.plan.safety_ms) / crate::plan::HOUR
}

fn standing(world: &World) -> String {
    let text = |(id, book): (&String, &super::Book)| {
        format!("{id}: step {}, {:?}, trials {:?}", book.steps, book.replica.status, book.replica.trials)
    };
    let mut all: String = world.check.books.iter().map(text).collect();
    all.truncate(2_000);
    all
}

/// Every ordered action has its outcome.
fn rows(world: &World, id: &str, wrong: &mut Vec<String>) {
    let Some(book) = world.check.books.get(id).filter(|book| book.ended.is_some()) else { return };
    let made: BTreeMap<String, &Job> = world.training.of(id).map(|job| (job.key.to_string(), job)).collect();
    let hopeless: BTreeSet<String> = book
        .jobs
        .iter()
        .filter(|(_, book)| book.hopeless && !book.created)
        .map(|(key, _)| key.to_string())
        .collect();
    for item in world.table.rows().iter().filter(|item| item.key.pk == format!("{ACTION_PREFIX}{id}")) {
        let Ok(row) = ActionRow::read(item) else { continue };
        let (kind, job) = row.action.split_once('-').unwrap_or_default();
        let made = made.get(job).copied();
        let (exists, asked) = (made.is_some(), made.is_some_and(|job| job.stop_asked));
        // Whether a job that was deleted ever was cannot be told.
        let deleted = made.is_some_and(|job| job.deleted);
        let refused = hopeless.contains(job);
        let fine = match (kind, row.status) {
            ("start", ActionStatus::Done) => exists || refused,
            ("start", ActionStatus::Cancelled) => !exists || deleted,
            ("start", ActionStatus::Pending | ActionStatus::Performing) => {
                // Its outcome was known before its row could say so.
                exists || refused
            }
            // A job that never was is called off by its stop.
            ("stop", ActionStatus::Done) => asked || !exists || deleted,
            // The job has ended (checked apart), and nothing is kept after it: there is nothing left to do.
            ("stop" | "bill" | "read" | "look" | "pool" | "release", _)
            | ("grant" | "return", ActionStatus::Done) => true,
            // The fact may be known before its row can say so; then nobody need perform it again.
            ("grant" | "return", ActionStatus::Pending | ActionStatus::Performing) => {
                book.replica.grants.is_settled()
            }
            ("notice", _) => {
                let out = world.check.notices.get(&book.definition.name);
                out.is_some_and(|notices| notices.contains(&row.action))
            }
            _ => false,
        };
        if !fine {
            wrong.push(format!(
                "P2: {id}/{} is {:?} at the end, job exists: {exists}",
                row.action, row.status
            ));
        }
    }
}

fn replayed(world: &World, store: &Store<MemoryTable>, id: &str, wrong: &mut Vec<String>) {
    let Some(book) = world.check.books.get(id) else { return };
    match now(replay(store, id)) {
        Ok(Some(replayed)) => {
            if let Some((n, recorded, decided)) = replayed.difference {
                wrong.push(format!("P5: step {n} of {id} was {recorded}, is now {decided}"));
            } else if replayed.state != book.replica {
                wrong.push(format!("P5: the state of {id} by replay is not that by its steps"));
            }
        }
        other => wrong.push(format!("P5: {id} cannot be replayed: {other:?}")),
    }
    let best = book.replica.incumbent.as_ref().map(|best| best.value.to_bits());
    if best == Some(NONSENSE.to_bits()) {
        wrong.push(format!("P6: a line of another host than the first counts in {id}"));
    }
    match now(store.load(id)) {
        Ok(Some(loaded)) if loaded.state == book.replica && loaded.head.step == book.steps => {}
        Ok(Some(_)) => wrong.push(format!("P5: the state of {id} by its snapshot is not that by its steps")),
        other => wrong.push(format!("P5: {id} cannot be loaded: {other:?}")),
    }
    let (spent, reserved) = book.money();
    let ledger = &book.replica.ledger;
    if (ledger.spent.0, ledger.reserved.0) != (spent, reserved) {
        wrong.push(format!("P1: the ledger of {id} is {ledger:?}, counted anew {spent} and {reserved}"));
    }
    let hidden = |key| book.jobs.get(&key).is_some_and(|job| job.money == Money::Released);
    let billed = world.training.of(id).filter(|job| !(job.deleted && hidden(job.key)));
    let billed: u64 = billed.map(|job| world.cases[job.case].cost(job.choice, job.charged_seconds())).sum();
    let billed = billed + world.kept_cost(id, |job| !hidden(job.key));
    // What is above a reservation and was never told in time cannot be known.
    let overran = world.training.of(id).any(|job| job.overran);
    if book.ended.is_some() && !overran && book.definition.job.rate.is_some() && billed > spent {
        wrong.push(format!("P1: the bills of {id} are {billed}, the ledger has {spent}"));
    }
}

/// "At the end of a tuning that ended at its cap the unused part is below max(5 %, one smallest job's worst case)."
fn used_up(world: &World, id: &str, wrong: &mut Vec<String>) {
    let Some(book) = world.check.books.get(id).filter(|book| !book.definition.grants && !book.overrun) else {
        return;
    };
    let (Some(cap), Some((EndReason::CostCap, _))) = (book.limits.cap, &book.ended) else { return };
    // When the best configuration is trained once more the search is over, though the cap is raised afterwards.
    let last = book.jobs.values().filter(|job| job.launch.refit).filter_map(|job| job.limits.0).min();
    let cap = last.map_or(cap, |last| cap.min(last));
    let unused = cap.saturating_sub(book.money().0);
    if unused >= (cap / 20).max(unpaid(book).unwrap_or(cap)) {
        wrong.push(format!("P1: {id} ended at its cap of {cap} with {unused} unused"));
    }
}

/// What the next job may have cost at most, for which the rest of the cap was too little.
fn unpaid(book: &super::Book) -> Option<u64> {
    let choices = &book.case.choices;
    let dearest = book.case.dearest(choices.max_wait_seconds.unwrap_or(choices.max_runtime_seconds) + 300);
    // Where trials are promoted the next job may be one of the long ones.
    // And where one went on on demand, one on spot that may wait for long.
    let longest = book.promotes() || choices.spot_fallback;
    let next = if longest { book.most_reservation() } else { book.least_reservation };
    // A cap may be lowered before any job starts.
    let next = if book.case.changes.is_empty() { next } else { next.or(Some(dearest)) };
    // It may run on dearer instances than all before; and as much is kept back for the last job.
    let next = if book.case.clusters() > 1 { Some(dearest) } else { next };
    if choices.refit { Some(next.unwrap_or(dearest) + dearest) } else { next }
}

/// A tuning fails only for what its jobs did.
fn ended_well(world: &World, id: &str, wrong: &mut Vec<String>) {
    let Some((EndReason::Failed(message), _)) = world.check.books.get(id).and_then(|book| book.ended.clone())
    else {
        return;
    };
    let causes = [
        Kind::ProgramSilent,
        Kind::ProgramDiverges,
        Kind::JobAlgorithmError,
        Kind::JobServiceError,
        Kind::JobCapacityError,
        Kind::CapacityShort,
        Kind::JobHangs,
        Kind::JobEndsEarly,
        Kind::StoppedOutside,
        Kind::JobDeleted,
        Kind::BillAboveReservation,
        Kind::CreateRefused,
        Kind::JobInterrupted,
    ];
    // Others may use up what the account allows for longer than anybody waits.
    let quota = world.plan.account_jobs.is_some();
    if causes.iter().all(|kind| world.faults.rate(*kind) == 0.0) && !slow(world, id) && !quota {
        wrong.push(format!("P3: {id} failed without a cause: {message}"));
    }
}

/// Whether the programs of a tuning are too slow for its limits.
fn slow(world: &World, id: &str) -> bool {
    world.training.of(id).any(|job| job.program.epoch_ms * 2 > job.max_runtime_ms)
}
