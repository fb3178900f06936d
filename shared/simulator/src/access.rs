//! The table accesses of each function, as an IAM role grants them: the action and the kind of partition.
//!
//! `tests/stack-template` compares them with the roles of the template. Only calls that reach the table count.

use std::collections::BTreeSet;

use use_cases::ports::table::Write;
use wire::item::Key;

use crate::site::Function;

/// An IAM action on the table. A transaction has no action of its own: it needs the actions of its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Right {
    /// `dynamodb:GetItem`.
    GetItem,
    /// `dynamodb:Query`.
    Query,
    /// `dynamodb:PutItem`.
    PutItem,
    /// `dynamodb:DeleteItem`.
    DeleteItem,
    /// `dynamodb:ConditionCheckItem`.
    ConditionCheckItem,
}

impl Right {
    /// Returns the action that a single write, or a part of a transaction, needs.
    pub(crate) fn of(write: &Write) -> Self {
        match write {
            Write::Put(..) => Self::PutItem,
            Write::Delete(..) => Self::DeleteItem,
            Write::Check(..) => Self::ConditionCheckItem,
        }
    }

    /// Returns its name in a policy, for example `dynamodb:GetItem`.
    pub fn action(self) -> String {
        format!("dynamodb:{self:?}")
    }
}

/// The accesses of all functions: the function, the action, and the kind of partition, for example `F#` or `ACTIVE`.
pub type Accesses = BTreeSet<(Function, Right, String)>;

/// Returns the kind of a partition: its key up to and including the first `#`, or the whole key.
pub(crate) fn partition_kind(pk: &str) -> String {
    pk.split_inclusive('#').next().unwrap_or(pk).to_owned()
}

/// Returns the kind of the partition of `key`.
pub(crate) fn kind_of(key: &Key) -> String {
    partition_kind(&key.pk)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_a_partition_is_its_prefix_or_its_whole_key() {
        assert_eq!(kind_of(&Key::new("F#a-b#c", "x")), "F#");
        assert_eq!(partition_kind("ACTIVE"), "ACTIVE");
    }
}
