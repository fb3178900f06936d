//! The system clock and its timer.

use std::time::{Duration, SystemTime};

use tuning::unit::time::{Millis, Time};
use use_cases::ports::{Clock, Timer};

/// The system clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Time {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Time::EPOCH + Millis::from(since)
    }
}

impl Timer for SystemClock {
    async fn pause(&self, span: Millis) {
        tokio::time::sleep(Duration::from(span)).await;
    }
}
