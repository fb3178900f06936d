//! `hyperband doctor`: tests the assumptions about AWS in a real account, and prints yes, no or not tried for each.
//! With `--before`, it checks the account before the deployment instead.
//!
//! Submits one tuning of two short jobs to the stack. Then reads, with the credentials of the caller, what SageMaker
//! and CloudWatch Logs report about the jobs. A check without permission reports "not tried". Must never start anything
//! without confirmation, and must never leave a job of its own running.

mod account;
mod before;
mod checks;
mod evidence;
mod examination;
mod jobs;
mod money;
mod request;
mod show;
mod stack;
#[cfg(test)]
mod tests;
mod verdict;

use std::process;

use wire::names::incarnation;

use crate::arguments::Doctor;
use crate::failure::{Exit, Failure};
use crate::output::print_err;
use crate::question;
use crate::remote::Remote;
use crate::signals::Signals;
use account::Account;
use evidence::now;
use examination::Examination;

pub(crate) async fn doctor(options: &Doctor) -> Result<Exit, Failure> {
    if options.before {
        return before::before(options).await;
    }
    if let Some(option) = options.misplaced() {
        return Err(Failure::usage(format!("{option} works only with --before"))
            .hint("add --before to check an account before the deployment, or remove the option"));
    }
    let name = options.name.clone().unwrap_or_else(fresh_name);
    let instance_type = options.instance_type().map_err(Failure::usage)?;
    let request =
        request::request(options, instance_type, &name).map_err(|error| Failure::invalid_request(&error))?;
    let endpoint = options.place.required("")?;
    let remote = Remote::connect(endpoint).await?;
    let account = Account::of(&remote.stack)?;
    if !options.yes && !confirmed(options, &name, &remote)? {
        print_err("nothing was started\n");
        return Ok(Exit::Done);
    }
    let mut signals = Signals::listen()?;
    let mut examination = Examination::new(&remote, &account, &request, options);
    let made = examine(&mut examination, &mut signals).await;
    if matches!(made, Ok(Exit::Interrupted)) {
        print_err("stopping the tuning (press Ctrl-C again to exit at once)\n");
    }
    let left = tokio::select! {
        left = examination.clean_up() => left,
        () = signals.next() => Err(Failure::usage("interrupted during the clean-up").exit(Exit::Interrupted)),
    };
    let left = left.map_err(|failure| {
        let stop = format!("hyperband stop {name}{}", options.place.location_options());
        failure.context(format!("the tuning {name} may still be running")).hint(stop)
    });
    match (made, left) {
        (Err(failure), Err(left)) => {
            left.print();
            Err(failure)
        }
        (Err(failure), Ok(())) => Err(failure),
        (Ok(Exit::Interrupted), left) => left.map(|()| Exit::Interrupted),
        (Ok(_), left) => {
            let exit = show::show(&examination.evidence, &name, options.output);
            left.map(|()| exit)
        }
    }
}

/// Performs the examination until it ends or a signal arrives.
async fn examine(examination: &mut Examination<'_>, signals: &mut Signals) -> Result<Exit, Failure> {
    tokio::select! {
        prepared = examination.prepare() => prepared?,
        () = signals.next() => return Ok(Exit::Interrupted),
    }
    // Not interruptible: an aborted submission could reach the stack after the clean-up.
    if !examination.submit().await? {
        return Ok(Exit::Done);
    }
    tokio::select! {
        followed = examination.follow() => followed.map(|()| Exit::Done),
        () = signals.next() => Ok(Exit::Interrupted),
    }
}

fn fresh_name() -> String {
    format!("doctor-{}", incarnation(format!("{} {}", now(), process::id()).as_bytes()))
}

/// Prints what the doctor would start, and asks for confirmation.
fn confirmed(options: &Doctor, name: &str, remote: &Remote) -> Result<bool, Failure> {
    let plan = format!(
        "this starts the tuning {name} at {}: two training jobs on {}, one after the other, at most {} s each; the \
         stack enforces a cost cap of ${}",
        remote.stack.address(),
        options.instance_types.join(", "),
        request::MAX_RUNTIME_SECONDS,
        options.max_cost.typed,
    );
    question::confirmed(&plan, &format!("{plan}\ncontinue?"))
}
