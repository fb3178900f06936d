//! The runtime that all Lambda functions share: start-up, a time limit below Lambda's, settings, log lines and metrics.
//!
//! A handler gets a [`Call`], does its work within the call's [`Deadline`] and fills the call's [`Report`]. The runtime
//! writes the report after the handler returns. Must never decide anything, and must let a process end when it panics.
#![warn(missing_docs)]

mod clock;
mod deadline;
pub mod outcomes;
pub mod settings;
pub mod telemetry;

use std::error::Error;
use std::fmt::Display;
use std::io::Write;
use std::panic::PanicHookInfo;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use tuning::unit::time::Time;

use lambda_runtime::{Diagnostic, LambdaEvent, run, service_fn};
use serde_json::Value;
use telemetry::{Entry, ErrorType, LogWriter, Report};
use use_cases::ports::Clock;

pub use clock::SystemClock;
pub use deadline::Deadline;

/// The request ID of the current invocation, for the log line of a panic.
static REQUEST: Mutex<String> = Mutex::new(String::new());

/// A function's program.
#[derive(Debug, Clone, Copy)]
pub struct Program {
    name: &'static str,
}

/// One invocation.
#[derive(Debug)]
pub struct Call {
    /// The payload.
    pub event: Value,
    /// Its time limits.
    pub deadline: Deadline,
    /// Its log lines and metrics, written when the handler returns.
    pub report: Report,
}

/// A failed invocation, as returned to Lambda.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The type, stable for alarms and searches.
    pub error_type: ErrorType,
    /// The message.
    pub message: String,
}

impl Failure {
    /// Creates a failure from an error.
    pub fn new(error_type: ErrorType, error: &dyn Display) -> Self {
        Self { error_type, message: error.to_string() }
    }

    /// Creates the failure of an invocation that ran out of time.
    pub fn timeout() -> Self {
        Self::new(ErrorType::Timeout, &"the invocation ran out of time")
    }
}

impl From<Failure> for Diagnostic {
    fn from(failure: Failure) -> Self {
        Self { error_type: failure.error_type.name().to_owned(), error_message: failure.message }
    }
}

impl Program {
    /// Returns the program of the function `name`, and logs every panic from now on as one line.
    pub fn named(name: &'static str) -> Self {
        std::panic::set_hook(Box::new(move |panic| log_panic(name, panic)));
        Self { name }
    }

    /// Logs why the function cannot start, and returns the exit code of its process.
    pub fn cannot_start(self, error: &dyn Error) -> ExitCode {
        let entry =
            Entry::error("the function cannot start").because(ErrorType::Settings, &error.to_string());
        print(&line(&entry.line(self.name, None, now())));
        ExitCode::FAILURE
    }

    /// Handles invocations until Lambda ends the process. `stack`: the stack name, the dimension of all metrics.
    pub async fn run<H>(self, stack: &str, handle: H) -> ExitCode
    where
        H: AsyncFn(&mut Call) -> Result<Value, Failure>,
    {
        let (handle, writer) = (&handle, &Mutex::new(LogWriter::new(self.name, stack)));
        let service = service_fn(move |event: LambdaEvent<Value>| async move {
            let LambdaEvent { payload, context } = event;
            let request = context.request_id;
            request.clone_into(&mut lock(&REQUEST));
            let deadline = Deadline::of(i64::try_from(context.deadline).map_or(Time::MAX, Time), now());
            let mut call = Call { event: payload, deadline, report: Report::default() };
            let answer = Box::pin(handle(&mut call)).await;
            print(&lock(writer).text(call.report, &request, now()));
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

fn log_panic(name: &str, panic: &PanicHookInfo<'_>) {
    let message = panic.payload_as_str().unwrap_or("a panic without a message");
    let place = panic.location().map_or_else(String::new, |place| format!(" ({place})"));
    // The panicking thread may hold the lock.
    let request = REQUEST.try_lock().map(|request| request.clone()).unwrap_or_default();
    let request = Some(request.as_str()).filter(|request| !request.is_empty());
    let entry = Entry::error("the program panicked").because(ErrorType::Panic, &format!("{message}{place}"));
    print(&line(&entry.line(name, request, now())));
}

fn line(text: &str) -> String {
    format!("{text}\n")
}

/// Writes to standard output, which Lambda stores as the function's log.
fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    // A failed log write must not stop the function.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Returns the current time.
pub fn now() -> Time {
    SystemClock.now()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
