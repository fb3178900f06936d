//! The job-logs function: records the objective's values in a batch of log lines, as CloudWatch Logs delivers it.
//!
//! Wiring only; what it does is `service::job_logs`. What fails is delivered again; what cannot be read ends in the failure
//! queue, under the error type `Unreadable`.

use std::sync::Arc;
use std::time::SystemTime;

use dynamodb::aws::{Settings, table};
use lambda_runtime::{Diagnostic, Error, LambdaEvent, run, service_fn};
use serde_json::{Value, json};
use service::job_events::RecordError;
use service::job_logs::JobLogs;
use service::ports::{Clock, Millis};
use service::store::Store;

/// The machine's clock.
#[derive(Debug, Clone, Copy)]
struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Millis {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let settings = Settings::read(|name| std::env::var(name).ok())?;
    let store = Arc::new(Store::new(Arc::new(table(&settings).await)));
    let ingest = &JobLogs { store, clock: SystemClock };
    let handler = |event: LambdaEvent<Value>| async move {
        let recorded = ingest.handle(&event.payload).await.map_err(|error| diagnostic(&error))?;
        Ok::<Value, Diagnostic>(json!({"recorded": format!("{recorded:?}")}))
    };
    run(service_fn(handler)).await
}

/// The error type is what alarms and the failure queue tell apart.
fn diagnostic(error: &RecordError) -> Diagnostic {
    let error_type = match error {
        RecordError::Unreadable(_) => "Unreadable",
        RecordError::Store(_) => "Table",
    };
    Diagnostic { error_type: error_type.to_owned(), error_message: error.to_string() }
}
