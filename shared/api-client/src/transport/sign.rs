//! Signs requests to AWS services (Signature Version 4).

use std::time::SystemTime;

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign as sign_request};
use aws_sigv4::sign::v4;
use aws_smithy_runtime_api::client::identity::Identity;

use crate::error::ClientError;
use crate::send::Unsigned;

/// Returns the headers of the signature for a service and a Region.
pub(super) fn sign(
    request: Unsigned<'_>,
    credentials: Credentials,
    (service, region): (&str, &str),
    now: SystemTime,
) -> Result<Vec<(String, String)>, ClientError> {
    let failed = |error: &dyn std::error::Error| ClientError::Credentials(format!("cannot sign: {error}"));
    let identity: Identity = credentials.into();
    let parameters = v4::SigningParams::builder()
        .identity(&identity)
        .region(region)
        .name(service)
        .time(now)
        .settings(SigningSettings::default())
        .build()
        .map_err(|error| failed(&error))?
        .into();
    let headers = request.headers.iter().map(|(name, value)| (*name, value.as_str()));
    let body = SignableBody::Bytes(request.body);
    let signable = SignableRequest::new(request.method, request.url, headers, body);
    let signed = signable.and_then(|request| sign_request(request, &parameters));
    let (instructions, _) = signed.map_err(|error| failed(&error))?.into_parts();
    Ok(instructions.headers().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}
