//! `hyperband doctor`: tries in a real account what could be tried nowhere else, and says yes or no for each.
//!
//! One tuning of two short jobs goes through the stack as every tuning does; what SageMaker and CloudWatch Logs say of its
//! jobs is read beside it, with the rights of whoever calls. What the caller may not ask is not tried, and said so. Must never
//! leave a job of its own running, and never start anything before somebody has agreed.

mod account;
mod jobs;
mod money;
mod request;
mod seen;
mod show;
mod stack;
#[cfg(test)]
mod tests;
mod verdict;
mod visit;

use std::process;

use wire::names::incarnation;

use crate::arguments::{Doctor, ENDPOINT_VARIABLE};
use crate::failure::{Exit, Failure};
use crate::output::tell;
use crate::question;
use crate::remote::Remote;
use crate::run::{Signals, ask};
use account::Account;
use seen::now;
use visit::Visit;

/// Examines a stack and its account.
pub(crate) async fn doctor(options: Doctor) -> Result<Exit, Failure> {
    let name = options.name.clone().unwrap_or_else(fresh_name);
    let request = request::request(&options, &name).map_err(|error| ask::refused(&error))?;
    let endpoint = options.place.place().map_err(Failure::usage)?.ok_or_else(|| {
        Failure::usage("nothing says which stack is to be examined")
            .hint(format!("give the stack's output ApiUrl as --endpoint or in {ENDPOINT_VARIABLE}"))
    })?;
    let remote = Remote::connect(endpoint).await?;
    let account = Account::of(&remote.client)?;
    if !options.yes && !agreed(&options, &name, &remote)? {
        tell("nothing was started\n");
        return Ok(Exit::Done);
    }
    let mut signals = Signals::listen()?;
    let mut visit = Visit::new(&remote, &account, &request, &options);
    let made = examine(&mut visit, &mut signals).await;
    if matches!(made, Ok(Exit::Interrupted)) {
        tell("stopping what was started (press Ctrl-C again to leave at once)\n");
    }
    let left = tokio::select! {
        left = visit.clean_up() => left,
        () = signals.next() => Err(Failure::usage("left at once").exit(Exit::Interrupted)),
    };
    let left = left.map_err(|failure| {
        let stop = format!("hyperband stop {name}{}", options.place.words());
        failure.context(format!("the tuning {name} may still run")).hint(stop)
    });
    match (made, left) {
        (Err(failure), Err(left)) => {
            left.tell();
            Err(failure)
        }
        (Err(failure), Ok(())) => Err(failure),
        (Ok(Exit::Interrupted), left) => left.map(|()| Exit::Interrupted),
        (Ok(_), left) => {
            let exit = show::show(&visit.seen, &name, options.output);
            left.map(|()| exit)
        }
    }
}

/// Looks at everything, unless a signal comes before.
async fn examine(visit: &mut Visit<'_>, signals: &mut Signals) -> Result<Exit, Failure> {
    tokio::select! {
        prepared = visit.prepare() => prepared?,
        () = signals.next() => return Ok(Exit::Interrupted),
    }
    // Left in the middle, a submission could arrive after everything was cleaned up.
    if !visit.submit().await? {
        return Ok(Exit::Done);
    }
    tokio::select! {
        followed = visit.follow() => followed.map(|()| Exit::Done),
        () = signals.next() => Ok(Exit::Interrupted),
    }
}

/// A name that nobody has.
fn fresh_name() -> String {
    format!("doctor-{}", incarnation(format!("{} {}", now(), process::id()).as_bytes()))
}

/// Says what would be started, and asks the person at the terminal.
fn agreed(options: &Doctor, name: &str, remote: &Remote) -> Result<bool, Failure> {
    let plan = format!(
        "this starts the tuning {name} at {}: two training jobs on {} one after the other, each for {} s at most; all of it \
         costs ${} at most, which the stack enforces",
        remote.client.endpoint(),
        options.instance_type,
        request::MAX_RUNTIME_SECONDS,
        options.max_cost.typed,
    );
    question::agreed(&plan, &format!("{plan}\ngo on?"))
}
