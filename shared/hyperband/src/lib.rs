//! The integer mathematics of Hyperband: the plan of brackets and rungs, the ranking of results, and the decision at a
//! rung. Supports both the stopping and the promoting form of ASHA.
//!
//! Everything here is a synchronous function of values: no I/O, no clock, no randomness, no floating-point arithmetic
//! (floats are only compared, and only in [`ranking`]). Sources: Li et al., *Hyperband: A Novel Bandit-Based Approach
//! to Hyperparameter Optimization*, JMLR 18 (2018), section 3 (Algorithm 1); Li et al., *A System for Massively
//! Parallel Hyperparameter Tuning* (ASHA), MLSys 2020, section 3.
//!
//! ```
//! use hyperband::plan::Plan;
//! let plan = Plan::hyperband(1, 81, 3)?;
//! let first: Vec<u32> = plan.brackets().iter().map(|bracket| bracket.rungs()[0].slots).collect();
//! // The paper's Table 1 prints 81/27/9/6/5; its formula, n = ceil((s_max + 1) / (s + 1) * eta^s), gives this:
//! assert_eq!(first, [81, 34, 15, 8, 5]);
//! # Ok::<(), hyperband::plan::PlanError>(())
//! ```
#![warn(missing_docs)]
#![cfg_attr(
    not(test),
    warn(
        clippy::arithmetic_side_effects,
        clippy::as_conversions,
        clippy::float_arithmetic,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::wildcard_enum_match_arm
    )
)]

pub mod plan;
pub mod promotion;
pub mod ranking;
pub mod rung;
