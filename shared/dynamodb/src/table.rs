//! The table on the SDK of DynamoDB.
//!
//! Every read is strongly consistent. It checks our own limits (a row, a transaction) before it sends; all else is for
//! DynamoDB to refuse. It must never retry by itself: the client does, as configured, and then the caller decides.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_dynamodb::types::{
    AttributeValue, ConditionCheck, ConsumedCapacity, Delete, Put, ReturnConsumedCapacity, TransactWriteItem,
};
use service::memory::Usage;
use service::ports::table::{MAX_TRANSACTION_BYTES, Page, Query, Table, TableError, Write};
use sha2::{Digest, Sha256};
use wire::item::{EXPIRES_AT, Item, Key, MAX_ITEM_BYTES, PK, SK};
use wire::stored::FACT_DAYS;

use crate::errors;
use crate::row::{self, Attributes, Expression};
use crate::tries::Tries;

/// Most characters of a token that DynamoDB takes.
const MAX_TOKEN_BYTES: usize = 36;

/// The table named so, through this client.
#[derive(Debug, Clone)]
pub struct DynamoTable {
    client: Client,
    table_name: String,
    usage: Option<Arc<Mutex<Usage>>>,
    /// Added to the time at which a row may be removed, seconds.
    kept_longer: i64,
}

impl DynamoTable {
    /// The table `table_name` through `client`.
    pub fn new(client: Client, table_name: impl Into<String>) -> Self {
        Self { client, table_name: table_name.into(), usage: None, kept_longer: 0 }
    }

    /// The same table, which keeps the rows of facts for `days` days.
    #[must_use]
    pub fn keeping_facts(mut self, days: u32) -> Self {
        self.kept_longer = (i64::from(days) - FACT_DAYS) * 86_400;
        self
    }

    fn attributes(&self, item: Item) -> Attributes {
        let expiry = item.number(EXPIRES_AT).filter(|_| self.kept_longer != 0);
        row::to_attributes(match expiry {
            Some(at) => item.with(EXPIRES_AT, at.saturating_add(self.kept_longer)),
            None => item,
        })
    }

    /// The same table, which now asks for the capacity that each request consumed and sums it up. Clones share the sums.
    #[must_use]
    pub fn metered(mut self) -> Self {
        self.usage = Some(Arc::default());
        self
    }

    /// Requests and capacity units since [`DynamoTable::metered`]; zeros without it. A request that failed counts as a
    /// request, but DynamoDB does not tell its units.
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

    /// One put. If its condition fails at a further try of the same call, an earlier one may have been done and its answer
    /// lost: then the row is there as it was sent, and a claim, say, is ours and not another's.
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
            Err(TableError::Conflict(_)) if tries.several() && self.stored(&key).await? == sent => Ok(()),
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

    /// One write as a part of a transaction.
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
            // DynamoDB checks without writing only inside a transaction.
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
            return Err(TableError::Refused(format!("a transaction of {bytes} bytes; {most} can be")));
        }
        self.send(writes, Some(request_token(token)?)).await
    }

    async fn query(&self, query: &Query) -> Result<Page, TableError> {
        self.count(|usage| usage.queries += 1);
        if query.pk.is_empty() || query.limit == 0 {
            let reason = "a query needs a partition key and a limit of at least 1".to_owned();
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
                return Err(TableError::Refused(format!("a page ends at a key without a text `{SK}`")));
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

/// Where a query begins to read.
#[derive(Debug, PartialEq, Eq)]
enum Start<'a> {
    Begin,
    After(&'a str),
    Nothing,
}

/// DynamoDB refuses to start at a key outside the prefix, so such a key must become "everything" or "nothing".
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

/// The bytes of the row that is put; a row of which nobody may write more is refused here.
fn check_size(write: &Write) -> Result<usize, TableError> {
    let Write::Put(item, _) = write else { return Ok(0) };
    if [PK, SK].iter().any(|name| item.attributes.contains_key(*name)) {
        return Err(TableError::Refused(format!("{:?} has an attribute named as the key", item.key)));
    }
    match item.size_bytes() {
        bytes if bytes > MAX_ITEM_BYTES => {
            let reason = format!("{:?} is a row of {bytes} bytes; {MAX_ITEM_BYTES} can be", item.key);
            Err(TableError::Refused(reason))
        }
        bytes => Ok(bytes),
    }
}

/// The token itself, or the beginning of its hash if DynamoDB would not take it.
fn request_token(token: &str) -> Result<String, TableError> {
    match token.len() {
        0 => Err(TableError::Refused("the token of a transaction is empty".to_owned())),
        1..=MAX_TOKEN_BYTES => Ok(token.to_owned()),
        _ => Ok(Sha256::digest(token).iter().take(16).fold(String::new(), |mut hex, byte| {
            // Writing to a string cannot fail.
            let _ = write!(hex, "{byte:02x}");
            hex
        })),
    }
}

/// Whole capacity units; with strong reads and our writes DynamoDB charges no halves.
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
    fn a_long_token_becomes_a_hash_that_dynamodb_takes() {
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
