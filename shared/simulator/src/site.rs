//! The sites where faults strike: the functions and their calls.
//!
//! [`calls`] lists every call of every function. A call that is not in the list is a violation; the report names
//! listed calls that no fault has hit.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The Lambda functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Function {
    /// Handles the requests of users.
    Api,
    /// Records state changes of training jobs.
    JobEvents,
    /// Records log lines of training jobs.
    JobLogs,
    /// Folds facts, makes rulings and writes steps.
    Decider,
    /// Performs ordered actions.
    Actuator,
    /// Repairs, once a minute, what lost events left open.
    Sweeper,
}

/// The operation of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Op {
    /// Reads a table row.
    Get,
    /// Reads table rows in order.
    Query,
    /// Writes a table row.
    Write,
    /// Writes several rows, or none of them.
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
    /// Reads the price list.
    Price,
    /// `Invoke`, asynchronously.
    HandOver,
}

/// A place where a fault strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Site {
    /// Outside the functions.
    World,
    /// A function as a whole.
    Function(Function),
    /// A call of a function.
    Call(Function, Op),
}

/// The sites that a kind of fault can strike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The world, no call.
    World,
    /// All functions as a whole.
    Functions,
    /// Functions that can run longer than their time limit.
    LongFunctions,
    /// All calls.
    Calls,
    /// Calls to the table.
    Table,
    /// Calls to the training service.
    Training,
    /// Calls with this operation.
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

/// Returns every operation that a function calls.
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
            Op::HandOver,
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

/// Returns every call of every function.
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
    /// Returns all sites within reach.
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
