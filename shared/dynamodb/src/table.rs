//! [`Table`] on the DynamoDB SDK.
//!
//! Every read is strongly consistent. This module refuses rows and transactions above the size limits before it sends
//! them; DynamoDB checks everything else. The SDK's client retries as configured; this module never does.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_dynamodb::types::{
    AttributeValue, ConditionCheck, ConsumedCapacity, Delete, Put, ReturnConsumedCapacity, TransactWriteItem,
};
use sha2::{Digest, Sha256};
use use_cases::ports::table::{MAX_TRANSACTION_BYTES, Page, Query, Table, TableError, Write};
use use_cases::ports::usage::Usage;
use wire::item::{EXPIRES_AT, Item, Key, MAX_ITEM_BYTES, PK, SK};
use wire::stored::FACT_DAYS;

use crate::errors;
use crate::row::{self, Attributes, Expression};
use crate::tries::Tries;

/// DynamoDB's limit on the length of a client request token.
const MAX_TOKEN_BYTES: usize = 36;

/// A DynamoDB table and the client that calls it.
#[derive(Debug, Clone)]
pub struct DynamoTable {
    client: Client,
    table_name: String,
    usage: Option<Arc<Mutex<Usage>>>,
    /// Added to the expiry time of each row, in seconds. May be negative.
    expiry_shift: i64,
}

impl DynamoTable {
    /// Returns the table `table_name`, called through `client`.
    pub fn new(client: Client, table_name: impl Into<String>) -> Self {
        Self { client, table_name: table_name.into(), usage: None, expiry_shift: 0 }
    }

    /// Makes fact rows expire after `days` days instead of the default of 30.
    #[must_use]
    pub fn with_fact_days(mut self, days: u32) -> Self {
        self.expiry_shift = (i64::from(days) - FACT_DAYS) * 86_400;
        self
    }

    fn attributes(&self, item: Item) -> Attributes {
        let expiry = item.number(EXPIRES_AT).filter(|_| self.expiry_shift != 0);
        row::to_attributes(match expiry {
            Some(at) => item.with(EXPIRES_AT, at.saturating_add(self.expiry_shift)),
            None => item,
        })
    }

    /// Requests the consumed capacity with each call and sums it. Clones share the sums.
    #[must_use]
    pub fn metered(mut self) -> Self {
        self.usage = Some(Arc::default());
        self
    }

    /// Returns the requests and capacity units since [`DynamoTable::metered`], or zeros without it. A failed request is
    /// counted without units, because DynamoDB does not return them.
    pub fn usage(&self) -> Usage {
        self.usage
            .as_ref()
            .map(|usage| *usage.lock().unwrap_or_else(PoisonError::into_inner))
            .unwrap_or_default()
    }

    fn count(&self, add: impl FnOnce(&mut Usage)) {
        if let Some(usage) = &self.usage {
            add(&mut usage.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    fn capacity(&self) -> Option<ReturnConsumedCapacity> {
        self.usage.as_ref().map(|_| ReturnConsumedCapacity::Total)
    }

    /// Puts one row. When the condition fails in a retry, an earlier attempt may have succeeded without an answer. If
    /// the stored row equals the sent one, the put succeeded: a claim, for example, belongs to this caller.
    async fn put(&self, item: Item, condition: Expression) -> Result<(), TableError> {
        let (tries, key) = (Tries::default(), item.key.clone());
        let row = self.attributes(item);
        let sent = condition.text.is_some().then(|| row.clone());
        let answer = self
            .client
            .put_item()
            .table_name(&self.table_name)
            .set_item(Some(row))
            .set_condition_expression(condition.text)
            .set_expression_attribute_names(condition.names)
            .set_expression_attribute_values(condition.values)
            .set_return_consumed_capacity(self.capacity())
            .customize()
            .interceptor(tries.clone())
            .send()
            .await
            .map_err(errors::request);
        match answer {
            Ok(answer) => {
                self.count(|usage| usage.write_units += units(answer.consumed_capacity()));
                Ok(())
            }
            Err(TableError::Conflict(_)) if tries.was_retried() && self.stored(&key).await? == sent => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn stored(&self, key: &Key) -> Result<Option<Attributes>, TableError> {
        self.count(|usage| usage.reads += 1);
        let answer = self
            .client
            .get_item()
            .table_name(&self.table_name)
            .set_key(Some(row::to_key(key)))
            .consistent_read(true)
            .set_return_consumed_capacity(self.capacity())
            .send()
            .await
            .map_err(errors::request)?;
        self.count(|usage| usage.read_units += units(answer.consumed_capacity()));
        Ok(answer.item)
    }

    async fn delete(&self, key: &Key, condition: Expression) -> Result<(), TableError> {
        let answer = self
            .client
            .delete_item()
            .table_name(&self.table_name)
            .set_key(Some(row::to_key(key)))
            .set_condition_expression(condition.text)
            .set_expression_attribute_names(condition.names)
            .set_expression_attribute_values(condition.values)
            .set_return_consumed_capacity(self.capacity())
            .send()
            .await
            .map_err(errors::request)?;
        self.count(|usage| usage.write_units += units(answer.consumed_capacity()));
        Ok(())
    }

    async fn send(&self, writes: Vec<Write>, token: Option<String>) -> Result<(), TableError> {
        let items: Result<Vec<_>, BuildError> = writes.into_iter().map(|write| self.part(write)).collect();
        let answer = self
            .client
            .transact_write_items()
            .set_transact_items(Some(items.map_err(|error| TableError::Refused(error.to_string()))?))
            .set_client_request_token(token)
            .set_return_consumed_capacity(self.capacity())
            .send()
            .await
            .map_err(errors::transaction)?;
        let consumed: u64 = answer.consumed_capacity().iter().map(|part| units(Some(part))).sum();
        self.count(|usage| usage.write_units += consumed);
        Ok(())
    }

    fn part(&self, write: Write) -> Result<TransactWriteItem, BuildError> {
        let part = TransactWriteItem::builder();
        let part = match write {
            Write::Put(item, condition) => {
                let condition = Expression::of(&condition);
                part.put(
                    Put::builder()
                        .table_name(&self.table_name)
                        .set_item(Some(self.attributes(item)))
                        .set_condition_expression(condition.text)
                        .set_expression_attribute_names(condition.names)
                        .set_expression_attribute_values(condition.values)
                        .build()?,
                )
            }
            Write::Delete(key, condition) => {
                let condition = Expression::of(&condition);
                part.delete(
                    Delete::builder()
                        .table_name(&self.table_name)
                        .set_key(Some(row::to_key(&key)))
                        .set_condition_expression(condition.text)
                        .set_expression_attribute_names(condition.names)
                        .set_expression_attribute_values(condition.values)
                        .build()?,
                )
            }
            Write::Check(key, condition) => {
                let condition = Expression::of_check(&condition);
                part.condition_check(
                    ConditionCheck::builder()
                        .table_name(&self.table_name)
                        .set_key(Some(row::to_key(&key)))
                        .set_condition_expression(condition.text)
                        .set_expression_attribute_names(condition.names)
                        .set_expression_attribute_values(condition.values)
                        .build()?,
                )
            }
        };
        Ok(part.build())
    }
}

impl Table for DynamoTable {
    async fn get(&self, key: &Key) -> Result<Option<Item>, TableError> {
        self.stored(key).await?.map(row::from_attributes).transpose()
    }

    async fn write(&self, write: Write) -> Result<(), TableError> {
        self.count(|usage| usage.writes += 1);
        check_size(&write)?;
        match write {
            Write::Put(item, condition) => self.put(item, Expression::of(&condition)).await,
            Write::Delete(key, condition) => self.delete(&key, Expression::of(&condition)).await,
            // DynamoDB supports a check without a write only in a transaction.
            check @ Write::Check(..) => self.send(vec![check], None).await,
        }
    }

    async fn transact(&self, writes: Vec<Write>, token: &str) -> Result<(), TableError> {
        self.count(|usage| usage.transactions += 1);
        let mut bytes = 0;
        for write in &writes {
            bytes += check_size(write)?;
        }
        if bytes > MAX_TRANSACTION_BYTES {
            let most = MAX_TRANSACTION_BYTES;
            let reason = format!("transaction too large: {bytes} bytes, expected at most {most}");
            return Err(TableError::Refused(reason));
        }
        self.send(writes, Some(request_token(token)?)).await
    }

    async fn query(&self, query: &Query) -> Result<Page, TableError> {
        self.count(|usage| usage.queries += 1);
        if query.pk.is_empty() || query.limit == 0 {
            let reason = "invalid query: expected a partition key and a limit of at least 1".to_owned();
            return Err(TableError::Refused(reason));
        }
        let start = match start_of(query) {
            Start::Nothing => return Ok(Page::default()),
            Start::Begin => None,
            Start::After(sk) => Some(row::to_key(&Key::new(&query.pk, sk))),
        };
        let (condition, names, values) = key_condition(query);
        let answer = self
            .client
            .query()
            .table_name(&self.table_name)
            .key_condition_expression(condition)
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values(Some(values))
            .set_exclusive_start_key(start)
            .scan_index_forward(!query.descending)
            .limit(i32::try_from(query.limit).unwrap_or(i32::MAX))
            .consistent_read(true)
            .set_return_consumed_capacity(self.capacity())
            .send()
            .await
            .map_err(errors::request)?;
        self.count(|usage| usage.read_units += units(answer.consumed_capacity()));
        let next = match answer.last_evaluated_key.as_ref().map(|key| key.get(SK)) {
            None => None,
            Some(Some(AttributeValue::S(sk))) => Some(sk.clone()),
            Some(_) => {
                let reason = format!("invalid LastEvaluatedKey of a query: missing string attribute `{SK}`");
                return Err(TableError::Refused(reason));
            }
        };
        let items = answer
            .items
            .unwrap_or_default()
            .into_iter()
            .map(row::from_attributes)
            .collect::<Result<_, _>>()?;
        Ok(Page { items, next })
    }
}

/// Where a query starts to read.
#[derive(Debug, PartialEq, Eq)]
enum Start<'a> {
    Begin,
    After(&'a str),
    Nothing,
}

/// Returns where the query starts. DynamoDB refuses a start key outside the prefix, so such a key becomes "from the
/// beginning" or "nothing to read".
fn start_of(query: &Query) -> Start<'_> {
    let Some(after) = query.after.as_deref() else { return Start::Begin };
    if !after.is_empty() && after.starts_with(&query.prefix) {
        return Start::After(after);
    }
    let is_before_prefix = after <= query.prefix.as_str();
    if is_before_prefix == query.descending { Start::Nothing } else { Start::Begin }
}

fn key_condition(query: &Query) -> (String, HashMap<String, String>, Attributes) {
    let mut condition = "#pk = :pk".to_owned();
    let mut names = HashMap::from([("#pk".to_owned(), PK.to_owned())]);
    let mut values = HashMap::from([(":pk".to_owned(), AttributeValue::S(query.pk.clone()))]);
    if !query.prefix.is_empty() {
        condition += " AND begins_with(#sk, :prefix)";
        names.insert("#sk".to_owned(), SK.to_owned());
        values.insert(":prefix".to_owned(), AttributeValue::S(query.prefix.clone()));
    }
    (condition, names, values)
}

/// Returns the bytes of the row that is put, or an error for a row that is too large or has a key attribute.
fn check_size(write: &Write) -> Result<usize, TableError> {
    let Write::Put(item, _) = write else { return Ok(0) };
    if [PK, SK].iter().any(|name| item.attributes.contains_key(*name)) {
        let reason =
            format!("invalid row {:?}: an attribute has the name `{PK}` or `{SK}` of the key", item.key);
        return Err(TableError::Refused(reason));
    }
    match item.size_bytes() {
        bytes if bytes > MAX_ITEM_BYTES => {
            let reason =
                format!("row {:?} too large: {bytes} bytes, expected at most {MAX_ITEM_BYTES}", item.key);
            Err(TableError::Refused(reason))
        }
        bytes => Ok(bytes),
    }
}

/// Returns the token, or the first half of its SHA-256 hash in hexadecimal when it is too long for DynamoDB.
fn request_token(token: &str) -> Result<String, TableError> {
    match token.len() {
        0 => Err(TableError::Refused("empty transaction token: expected at least 1 character".to_owned())),
        1..=MAX_TOKEN_BYTES => Ok(token.to_owned()),
        _ => Ok(Sha256::digest(token).iter().take(16).fold(String::new(), |mut hex, byte| {
            // Writing to a string cannot fail.
            let _ = write!(hex, "{byte:02x}");
            hex
        })),
    }
}

/// Returns whole capacity units. DynamoDB charges halves only for eventually consistent reads.
#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates, and units are small and not negative"
)]
fn units(consumed: Option<&ConsumedCapacity>) -> u64 {
    consumed.and_then(ConsumedCapacity::capacity_units).unwrap_or(0.0).ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_too_long_for_dynamodb_is_hashed() {
        assert_eq!(request_token(&"t".repeat(36)).unwrap(), "t".repeat(36));
        let long = request_token(&"t".repeat(37)).unwrap();
        assert!(long.len() == 32 && long != request_token(&"t".repeat(38)).unwrap(), "{long}");
        assert!(request_token("").is_err());
    }

    #[test]
    fn a_query_never_starts_outside_its_prefix() {
        let start = |prefix: &str, after: &str, descending| {
            let query = Query { after: Some(after.to_owned()), descending, ..Query::prefix("p", prefix, 1) };
            match start_of(&query) {
                Start::Begin => "begin".to_owned(),
                Start::Nothing => "nothing".to_owned(),
                Start::After(sk) => format!("after {sk}"),
            }
        };
        assert_eq!([start("B", "A", false), start("B", "C", false)], ["begin", "nothing"]);
        assert_eq!([start("B", "A", true), start("B", "C", true)], ["nothing", "begin"]);
        assert_eq!(
            [start("B", "B1", true), start("", "", false), start("", "", true)],
            ["after B1", "begin", "nothing"]
        );
    }
}
