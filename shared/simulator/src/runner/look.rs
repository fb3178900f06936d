//! Describes a tuning and lists its training jobs, as a user does, and checks the responses.
//!
//! Reads are strongly consistent: an answer is never older than the last commit before the call began. While faults
//! strike, calls may fail and are retried. Without faults they must succeed.

use tuning::unit::money::MicroUsd;
use use_cases::describe::{self, Place};
use use_cases::lookup::{self, LookupError};
use use_cases::store::StoreError;
use wire::describe::{Totals, TuningJob};

use super::{Outcome, Ports, Process, Running};
use crate::world::World;
use crate::world::lock;

/// The answers that the user received.
struct Answers {
    step: u64,
    shown: TuningJob,
    jobs: usize,
}

/// Returns the future that describes the tuning of `case`.
pub(super) fn look(process: Process, case: usize) -> Running {
    let (name, before, faults) = {
        let world = lock(&process.port.world);
        let name = world.cases[case].name.clone();
        let before = steps(&world, &name);
        (name, before, world.faults_on)
    };
    Box::pin(async move {
        let result = read_answers(&process, &name).await;
        let mut world = lock(&process.port.world);
        let (outcome, violation) = match result {
            Ok(Some(seen)) => (Outcome::Done, violation(&world, &name, before.unwrap_or(0), &seen)),
            // The user may ask before the tuning is submitted.
            Ok(None) => (Outcome::Done, before.map(|_| "is not found after its submission".to_owned())),
            Err(error) => (
                Outcome::Retry,
                (!faults).then(|| format!("cannot be described although no fault strikes: {error}")),
            ),
        };
        if let Some(violation) = violation {
            let now = world.now;
            world.check.violation(now, &format!("{name} {violation}"));
        }
        drop(world);
        (process, outcome)
    })
}

fn steps(world: &World, name: &str) -> Option<u64> {
    world.check.books.values().find(|book| book.definition.name == name).map(|book| book.steps)
}

async fn read_answers(process: &Process, name: &str) -> Result<Option<Answers>, StoreError> {
    let store = &process.store;
    let place = Place::of_arn("arn:aws:lambda:us-east-1:111122223333:function:api");
    let index = match lookup::find::<Ports>(store, name).await {
        Ok(index) => index,
        Err(LookupError::Store(error)) => return Err(error),
        Err(LookupError::NotFound(_) | LookupError::AlreadyEnded(_)) => return Ok(None),
    };
    let Some(shown) = describe::describe(store, &place, &index.id).await? else { return Ok(None) };
    let Some(jobs) = describe::jobs(store, &place, &index.id).await? else { return Ok(None) };
    let step = store.load(&index.id).await?.map_or(0, |loaded| loaded.head.step);
    Ok(Some(Answers { step, shown, jobs: jobs.len() }))
}

fn violation(world: &World, name: &str, before: u64, seen: &Answers) -> Option<String> {
    if seen.step < before {
        return Some(format!(
            "shows step {} although step {before} was committed before the call",
            seen.step
        ));
    }
    let book = world.check.books.values().find(|book| book.definition.name == name)?;
    let Totals { spent_usd, reserved_usd, cap_usd, .. } = &seen.shown.controller.totals;
    // Amounts that were booked before the cap was lowered, before a bill rose, or for a job past its reservation stay booked.
    let lowered = book.case.changes.iter().any(|change| change.cap.is_some());
    let most = cap_usd.map(|cap| cap.plus(MicroUsd(book.risen + book.extended())));
    if most.is_some_and(|most| spent_usd.plus(*reserved_usd) > most) && book.margin == 0 && !lowered {
        return Some(format!(
            "P1: Describe shows {spent_usd} USD spent and {reserved_usd} USD reserved, above the cap"
        ));
    }
    (seen.jobs > book.jobs.len())
        .then(|| format!("lists {} jobs, but only {} were ordered", seen.jobs, book.jobs.len()))
}
