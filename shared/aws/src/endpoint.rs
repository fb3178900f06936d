//! The account behind a given endpoint: AWS, or an emulator on this machine.
//!
//! Must never send placeholder credentials to another machine, nor the user's credentials to an emulator unless the
//! environment sets them.

use std::net::IpAddr;

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;

use crate::{https, limited};

/// The Region of an emulator, unless the environment sets one.
const EMULATOR_REGION: &str = "us-east-1";
/// Each of these variables sets a source of credentials.
const NAMES_CREDENTIALS: [&str; 6] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_PROFILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
];

/// Returns the configuration of the environment's account with all services at `endpoint`. On this machine it uses
/// placeholders for a missing Region and missing credentials, since an emulator accepts any.
pub async fn account_at(endpoint: &str) -> SdkConfig {
    let mut settings =
        aws_config::defaults(BehaviorVersion::latest()).http_client(https()).endpoint_url(endpoint);
    if is_loopback(endpoint) {
        if !(is_set("AWS_REGION") || is_set("AWS_DEFAULT_REGION") || is_set("AWS_PROFILE")) {
            settings = settings.region(Region::new(EMULATOR_REGION));
        }
        if !NAMES_CREDENTIALS.into_iter().any(is_set) {
            let placeholder =
                Credentials::new("emulator", "emulator", None, None, "placeholder for an emulator");
            settings = settings.credentials_provider(SharedCredentialsProvider::new(placeholder));
        }
    }
    limited(settings.load().await)
}

fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty())
}

fn is_loopback(endpoint: &str) -> bool {
    let Some((_, rest)) = endpoint.split_once("://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    // The part before @ is user information, not the host.
    let authority = authority.rsplit('@').next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(inner) => inner.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    host == "localhost"
        || host.ends_with(".localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_loopback() {
        for here in [
            "http://127.0.0.1:4566",
            "http://127.1.2.3/path",
            "http://localhost:4566",
            "http://events.localhost:4566",
            "http://[::1]:4566",
            "http://user@localhost",
        ] {
            assert!(is_loopback(here), "{here}");
        }
        for elsewhere in [
            "https://events.us-east-1.amazonaws.com",
            "http://10.0.0.1:4566",
            "http://127.0.0.1.example.com",
            "http://127.0.0.1:80@example.com/",
            "http://[2001:db8::1]:4566",
            "http://notlocalhost",
            "localhost:4566",
        ] {
            assert!(!is_loopback(elsewhere), "{elsewhere}");
        }
    }
}
