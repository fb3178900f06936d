//! The time limits of one invocation, below Lambda's own: Lambda kills a function at its limit before it can log.

use std::future::Future;
use std::time::Duration;

use crate::now;
use tuning::unit::time::{Millis, Time};

/// The minimum time left to begin new work: one AWS call with its retries can take ten seconds.
const BEGIN_MARGIN: Millis = Millis::from_seconds(12);
/// Work that is unfinished with this much time left is dropped.
const CUT_MARGIN: Millis = Millis::from_seconds(1);
/// Lambda's maximum time-out. Used when the deadline is missing or in the past.
const LONGEST: Millis = Millis::from_seconds(900);

/// The limits of one invocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline {
    begin_until: Time,
    cut_at: Time,
}

impl Deadline {
    /// Returns the limits for an invocation that begins at `now` and that Lambda ends at `deadline`.
    /// For short time-outs, the margins shrink to a share of the time.
    pub fn of(deadline: Time, now: Time) -> Self {
        let left = deadline - now;
        let left = if left > Millis::ZERO { left.min(LONGEST) } else { LONGEST };
        let end = now + left;
        Self {
            begin_until: end - BEGIN_MARGIN.min(left.percent(25)),
            cut_at: end - CUT_MARGIN.min(left.percent(10)),
        }
    }

    /// Returns whether there is time to begin new work.
    pub fn has_time(self) -> bool {
        now() < self.begin_until
    }

    /// Returns the output of `work`, or `None` if time ran out first. `work` is then dropped where it stands.
    pub async fn within<T>(self, work: impl Future<Output = T>) -> Option<T> {
        let left = Duration::from(self.cut_at - now());
        // The futures of AWS's clients are deeply nested. Boxed, they keep the compile time of each function small.
        tokio::time::timeout(left, Box::pin(work)).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn margins_shrink_with_short_time_limits() {
        let of = |deadline, now| {
            let Deadline { begin_until, cut_at } = Deadline::of(Time(deadline), Time(now));
            (begin_until.0, cut_at.0)
        };
        assert_eq!(of(60_000, 0), (48_000, 59_000));
        assert_eq!(of(3_000, 0), (2_250, 2_700));
        assert_eq!(of(i64::MAX, 0), (888_000, 899_000), "an impossible deadline");
        assert_eq!(of(0, 5_000), (893_000, 904_000), "no deadline");
    }

    #[tokio::test]
    async fn unfinished_work_is_dropped_at_the_limit_and_finished_work_is_returned() {
        let over = Deadline { begin_until: Time::EPOCH, cut_at: Time::EPOCH };
        assert!(!over.has_time());
        assert_eq!(over.within(std::future::pending::<()>()).await, None);
        let time = Deadline::of(Time::MAX, now());
        assert!(time.has_time());
        assert_eq!(time.within(async { 7 }).await, Some(7));
    }
}
