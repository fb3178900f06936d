//! The time limits of one invocation, below Lambda's own: Lambda kills a function at its limit before it can log.

use std::future::Future;
use std::time::Duration;

use crate::now;

/// The minimum time left to begin new work: one AWS call with its retries can take ten seconds.
const BEGIN_MARGIN_MS: i64 = 12_000;
/// Work that is unfinished with this much time left is dropped.
const CUT_MARGIN_MS: i64 = 1_000;
/// Lambda's maximum time-out. Used when the deadline is missing or in the past.
const LONGEST_MS: i64 = 900_000;

/// The limits of one invocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline {
    begin_until: i64,
    cut_at: i64,
}

impl Deadline {
    /// Returns the limits for an invocation that begins at `now` and that Lambda ends at `deadline`, in ms since the epoch.
    /// For short time-outs, the margins shrink to a share of the time.
    pub fn of(deadline: i64, now: i64) -> Self {
        let time = deadline.saturating_sub(now);
        let time = if time > 0 { time.min(LONGEST_MS) } else { LONGEST_MS };
        let end = now.saturating_add(time);
        Self {
            begin_until: end.saturating_sub(BEGIN_MARGIN_MS.min(time / 4)),
            cut_at: end.saturating_sub(CUT_MARGIN_MS.min(time / 10)),
        }
    }

    /// Returns whether there is time to begin new work.
    pub fn has_time(self) -> bool {
        now() < self.begin_until
    }

    /// Returns the output of `work`, or `None` if time ran out first. `work` is then dropped where it stands.
    pub async fn within<T>(self, work: impl Future<Output = T>) -> Option<T> {
        let left = u64::try_from(self.cut_at.saturating_sub(now())).unwrap_or(0);
        // The futures of AWS's clients are deeply nested. Boxed, they keep the compile time of each function small.
        tokio::time::timeout(Duration::from_millis(left), Box::pin(work)).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn margins_shrink_with_short_time_limits() {
        let of = |deadline, now| {
            let Deadline { begin_until, cut_at } = Deadline::of(deadline, now);
            (begin_until, cut_at)
        };
        assert_eq!(of(60_000, 0), (48_000, 59_000));
        assert_eq!(of(3_000, 0), (2_250, 2_700));
        assert_eq!(of(i64::MAX, 0), (888_000, 899_000), "an impossible deadline");
        assert_eq!(of(0, 5_000), (893_000, 904_000), "no deadline");
    }

    #[tokio::test]
    async fn unfinished_work_is_dropped_at_the_limit_and_finished_work_is_returned() {
        let over = Deadline { begin_until: 0, cut_at: 0 };
        assert!(!over.has_time());
        assert_eq!(over.within(std::future::pending::<()>()).await, None);
        let time = Deadline::of(i64::MAX, now());
        assert!(time.has_time());
        assert_eq!(time.within(async { 7 }).await, Some(7));
    }
}
