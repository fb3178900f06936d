//! The table in memory: deterministic, for the simulator and fast tests.
//!
//! Holds every row behind one mutex, so each operation is atomic. It follows DynamoDB's rules, including inconvenient
//! ones: a page ends at 1 MB, a full page has a `next` even if nothing follows, and a put of an equal row is not a
//! change. It must not read a clock: old transaction tokens are dropped by number, not by age.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use use_cases::ports::table::{
    Condition, MAX_TRANSACTION_BYTES, MAX_TRANSACTION_WRITES, Page, Query, Table, TableError, Write,
};
use use_cases::ports::usage::Usage;
use wire::item::{Attr, Item, Key, MAX_ITEM_BYTES, PK, SK};

/// Most transaction tokens that are kept. DynamoDB keeps them for ten minutes.
pub const MAX_TOKENS: usize = 10_000;
/// Bytes of rows after which a page ends.
const MAX_PAGE_BYTES: usize = 1024 * 1024;
/// Longest partition key in bytes, as in DynamoDB.
const MAX_PK_BYTES: usize = 2048;
/// Longest sort key in bytes, as in DynamoDB.
const MAX_SK_BYTES: usize = 1024;

/// One change of one row: the content of a stream record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Position among all changes of this table, from 1.
    pub sequence: u64,
    /// Key of the row.
    pub key: Key,
    /// The row before. `None` if it was created.
    pub old: Option<Item>,
    /// The row after. `None` if it was removed.
    pub new: Option<Item>,
}

/// The table. A clone is another handle to the same rows.
#[derive(Debug, Clone, Default)]
pub struct MemoryTable {
    rows: Arc<Mutex<Rows>>,
}

#[derive(Debug, Default, Clone)]
struct Rows {
    by_key: BTreeMap<Key, Item>,
    tokens: BTreeMap<String, u64>,
    token_order: VecDeque<String>,
    feed: Option<Vec<Change>>,
    sequence: u64,
    usage: Usage,
}

impl MemoryTable {
    /// Creates an empty table that records no changes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an empty table that records its changes until [`MemoryTable::changes`] takes them.
    pub fn recording() -> Self {
        let table = Self::default();
        table.lock().feed = Some(Vec::new());
        table
    }

    /// Takes the changes since the last call, in order.
    pub fn changes(&self) -> Vec<Change> {
        self.lock().feed.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Returns a table of its own with the same rows and tokens.
    #[must_use]
    pub fn copy(&self) -> Self {
        Self { rows: Arc::new(Mutex::new(self.lock().clone())) }
    }

    /// Replaces the rows by those of another table, as a restore does. No change is recorded.
    pub fn restore(&self, other: &Self) {
        let rows = other.lock().by_key.clone();
        self.lock().by_key = rows;
    }

    /// Visits all rows in order of their keys.
    pub fn visit(&self, visitor: impl FnMut(&Item)) {
        self.lock().by_key.values().for_each(visitor);
    }

    /// Returns the requests and capacity units so far.
    pub fn usage(&self) -> Usage {
        self.lock().usage
    }

    /// Returns all rows in order of their keys, for assertions and dumps.
    pub fn rows(&self) -> Vec<Item> {
        self.lock().by_key.values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Rows> {
        // No code below panics in the middle of a change, so a poisoned lock guards consistent rows.
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table for MemoryTable {
    async fn get(&self, key: &Key) -> Result<Option<Item>, TableError> {
        let mut rows = self.lock();
        rows.usage.reads += 1;
        check_key(key)?;
        let item = rows.by_key.get(key).cloned();
        rows.usage.read_units += read_units(item.as_ref().map_or(0, Item::size_bytes));
        Ok(item)
    }

    async fn write(&self, write: Write) -> Result<(), TableError> {
        let mut rows = self.lock();
        rows.usage.writes += 1;
        check_write(&write)?;
        rows.usage.write_units += rows.write_units(&write);
        if !rows.holds(&write) {
            return Err(TableError::Conflict(vec![0]));
        }
        rows.apply(write);
        Ok(())
    }

    async fn transact(&self, writes: Vec<Write>, token: &str) -> Result<(), TableError> {
        let mut rows = self.lock();
        rows.usage.transactions += 1;
        check_transaction(&writes, token)?;
        let fingerprint = fingerprint(&writes);
        match rows.tokens.get(token) {
            Some(&known) if known == fingerprint => return Ok(()),
            Some(_) => return refused(format!("token {token} was used for a transaction with other writes")),
            None => {}
        }
        let units: u64 = writes.iter().map(|write| 2 * rows.write_units(write)).sum();
        rows.usage.write_units += units;
        let failed: Vec<usize> = writes
            .iter()
            .enumerate()
            .filter(|(_, write)| !rows.holds(write))
            .map(|(index, _)| index)
            .collect();
        if !failed.is_empty() {
            return Err(TableError::Conflict(failed));
        }
        for write in writes {
            rows.apply(write);
        }
        rows.remember(token, fingerprint);
        Ok(())
    }

    async fn query(&self, query: &Query) -> Result<Page, TableError> {
        let mut rows = self.lock();
        rows.usage.queries += 1;
        if query.pk.is_empty() || query.limit == 0 {
            return refused("invalid query: expected a partition key and a limit of at least 1".to_owned());
        }
        let (page, bytes) = rows.page(query);
        rows.usage.read_units += read_units(bytes);
        Ok(page)
    }
}

impl Rows {
    fn holds(&self, write: &Write) -> bool {
        let (Write::Put(_, condition) | Write::Delete(_, condition) | Write::Check(_, condition)) = write;
        let stored = self.by_key.get(write.key());
        match condition {
            Condition::Always => true,
            Condition::NotExists => stored.is_none(),
            Condition::Equals { name, value } => {
                stored.is_some_and(|row| row.attributes.get(name) == Some(value))
            }
            Condition::AtLeast { name, value } => {
                stored.and_then(|row| row.number(name)).is_some_and(|number| number >= *value)
            }
        }
    }

    /// Returns the units that DynamoDB charges: the size of the larger of the rows before and after, also for a failed
    /// write.
    fn write_units(&self, write: &Write) -> u64 {
        let old = self.by_key.get(write.key()).map_or(0, Item::size_bytes);
        let new = if let Write::Put(item, _) = write { item.size_bytes() } else { 0 };
        units(old.max(new), 1024)
    }

    fn apply(&mut self, write: Write) {
        let (key, old, new) = match write {
            Write::Put(item, _) => {
                let key = item.key.clone();
                let new = self.feed.is_some().then(|| item.clone());
                (key.clone(), self.by_key.insert(key, item), new)
            }
            Write::Delete(key, _) => {
                let old = self.by_key.remove(&key);
                (key, old, None)
            }
            Write::Check(..) => return,
        };
        if let Some(feed) = &mut self.feed
            && old != new
        {
            self.sequence += 1;
            feed.push(Change { sequence: self.sequence, key, old, new });
        }
    }

    fn remember(&mut self, token: &str, fingerprint: u64) {
        self.tokens.insert(token.to_owned(), fingerprint);
        self.token_order.push_back(token.to_owned());
        if self.token_order.len() > MAX_TOKENS
            && let Some(oldest) = self.token_order.pop_front()
        {
            self.tokens.remove(&oldest);
        }
    }

    /// Returns one page and the number of bytes read.
    fn page(&self, query: &Query) -> (Page, usize) {
        let first = Key::new(&query.pk, &query.prefix);
        let end = end_of_prefix(&query.pk, &query.prefix);
        let after = query.after.as_ref().map(|sk| Key::new(&query.pk, sk));
        let (low, high) = match (after, query.descending) {
            (Some(after), false) if after >= first => (Bound::Excluded(after), end),
            (Some(after), true) if after < end => (Bound::Included(first), after),
            _ => (Bound::Included(first), end),
        };
        // `BTreeMap::range` panics if the start of the range is not before its end.
        if matches!(&low, Bound::Included(key) | Bound::Excluded(key) if *key >= high) {
            return (Page::default(), 0);
        }
        let range = self.by_key.range((low, Bound::Excluded(high)));
        if query.descending { fill(range.rev(), query.limit) } else { fill(range, query.limit) }
    }
}

fn fill<'a>(rows: impl Iterator<Item = (&'a Key, &'a Item)>, limit: usize) -> (Page, usize) {
    let (mut page, mut bytes) = (Page::default(), 0);
    for (key, item) in rows {
        bytes += item.size_bytes();
        page.items.push(item.clone());
        if page.items.len() >= limit || bytes >= MAX_PAGE_BYTES {
            page.next = Some(key.sk.clone());
            break;
        }
    }
    (page, bytes)
}

/// Returns the smallest key above all keys of partition `pk` whose sort key begins with `prefix`.
fn end_of_prefix(pk: &str, prefix: &str) -> Key {
    let mut kept = prefix.to_owned();
    while let Some(last) = kept.pop() {
        // Strings are ordered by code point.
        if let Some(next) = (last..=char::MAX).nth(1) {
            kept.push(next);
            return Key::new(pk, kept);
        }
    }
    Key::new(format!("{pk}\0"), "")
}

fn check_transaction(writes: &[Write], token: &str) -> Result<(), TableError> {
    if writes.is_empty() || writes.len() > MAX_TRANSACTION_WRITES {
        return refused(format!(
            "{} writes in a transaction: expected 1 to {MAX_TRANSACTION_WRITES}",
            writes.len()
        ));
    }
    if token.is_empty() {
        return refused("empty transaction token".to_owned());
    }
    let (mut keys, mut bytes) = (BTreeSet::new(), 0);
    for write in writes {
        check_write(write)?;
        if !keys.insert(write.key()) {
            return refused(format!("duplicate key {:?} in a transaction", write.key()));
        }
        bytes += if let Write::Put(item, _) = write { item.size_bytes() } else { 0 };
    }
    if bytes > MAX_TRANSACTION_BYTES {
        return refused(format!("a transaction of {bytes} bytes: expected at most {MAX_TRANSACTION_BYTES}"));
    }
    Ok(())
}

fn check_write(write: &Write) -> Result<(), TableError> {
    check_key(write.key())?;
    let Write::Put(item, _) = write else { return Ok(()) };
    if item.attributes.keys().any(|name| name.is_empty() || name == PK || name == SK) {
        return refused(format!(
            "{:?} has an attribute without a name or with the name of a key attribute",
            item.key
        ));
    }
    match item.size_bytes() {
        bytes if bytes > MAX_ITEM_BYTES => {
            refused(format!("{:?} is a row of {bytes} bytes: expected at most {MAX_ITEM_BYTES}", item.key))
        }
        _ => Ok(()),
    }
}

fn check_key(key: &Key) -> Result<(), TableError> {
    let (pk, sk) = (key.pk.len(), key.sk.len());
    if pk == 0 || sk == 0 || pk > MAX_PK_BYTES || sk > MAX_SK_BYTES {
        return refused(format!(
            "a key of {pk} and {sk} bytes: expected 1 to {MAX_PK_BYTES} and 1 to {MAX_SK_BYTES}"
        ));
    }
    Ok(())
}

fn refused<T>(reason: String) -> Result<T, TableError> {
    Err(TableError::Refused(reason))
}

fn units(bytes: usize, per_unit: usize) -> u64 {
    u64::try_from(bytes.div_ceil(per_unit).max(1)).unwrap_or(u64::MAX)
}

fn read_units(bytes: usize) -> u64 {
    units(bytes, 4096)
}

/// Returns a number that distinguishes transactions. It is comparable within this process only.
fn fingerprint(writes: &[Write]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for write in writes {
        let (kind, condition) = match write {
            Write::Put(item, condition) => {
                item.attributes.len().hash(&mut hasher);
                for (name, value) in &item.attributes {
                    name.hash(&mut hasher);
                    hash_attr(value, &mut hasher);
                }
                ("put", condition)
            }
            Write::Delete(_, condition) => ("delete", condition),
            Write::Check(_, condition) => ("check", condition),
        };
        (kind, write.key()).hash(&mut hasher);
        match condition {
            Condition::Always => "always".hash(&mut hasher),
            Condition::NotExists => "not exists".hash(&mut hasher),
            Condition::Equals { name, value } => {
                ("equals", name).hash(&mut hasher);
                hash_attr(value, &mut hasher);
            }
            Condition::AtLeast { name, value } => ("at least", name, value).hash(&mut hasher),
        }
    }
    hasher.finish()
}

fn hash_attr(value: &Attr, hasher: &mut DefaultHasher) {
    match value {
        Attr::S(text) => ("s", text).hash(hasher),
        Attr::N(number) => ("n", number).hash(hasher),
        Attr::B(bytes) => ("b", bytes).hash(hasher),
        Attr::Bool(truth) => ("bool", truth).hash(hasher),
    }
}
