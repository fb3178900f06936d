//! The shape of the table: its keys, its stream and its time-to-live attribute. `infra/` declares the same.
//!
//! The stream carries the new image only. Consumers filter on the key and on attributes of the row as it is now, and
//! nothing reads the row as it was; with old images each overwritten snapshot would travel twice. A removed row tells
//! its key. [`create_table`] is for the embedded engine and emulators, where a new table is active at once.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_dynamodb::operation::describe_table::DescribeTableError;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType, StreamSpecification,
    StreamViewType, TimeToLiveSpecification,
};
use service::ports::table::TableError;
use wire::item::{EXPIRES_AT, PK, SK};

use crate::errors;

/// Makes the table unless it is there.
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
        .stream_specification(stream.build().map_err(unbuilt)?);
    for (name, role) in [(PK, KeyType::Hash), (SK, KeyType::Range)] {
        let element = KeySchemaElement::builder().attribute_name(name).key_type(role);
        let kind = AttributeDefinition::builder().attribute_name(name).attribute_type(ScalarAttributeType::S);
        request = request
            .key_schema(element.build().map_err(unbuilt)?)
            .attribute_definitions(kind.build().map_err(unbuilt)?);
    }
    request.send().await.map_err(errors::request)?;
    let expiry = TimeToLiveSpecification::builder().attribute_name(EXPIRES_AT).enabled(true);
    client
        .update_time_to_live()
        .table_name(table_name)
        .time_to_live_specification(expiry.build().map_err(unbuilt)?)
        .send()
        .await
        .map_err(errors::request)?;
    Ok(())
}

#[expect(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
fn unbuilt(error: BuildError) -> TableError {
    TableError::Refused(error.to_string())
}
