//! `hyperband extend`: starts a tuning with the request and from the results of an ended one.

use search::PARENTS_MAX;
use serde_json::Value;
use tuning::unit::money::MicroUsd;
use wire::describe::TuningJob;
use wire::request::{Request, Strategy, usd};

use crate::arguments::{Extend, Limits, Where};
use crate::failure::{Exit, Failure};
use crate::output::print_err;
use crate::remote::{NOT_FOUND, failed};
use crate::request;
use crate::run;
use crate::stored_tuning::StoredTuning;
use crate::submit;
use crate::tunings::Tunings;

/// The most characters of a name of Automatic Model Tuning.
const NAME_MAX: usize = 32;

pub(crate) async fn extend(options: Extend) -> Result<Exit, Failure> {
    let tunings = Tunings::open_writable(&options.place).await?;
    let described = tunings.describe(&options.parent).await?;
    let tuning = StoredTuning::open_described(&tunings, described).await?;
    let stored = tuning.store.tuning(&tuning.row.id).await?.ok_or_else(|| tuning.deleted())?;
    check(&tuning.described, &stored.request)?;
    let left = if options.max_cost.is_some() { None } else { left(&tuning.described)? };
    let parents = parents(&tunings, &stored.request).await?;
    let name = match &options.name {
        Some(name) if exists(&tunings, name).await? => {
            let failure = Failure::usage(format!("there is already a tuning '{name}'"));
            return Err(failure.hint("use another --name, or none for the next free one"));
        }
        Some(name) => name.clone(),
        None => free_name(&tunings, &stored.request, &parents).await?,
    };
    let limits = Limits { jobs: Some(options.jobs), max_time: options.max_time, max_cost: options.max_cost };
    let body = request::extended(stored.request.body().clone(), &name, &parents, limits, left);
    print_err(&format!("{name} starts from the results of {}\n", parents.join(", ")));
    match options.place.place()? {
        Where::Folder(folder) => {
            let request = request::check_local(body).map_err(|error| Failure::invalid_request(&error))?;
            drop(tunings);
            Box::pin(run::repeat(tuning, &folder, request, options.output)).await
        }
        Where::Endpoint(_) => {
            // The stack has validated the request of the ended tuning, and validates this one.
            let request = Request::from_stored(body);
            let created = tunings.client.create(&request).await.map_err(failed)?;
            submit::print(&request, &created, &tunings.location_options, options.output);
            Ok(Exit::Done)
        }
    }
}

/// Returns the ended tuning with this request and those that it started from, in the order of their ends, without
/// deleted ones.
async fn parents(tunings: &Tunings, request: &Request) -> Result<Vec<String>, Failure> {
    let mut parents = Vec::new();
    for name in request.warm_start().map_or(Vec::new(), |(_, names)| names) {
        if exists(tunings, name).await? {
            parents.push(name.to_owned());
        }
    }
    parents.push(request.name().to_owned());
    Ok(parents.split_off(parents.len().saturating_sub(PARENTS_MAX)))
}

async fn exists(tunings: &Tunings, name: &str) -> Result<bool, Failure> {
    match tunings.client.describe(name).await {
        Ok(_) => Ok(true),
        Err(error) if error.is(NOT_FOUND) => Ok(false),
        Err(error) => Err(failed(error)),
    }
}

/// Returns the first free name of `NAME-2`, `NAME-3` and so on.
async fn free_name(tunings: &Tunings, request: &Request, parents: &[String]) -> Result<String, Failure> {
    let base = base(request.name(), parents);
    for number in 2_u32.. {
        let name = numbered(base, number);
        if !exists(tunings, &name).await? {
            return Ok(name);
        }
    }
    Err(Failure::usage(format!("no name '{base}-N' is free")).hint("name the new tuning with --name"))
}

/// Returns the name without the number of an earlier extension: `xgb` for `xgb-2`, if that started from `xgb`.
fn base<'a>(name: &'a str, parents: &[String]) -> &'a str {
    let stem =
        name.rsplit_once('-').filter(|(_, number)| number.parse::<u32>().is_ok()).map(|(stem, _)| stem);
    stem.filter(|stem| parents.iter().any(|parent| parent == stem)).unwrap_or(name)
}

fn numbered(base: &str, number: u32) -> String {
    let suffix = format!("-{number}");
    let kept: String = base.chars().take(NAME_MAX.saturating_sub(suffix.len())).collect();
    format!("{}{suffix}", kept.trim_end_matches('-'))
}

/// Fails if the tuning cannot be extended.
fn check(described: &TuningJob, request: &Request) -> Result<(), Failure> {
    let (name, status) = (&described.base.name, &described.base.status);
    if !described.base.is_ended() {
        return Err(Failure::usage(format!("the tuning {name} is {status}, so it cannot be extended"))
            .hint(format!("wait for its end, or stop it with `hyperband stop {name}`")));
    }
    if request.strategy() == Strategy::Grid {
        return Err(Failure::usage(format!("the tuning {name} has Strategy Grid, so it cannot be extended"))
            .hint("submit a request with wider ranges"));
    }
    Ok(())
}

/// Returns what an ended tuning has left of its cap, in dollars; `None` without a cap.
fn left(described: &TuningJob) -> Result<Option<Value>, Failure> {
    let totals = &described.controller.totals;
    let Some(cap) = totals.cap_usd else { return Ok(None) };
    let left = MicroUsd(cap.0.saturating_sub(totals.spent_usd.0));
    if left == MicroUsd(0) {
        return Err(Failure::usage(format!("nothing is left of the cap of {} dollars", usd(cap)))
            .hint("set the cap of the new tuning with --max-cost"));
    }
    Ok(Some(usd(left)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_an_extension_follows_the_name_of_the_first_tuning() {
        let parents = ["xgb".to_owned(), "xgb-2".to_owned()];
        for (name, expected) in
            [("xgb", "xgb-2"), ("xgb-2", "xgb-2"), ("mnist-10", "mnist-10-2"), ("a-b", "a-b-2")]
        {
            assert_eq!(numbered(base(name, &parents), 2), expected);
        }
        assert_eq!(numbered("a-name-of-exactly-32-characters-", 10), "a-name-of-exactly-32-characte-10");
        assert_eq!(numbered(&"x".repeat(32), 2).len(), 32);
    }
}
