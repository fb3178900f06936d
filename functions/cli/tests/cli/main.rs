//! The built program, as a person or a script uses it.

mod after;
mod errors;
mod help;
mod interrupted;
mod report;
mod run;
mod world;
