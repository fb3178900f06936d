//! The proxy from the environment variables that every AWS tool reads, such as `HTTPS_PROXY` and `NO_PROXY`.
//!
//! Only TLS connections use the proxy, in a tunnel (`CONNECT`), so it sees only the host name. Requests to this
//! machine, and plain HTTP requests for the credentials of an instance or a container, bypass it.

use aws_smithy_http_client::Connector;
use aws_smithy_http_client::proxy::ProxyConfig;
use aws_smithy_runtime_api::client::http::{SharedHttpClient, SharedHttpConnector, http_client_fn};

use crate::error::ClientError;

/// Variables for the address of the proxy; the first that is set applies.
const ADDRESS: [&str; 4] = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
/// Variables for the hosts that bypass the proxy.
const NONE_FOR: [&str; 2] = ["NO_PROXY", "no_proxy"];
/// Hosts of this machine, which always bypass the proxy.
const LOOPBACK: &str = "localhost,127.0.0.0/8,::1";

pub(super) fn from_environment() -> Result<ProxyConfig, ClientError> {
    proxy(|name| std::env::var(name).ok())
}

fn proxy(variable: impl Fn(&str) -> Option<String>) -> Result<ProxyConfig, ClientError> {
    let value_of = |name: &str| variable(name).filter(|value| !value.is_empty());
    let Some((name, address)) = ADDRESS.into_iter().find_map(|name| Some((name, value_of(name)?))) else {
        return Ok(ProxyConfig::disabled());
    };
    let address = if address.contains("://") { address } else { format!("http://{address}") };
    let none_for = NONE_FOR.into_iter().find_map(value_of).unwrap_or_default();
    let config = ProxyConfig::https(address).map_err(|_| ClientError::Proxy(name))?;
    Ok(config.no_proxy(format!("{LOOPBACK},{none_for}")))
}

/// Returns the client for credentials (SSO, STS). It creates a connector per request, because there are one or two.
pub(super) fn credentials_client(proxy: ProxyConfig) -> SharedHttpClient {
    http_client_fn(move |settings, components| {
        let mut builder = Connector::builder().connector_settings(settings.clone());
        builder.set_sleep_impl(components.sleep_impl());
        let connector = builder.proxy_config(proxy.clone()).tls_provider(super::tls()).build();
        SharedHttpConnector::new(connector)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses_proxy(variables: &[(&str, &str)]) -> Result<bool, ClientError> {
        let found = |name: &str| variables.iter().find(|one| one.0 == name).map(|one| one.1.to_owned());
        proxy(found).map(|config| !config.is_disabled())
    }

    #[test]
    fn a_proxy_of_the_environment_is_used() {
        for (variables, expected) in [
            (&[][..], false),
            (&[("HTTPS_PROXY", "")], false),
            (&[("HTTP_PROXY", "http://proxy:3128")], false),
            (&[("HTTPS_PROXY", "http://proxy:3128")], true),
            (&[("https_proxy", "proxy:3128")], true),
            (&[("HTTPS_PROXY", ""), ("ALL_PROXY", "https://user:secret@proxy")], true),
        ] {
            assert_eq!(uses_proxy(variables), Ok(expected), "{variables:?}");
        }
    }

    #[test]
    fn an_invalid_proxy_is_rejected_with_its_variable_and_without_its_value() {
        for address in ["socks5://proxy:1080", "http://", "http://user:secret@", "pro xy"] {
            let error = uses_proxy(&[("all_proxy", address)]).unwrap_err();
            assert_eq!(error, ClientError::Proxy("all_proxy"));
            assert!(error.is_usage() && !error.to_string().contains("secret"), "{error}");
        }
    }
}
