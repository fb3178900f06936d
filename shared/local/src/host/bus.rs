//! The event bus of one machine: a file with one JSON event a line.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Mutex;

use serde_json::{Value, json};
use service::ports::{Bus, BusError, Clock, SOURCE};

use super::SystemClock;

/// Appends events to a file.
#[derive(Debug)]
pub struct EventFile {
    path: PathBuf,
    turn: Mutex<()>,
}

impl EventFile {
    /// A bus that appends to `path`.
    pub fn new(path: PathBuf) -> Self {
        Self { path, turn: Mutex::new(()) }
    }

    fn append(&self, line: &str) -> std::io::Result<()> {
        let _turn = self.turn.lock();
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
