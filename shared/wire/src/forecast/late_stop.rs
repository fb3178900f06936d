//! Estimates how far a trial trains past a rung before its stop takes effect. The time depends on how a stack receives
//! the log lines of training jobs. `docs/PERFORMANCE.md` has the basis of each number.

/// From the delivery of a line to an accepted stop, in ms: two streams, a batching window of 1 s, and three calls.
const CONTROLLER_MS: u64 = 2_000;
/// The usual delivery of CloudWatch Logs, in ms: an estimate.
const SUBSCRIPTION_TYPICAL_MS: u64 = 3_000;
/// The delivery that CloudWatch Logs documents as usual ("less than three minutes"), in ms. It documents no maximum.
const SUBSCRIPTION_DOCUMENTED_MS: u64 = 180_000;
/// Interval of the sweeps, in ms.
const SWEEP_MS: u64 = 60_000;
/// A job whose last known line is younger is not read by a sweep, in ms.
pub const SILENCE_MS: u64 = 120_000;

/// How a stack receives the log lines of training jobs: its parameter `MetricsFrom`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricsFrom {
    /// CloudWatch Logs sends them.
    Subscription,
    /// The sweeper reads them.
    Polling,
}

/// Times from a printed line to an accepted stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delay {
    /// The usual time, in ms.
    pub typical_ms: u64,
    /// With `Subscription` the longest time that AWS documents as usual, with `Polling` the longest time, in ms.
    pub documented_ms: u64,
}

/// What a trial still trains between its line at a rung and its stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overrun {
    /// Time, in ms: at most that of the rest of the training.
    pub trained_ms: u64,
    /// Epochs, in thousandths.
    pub milli_epochs: u64,
}

impl MetricsFrom {
    /// Returns the delays of a program with this time per epoch.
    pub fn delay(self, epoch_ms: u64) -> Delay {
        let (typical_ms, documented_ms) = match self {
            Self::Subscription => (SUBSCRIPTION_TYPICAL_MS, SUBSCRIPTION_DOCUMENTED_MS),
            // The job is silent before each line, so each sweep reads its log.
            Self::Polling if epoch_ms >= SILENCE_MS + SWEEP_MS => (SWEEP_MS / 2, SWEEP_MS),
            Self::Polling => (SILENCE_MS / 2, SILENCE_MS + SWEEP_MS),
        };
        Delay { typical_ms: typical_ms + CONTROLLER_MS, documented_ms: documented_ms + CONTROLLER_MS }
    }
}

impl Overrun {
    /// Returns the overrun of a trial that could train `left` further epochs.
    pub fn expect(delay_ms: u64, epoch_ms: u64, left: u32) -> Self {
        let rest_ms = u64::from(left).saturating_mul(epoch_ms);
        let trained_ms = delay_ms.min(rest_ms);
        let all = u64::from(left).saturating_mul(1_000);
        let milli_epochs = trained_ms.saturating_mul(1_000).checked_div(epoch_ms).unwrap_or(all);
        Self { trained_ms, milli_epochs }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overrun_is_the_delay_up_to_the_end_of_the_training() {
        let of = |delay, epoch, left| {
            let overrun = Overrun::expect(delay, epoch, left);
            (overrun.trained_ms, overrun.milli_epochs)
        };
        assert_eq!(of(5_000, 30_000, 18), (5_000, 166));
        assert_eq!(of(182_000, 30_000, 18), (182_000, 6_066));
        assert_eq!(of(182_000, 30_000, 6), (180_000, 6_000), "six epochs are left");
        assert_eq!(of(182_000, 0, 6), (0, 6_000), "epochs without time are all trained");
    }

    #[test]
    fn polling_reads_a_job_with_long_epochs_in_each_sweep() {
        let polling = |epoch_ms| MetricsFrom::Polling.delay(epoch_ms);
        assert_eq!(polling(179_999), Delay { typical_ms: 62_000, documented_ms: 182_000 });
        assert_eq!(polling(180_000), Delay { typical_ms: 32_000, documented_ms: 62_000 });
        let subscription = Delay { typical_ms: 5_000, documented_ms: 182_000 };
        for epoch_ms in [0, 180_000] {
            assert_eq!(MetricsFrom::Subscription.delay(epoch_ms), subscription);
        }
    }
}
