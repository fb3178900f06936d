//! Linear algebra in a fixed order: the same bits on every machine.
//!
//! A sum runs over eight lanes that are added in a fixed order, so the compiler can use vector instructions without
//! changing the result. Libraries choose their kernels at run time, so their last bits differ between machines.

/// Returns the scalar product of two vectors of the same length.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    debug_assert_eq!(a.len(), b.len(), "a scalar product needs vectors of the same length");
    let (a_blocks, a_rest) = a.as_chunks::<8>();
    let (b_blocks, b_rest) = b.as_chunks::<8>();
    let mut lanes = [0.0_f64; 8];
    for (x, y) in a_blocks.iter().zip(b_blocks) {
        for ((lane, x), y) in lanes.iter_mut().zip(x).zip(y) {
            *lane += x * y;
        }
    }
    let [a0, a1, a2, a3, a4, a5, a6, a7] = lanes;
    let blocks = ((a0 + a1) + (a2 + a3)) + ((a4 + a5) + (a6 + a7));
    a_rest.iter().zip(b_rest).fold(blocks, |sum, (x, y)| sum + x * y)
}

/// Returns the square of the distance of two points, whose coordinates are multiplied by `scale` first.
fn scaled_square(a: &[f64], b: &[f64], scale: &[f64]) -> f64 {
    let (a_blocks, a_rest) = a.as_chunks::<8>();
    let (b_blocks, b_rest) = b.as_chunks::<8>();
    let (blocks, rest) = scale.as_chunks::<8>();
    let square = |((a, b), scale): ((&f64, &f64), &f64)| {
        let apart = (a - b) * scale;
        apart * apart
    };
    let mut lanes = [0.0_f64; 8];
    for ((a, b), scale) in a_blocks.iter().zip(b_blocks).zip(blocks) {
        for (lane, of) in lanes.iter_mut().zip(a.iter().zip(b).zip(scale)) {
            *lane += square(of);
        }
    }
    let [a0, a1, a2, a3, a4, a5, a6, a7] = lanes;
    let blocks = ((a0 + a1) + (a2 + a3)) + ((a4 + a5) + (a6 + a7));
    a_rest.iter().zip(b_rest).zip(rest).map(square).fold(blocks, |sum, square| sum + square)
}

/// A dimension whose coordinates are only equal or not: those of a categorical parameter.
pub(crate) type IsCategory = bool;

/// A distance in which each dimension has a scale. Different categories are one range apart.
#[derive(Debug, Clone)]
pub(crate) struct Metric {
    /// The scale of each number; 0 for a category.
    numbers: Vec<f64>,
    /// The dimension of each category, and the square of its scale.
    categories: Vec<(usize, f64)>,
}

impl Metric {
    /// Returns the distance with a scale for each dimension.
    pub(crate) fn new(scales: &[f64], categories: &[IsCategory]) -> Self {
        let dimensions = || scales.iter().zip(categories).enumerate();
        let numbers = dimensions().map(|(_, (scale, is_category))| if *is_category { 0.0 } else { *scale });
        let categories = dimensions().filter(|(_, (_, is_category))| **is_category);
        Self {
            numbers: numbers.collect(),
            categories: categories.map(|(dimension, (scale, _))| (dimension, scale * scale)).collect(),
        }
    }

    /// Returns the distance without scales.
    pub(crate) fn plain(categories: &[IsCategory]) -> Self {
        Self::new(&vec![1.0; categories.len()], categories)
    }

    pub(crate) fn dimensions(&self) -> usize {
        self.numbers.len()
    }

    /// Returns the square of the distance of two points.
    pub(crate) fn square(&self, a: &[f64], b: &[f64]) -> f64 {
        let bits =
            |point: &[f64], dimension: usize| point.get(dimension).map(|coordinate| coordinate.to_bits());
        let differ = |dimension: usize| bits(a, dimension) != bits(b, dimension);
        let categories = self.categories.iter().filter(|(dimension, _)| differ(*dimension));
        categories.fold(scaled_square(a, b, &self.numbers), |sum, (_, square)| sum + square)
    }
}

/// Returns e to the power of `-x`, for `x` of at least 0, to 14 digits. A draw needs it up to 150,000 times, and
/// `libm::exp` took a quarter of the draw.
///
/// The argument is reduced to at most ln(2) / 16 in magnitude, eighths of a power of two are in a table, the series of
/// Taylor has 8 terms, and a power of two is a shift of the exponent (Muller et al., Handbook of Floating-Point
/// Arithmetic, 2018, chapter 10).
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range of the argument is checked"
)]
pub(crate) fn exp_minus(x: f64) -> f64 {
    const LN_2_HIGH: f64 = 0.693_147_180_369_123_8 / 8.0;
    const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10 / 8.0;
    /// 2 to the power of -j / 8.
    const EIGHTHS: [f64; 8] = [
        1.0,
        0.917_004_043_204_671_2,
        0.840_896_415_253_714_5,
        0.771_105_412_703_970_4,
        std::f64::consts::FRAC_1_SQRT_2,
        0.648_419_777_325_504_8,
        0.594_603_557_501_360_5,
        0.545_253_866_332_628_8,
    ];
    // Beyond this the result is close to the smallest normal number. A NaN stays one.
    if x > 700.0 {
        return 0.0;
    }
    let steps = (x * (8.0 * std::f64::consts::LOG2_E) + 0.5) as u32;
    let whole = f64::from(steps);
    let r = whole * LN_2_LOW - (x - whole * LN_2_HIGH);
    // The even and the odd terms are independent of each other.
    let square = r * r;
    let even = 1.0 + square * (1.0 / 2.0 + square * (1.0 / 24.0 + square * (1.0 / 720.0)));
    let odd = 1.0 + square * (1.0 / 6.0 + square * (1.0 / 120.0 + square * (1.0 / 5_040.0)));
    let eighths = EIGHTHS.get((steps % 8) as usize).copied().unwrap_or(1.0);
    let power = f64::from_bits(u64::from(1_023_u32.saturating_sub(steps / 8)) << 52);
    (even + r * odd) * eighths * power
}

/// The lower triangular factor L of a symmetric positive definite matrix A = L Lᵀ.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cholesky {
    /// Row i has i + 1 entries.
    rows: Vec<Vec<f64>>,
}

impl Cholesky {
    /// Factors the matrix whose lower triangle has these rows: row i has i + 1 entries. Returns `None` if the matrix
    /// is not positive definite (Golub and Van Loan, Matrix Computations, Algorithm 4.2.1).
    pub(crate) fn of(mut rows: Vec<Vec<f64>>) -> Option<Self> {
        for i in 0..rows.len() {
            let (done, rest) = rows.split_at_mut(i);
            let row = rest.first_mut()?;
            for (j, above) in done.iter().enumerate() {
                let (before, _) = row.split_at(j);
                let (other, last) = above.split_at(j);
                let entry = (row.get(j)? - dot(before, other)) / last.first()?;
                *row.get_mut(j)? = entry;
            }
            let (before, _) = row.split_at(i);
            let pivot = row.get(i)? - dot(before, before);
            // A NaN is not positive either.
            if pivot.is_nan() || pivot <= 0.0 {
                return None;
            }
            *row.get_mut(i)? = pivot.sqrt();
        }
        Some(Self { rows })
    }

    /// Returns x with L x = b.
    pub(crate) fn solve_lower(&self, b: &[f64]) -> Vec<f64> {
        let mut x = Vec::with_capacity(b.len());
        for (row, b) in self.rows.iter().zip(b) {
            let (before, pivot) = row.split_at(x.len());
            let entry = (b - dot(before, &x)) / pivot.first().copied().unwrap_or(1.0);
            x.push(entry);
        }
        x
    }

    /// Returns x with Lᵀ x = b.
    pub(crate) fn solve_upper(&self, b: &[f64]) -> Vec<f64> {
        let mut x = b.to_vec();
        for (i, row) in self.rows.iter().enumerate().rev() {
            let (before, pivot) = row.split_at(i);
            let (open, solved) = x.split_at_mut(i);
            let Some(entry) = solved.first_mut() else { continue };
            *entry /= pivot.first().copied().unwrap_or(1.0);
            for (open, factor) in open.iter_mut().zip(before) {
                *open -= factor * *entry;
            }
        }
        x
    }

    /// Returns L z.
    pub(crate) fn multiply(&self, z: &[f64]) -> Vec<f64> {
        let product = |(i, row): (usize, &Vec<f64>)| dot(row, z.get(..=i).unwrap_or_default());
        self.rows.iter().enumerate().map(product).collect()
    }

    /// Returns the sum of the logarithms of the diagonal of L: half the logarithm of the determinant of A.
    pub(crate) fn half_log_determinant(&self) -> f64 {
        self.rows.iter().filter_map(|row| row.last()).fold(0.0, |sum, pivot| sum + libm::log(*pivot))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;

    #[test]
    fn exp_minus_is_the_exponential_function() {
        for n in 0..=70_000_u32 {
            let x = f64::from(n) / 100.0;
            let (ours, exact) = (exp_minus(x), libm::exp(-x));
            assert!((ours / exact - 1.0).abs() < 1e-14, "{x}: {ours:e} instead of {exact:e}");
        }
        assert_eq!(
            [0.0, 701.0, f64::INFINITY].map(|x| exp_minus(x).to_bits()),
            [1.0_f64, 0.0, 0.0].map(f64::to_bits)
        );
        assert!(exp_minus(f64::NAN).is_nan());
    }

    #[test]
    fn a_distance_scales_numbers_and_compares_categories() {
        let numbers = |factor: f64| (1..=19).map(|n| f64::from(n) * factor).collect::<Vec<_>>();
        let (a, b, scales) = (numbers(1.0), numbers(0.5), numbers(0.25));
        let mut categories = [false; 19];
        (categories[3], categories[12]) = (true, true);
        let part = |i: usize| if categories[i] { scales[i] } else { (a[i] - b[i]) * scales[i] };
        let naive: f64 = (0..19).map(|i| part(i).powi(2)).sum();
        let metric = Metric::new(&scales, &categories);
        assert!((metric.square(&a, &b) / naive - 1.0).abs() < 1e-14);
        assert!(metric.square(&a, &a) < 1e-300, "equal categories are not apart");
    }

    #[test]
    fn a_known_matrix_has_its_known_factor() {
        // The example of Wikipedia, "Cholesky decomposition".
        let factor = Cholesky::of(vec![vec![4.0], vec![12.0, 37.0], vec![-16.0, -43.0, 98.0]]).unwrap();
        assert_eq!(factor.rows, [vec![2.0], vec![6.0, 1.0], vec![-8.0, 5.0, 3.0]]);
        assert!((factor.half_log_determinant() - 6.0_f64.ln()).abs() < 1e-12);
        assert_eq!(factor.multiply(&[1.0, 1.0, 1.0]), [2.0, 7.0, 0.0]);
    }

    #[test]
    fn an_indefinite_or_undefined_matrix_has_no_factor() {
        assert_eq!(Cholesky::of(vec![vec![1.0], vec![2.0, 1.0]]), None);
        assert_eq!(Cholesky::of(vec![vec![f64::NAN]]), None);
        assert_eq!(Cholesky::of(vec![vec![0.0]]), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

        /// Both solutions together solve the system of a matrix M Mᵀ + I, checked by a naive product.
        #[test]
        fn the_solution_satisfies_the_system(
            m in prop::collection::vec(prop::collection::vec(-2.0_f64..2.0, 20), 1..20),
            b in prop::collection::vec(-5.0_f64..5.0, 20),
        ) {
            let n = m.len();
            let naive = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            let entry = |i: usize, j: usize| naive(&m[i], &m[j]) + f64::from(u8::from(i == j));
            let rows = (0..n).map(|i| (0..=i).map(|j| entry(i, j)).collect()).collect();
            let factor = Cholesky::of(rows).unwrap();
            let x = factor.solve_upper(&factor.solve_lower(&b[..n]));
            for (i, expected) in b.iter().enumerate().take(n) {
                let row: Vec<f64> = (0..n).map(|j| entry(i, j)).collect();
                prop_assert!((naive(&row, &x) - expected).abs() < 1e-6);
            }
        }
    }
}
