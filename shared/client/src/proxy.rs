//! Whether requests go by a proxy: the environment says it, as it does to every AWS tool (`HTTPS_PROXY`, `NO_PROXY`).
//!
//! Only what goes over TLS does, in a tunnel (`CONNECT`): of that a proxy sees the host's name and no more. What goes to this
//! machine never does, and neither does what is asked in the clear of an instance or a container (its credentials).

use aws_smithy_http_client::Connector;
use aws_smithy_http_client::proxy::ProxyConfig;
use aws_smithy_runtime_api::client::http::{SharedHttpClient, SharedHttpConnector, http_client_fn};

use crate::error::ClientError;

/// Where the address is looked for, the first that is there.
const ADDRESS: [&str; 4] = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
/// Where hosts are named that are reached without.
const NONE_FOR: [&str; 2] = ["NO_PROXY", "no_proxy"];
/// This machine.
const LOOPBACK: &str = "localhost,127.0.0.0/8,::1";

/// The proxy that the environment names.
pub(crate) fn of_environment() -> Result<ProxyConfig, ClientError> {
    proxy(|name| std::env::var(name).ok())
}

fn proxy(variable: impl Fn(&str) -> Option<String>) -> Result<ProxyConfig, ClientError> {
    let said = |name: &str| variable(name).filter(|value| !value.is_empty());
    let Some((name, address)) = ADDRESS.into_iter().find_map(|name| Some((name, said(name)?))) else {
        return Ok(ProxyConfig::disabled());
    };
    let address = if address.contains("://") { address } else { format!("http://{address}") };
    let none_for = NONE_FOR.into_iter().find_map(said).unwrap_or_default();
    let config = ProxyConfig::https(address).map_err(|_| ClientError::Proxy(name))?;
    Ok(config.no_proxy(format!("{LOOPBACK},{none_for}")))
}

/// What credentials are asked for with (SSO, STS): a connector for each request, since there are one or two.
pub(crate) fn credentials_client(proxy: ProxyConfig) -> SharedHttpClient {
    http_client_fn(move |settings, components| {
        let mut builder = Connector::builder().connector_settings(settings.clone());
        builder.set_sleep_impl(components.sleep_impl());
        let connector = builder.proxy_config(proxy.clone()).tls_provider(crate::tls()).build();
        SharedHttpConnector::new(connector)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(variables: &[(&str, &str)]) -> Result<bool, ClientError> {
        let found = |name: &str| variables.iter().find(|one| one.0 == name).map(|one| one.1.to_owned());
        proxy(found).map(|config| !config.is_disabled())
    }

    #[test]
    fn a_proxy_is_gone_by_where_the_environment_names_one() {
        for (variables, expected) in [
            (&[][..], false),
            (&[("HTTPS_PROXY", "")], false),
            (&[("HTTP_PROXY", "http://proxy:3128")], false),
            (&[("HTTPS_PROXY", "http://proxy:3128")], true),
            (&[("https_proxy", "proxy:3128")], true),
            (&[("HTTPS_PROXY", ""), ("ALL_PROXY", "https://user:secret@proxy")], true),
        ] {
            assert_eq!(told(variables), Ok(expected), "{variables:?}");
        }
    }

    #[test]
    fn what_is_no_proxy_is_refused_by_the_name_of_its_variable() {
        for address in ["socks5://proxy:1080", "http://", "http://user:secret@", "pro xy"] {
            let error = told(&[("all_proxy", address)]).unwrap_err();
            assert_eq!(error, ClientError::Proxy("all_proxy"));
            assert!(error.is_usage() && !error.to_string().contains("secret"), "{error}");
        }
    }
}
