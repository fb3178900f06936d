//! The caller: credentials, a Region and a retry policy. Makes AWS services available without a stack.

#[cfg(feature = "aws")]
use aws_credential_types::Credentials;

use crate::error::ClientError;
use crate::retry::Retry;
use crate::transport::Transport;

/// Credentials, a Region and a connector.
#[derive(Debug)]
pub struct Caller {
    pub(crate) transport: Transport,
    pub(crate) retry: Retry,
}

impl Caller {
    /// Uses the credentials and the proxy of the environment. `region` replaces the Region of the environment. With
    /// `loopback`, every service is on this machine: credentials are optional, and the Region has a default.
    pub async fn connect(region: Option<&str>, loopback: bool) -> Result<Self, ClientError> {
        let transport = Transport::connect(region, loopback).await?;
        Ok(Self { transport, retry: Retry::default() })
    }

    /// Signs with the credentials and Region in `signed` (`None` = unsigned), and uses no proxy.
    #[cfg(feature = "aws")]
    pub fn new(signed: Option<(Credentials, &str)>, retry: Retry) -> Self {
        Self { transport: Transport::new(signed), retry }
    }

    /// Returns the Region of the signatures, or `None` if requests are not signed.
    pub fn region(&self) -> Option<&str> {
        self.transport.region()
    }

    /// Returns whether credentials are available. An endpoint on this machine needs none.
    pub async fn is_signed(&self) -> Result<bool, ClientError> {
        self.transport.is_signed().await
    }
}
