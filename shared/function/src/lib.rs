//! What all Lambda functions have in common: a start that tells why it fails, a time limit below Lambda's, and the log.
//!
//! A handler gets a [`Call`], does its work within the call's [`Deadline`], and tells what came of it in the call's report,
//! which is written when it has answered. Must never decide anything, nor keep a process from ending when it panics.
#![warn(missing_docs)]

mod clock;
mod deadline;
pub mod told;

use std::error::Error;
use std::fmt::Display;
use std::io::Write;
use std::panic::PanicHookInfo;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use lambda_runtime::{Diagnostic, LambdaEvent, run, service_fn};
use serde_json::Value;
use service::ports::Clock;
use telemetry::{Entry, ErrorType, Report, Teller};

pub use clock::SystemClock;
pub use deadline::Deadline;

/// The invocation under way, for the line of a panic.
static REQUEST: Mutex<String> = Mutex::new(String::new());

/// A function's program.
#[derive(Debug, Clone, Copy)]
pub struct Program {
    name: &'static str,
}

/// One invocation.
#[derive(Debug)]
pub struct Call {
    /// What it is given.
    pub event: Value,
    /// How much time it has.
    pub deadline: Deadline,
    /// What there is to tell of it.
    pub report: Report,
}

/// An invocation that failed, as Lambda is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Its type.
    pub error_type: ErrorType,
    /// Its message.
    pub message: String,
}

impl Failure {
    /// It failed with this error.
    pub fn new(error_type: ErrorType, error: &dyn Display) -> Self {
        Self { error_type, message: error.to_string() }
    }

    /// It was not done in time.
    pub fn timeout() -> Self {
        Self::new(ErrorType::Timeout, &"the function's time was nearly over")
    }
}

impl From<Failure> for Diagnostic {
    fn from(failure: Failure) -> Self {
        Self { error_type: failure.error_type.name().to_owned(), error_message: failure.message }
    }
}

impl Program {
    /// The program of the function `name`. From now on a panic is told as a line of the log.
    pub fn named(name: &'static str) -> Self {
        std::panic::set_hook(Box::new(move |panic| tell_panic(name, panic)));
        Self { name }
    }

    /// Tells why the function cannot start; the code with which its process ends.
    pub fn cannot_start(self, error: &dyn Error) -> ExitCode {
        let entry =
            Entry::error("the function cannot start").because(ErrorType::Settings, &error.to_string());
        print(&line(&entry.line(self.name, None, now())));
        ExitCode::FAILURE
    }

    /// Handles invocations until Lambda ends the process. `stack` is the name of the stack.
    pub async fn run<H>(self, stack: &str, handle: H) -> ExitCode
    where
        H: AsyncFn(&mut Call) -> Result<Value, Failure>,
    {
        let (handle, teller) = (&handle, &Mutex::new(Teller::new(self.name, stack)));
        let service = service_fn(move |event: LambdaEvent<Value>| async move {
            let LambdaEvent { payload, context } = event;
            let request = context.request_id;
            request.clone_into(&mut lock(&REQUEST));
            let deadline = Deadline::of(i64::try_from(context.deadline).unwrap_or(i64::MAX), now());
            let mut call = Call { event: payload, deadline, report: Report::default() };
            let answer = Box::pin(handle(&mut call)).await;
            print(&lock(teller).text(call.report, &request, now()));
            lock(&REQUEST).clear();
            answer
        });
        match run(service).await {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                let entry = Entry::error("the runtime interface failed")
                    .because(ErrorType::Runtime, &error.to_string());
                print(&line(&entry.line(self.name, None, now())));
                ExitCode::FAILURE
            }
        }
    }
}

fn tell_panic(name: &str, panic: &PanicHookInfo<'_>) {
    let message = panic.payload_as_str().unwrap_or("a panic without a message");
    let place = panic.location().map_or_else(String::new, |place| format!(" ({place})"));
    // Whoever panicked may hold it.
    let request = REQUEST.try_lock().map(|request| request.clone()).unwrap_or_default();
    let request = Some(request.as_str()).filter(|request| !request.is_empty());
    let entry = Entry::error("the program panicked").because(ErrorType::Panic, &format!("{message}{place}"));
    print(&line(&entry.line(name, request, now())));
}

fn line(text: &str) -> String {
    format!("{text}\n")
}

/// Lambda keeps what a function writes to its standard output as the function's log.
fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    // A log that cannot be written must not keep the function from its work.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Now, ms since the epoch.
pub fn now() -> i64 {
    SystemClock.now()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
