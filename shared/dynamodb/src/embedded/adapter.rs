//! An HTTP client for the SDK that calls the engine instead of the network.
//!
//! Expects DynamoDB's JSON protocol: the operation in `X-Amz-Target` and the request in an in-memory body. Opens no
//! socket, and runs the engine on blocking threads only.

use std::sync::Arc;

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::body::SdkBody;

use super::engine::Engine;

/// Answers the SDK's requests from the engine.
#[derive(Debug, Clone)]
pub(super) struct Adapter {
    engine: Arc<Engine>,
}

impl Adapter {
    pub(super) fn new(engine: Arc<Engine>) -> Self {
        Self { engine }
    }
}

impl HttpClient for Adapter {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl HttpConnector for Adapter {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let engine = Arc::clone(&self.engine);
        HttpConnectorFuture::new(async move {
            let target = request.headers().get("x-amz-target").unwrap_or_default();
            let operation = target.rsplit('.').next().unwrap_or_default().to_owned();
            let body = request.into_body();
            let answered = tokio::task::spawn_blocking(move || {
                engine.answer(&operation, body.bytes().unwrap_or_default())
            });
            // The engine panicked or the runtime is shutting down, so the outcome of a write is unknown.
            let (status, body) = answered.await.map_err(|error| ConnectorError::other(error.into(), None))?;
            let status =
                StatusCode::try_from(status).map_err(|error| ConnectorError::other(error.into(), None))?;
            let mut response = HttpResponse::new(status, SdkBody::from(body));
            response.headers_mut().insert("content-type", "application/x-amz-json-1.0");
            Ok(response)
        })
    }
}
