//! Random draws, the only source of randomness in the simulator. Each purpose has its own generator, so that a new draw
//! does not change existing ones.

use search::seed::{Rng, child};

/// A generator for one purpose.
#[derive(Debug, Clone)]
pub(crate) struct Dice(Rng);

impl Dice {
    /// Returns the generator of `seed` for a purpose and an index.
    pub(crate) fn new(seed: u64, purpose: &str, index: u64) -> Self {
        Self(Rng::new(child(seed, purpose, index)))
    }

    /// Returns true with probability `rate` (0 to 1).
    pub(crate) fn chance(&mut self, rate: f64) -> bool {
        self.0.next_f64() < rate
    }

    /// Returns a uniform number in [0, 1).
    pub(crate) fn unit(&mut self) -> f64 {
        self.0.next_f64()
    }

    /// Returns a whole number from `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: i64, high: i64) -> i64 {
        let span = u64::try_from(high.saturating_sub(low)).unwrap_or(0).saturating_add(1);
        low.saturating_add(i64::try_from(self.0.next_u64() % span).unwrap_or(0))
    }

    /// Like [`Self::between`], but for counts.
    pub(crate) fn count(&mut self, low: u32, high: u32) -> u32 {
        u32::try_from(self.between(i64::from(low), i64::from(high))).unwrap_or(low)
    }

    /// Returns an index below `length`, which must be above 0.
    pub(crate) fn index(&mut self, length: usize) -> usize {
        let length = u64::try_from(length.max(1)).unwrap_or(1);
        usize::try_from(self.0.next_u64() % length).unwrap_or(0)
    }

    /// Returns one of `choices`.
    pub(crate) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.index(choices.len())]
    }
}

/// Returns the 64-bit FNV-1a hash, which is the same on every machine.
pub(crate) fn fnv(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
