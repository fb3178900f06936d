//! Deterministic numbers: hashes for names and IDs, and the times of simulated spot interruptions.
//!
//! The same inputs always give the same numbers, in every version. Uses neither the clock nor the system's randomness.

use std::time::Duration;

/// Returns the FNV-1a hash of the parts, each followed by a zero byte, mixed by [`mix`].
pub(crate) fn hash(parts: &[&[u8]]) -> u64 {
    let mut state = 0xcbf2_9ce4_8422_2325_u64;
    for part in parts {
        for byte in part.iter().chain(&[0]) {
            state = (state ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    mix(state)
}

/// The finalizer of `SplitMix64`: spreads each bit over all bits.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Returns the ID of an event in the form of a UUID, derived from the job's ARN and the number of the change.
pub(crate) fn event_id(arn: &str, sequence: u64) -> String {
    let sequence = sequence.to_le_bytes();
    let high = hash(&[b"event-high", arn.as_bytes(), &sequence]);
    let low = hash(&[b"event-low", arn.as_bytes(), &sequence]);
    format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xfff,
        0x8000 | ((low >> 48) & 0x3fff),
        low & 0xffff_ffff_ffff
    )
}

/// Returns the time until run `run` of `job` is interrupted, exponentially distributed with `rate` per hour. `None`
/// means never.
pub(crate) fn interruption(seed: u64, job: &str, run: usize, rate: f64) -> Option<Duration> {
    if rate <= 0.0 {
        return None;
    }
    let run = u64::try_from(run).unwrap_or(u64::MAX).to_le_bytes();
    let random = hash(&[b"interruption", &seed.to_le_bytes(), job.as_bytes(), &run]);
    // In (0, 1]: the upper 32 bits, never zero, so that the logarithm is finite.
    let uniform = (f64::from(u32::try_from(random >> 32).unwrap_or(u32::MAX)) + 1.0) / 4_294_967_296.0;
    Duration::try_from_secs_f64(-uniform.ln() / rate * 3600.0).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interruptions_are_reproducible_and_have_the_requested_mean() {
        assert_eq!(interruption(7, "job", 1, 60.0), interruption(7, "job", 1, 60.0));
        assert_ne!(interruption(7, "job", 1, 60.0), interruption(7, "job", 2, 60.0));
        assert_eq!(interruption(7, "job", 1, 0.0), None);
        let sum: f64 =
            (0..2000).filter_map(|run| interruption(1, "a", run, 60.0)).map(|d| d.as_secs_f64()).sum();
        assert!((sum / 2000.0 - 60.0).abs() < 5.0, "mean {}", sum / 2000.0);
    }

    #[test]
    fn event_ids_have_the_form_of_uuids() {
        let id = event_id("arn", 3);
        assert_eq!(id.len(), 36);
        assert_ne!(id, event_id("arn", 4));
    }
}
