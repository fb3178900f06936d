//! Replaces the transport in a build without the feature `aws`. No value of [`Transport`] can exist.

use serde_json::Value;

use crate::error::ClientError;
use crate::send::{Answer, Unsigned};

#[derive(Debug)]
pub(crate) enum Transport {}

#[expect(clippy::unused_async, reason = "the same signatures as those of the real transport")]
impl Transport {
    pub(crate) async fn connect(_: Option<&str>, _: bool) -> Result<Self, ClientError> {
        Err(ClientError::NoTransport)
    }

    pub(crate) fn region(&self) -> Option<&str> {
        match *self {}
    }

    pub(crate) async fn is_signed(&self) -> Result<bool, ClientError> {
        match *self {}
    }

    pub(crate) async fn exchange(
        &self,
        _: Unsigned<'_>,
        _: &str,
        _: Option<&str>,
    ) -> Result<Answer, ClientError> {
        match *self {}
    }
}

/// Returns nothing: no response exists.
pub(crate) fn xml_value(_: &[u8]) -> Option<Value> {
    None
}
