//! One row of the table: a key of two strings and a flat map of attributes.
//!
//! A row has at most [`MAX_ITEM_BYTES`]. Nested data is JSON text in one attribute, which any DynamoDB tool can show.
//! Numbers are whole; a metric, which may be NaN, is stored as text.

use std::collections::BTreeMap;
use tuning::unit::time::Time;

use serde::{Deserialize, Serialize};

/// Maximum size of a written row, in bytes of names and values. DynamoDB rejects rows above 400 KB.
pub const MAX_ITEM_BYTES: usize = 300 * 1024;

/// Name of the partition key attribute.
pub const PK: &str = "pk";
/// Name of the sort key attribute.
pub const SK: &str = "sk";
/// Name of the attribute with the epoch second after which DynamoDB's time to live may remove a fact row.
pub const EXPIRES_AT: &str = "expires_at";

/// The primary key of a row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key {
    /// Partition key.
    pub pk: String,
    /// Sort key.
    pub sk: String,
}

impl Key {
    /// Returns a key from its two parts.
    pub fn new(pk: impl Into<String>, sk: impl Into<String>) -> Self {
        Self { pk: pk.into(), sk: sk.into() }
    }
}

/// The value of one attribute.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Attr {
    /// Text.
    S(String),
    /// A whole number.
    N(i64),
    /// Bytes.
    B(Vec<u8>),
    /// Boolean.
    Bool(bool),
}

impl Attr {
    /// Returns the size that DynamoDB counts for this value, in bytes. For numbers it is an upper bound.
    pub fn size_bytes(&self) -> usize {
        match self {
            Self::S(text) => text.len(),
            Self::N(_) => 21,
            Self::B(bytes) => bytes.len(),
            Self::Bool(_) => 1,
        }
    }
}

/// A row: its key and its other attributes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Item {
    /// The primary key.
    pub key: Key,
    /// All attributes except the key.
    pub attributes: BTreeMap<String, Attr>,
}

impl Item {
    /// Returns a row without attributes.
    pub fn new(key: Key) -> Self {
        Self { key, attributes: BTreeMap::new() }
    }

    /// Returns the row with attribute `name` added or replaced.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Attr>) -> Self {
        self.attributes.insert(name.to_owned(), value.into());
        self
    }

    /// Returns the text of attribute `name`, or `None` if it is missing or has another type.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.attributes.get(name)? {
            Attr::S(text) => Some(text),
            Attr::N(_) | Attr::B(_) | Attr::Bool(_) => None,
        }
    }

    /// Returns the number in attribute `name`, or `None` if it is missing or has another type.
    pub fn number(&self, name: &str) -> Option<i64> {
        match self.attributes.get(name)? {
            Attr::N(number) => Some(*number),
            Attr::S(_) | Attr::B(_) | Attr::Bool(_) => None,
        }
    }

    /// Returns the time in attribute `name`, or `None` if it is missing or has another type.
    pub fn time(&self, name: &str) -> Option<Time> {
        self.number(name).map(Time)
    }

    /// Returns the bytes in attribute `name`, or `None` if it is missing or has another type.
    pub fn bytes(&self, name: &str) -> Option<&[u8]> {
        match self.attributes.get(name)? {
            Attr::B(bytes) => Some(bytes),
            Attr::S(_) | Attr::N(_) | Attr::Bool(_) => None,
        }
    }

    /// Returns the size of names and values that DynamoDB counts, in bytes. It is an upper bound.
    pub fn size_bytes(&self) -> usize {
        let key = PK.len() + self.key.pk.len() + SK.len() + self.key.sk.len();
        self.attributes.iter().fold(key, |sum, (name, value)| sum + name.len() + value.size_bytes())
    }
}

impl From<String> for Attr {
    fn from(text: String) -> Self {
        Self::S(text)
    }
}
impl From<&str> for Attr {
    fn from(text: &str) -> Self {
        Self::S(text.to_owned())
    }
}
impl From<Time> for Attr {
    /// Returns the milliseconds since the epoch.
    fn from(time: Time) -> Self {
        time.0.into()
    }
}

impl From<i64> for Attr {
    fn from(number: i64) -> Self {
        Self::N(number)
    }
}
impl From<Vec<u8>> for Attr {
    fn from(bytes: Vec<u8>) -> Self {
        Self::B(bytes)
    }
}
