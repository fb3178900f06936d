//! Log lines, and metrics in CloudWatch's embedded metric format, which are lines of the same log.
//!
//! Pure: returns text and prints nothing. A line must never contain a request body, a hyperparameter or unbounded text:
//! callers pass names and IDs, and every text is truncated.

pub mod errors;
pub mod line;
pub mod metrics;
mod report;

pub use errors::ErrorType;
pub use line::{Entry, Level};
pub use report::{LogWriter, Report};
