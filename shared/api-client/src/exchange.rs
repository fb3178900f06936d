//! Carries requests to an API, and its responses back.

use std::fmt;
use std::pin::Pin;

use wire::events::http::{HttpRequest, HttpResponse};

use crate::error::ClientError;

/// The future of [`Exchange::send`].
pub type Sending<'a> = Pin<Box<dyn Future<Output = Result<HttpResponse, ClientError>> + Send + 'a>>;

/// Reaches an API: a [`Stack`](crate::Stack) over the network, or an API in this process.
pub trait Exchange: fmt::Debug + Send + Sync {
    /// Sends a request once, and returns the response with any status. Fails if no response arrived, or if the endpoint
    /// refused the signature.
    fn send<'a>(&'a self, request: &'a HttpRequest) -> Sending<'a>;
}
