//! Shows how far a stopped trial trains past its rung on a stack, for each way in which a stack receives log lines.

use serde_json::{Value, json};
use tuning::unit::money::MicroUsd;
use wire::forecast::{MetricsFrom, Overrun, Times};
use wire::request::{RungExecution, usd as dollars};

use super::Outlook;
use crate::text::{duration, table, usd};

const WAYS: [MetricsFrom; 2] = [MetricsFrom::Subscription, MetricsFrom::Polling];

/// The overruns of one stopped trial.
#[derive(Debug)]
pub(super) struct LateStops {
    epoch_ms: u64,
    assumed: bool,
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    metrics_from: MetricsFrom,
    /// `Typical` or `Documented`.
    delay: &'static str,
    delay_ms: u64,
    overrun: Overrun,
    cost: Option<MicroUsd>,
}

impl LateStops {
    /// Returns `None` if no trial is stopped at a rung.
    pub(super) fn forecast(outlook: &Outlook) -> Option<Self> {
        let brackets = outlook.hyperband.as_ref()?;
        if brackets.execution != RungExecution::Stop {
            return None;
        }
        let compared = brackets.plan.brackets().iter().filter(|bracket| bracket.rungs().len() > 1);
        let lowest =
            compared.filter_map(|bracket| bracket.rungs().first()).map(|rung| rung.resource).min()?;
        let left = brackets.plan.max_resource().saturating_sub(lowest);
        let epoch_ms = outlook.epoch_ms.unwrap_or(Times::ASSUMED.epoch_ms);
        let job = &outlook.definition.job;
        let rows = WAYS.into_iter().flat_map(|metrics_from| {
            let delay = metrics_from.delay(epoch_ms);
            [("Typical", delay.typical_ms), ("Documented", delay.documented_ms)].map(|(delay, delay_ms)| {
                let overrun = Overrun::expect(delay_ms, epoch_ms, left);
                let seconds = overrun.trained_ms.div_ceil(1_000);
                let cost = job.instances(job.largest()).cost(seconds);
                Row { metrics_from, delay, delay_ms, overrun, cost }
            })
        });
        Some(Self { epoch_ms, assumed: outlook.epoch_ms.is_none(), rows: rows.collect() })
    }

    pub(super) fn text(&self) -> String {
        let assumed = if self.assumed { "an assumed " } else { "" };
        let priced = self.rows.iter().all(|row| row.cost.is_some());
        let rows: Vec<Vec<String>> = self
            .rows
            .iter()
            .map(|row| {
                let mut cells = vec![
                    format!("{:?}, {}", row.metrics_from, row.delay.to_lowercase()),
                    time(row.overrun.trained_ms),
                    epochs(row.overrun.milli_epochs),
                ];
                cells.extend(row.cost.map(usd));
                cells
            })
            .collect();
        let head = ["STOP ON A STACK", "TRAINS ON", "EPOCHS", "COST"];
        format!(
            "a stopped trial trains past its rung until its stop takes effect; {assumed}{} per epoch\n{}",
            time(self.epoch_ms),
            table(&head[..if priced { 4 } else { 3 }], &rows, &[1, 2, 3])
        )
    }

    pub(super) fn json(&self) -> Value {
        let mut shown =
            json!({"EpochSeconds": thousandths(self.epoch_ms), "EpochSecondsAssumed": self.assumed});
        for row in &self.rows {
            shown[format!("{:?}", row.metrics_from)][row.delay] = json!({
                "DelaySeconds": thousandths(row.delay_ms),
                "TrainedSeconds": thousandths(row.overrun.trained_ms),
                "TrainedEpochs": thousandths(row.overrun.milli_epochs),
                "CostUsd": row.cost.map(dollars),
            });
        }
        shown
    }
}

fn epochs(thousandths: u64) -> String {
    match thousandths {
        1..100 => "< 0.1".to_owned(),
        all => format!("{}.{}", all / 1_000, all / 100 % 10),
    }
}

pub(super) fn time(milliseconds: u64) -> String {
    if milliseconds > 0 && milliseconds < 1_000 {
        return format!("{milliseconds} ms");
    }
    duration(i64::try_from(milliseconds).unwrap_or(i64::MAX))
}

/// Converts a number of thousandths. Goes through the decimal text, so that the number is exact.
pub(super) fn thousandths(count: u64) -> Value {
    let (whole, rest) = (count / 1_000, count % 1_000);
    if rest == 0 {
        return json!(whole);
    }
    format!("{whole}.{rest:03}").parse::<f64>().map_or_else(|_| json!(whole), Value::from)
}
