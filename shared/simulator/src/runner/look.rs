//! A user looks at a tuning and its training jobs, and what must hold of what is shown.
//!
//! Reads are strong: what is shown is never older than what was committed before the call began. Calls may fail among
//! faults, and are then tried again; without faults they may not.

use serde_json::Value;
use service::describe::{self, Place};
use service::lookup::{self, LookupError};
use service::store::StoreError;

use super::{Outcome, Process, Running};
use crate::world::World;
use crate::world::lock;
use crate::world::ports::Port;

/// What a look saw.
struct Seen {
    step: u64,
    shown: Value,
    jobs: usize,
}

/// The future of a look at the tuning of `case`.
pub(super) fn look(process: Process, case: usize) -> Running {
    let (name, before, faults) = {
        let world = lock(&process.port.world);
        let name = world.cases[case].name.clone();
        let before = steps(&world, &name);
        (name, before, world.faults_on)
    };
    Box::pin(async move {
        let result = see(&process, &name).await;
        let mut world = lock(&process.port.world);
        let (outcome, wrong) = match result {
            Ok(Some(seen)) => (Outcome::Done, wrong(&world, &name, before.unwrap_or(0), &seen)),
            // A look may come before the tuning does.
            Ok(None) => (Outcome::Done, before.map(|_| "is not found".to_owned())),
            Err(error) => (Outcome::Retry, (!faults).then(|| format!("cannot be shown: {error}"))),
        };
        if let Some(wrong) = wrong {
            let now = world.now;
            world.check.violation(now, &format!("{name} {wrong}"));
        }
        drop(world);
        (process, outcome)
    })
}

fn steps(world: &World, name: &str) -> Option<u64> {
    world.check.books.values().find(|book| book.definition.name == name).map(|book| book.steps)
}

async fn see(process: &Process, name: &str) -> Result<Option<Seen>, StoreError> {
    let store = &process.store;
    let place = Place {
        partition: "aws".to_owned(),
        region: "us-east-1".to_owned(),
        account: "111122223333".to_owned(),
    };
    let index = match lookup::find::<Port>(store, name).await {
        Ok(index) => index,
        Err(LookupError::Store(error)) => return Err(error),
        Err(LookupError::NotFound(_) | LookupError::AlreadyEnded(_)) => return Ok(None),
    };
    let Some(shown) = describe::describe(store, &place, &index.id).await? else { return Ok(None) };
    let Some(jobs) = describe::jobs(store, &place, &index.id).await? else { return Ok(None) };
    let step = store.load(&index.id).await?.map_or(0, |loaded| loaded.head.step);
    Ok(Some(Seen { step, shown, jobs: jobs.len() }))
}

fn wrong(world: &World, name: &str, before: u64, seen: &Seen) -> Option<String> {
    if seen.step < before {
        return Some(format!("goes back from step {before} to {}", seen.step));
    }
    let book = world.check.books.values().find(|book| book.definition.name == name)?;
    let controller = &seen.shown["Controller"];
    let usd = |member: &str| controller[member].as_f64();
    let (spent, reserved) = (usd("SpentUsd")?, usd("ReservedUsd")?);
    // What was booked before a cap was lowered stands.
    let lowered = book.case.changes.iter().any(|change| change.cap.is_some());
    // A hundredth of a micro-dollar: sums of two rounded numbers.
    if usd("CapUsd").is_some_and(|cap| spent + reserved > cap + 1e-8) && !book.overrun && !lowered {
        return Some(format!("P1: shows {spent} spent and {reserved} reserved, above its cap"));
    }
    (seen.jobs > book.jobs.len())
        .then(|| format!("shows {} jobs, {} were ordered", seen.jobs, book.jobs.len()))
}
