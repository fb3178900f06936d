//! What a function tells of itself: lines of its log, and metrics in CloudWatch's embedded format, as lines of the same log.
//!
//! Pure: it makes text and prints nothing. Must never let a request's body, a hyperparameter or a text of any length
//! into a line: whoever logs names what it is about, and all texts are cut.
#![warn(missing_docs)]

pub mod errors;
pub mod line;
pub mod metrics;
mod report;

pub use errors::ErrorType;
pub use line::{Entry, Level};
pub use report::{Report, Teller};
