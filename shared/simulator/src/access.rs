//! What each function did to the table, in the terms in which a role grants it: the action of IAM, and the kind of partition.
//!
//! For whoever holds the roles of the functions against what they do. Only an effect counts: a call that a fault kept from
//! the table tells nothing.

use std::collections::BTreeSet;

use service::ports::table::Write;
use wire::item::Key;

use crate::site::Function;

/// The actions of IAM. A transaction has none of its own: it takes those of its parts.
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
    /// What a part of a transaction, or a write by itself, takes.
    pub(crate) fn of(write: &Write) -> Self {
        match write {
            Write::Put(..) => Self::PutItem,
            Write::Delete(..) => Self::DeleteItem,
            Write::Check(..) => Self::ConditionCheckItem,
        }
    }

    /// Its name in a policy.
    pub fn action(self) -> String {
        format!("dynamodb:{self:?}")
    }
}

/// What functions did: which, by which right, in which kind of partition (`F#`, say, or `ACTIVE`).
pub type Accesses = BTreeSet<(Function, Right, String)>;

/// The kind of a partition: its key up to the `#`, or all of it.
pub(crate) fn partition_kind(pk: &str) -> String {
    pk.split_inclusive('#').next().unwrap_or(pk).to_owned()
}

/// The kind of the partition of `key`.
pub(crate) fn kind_of(key: &Key) -> String {
    partition_kind(&key.pk)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_a_partition_is_its_prefix_or_its_key() {
        assert_eq!(kind_of(&Key::new("F#a-b#c", "x")), "F#");
        assert_eq!(partition_kind("ACTIVE"), "ACTIVE");
    }
}
