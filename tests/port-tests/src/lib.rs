//! Tests of the ports in crate `use-cases`: the contract suites that specify each implementation, and the table in
//! memory that fast tests and the simulator use.
#![warn(missing_docs)]

pub mod memory;
pub mod table;
pub mod training;
