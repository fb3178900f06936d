//! The values of metrics over time, from the stored log of a job.

use std::io;

use tuning::log::fact::MetricLine;
use wire::events::logs::{Explanation, LogEvent, MetricPattern, StreamLines};

use super::job_log::JobLog;

/// The most text that is read of a log, in bytes, from its beginning.
const READ_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A value of the objective, with the values of other metrics.
#[derive(Debug, Clone, PartialEq)]
pub struct Emission {
    /// The epoch index of the line, as logged.
    pub index: Option<u64>,
    /// The value of each other metric; `None` without one.
    pub others: Vec<Option<f64>>,
}

/// Returns the values that `pattern` reads in `log`, oldest first. Blocks.
pub fn series(log: JobLog, pattern: &MetricPattern) -> io::Result<Vec<MetricLine>> {
    let mut found = StreamLines::default();
    read(log, |event| found.add(event, &pattern.read(&event.message)))?;
    Ok(found.into_lines())
}

/// Returns the values of the objective in `log`, oldest first, with the values of other metrics. Blocks.
///
/// A value on the line of the objective belongs to it. A value on another line belongs to the objective before it, or to
/// the next one if that has a value of this metric: programs print their metrics before the objective or after it.
pub fn emissions(
    log: JobLog,
    objective: &MetricPattern,
    others: &[MetricPattern],
) -> io::Result<Vec<Emission>> {
    let mut lines = StreamLines::default();
    let mut waiting = vec![None; others.len()];
    let mut found: Vec<Vec<Option<f64>>> = Vec::new();
    read(log, |event| {
        lines.add(event, &objective.read(&event.message));
        let is_new = lines.len() > found.len();
        while found.len() < lines.len() {
            found.push(waiting.iter_mut().map(Option::take).collect());
        }
        for (place, pattern) in others.iter().enumerate() {
            let Explanation::Value { value: Some(value), .. } = pattern.explain(&event.message) else {
                continue;
            };
            let last = found.last_mut().and_then(|last| last.get_mut(place));
            match last.filter(|last| is_new || last.is_none()) {
                Some(last) => *last = Some(value),
                None => waiting[place] = Some(value),
            }
        }
    })?;
    let lines = lines.into_lines().into_iter().zip(found);
    Ok(lines.map(|(line, others)| Emission { index: line.index, others }).collect())
}

/// Calls `take` with each event of a log.
fn read(mut log: JobLog, mut take: impl FnMut(&LogEvent)) -> io::Result<()> {
    let mut bytes = 0_usize;
    while bytes < READ_BYTES_MAX {
        let lines = log.next_lines()?;
        if lines.is_empty() {
            break;
        }
        for line in lines {
            bytes = bytes.saturating_add(line.message.len());
            take(&LogEvent { id: String::new(), timestamp: line.timestamp.0, message: line.message });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(lines: &[&str]) -> Vec<(Option<u64>, Vec<Option<f64>>)> {
        let folder = tempfile::tempdir().unwrap();
        let line =
            |(at, text): (i64, &&str)| format!("{}\n", json!({"id": "1", "timestamp": at, "message": text}));
        let text: String = (1..).zip(lines).map(line).collect();
        std::fs::write(folder.path().join("algo-1-1"), text).unwrap();
        let pattern =
            |name: &str| MetricPattern::new(&format!(r"{name}=([-+.\w]*\w)"), Some(r"epoch (\d+)")).unwrap();
        let log = JobLog::at(folder.path().to_owned(), None);
        let found = emissions(log, &pattern("acc"), &[pattern("loss"), pattern("lr")]).unwrap();
        found.into_iter().map(|one| (one.index, one.others)).collect()
    }

    #[test]
    fn values_belong_to_the_objective_of_their_line() {
        let lines = ["epoch 0 loss=3 acc=1", "epoch 1 acc=2 loss=2 lr=1", "epoch 2 acc=3"];
        let expected = [(0, [Some(3.0), None]), (1, [Some(2.0), Some(1.0)]), (2, [None, None])];
        assert_eq!(found(&lines), expected.map(|(index, others)| (Some(index), others.to_vec())));
    }

    #[test]
    fn values_on_other_lines_are_before_the_objective_or_after_it() {
        let before = found(&["loss=9", "loss=3", "epoch 0 acc=1", "loss=2", "epoch 1 acc=2"]);
        let after = found(&["epoch 0 acc=1", "loss=3", "epoch 1 acc=2", "loss=2"]);
        let expected = vec![(Some(0), vec![Some(3.0), None]), (Some(1), vec![Some(2.0), None])];
        assert_eq!((&before, &after), (&expected, &expected));
    }
}
