//! The requests that a table has served.

use std::ops::AddAssign;

/// Requests and capacity units that a table has served since its creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Reads of one row.
    pub reads: u64,
    /// Single writes, including refused and conflicting ones.
    pub writes: u64,
    /// Transactions, including refused and conflicting ones.
    pub transactions: u64,
    /// Pages of queries.
    pub queries: u64,
    /// Read capacity units: one per 4 KB, strongly consistent.
    pub read_units: u64,
    /// Write capacity units: one per 1 KB, twice that in a transaction.
    pub write_units: u64,
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.transactions += other.transactions;
        self.queries += other.queries;
        self.read_units += other.read_units;
        self.write_units += other.write_units;
    }
}

impl Usage {
    /// Returns the usage since the table had served `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            reads: self.reads - earlier.reads,
            writes: self.writes - earlier.writes,
            transactions: self.transactions - earlier.transactions,
            queries: self.queries - earlier.queries,
            read_units: self.read_units - earlier.read_units,
            write_units: self.write_units - earlier.write_units,
        }
    }

    /// Returns the number of all requests.
    pub fn requests(self) -> u64 {
        self.reads + self.writes + self.transactions + self.queries
    }
}
