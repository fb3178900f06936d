//! `hyperband extend`: starts a tuning with the request and from the results of an ended one.

use search::PARENTS_MAX;
use serde_json::Value;
use tuning::unit::money::MicroUsd;
use use_cases::store::Tuning;
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
    check(&tuning, &stored.request)?;
    let left = if options.max_cost.is_some() { None } else { left(&tuning.described)? };
    let parents = parents(&tunings, &tuning.described, &stored, &options.without).await?;
    let name = match &options.name {
        // A parent that another controller ran is not among the tunings.
        Some(name) if parents.contains(name) || found(&tunings, name).await?.is_some() => {
            let failure = Failure::usage(format!("there is already a tuning '{name}'"));
            return Err(failure.hint("use another --name, or none for the next free one"));
        }
        Some(name) => name.clone(),
        None => free_name(&tunings, &stored.request).await?,
    };
    let limits = Limits { jobs: Some(options.jobs), max_time: options.max_time, max_cost: options.max_cost };
    let body = request::extended(stored.request.body().clone(), &name, &parents, limits, left);
    let starts = format!("{name} starts from the results of {}\n", parents.join(", "));
    match options.place.place()? {
        Where::Folder(folder) => {
            let request = request::check_local(body).map_err(|error| Failure::invalid_request(&error))?;
            print_err(&starts);
            drop(tunings);
            Box::pin(run::repeat(tuning, &folder, request, options.output)).await
        }
        Where::Endpoint(_) => {
            // The stack has validated the request of the ended tuning, and validates this one.
            let request = Request::from_stored(body);
            let created = tunings.client.create(&request).await.map_err(|error| {
                let failure = failed(error);
                let lost = lost(&failure.message(), &stored.other_parents);
                failure.hint_if_any(lost.map(|name| format!("if {name} was deleted, add --without {name}")))
            })?;
            print_err(&starts);
            submit::print(&request, &created, &tunings.location_options, options.output);
            Ok(Exit::Done)
        }
    }
}

/// Returns the described tuning and those that it started from, except those in `without`, in the order of their ends, at
/// most as many as a request may name. A tuning that was created later only has the name of a deleted one, or of one that
/// another controller ran.
async fn parents(
    tunings: &Tunings,
    described: &TuningJob,
    stored: &Tuning,
    without: &[String],
) -> Result<Vec<String>, Failure> {
    let request = &stored.request;
    let names = parent_names(request);
    if let Some(unknown) = without.iter().find(|name| !names.contains(&name.as_str())) {
        let failure = Failure::usage(format!("the tuning {} has no parent '{unknown}'", request.name()));
        let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        return Err(failure.hint(format!("give --without a parent of it: {known}")));
    }
    let mut parents = Vec::new();
    for name in names.into_iter().filter(|name| !without.iter().any(|left_out| left_out == name)) {
        let counts = match found(tunings, name).await? {
            Some(TuningJob { base, .. }) => base.is_ended() && base.created_ms < described.base.created_ms,
            None => stored.other_parents.iter().any(|job| job["TuningJobName"] == name),
        };
        if counts {
            parents.push(name.to_owned());
        }
    }
    parents.push(request.name().to_owned());
    // The results in the request count as one parent.
    let most = PARENTS_MAX - usize::from(request.known_result_count() > 0);
    Ok(parents.split_off(parents.len().saturating_sub(most)))
}

/// Returns the parent of another controller that a message names.
fn lost<'a>(message: &str, others: &'a [Value]) -> Option<&'a str> {
    let words = || message.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '-'));
    others
        .iter()
        .filter_map(|job| job["TuningJobName"].as_str())
        .find(|name| words().any(|word| word == *name))
}

fn parent_names(request: &Request) -> Vec<&str> {
    request.warm_start().map_or(Vec::new(), |(_, names)| names)
}

async fn found(tunings: &Tunings, name: &str) -> Result<Option<TuningJob>, Failure> {
    match tunings.client.describe(name).await {
        Ok(described) => Ok(Some(described)),
        Err(error) if error.is(NOT_FOUND) => Ok(None),
        Err(error) => Err(failed(error)),
    }
}

/// Returns the first free name of `NAME-2`, `NAME-3` and so on.
async fn free_name(tunings: &Tunings, request: &Request) -> Result<String, Failure> {
    let base = base(request.name(), &parent_names(request));
    for number in 2_u32.. {
        let name = numbered(base, number);
        // A parent that another controller ran is not among the tunings.
        if !parent_names(request).contains(&name.as_str()) && found(tunings, &name).await?.is_none() {
            return Ok(name);
        }
    }
    Err(Failure::usage(format!("no name '{base}-N' is free")).hint("name the new tuning with --name"))
}

/// Returns the name without the number of an earlier extension: `xgb` for `xgb-3`, if that started from `xgb` or `xgb-2`.
fn base<'a>(name: &'a str, parents: &[&str]) -> &'a str {
    let is_number = |number: &str| number.parse::<u32>().is_ok();
    let stem = name.rsplit_once('-').filter(|(_, number)| is_number(number)).map(|(stem, _)| stem);
    let numbered = |parent: &str, stem: &str| {
        let rest = parent.strip_prefix(stem);
        rest.is_some_and(|rest| rest.is_empty() || rest.strip_prefix('-').is_some_and(is_number))
    };
    stem.filter(|stem| parents.iter().any(|parent| numbered(parent, stem))).unwrap_or(name)
}

fn numbered(base: &str, number: u32) -> String {
    let suffix = format!("-{number}");
    let kept: String = base.chars().take(NAME_MAX.saturating_sub(suffix.len())).collect();
    format!("{}{suffix}", kept.trim_end_matches('-'))
}

/// Fails if the tuning cannot be extended.
fn check(tuning: &StoredTuning, request: &Request) -> Result<(), Failure> {
    let base = &tuning.described.base;
    let (name, status) = (&base.name, &base.status);
    if !base.is_ended() {
        let failure = Failure::usage(format!("the tuning {name} is {status}, so it cannot be extended"));
        return Err(failure.hint(match &tuning.interrupted {
            Some(resume) => format!("continue it to its end: {resume}"),
            None => format!("wait for its end, or stop it: hyperband stop {name}{}", tuning.location_options),
        }));
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
    use serde_json::json;

    use super::*;

    #[test]
    fn a_refusal_that_names_a_parent_of_another_controller_shows_how_to_leave_it_out() {
        let others = [json!({"TuningJobName": "amt"}), json!({"TuningJobName": "amt-2"})];
        let refused = "no hyperparameter tuning job is named amt-2; name one that has ended";
        assert_eq!(lost(refused, &others), Some("amt-2"));
        assert_eq!(lost("the endpoint does not answer", &others), None);
    }

    #[test]
    fn the_number_of_an_extension_follows_the_name_of_the_first_tuning() {
        let parents = ["xgb-4", "mnist-x"];
        for (name, expected) in
            [("xgb", "xgb-2"), ("xgb-5", "xgb-2"), ("mnist-10", "mnist-10-2"), ("a-b", "a-b-2")]
        {
            assert_eq!(numbered(base(name, &parents), 2), expected);
        }
        assert_eq!(numbered("a-name-of-exactly-32-characters-", 10), "a-name-of-exactly-32-characte-10");
        assert_eq!(numbered(&"x".repeat(32), 2).len(), 32);
    }
}
