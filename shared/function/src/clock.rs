//! The machine's clock, and waiting on it.

use std::time::{Duration, SystemTime};

use service::ports::{Clock, Millis, Timer};

/// The machine's clock.
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
