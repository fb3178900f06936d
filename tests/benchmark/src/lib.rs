//! Compares the controller with other methods: whole tunings in virtual time on tables of learning curves.
//!
//! `cargo run --release -p benchmark -- --help` lists the options. [`case`] reads the tables and [`analytic`] computes
//! some, [`rival`] plays the methods that the controller is compared with, [`peers`] has recorded figures of other
//! systems, and [`report`] prints the measures. The same options give the same bytes, with any number of threads.

pub mod analytic;
pub mod case;
pub mod error;
pub mod peers;
pub mod play;
pub mod report;
pub mod rival;
pub mod tables;
pub mod text;
pub mod warm;
pub mod world;
