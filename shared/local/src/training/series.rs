//! The values of metrics over time, from the stored log of a job.

use std::io;

use tuning::log::fact::MetricLine;
use wire::events::logs::{LogEvent, MetricPattern, StreamLines};

use super::job_log::JobLog;

/// The most text that is read of a log, in bytes, from its beginning.
const READ_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Returns the values that each of `patterns` reads in `log`, oldest first. Blocks.
pub fn series(mut log: JobLog, patterns: &[MetricPattern]) -> io::Result<Vec<Vec<MetricLine>>> {
    let mut found: Vec<StreamLines> = patterns.iter().map(|_| StreamLines::default()).collect();
    let mut bytes = 0_usize;
    while bytes < READ_BYTES_MAX {
        let lines = log.next_lines()?;
        if lines.is_empty() {
            break;
        }
        for line in lines {
            bytes = bytes.saturating_add(line.message.len());
            let event = LogEvent { id: String::new(), timestamp: line.timestamp.0, message: line.message };
            for (pattern, found) in patterns.iter().zip(&mut found) {
                found.add(&event, &pattern.read(&event.message));
            }
        }
    }
    Ok(found.into_iter().map(StreamLines::into_lines).collect())
}
