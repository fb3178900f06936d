//! The local event bus: a file with one JSON event per line.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Mutex;

use serde_json::{Value, json};
use use_cases::ports::{Bus, BusError, Clock, SOURCE};

use super::SystemClock;

/// A bus that appends events to a file.
#[derive(Debug)]
pub struct EventFile {
    path: PathBuf,
    append: Mutex<()>,
}

impl EventFile {
    /// Returns a bus that appends to `path`.
    pub fn new(path: PathBuf) -> Self {
        Self { path, append: Mutex::new(()) }
    }

    fn append(&self, line: &str) -> std::io::Result<()> {
        let _guard = self.append.lock();
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(&self.path)?;
        file.write_all(line.as_bytes())
    }
}

impl Bus for EventFile {
    async fn publish(&self, detail_type: &str, detail: &Value) -> Result<(), BusError> {
        let event = json!({
            "source": SOURCE,
            "detail-type": detail_type,
            "time": SystemClock.now(),
            "detail": detail,
        });
        self.append(&format!("{event}\n")).map_err(|error| BusError::Unavailable(error.to_string()))
    }
}
