//! The table on DynamoDB: in an AWS account, or on an engine embedded in this process.
//!
//! The only crate that names the SDK of DynamoDB. It translates and decides nothing: what rows mean is for `wire`, what
//! to do about an error is for the caller.
#![warn(missing_docs)]

#[cfg(feature = "aws")]
pub mod aws;
#[cfg(feature = "embedded")]
mod embedded;
mod errors;
mod row;
mod schema;
mod table;
mod tries;

pub use aws_sdk_dynamodb::Client;
#[cfg(feature = "embedded")]
pub use embedded::stream::{ChangeStream, StreamStart, event};
#[cfg(feature = "embedded")]
pub use embedded::{Embedded, OpenError, Swept, TABLE_NAME};
pub use schema::create_table;
pub use table::DynamoTable;
