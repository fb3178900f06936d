//! The number of attempts of a request, and the pauses between them.

use std::time::Duration;

use tokio::time::sleep;

/// The retry policy. Each pause is random, from zero to a maximum that doubles, so that clients do not retry together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// Maximum number of attempts.
    pub tries: u32,
    /// Maximum pause before the second attempt.
    pub first: Duration,
    /// Maximum of all pauses.
    pub most: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self { tries: 5, first: Duration::from_millis(250), most: Duration::from_secs(8) }
    }
}

impl Retry {
    /// Returns the pause after `done` attempts (at least 1); `draw` is a random number from 0 to 1.
    pub fn pause(&self, done: u32, draw: f64) -> Duration {
        let doubled = 2_u32.saturating_pow(done.saturating_sub(1));
        self.first.saturating_mul(doubled).min(self.most).mul_f64(draw.clamp(0.0, 1.0))
    }

    /// Waits before the next attempt, after `done` ones. Returns `false` if no attempt is left.
    pub(crate) async fn again(&self, done: &mut u32) -> bool {
        let is_left = *done < self.tries;
        if is_left {
            sleep(self.pause(*done, fastrand::f64())).await;
            *done = done.saturating_add(1);
        }
        is_left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_maximum() {
        let retry = Retry::default();
        let longest: Vec<u128> = (1..=7).map(|done| retry.pause(done, 1.0).as_millis()).collect();
        assert_eq!(longest, [250, 500, 1_000, 2_000, 4_000, 8_000, 8_000]);
        assert_eq!(retry.pause(u32::MAX, 0.5), Duration::from_secs(4));
        assert_eq!(retry.pause(3, 0.0), Duration::ZERO);
    }
}
