//! The built program, as a person or a script uses it.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail with their test")]

mod after;
mod disk;
mod errors;
mod help;
mod interrupted;
mod promote;
mod report;
mod run;
mod world;
