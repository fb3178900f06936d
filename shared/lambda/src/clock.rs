//! The system clock and its timer.

use std::time::{Duration, SystemTime};

use use_cases::ports::{Clock, Millis, Timer};

/// The system clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Millis {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }
}

impl Timer for SystemClock {
    async fn pause(&self, ms: Millis) {
        let ms = u64::try_from(ms).unwrap_or(0);
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
}
