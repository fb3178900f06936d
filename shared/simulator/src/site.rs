//! Where a fault strikes: the functions, what they call, and which of them calls what.
//!
//! The table of calls is the report's list of what can happen: a call that is made but is not in it is a violation, one
//! that is in it and never hit is missing.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Function {
    /// Takes requests of users.
    Api,
    /// Takes state changes of training jobs.
    JobEvents,
    /// Takes lines of their logs.
    JobLogs,
    /// Decides.
    Decider,
    /// Performs what was ordered.
    Actuator,
    /// Heals once a minute.
    Sweeper,
}

/// What a call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Op {
    /// Reads a row.
    Get,
    /// Reads rows in order.
    Query,
    /// Writes a row.
    Write,
    /// Writes several, or none.
    Transact,
    /// `CreateTrainingJob`.
    Create,
    /// `StopTrainingJob`.
    Stop,
    /// `UpdateTrainingJob`.
    Release,
    /// `DescribeTrainingJob`.
    Describe,
    /// `ListTags`.
    Tags,
    /// `ListTrainingJobs`.
    List,
    /// `FilterLogEvents`.
    ReadLog,
    /// `PutEvents`.
    Publish,
    /// The price list.
    Price,
}

/// Where a fault strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Site {
    /// Outside the functions.
    World,
    /// A function as a whole.
    Function(Function),
    /// A call of a function.
    Call(Function, Op),
}

/// Which calls a kind of fault may strike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// No call: it happens in the world.
    World,
    /// Functions as a whole.
    Functions,
    /// Functions that can run for longer than their limit.
    LongFunctions,
    /// Every call.
    Calls,
    /// Calls to the table.
    Table,
    /// Calls to the training service.
    Training,
    /// Calls of one kind.
    Only(Op),
}

/// All functions.
pub const FUNCTIONS: [Function; 6] = [
    Function::Api,
    Function::JobEvents,
    Function::JobLogs,
    Function::Decider,
    Function::Actuator,
    Function::Sweeper,
];

/// Every call that a function makes.
pub fn calls(function: Function) -> &'static [Op] {
    match function {
        Function::Api => &[Op::Get, Op::Query, Op::Write, Op::Transact, Op::Price],
        Function::JobEvents | Function::JobLogs => &[Op::Get, Op::Write],
        Function::Decider => &[Op::Get, Op::Query, Op::Write, Op::Transact],
        Function::Actuator => &[
            Op::Get,
            Op::Query,
            Op::Write,
            Op::Transact,
            Op::Create,
            Op::Stop,
            Op::Release,
            Op::Describe,
            Op::Tags,
            Op::ReadLog,
            Op::Publish,
        ],
        Function::Sweeper => &[
            Op::Get,
            Op::Query,
            Op::Write,
            Op::Transact,
            Op::Create,
            Op::Stop,
            Op::Release,
            Op::Describe,
            Op::Tags,
            Op::List,
            Op::ReadLog,
            Op::Publish,
        ],
    }
}

/// Every call of every function.
pub(crate) fn all_calls() -> impl Iterator<Item = (Function, Op)> {
    FUNCTIONS.into_iter().flat_map(|function| calls(function).iter().map(move |op| (function, *op)))
}

impl Op {
    pub(crate) fn is_table(self) -> bool {
        matches!(self, Self::Get | Self::Query | Self::Write | Self::Transact)
    }

    pub(crate) fn is_training(self) -> bool {
        matches!(
            self,
            Self::Create
                | Self::Stop
                | Self::Release
                | Self::Describe
                | Self::Tags
                | Self::List
                | Self::ReadLog
        )
    }
}

impl Reach {
    /// All sites within it.
    pub(crate) fn sites(self) -> Vec<Site> {
        match self {
            Self::World => vec![Site::World],
            Self::Functions => FUNCTIONS.into_iter().map(Site::Function).collect(),
            Self::LongFunctions => {
                [Function::Decider, Function::Actuator, Function::Sweeper].map(Site::Function).to_vec()
            }
            Self::Calls | Self::Table | Self::Training | Self::Only(_) => {
                let within = all_calls().filter(|(_, op)| self.has(*op));
                within.map(|(function, op)| Site::Call(function, op)).collect()
            }
        }
    }

    fn has(self, op: Op) -> bool {
        match self {
            Self::World | Self::Functions | Self::LongFunctions => false,
            Self::Calls => true,
            Self::Table => op.is_table(),
            Self::Training => op.is_training(),
            Self::Only(only) => op == only,
        }
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::World => f.write_str("world"),
            Self::Function(function) => write!(f, "{function:?}"),
            Self::Call(function, op) => write!(f, "{function:?} {op:?}"),
        }
    }
}
