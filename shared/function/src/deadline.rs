//! How much time an invocation has, below Lambda's own limit: what is killed there can tell nothing of itself.

use std::future::Future;
use std::time::Duration;

use crate::now;

/// Nothing is begun with less time left: a call of AWS may take ten seconds with its further tries.
const BEGIN_MARGIN_MS: i64 = 12_000;
/// What is not done with so much time left is given up.
const CUT_MARGIN_MS: i64 = 1_000;
/// The longest time of a Lambda function. A host that tells no deadline, or one that is past, gives as much.
const LONGEST_MS: i64 = 900_000;

/// The limits of one invocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline {
    begin_until: i64,
    cut_at: i64,
}

impl Deadline {
    /// The limits below Lambda's `deadline`, for an invocation that begins `now`; ms since the epoch. A function that has
    /// little time keeps a part of it back.
    pub fn of(deadline: i64, now: i64) -> Self {
        let time = deadline.saturating_sub(now);
        let time = if time > 0 { time.min(LONGEST_MS) } else { LONGEST_MS };
        let end = now.saturating_add(time);
        Self {
            begin_until: end.saturating_sub(BEGIN_MARGIN_MS.min(time / 4)),
            cut_at: end.saturating_sub(CUT_MARGIN_MS.min(time / 10)),
        }
    }

    /// Whether there is time to begin something.
    pub fn goes_on(self) -> bool {
        now() < self.begin_until
    }

    /// What `work` gives; `None` if it was given up for lack of time.
    pub async fn within<T>(self, work: impl Future<Output = T>) -> Option<T> {
        let left = u64::try_from(self.cut_at.saturating_sub(now())).unwrap_or(0);
        // The futures of AWS's clients are nested deeply: on the heap, the compiler takes them one part at a time.
        tokio::time::timeout(Duration::from_millis(left), Box::pin(work)).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_margin_is_kept_and_a_short_time_is_not_all_margin() {
        let of = |deadline, now| {
            let Deadline { begin_until, cut_at } = Deadline::of(deadline, now);
            (begin_until, cut_at)
        };
        assert_eq!(of(60_000, 0), (48_000, 59_000));
        assert_eq!(of(3_000, 0), (2_250, 2_700));
        assert_eq!(of(i64::MAX, 0), (888_000, 899_000), "a deadline that cannot be");
        assert_eq!(of(0, 5_000), (893_000, 904_000), "none");
    }

    #[tokio::test]
    async fn what_has_no_time_is_given_up_and_what_is_ready_is_not() {
        let over = Deadline { begin_until: 0, cut_at: 0 };
        assert!(!over.goes_on());
        assert_eq!(over.within(std::future::pending::<()>()).await, None);
        let time = Deadline::of(i64::MAX, now());
        assert!(time.goes_on());
        assert_eq!(time.within(async { 7 }).await, Some(7));
    }
}
