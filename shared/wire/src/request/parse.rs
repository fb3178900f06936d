//! Reads and validates a request.

use serde_json::Value;

use super::{DefaultTags, Request, RequestError, json, read_body};
use crate::constraint::{self, lift};

impl Request {
    /// Reads and validates a request.
    pub fn parse(body: &[u8]) -> Result<Self, RequestError> {
        Self::parse_with(body, &DefaultTags::default())
    }

    /// Like [`Request::parse`], with the tags that the owner of the stack adds.
    pub fn parse_with(body: &[u8], tags: &DefaultTags) -> Result<Self, RequestError> {
        let mut body = read_body(body)?;
        tags.add_to(&mut body);
        Self::check(body)
    }

    /// Validates a request that is already JSON.
    pub fn check(mut body: Value) -> Result<Self, RequestError> {
        lift::lift(&mut body);
        let request = Self::from_stored(body);
        constraint::check(&request)?;
        let mut body = request.body;
        json::drop_nulls(&mut body);
        Ok(Self::from_stored(body))
    }
}
