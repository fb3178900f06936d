//! The Sobol' sequence in up to 30 dimensions, plain and scrambled.
//!
//! Each point is computed from its index, without state. The direction numbers are those of S. Joe and F. Y.
//! Kuo, "Constructing Sobol sequences with better two-dimensional projections", SIAM J. Sci. Comput. 30,
//! 2635-2654 (2008), file `new-joe-kuo-6`; copyright (c) 2008 Frances Y. Kuo and Stephen Joe, BSD license,
//! see `LICENSE-JOE-KUO` beside this crate's manifest.
//!
//! Stored tunings rely on these numbers: they must never change.

use crate::number::{UNIT_BITS, unit};
use crate::seed::{GOLDEN, child, mix};

/// The number of dimensions with direction numbers.
pub const DIMENSIONS_MAX: usize = 30;

const BITS: usize = 32;

/// For each dimension after the first: the inner coefficients `a` of its primitive polynomial as bits, and
/// the initial numbers `m`, as many as the degree of the polynomial.
const JOE_KUO: [(u32, &[u32]); DIMENSIONS_MAX - 1] = [
    (0, &[1]),
    (1, &[1, 3]),
    (1, &[1, 3, 1]),
    (2, &[1, 1, 1]),
    (1, &[1, 1, 3, 3]),
    (4, &[1, 3, 5, 13]),
    (2, &[1, 1, 5, 5, 17]),
    (4, &[1, 1, 5, 5, 5]),
    (7, &[1, 1, 7, 11, 19]),
    (11, &[1, 1, 5, 1, 1]),
    (13, &[1, 1, 1, 3, 11]),
    (14, &[1, 3, 5, 5, 31]),
    (1, &[1, 3, 3, 9, 7, 49]),
    (13, &[1, 1, 1, 15, 21, 21]),
    (16, &[1, 3, 1, 13, 27, 49]),
    (19, &[1, 1, 1, 15, 7, 5]),
    (22, &[1, 3, 1, 15, 13, 25]),
    (25, &[1, 1, 5, 5, 19, 61]),
    (1, &[1, 3, 7, 11, 23, 15, 103]),
    (4, &[1, 3, 7, 13, 13, 15, 69]),
    (7, &[1, 1, 3, 13, 7, 35, 63]),
    (8, &[1, 3, 5, 9, 1, 25, 53]),
    (14, &[1, 3, 1, 13, 9, 35, 107]),
    (19, &[1, 3, 1, 5, 27, 61, 31]),
    (21, &[1, 1, 5, 11, 19, 41, 61]),
    (28, &[1, 3, 5, 3, 3, 13, 69]),
    (31, &[1, 1, 7, 13, 1, 19, 1]),
    (32, &[1, 3, 7, 5, 13, 19, 59]),
    (37, &[1, 1, 3, 9, 25, 29, 41]),
];

/// For each dimension, the direction number of each bit of the index, lowest bit first.
const DIRECTIONS: [[u32; BITS]; DIMENSIONS_MAX] = directions();

const fn directions() -> [[u32; BITS]; DIMENSIONS_MAX] {
    let mut all = [[0; BITS]; DIMENSIONS_MAX];
    let mut bit = 0;
    while bit < BITS {
        all[0][bit] = 1 << (BITS - 1 - bit);
        bit += 1;
    }
    let mut dimension = 1;
    while dimension < DIMENSIONS_MAX {
        let (coefficients, initial) = JOE_KUO[dimension - 1];
        all[dimension] = directions_of(coefficients, initial);
        dimension += 1;
    }
    all
}

/// The recurrence `m_k = 2 a_1 m_(k-1) ^ ... ^ 2^s m_(k-s) ^ m_(k-s)` of the paper, with the numbers shifted
/// to the top of 32 bits.
const fn directions_of(coefficients: u32, initial: &[u32]) -> [u32; BITS] {
    let degree = initial.len();
    let mut v = [0; BITS];
    let mut bit = 0;
    while bit < BITS {
        if bit < degree {
            v[bit] = initial[bit] << (BITS - 1 - bit);
        } else {
            v[bit] = v[bit - degree] ^ (v[bit - degree] >> degree);
            let mut term = 1;
            while term < degree {
                if (coefficients >> (degree - 1 - term)) & 1 == 1 {
                    v[bit] ^= v[bit - term];
                }
                term += 1;
            }
        }
        bit += 1;
    }
    v
}

/// Returns coordinate `dimension` (from 0) of point `index` (from 0), in units of 2^-32.
///
/// Points are in the order of Sobol's definition. Programs that step in Gray code (`sobol.cc`, scipy) return at index i
/// the point that has index `i ^ (i >> 1)` here.
///
/// # Panics
/// If `dimension` is not less than [`DIMENSIONS_MAX`].
#[must_use]
pub fn coordinate(index: u32, dimension: usize) -> u32 {
    let bits = DIRECTIONS[dimension].iter().enumerate();
    bits.fold(0, |sum, (bit, direction)| if (index >> bit) & 1 == 1 { sum ^ direction } else { sum })
}

/// Returns the point of trial `trial`, with a scrambling of its own for each dimension.
pub(crate) fn point(dimensions: usize, seed: u64, trial: u32) -> Vec<f64> {
    let numbered = (0_u64..).zip(0..dimensions);
    numbered.map(|(index, dimension)| scrambled(trial, dimension, child(seed, "sobol", index))).collect()
}

/// Returns coordinate `dimension` of point `index` after scrambling: in [0, 1), a multiple of 2^-53.
///
/// This is nested uniform scrambling (A. B. Owen, "Randomly permuted (t,m,s)-nets and (t,s)-sequences", 1995): each
/// bit is flipped by a random bit that depends on the bits before it. Here that random bit is a hash of `seed` and
/// those bits, as in B. Burley, "Practical hash-based Owen scrambling", JCGT 9(4) (2020), but with a full 64-bit hash
/// for each bit. The 21 bits below the 32 of the sequence are hashed likewise, as if the sequence continued.
/// Scrambling keeps the even spread, and different indexes still give different coordinates. Each dimension needs its
/// own seed.
///
/// # Panics
/// If `dimension` is not less than [`DIMENSIONS_MAX`].
#[must_use]
pub fn scrambled(index: u32, dimension: usize, seed: u64) -> f64 {
    let plain = u64::from(coordinate(index, dimension));
    // The bits before a bit, prefixed by a one, number the nodes of a binary tree.
    let hash = |node: u64| mix(seed.wrapping_add(node.wrapping_mul(GOLDEN)));
    let whole = 1 << BITS | plain;
    let flips = (1..=BITS).fold(0, |flips, below| (flips << 1) | hash(whole >> (BITS + 1 - below)) >> 63);
    let rest = UNIT_BITS - u32::BITS;
    unit((plain ^ flips) << rest | hash(whole) >> (u64::BITS - rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::child;

    fn point(index: u32) -> Vec<u32> {
        (0..DIMENSIONS_MAX).map(|dimension| coordinate(index, dimension)).collect()
    }

    fn gray(index: u32) -> u32 {
        index ^ (index >> 1)
    }

    #[test]
    fn the_first_1024_points_match_scipy() {
        // scipy 1.17.1: x = qmc.Sobol(30, scramble=False, bits=32).random(1024) * 2**32, then for each i and
        // d hash = (hash ^ (x[i, d] >> 22)) * 0x100000001b3 modulo 2**64. scipy steps in Gray code.
        let hash = (0..1024).flat_map(|i| point(gray(i))).fold(0_u64, |hash, x| {
            assert_eq!(x & ((1 << 22) - 1), 0);
            (hash ^ u64::from(x >> 22)).wrapping_mul(0x0100_0000_01b3)
        });
        assert_eq!(hash, 0xab3d_fb96_bbdf_ed00);
    }

    #[test]
    fn single_points_match_scipy() {
        // The same generator after fast_forward: these points use every bit of the index.
        let at = |index| [0, 1, 2, 10, 20, 28, 29].map(|dimension| coordinate(index, dimension));
        assert_eq!(
            at(gray(69_857)),
            [0x8919_8000, 0xf087_8000, 0x002d_8000, 0x615a_8000, 0xcda8_8000, 0x8576_8000, 0x9a0e_8000]
        );
        assert_eq!(
            at(gray(2_147_483_652)),
            [0x6000_0003, 0x3555_5555, 0xeb00_bbbb, 0xbe70_0e37, 0x8b01_0003, 0x4c12_abfb, 0x2626_96df]
        );
        assert_eq!(
            at(gray(4_294_967_294)),
            [0x8000_0001, 0x7fff_ffff, 0x4500_5555, 0x01d0_0a2d, 0xc103_000d, 0xc373_18d5, 0xb23c_3f39]
        );
    }

    /// Returns which of 2^log2 equal intervals holds a coordinate.
    fn interval(u: f64, log2: u32) -> usize {
        let step = crate::number::step_of(u) >> (UNIT_BITS - log2);
        usize::try_from(step).unwrap()
    }

    #[test]
    fn each_interval_holds_one_of_the_first_points_with_and_without_scrambling() {
        for dimension in 0..DIMENSIONS_MAX {
            for log2 in 0..=10 {
                let mut counts = vec![[0; 2]; 1 << log2];
                for index in 0..1 << log2 {
                    let plain = u64::from(coordinate(index, dimension)) << (UNIT_BITS - u32::BITS);
                    counts[interval(unit(plain), log2)][0] += 1;
                    let seed = child(5, "sobol", u64::try_from(dimension).unwrap());
                    counts[interval(scrambled(index, dimension, seed), log2)][1] += 1;
                }
                assert!(
                    counts.iter().all(|count| *count == [1, 1]),
                    "dimension {dimension}, 2^{log2} points"
                );
            }
        }
    }

    #[test]
    fn scrambling_keeps_the_balance_of_two_dimensions() {
        // The first two dimensions are a (0, 2)-sequence: each box of area 2^-8 holds one of the first 2^8
        // points.
        let seeds = [child(9, "sobol", 0), child(9, "sobol", 1)];
        for width in 0..=8 {
            let mut counts = [0; 256];
            for index in 0..256 {
                let x = interval(scrambled(index, 0, seeds[0]), width);
                let y = interval(scrambled(index, 1, seeds[1]), 8 - width);
                counts[x << (8 - width) | y] += 1;
            }
            assert_eq!(counts, [1; 256], "boxes 2^-{width} wide");
        }
    }

    #[test]
    fn scrambling_spreads_a_point_over_the_whole_interval() {
        // Over seeds, one coordinate is uniform: each 64th of the interval holds 1000 of 64,000 points, within five
        // standard deviations.
        for (index, dimension) in [(0, 0), (1, 0), (1000, 29)] {
            let mut counts = [0_u32; 64];
            for seed in 0..64_000 {
                counts[interval(scrambled(index, dimension, child(seed, "sobol", 0)), 6)] += 1;
            }
            assert!(counts.iter().all(|count| count.abs_diff(1000) < 160), "{counts:?}");
        }
    }
}
