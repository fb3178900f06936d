//! `hyperband submit`: submits a request to a deployed stack.
//!
//! Validates the request locally before it is sent. The stack checks prices, its own limits and its names. A server on
//! this machine also checks the fields that only a stack requires.

use api_client::{Address, Created};
use serde_json::{Value, json};
use wire::request::Request;

use crate::arguments::{Output, Submit};
use crate::check::validate_for_stack;
use crate::failure::{Exit, Failure};
use crate::output::{print_err, print_json, show};
use crate::remote::{Remote, failed};
use crate::request;
use crate::tunings::Tunings;
use crate::watch;

pub(crate) async fn submit(options: Submit) -> Result<Exit, Failure> {
    let edits = request::Edits {
        name: options.name.as_deref(),
        tries: &options.tries,
        parents: &options.parents,
        limits: options.limits,
        channels: &[],
    };
    // A server on this machine is `serve`, which needs no fields of AWS, or `proxy`. Behind it, the stack validates.
    let is_local =
        matches!(options.place.place(), Ok(Some(Address::Http(endpoint))) if endpoint.is_loopback());
    let request = if is_local {
        request::read_for_local_server(&options.request, edits)?
    } else {
        let request = request::read(&options.request, edits)?;
        validate_for_stack(&request).map_err(|error| Failure::invalid_request(&error))?;
        request
    };
    let run = ", or use `hyperband run` to run the tuning on this machine";
    let endpoint = options.place.required(run)?;
    let remote = Remote::connect(endpoint).await?;
    let created = remote.client.create(&request).await.map_err(failed)?;
    if created.found {
        print_err("the stack's response was lost, but the stack has the tuning\n");
    }
    let (name, place) = (request.name(), options.place.location_options());
    if options.watch {
        print_err(&format!("submitted {name}: {}\n", created.arn));
        let tunings = Tunings::of_stack(remote, place);
        let followed = watch::follow(&tunings, name, options.interval, options.output).await;
        // A program expects one JSON document. Without a result, it is the submission.
        let printed = matches!(followed, Ok(Exit::Done | Exit::Failed));
        if options.output == Output::Json && !printed {
            print_json(&submitted(name, &created));
        }
        return followed.map_err(|failure| {
            failure.context(format!("{name} was submitted and continues, but cannot be watched"))
        });
    }
    print(&request, &created, &place, options.output);
    Ok(Exit::Done)
}

/// Prints that a stack has accepted a request, and the commands that follow it there.
pub(crate) fn print(request: &Request, created: &Created, location_options: &str, output: Output) {
    let name = request.name();
    let text = || {
        let commands = ["watch", "describe", "stop"]
            .map(|word| format!("  hyperband {word} {name}{location_options}\n"));
        format!("submitted {name}: {}\n\n{}", created.arn, commands.concat())
    };
    show(output, text, || submitted(name, created));
}

fn submitted(name: &str, created: &Created) -> Value {
    json!({"HyperParameterTuningJobArn": created.arn, "HyperParameterTuningJobName": name})
}
