//! The table's keys, stream and time-to-live attribute. The template in `infra/` declares the same.
//!
//! The stream has new images only. Consumers filter on the key and on attributes of the new row. No consumer reads the
//! old row, and old images would send each overwritten snapshot twice. The record of a removed row has its key.
//!
//! [`create_table`] is for the embedded engine and for emulators, where a new table is active at once.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_dynamodb::operation::describe_table::DescribeTableError;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType, StreamSpecification,
    StreamViewType, TimeToLiveSpecification,
};
use use_cases::ports::table::TableError;
use wire::item::{EXPIRES_AT, PK, SK};

use crate::errors;

/// Creates the table unless it exists.
pub async fn create_table(client: &Client, table_name: &str) -> Result<(), TableError> {
    match client.describe_table().table_name(table_name).send().await {
        Ok(_) => return Ok(()),
        Err(error)
            if error.as_service_error().is_some_and(DescribeTableError::is_resource_not_found_exception) => {}
        Err(error) => return Err(errors::request(error)),
    }
    let stream =
        StreamSpecification::builder().stream_enabled(true).stream_view_type(StreamViewType::NewImage);
    let mut request = client
        .create_table()
        .table_name(table_name)
        .billing_mode(BillingMode::PayPerRequest)
        .stream_specification(stream.build().map_err(incomplete)?);
    for (name, role) in [(PK, KeyType::Hash), (SK, KeyType::Range)] {
        let element = KeySchemaElement::builder().attribute_name(name).key_type(role);
        let kind = AttributeDefinition::builder().attribute_name(name).attribute_type(ScalarAttributeType::S);
        request = request
            .key_schema(element.build().map_err(incomplete)?)
            .attribute_definitions(kind.build().map_err(incomplete)?);
    }
    request.send().await.map_err(errors::request)?;
    let expiry = TimeToLiveSpecification::builder().attribute_name(EXPIRES_AT).enabled(true);
    client
        .update_time_to_live()
        .table_name(table_name)
        .time_to_live_specification(expiry.build().map_err(incomplete)?)
        .send()
        .await
        .map_err(errors::request)?;
    Ok(())
}

#[expect(clippy::needless_pass_by_value, reason = "passed to map_err by name")]
fn incomplete(error: BuildError) -> TableError {
    TableError::Refused(error.to_string())
}
