//! The table in DynamoDB: in an AWS account, or in an engine embedded in this process.
//!
//! No other crate depends on the DynamoDB SDK. This crate only translates: `wire` defines the rows, and the caller
//! handles the errors.
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
pub use embedded::stream::{ChangeStream, event};
#[cfg(feature = "embedded")]
pub use embedded::{Embedded, OpenError, StreamStart, Swept, TABLE_NAME};
pub use schema::create_table;
pub use table::DynamoTable;
