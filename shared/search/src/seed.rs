//! A tree of seeds: each purpose and index has its own seed, so a new draw changes no existing draw.
//!
//! All arithmetic is on integers and the same on every machine. Stored tunings rely on these numbers, so they must
//! never change; the tests pin them. Not suitable for secrets.

use crate::number::{UNIT_BITS, unit};

/// 2^64 divided by the golden ratio, made odd: the increment of `SplitMix64`.
pub(crate) const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns the child seed of `seed` for a purpose and an index.
///
/// Defined as `mix(mix(mix(seed + G) ^ fnv(purpose)) + (index + 1) G)`, modulo 2^64, where `mix` is the
/// finalizer of `SplitMix64` (see [`Rng`]), G its increment, and `fnv` the 64-bit FNV-1a hash of the UTF-8
/// text (Fowler, Noll, Vo). For one seed and purpose, different indexes give different seeds.
#[must_use]
pub fn child(seed: u64, purpose: &str, index: u64) -> u64 {
    let purpose = mix(mix(seed.wrapping_add(GOLDEN)) ^ fnv(purpose));
    mix(purpose.wrapping_add(index.wrapping_add(1).wrapping_mul(GOLDEN)))
}

/// The `SplitMix64` generator: G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators", OOPSLA
/// 2014, in the form of S. Vigna's public-domain `splitmix64.c`. Period 2^64.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rng(u64);

impl Rng {
    /// Returns a generator that starts at `seed`; derive the seed with [`child`].
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns 64 uniform bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }

    /// Returns a uniform float in [0, 1): the upper 53 bits, as a multiple of 2^-53.
    pub fn next_f64(&mut self) -> f64 {
        unit(self.next_u64() >> (u64::BITS - UNIT_BITS))
    }
}

/// The finalizer of `SplitMix64` (Stafford's variant 13): one-to-one on 64 bits.
pub(crate) fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Returns the 64-bit FNV-1a hash.
fn fnv(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_generator_returns_the_published_numbers() {
        // The output of splitmix64.c for seed 1234567, as in Rosetta Code, "Pseudo-random
        // numbers/Splitmix64".
        let mut rng = Rng::new(1_234_567);
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!([(); 5].map(|()| rng.next_u64()), expected);
    }

    #[test]
    fn the_hash_returns_the_published_numbers() {
        assert_eq!(
            [fnv(""), fnv("a"), fnv("foobar")],
            [0xcbf2_9ce4_8422_2325, 0xaf63_dc4c_8601_ec8c, 0x8594_4171_f739_67e8]
        );
    }

    #[test]
    fn child_seeds_are_pinned_and_differ() {
        // A second implementation, in Python, gives the same numbers.
        assert_eq!(child(0, "", 0), 968_999_591_178_511_036);
        assert_eq!(child(42, "random", 7), 12_927_131_050_833_666_538);
        let mut seen = BTreeSet::new();
        for seed in 0..10 {
            for purpose in ["random", "sobol", ""] {
                seen.extend((0..100).map(|index| child(seed, purpose, index)));
            }
        }
        assert_eq!(seen.len(), 3000);
    }

    #[test]
    fn floats_are_uniform_in_the_unit_interval() {
        let mut rng = Rng::new(child(1, "test", 0));
        let mut tenths = [0_u32; 10];
        for _ in 0..100_000 {
            let u = rng.next_f64();
            assert!((0.0..1.0).contains(&u));
            tenths[(1..10_u8).filter(|tenth| u >= f64::from(*tenth) / 10.0).count()] += 1;
        }
        // Five standard deviations of a count with p = 0.1.
        assert!(tenths.iter().all(|count| count.abs_diff(10_000) < 475), "{tenths:?}");
    }
}
