//! Times. All times in facts and in the state are in ms since the epoch.

/// Returns `seconds` in milliseconds.
pub(crate) fn milliseconds(seconds: u64) -> i64 {
    i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1_000)
}
