//! How to reach the API of a stack.

use std::fmt;
use std::str::FromStr;

use crate::endpoint::{Endpoint, EndpointError};
use crate::function::{Function, PREFIX};

/// How to reach the API of a stack, as the user typed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// The HTTP API.
    Http(Endpoint),
    /// The function for direct calls.
    Function(Function),
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http(endpoint) => endpoint.fmt(formatter),
            Self::Function(function) => function.fmt(formatter),
        }
    }
}

impl FromStr for Address {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.strip_prefix(PREFIX) {
            Some(function) => function.parse().map(Self::Function),
            None => text.parse().map(Self::Http),
        }
    }
}
