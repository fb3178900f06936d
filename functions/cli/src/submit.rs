//! `hyperband submit`: gives a request to a deployed stack.
//!
//! What can be seen to be wrong here is told here, before anything is sent. What only the stack knows (its price list, its
//! limits, its names) is for the stack to judge.

use serde_json::json;
use wire::request::{Request, Violation};

use crate::arguments::{ENDPOINT_VARIABLE, Output, Submit};
use crate::check::validate;
use crate::failure::{Exit, Failure};
use crate::output::{say, say_json, tell};
use crate::remote::{Remote, failed};
use crate::run::ask;
use crate::watch;

/// A price that the request does not tell: a stack has a price list.
const PRICES: &str = "Controller.InstancePricesUsdPerHour";

/// Submits a request.
pub(crate) async fn submit(options: Submit) -> Result<Exit, Failure> {
    let request = ask::read(&options.request, options.name.as_deref())?;
    check(&request)?;
    let endpoint = options.place.place().map_err(Failure::usage)?.ok_or_else(|| {
        Failure::usage("nothing says where to submit to").hint(format!(
            "give the stack's output ApiUrl as --endpoint or in {ENDPOINT_VARIABLE}; `hyperband run` runs a tuning \
             on this machine"
        ))
    })?;
    let remote = Remote::connect(endpoint).await?;
    let created = remote.client.create(&request).await.map_err(failed)?;
    if created.found {
        tell("the stack's answer was lost on the way; the tuning was found there\n");
    }
    let (name, place) = (request.name(), options.place.words());
    let submitted = json!({"HyperParameterTuningJobArn": created.arn, "HyperParameterTuningJobName": name});
    if options.watch {
        tell(&format!("submitted {name}: {}\n", created.arn));
        let followed = watch::remote(&remote, name, &place, options.interval, options.output).await;
        // A program reads one JSON: without a result, that it was submitted, so that nobody submits it again.
        let told = matches!(followed, Ok(Exit::Done | Exit::Failed));
        if options.output == Output::Json && !told {
            say_json(&submitted);
        }
        return followed.map_err(|failure| {
            failure.context(format!("{name} was submitted and goes on, but cannot be followed any further"))
        });
    }
    match options.output {
        Output::Json => say_json(&submitted),
        Output::Text => say(&format!(
            "submitted {name}: {}\n\n  hyperband watch {name}{place}\n  hyperband describe {name}{place}\n  hyperband stop \
             {name}{place}\n",
            created.arn
        )),
    }
    Ok(Exit::Done)
}

/// Refuses what the stack would refuse.
fn check(request: &Request) -> Result<(), Failure> {
    match validate(request) {
        Err(error) if !is_about_prices(&error.violations) => Err(ask::refused(&error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Whether prices are all that is wrong.
pub(crate) fn is_about_prices(violations: &[Violation]) -> bool {
    !violations.is_empty() && violations.iter().all(|violation| violation.path == PRICES)
}
