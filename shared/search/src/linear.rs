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
