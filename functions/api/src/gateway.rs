//! The secret that proves that a request came through the stack's API.
//!
//! Lambda passes no identity of its caller. Therefore, the API's integration adds this header to each request, and
//! replaces any such header from the client.

use std::fmt;
use std::hint::black_box;

use http_api::ApiError;
use lambda::settings::{SettingsError, setting};
use wire::events::http::HttpRequest;

pub(crate) const API_SECRET: &str = "API_SECRET";
/// The header, in lower case.
const HEADER: &str = "x-hyperband-gateway";
/// The least length, in characters: 130 bits. The stack generates no more, since Lambda limits the size of all variables.
const LEAST_LENGTH: usize = 22;

/// The secret. Its debug output does not contain it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct GatewaySecret(String);

impl fmt::Debug for GatewaySecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("GatewaySecret(..)")
    }
}

impl GatewaySecret {
    /// Reads `API_SECRET`. A dynamic reference that nothing resolved is public, and it has other characters.
    pub(crate) fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, SettingsError> {
        let secret = setting(variable, API_SECRET)?;
        if secret.len() < LEAST_LENGTH || !secret.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            let expected = "at least 22 letters and digits, the value of the stack's secret GatewaySecret";
            return Err(SettingsError::Unreadable { name: API_SECRET, expected });
        }
        Ok(Self(secret))
    }

    /// Returns the request without the header, or an error if the header is missing or differs.
    pub(crate) fn check(&self, mut request: HttpRequest) -> Result<HttpRequest, ApiError> {
        // Removed, so that no later code can log or return it.
        let given = request.headers.remove(HEADER).unwrap_or_default();
        if self.equals(&given) {
            return Ok(request);
        }
        let message = "the request did not come through the API of this stack: send it to the stack's ApiUrl. If it \
                       did, the stack's secret is being replaced: retry the request in a minute";
        Err(ApiError::of_host("AccessDeniedException", 403, message))
    }

    /// Compares in constant time for texts of one length. The length is no secret.
    fn equals(&self, given: &str) -> bool {
        let pairs = self.0.bytes().zip(given.bytes());
        self.0.len() == given.len() && pairs.fold(0, |all, (one, other)| black_box(all | (one ^ other))) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "0123456789abcdefABCDEF";

    fn read(text: &str) -> Result<GatewaySecret, SettingsError> {
        GatewaySecret::read(|_| Some(text.to_owned()))
    }

    #[test]
    fn a_short_secret_or_an_unresolved_reference_prevents_the_start() {
        assert_eq!(read(""), Err(SettingsError::Missing(API_SECRET)));
        for text in [
            &SECRET[1..],
            "{{resolve:secretsmanager:arn:aws:secretsmanager:us-east-1:111122223333:secret:s}}",
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(
                error.starts_with("invalid environment variable API_SECRET: expected at least 22"),
                "{error}"
            );
            assert!(!error.contains(text), "{error}");
        }
        assert_eq!(format!("{:?}", read(SECRET)), "Ok(GatewaySecret(..))");
    }

    #[test]
    fn only_the_whole_secret_is_accepted_and_it_leaves_the_request() {
        let check = |header: Option<&str>| {
            let mut request = HttpRequest::default();
            request.headers.extend(header.map(|text| (HEADER.to_owned(), text.to_owned())));
            read(SECRET).unwrap().check(request)
        };
        assert_eq!(check(Some(SECRET)), Ok(HttpRequest::default()));
        let changed = SECRET.replace('9', "8");
        for other in [None, Some(""), Some(&SECRET[1..]), Some(&changed), Some(&format!("{SECRET}0"))] {
            assert_eq!(check(other).unwrap_err().status, 403, "{other:?}");
        }
    }
}
