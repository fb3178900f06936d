//! Reads and validates a request, and formats its violations.

pub(crate) mod channels;
mod comments;
mod file;
mod parents;
mod results;
pub(crate) mod tries;

use std::path::Path;

use serde_json::{Map, Value};
use tuning::definition::Definition;
use tuning::unit::time::Time;
use wire::constraint::remove_lifted;
use wire::request::{PriceAnswer, Request, RequestError, Violation};

use crate::arguments::Limits;
use crate::failure::Failure;
use channels::Channel;
use tries::Try;

pub(crate) use file::{parse, text};

const NAME: &str = "HyperParameterTuningJobName";
/// The request field for prices. It is optional at a stack, which has a price list.
const PRICES: &str = "Controller.InstancePricesUsdPerHour";

/// Changes of a request by the command line.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Edits<'a> {
    /// Replaces the name of the tuning.
    pub(crate) name: Option<&'a str>,
    /// Follow the `InitialConfigurations` of the request.
    pub(crate) tries: &'a [Try],
    /// Follow the parents in the `WarmStartConfig` of the request.
    pub(crate) parents: &'a [String],
    /// Replace those of the request.
    pub(crate) limits: Limits,
    /// Replace the data of the request's channels.
    pub(crate) channels: &'a [Channel],
}

/// Reads the request in `path` (`-` is standard input) for a stack.
pub(crate) fn read(path: &Path, edits: Edits<'_>) -> Result<Request, Failure> {
    checked(path, edits, Request::check)
}

/// Like [`read`], but for this machine, see [`check_local`].
pub(crate) fn read_local(path: &Path, edits: Edits<'_>) -> Result<Request, Failure> {
    checked(path, edits, check_local)
}

/// Like [`read_local`], but without the defaults, for a server on this machine: it adds them if it runs the tuning here.
pub(crate) fn read_for_local_server(path: &Path, edits: Edits<'_>) -> Result<Request, Failure> {
    checked(path, edits, |mut body| {
        channels::resolve(&mut body);
        check_local(body.clone())?;
        Ok(Request::from_stored(body))
    })
}

/// Validates a request for this machine: fields that only AWS needs get defaults, a metric without `Regex` the built-in
/// pattern, and the paths of channels become URIs.
pub(crate) fn check_local(mut body: Value) -> Result<Request, RequestError> {
    channels::resolve(&mut body);
    Request::check_local(body)
}

/// Checks a new tuning of this machine like its submission, without a change.
pub(crate) fn check_new(request: &Request) -> Result<Definition, RequestError> {
    channels::check(request)?;
    // Local volumes are free, and there is no price list.
    let prices = PriceAnswer { volume_kilo_gib_hour: Some(0), ..PriceAnswer::default() };
    let defined = request.definition(Time(0), "000000", &prices);
    defined.map_err(|error| local_error(request, error))
}

/// Rewrites the error for a missing price: this machine has no price list.
pub(crate) fn local_error(request: &Request, error: RequestError) -> RequestError {
    if !is_about_prices(&error.violations) {
        return error;
    }
    let message = format!(
        "MaxCostUsd needs a price, and this machine has no price list; set Controller.InstancePricesUsdPerHour to the \
         price of one hour, for example {{\"{}\": 0.5}}, or remove MaxCostUsd",
        request.unpriced_type()
    );
    RequestError::field(PRICES, &message)
}

pub(crate) fn is_about_prices(violations: &[Violation]) -> bool {
    !violations.is_empty() && violations.iter().all(|violation| violation.path == PRICES)
}

/// Returns the request of an ended tuning for a new one that starts from its results. `cap` in dollars replaces the cap.
/// The parents have the values of the initial configurations.
pub(crate) fn extended(
    mut body: Value,
    name: &str,
    parents: &[String],
    limits: Limits,
    cap: Option<Value>,
) -> Value {
    body[NAME] = Value::from(name);
    let warm_start = body.pointer_mut("/WarmStartConfig/ParentHyperParameterTuningJobs");
    warm_start.and_then(Value::as_array_mut).map(Vec::clear);
    parents::append(&mut body, parents);
    // They have these fields too.
    remove_lifted(&mut body);
    if let Some(Value::Object(controller)) = body.get_mut("Controller") {
        controller.remove("InitialConfigurations");
        cap.map(|cap| controller.insert("MaxCostUsd".to_owned(), cap));
    }
    limit(&mut body, limits);
    body
}

fn checked(
    path: &Path,
    edits: Edits<'_>,
    check: fn(Value) -> Result<Request, RequestError>,
) -> Result<Request, Failure> {
    let mut body = parse(path, &text(path)?).map_err(|error| Failure::invalid_request(&error))?;
    if let Some(name) = edits.name {
        body[NAME] = Value::from(name);
    }
    tries::append(&mut body, edits.tries);
    parents::append_all(&mut body, edits.parents)?;
    limit(&mut body, edits.limits);
    channels::check_names(&body, edits.channels)?;
    channels::replace(&mut body, edits.channels);
    check(body).map_err(|error| Failure::invalid_request(&error))
}

/// Replaces limits of a request. Leaves members of the wrong type for validation to reject.
fn limit(body: &mut Value, limits: Limits) {
    let mut put = |path: &[&str], value: Value| {
        let mut here = &mut *body;
        for name in path {
            let Value::Object(members) = here else { return };
            here = members.entry(*name).or_insert(Value::Null);
            if here.is_null() {
                *here = Value::Object(Map::new());
            }
        }
        *here = value;
    };
    let resources = ["HyperParameterTuningJobConfig", "ResourceLimits"];
    if let Some(jobs) = limits.jobs {
        put(&[resources[0], resources[1], "MaxNumberOfTrainingJobs"], jobs.get().into());
    }
    if let Some(time) = limits.max_time {
        put(&[resources[0], resources[1], "MaxRuntimeInSeconds"], time.as_secs().into());
    }
    if let Some(usd) = limits.max_cost {
        put(&["Controller", "MaxCostUsd"], usd.into());
    }
}
