//! The address of the API, as the user typed it, validated before any request.
//!
//! Requests contain a signature and private data, so they use TLS, except to this machine.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use http::Uri;
use thiserror::Error;

/// A URL of the API or of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The URL without a final slash.
    base: String,
    host: String,
    loopback: bool,
}

/// Why an address is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EndpointError {
    /// Not a URL.
    #[error(
        "invalid URL '{0}': expected https://HOST, for example https://abc123.execute-api.eu-west-1.amazonaws.com"
    )]
    NoUrl(String),
    /// Not a function.
    #[error(
        "invalid function '{0}': expected lambda:NAME, lambda:NAME:ALIAS or lambda:ARN, for example \
         lambda:hyperband-prod-InvokeFunction-a1B2c3D4e5F6"
    )]
    NoFunction(String),
    /// A part that an endpoint must not have.
    #[error("invalid endpoint: expected a URL without a {0}")]
    Part(&'static str),
    /// Plain HTTP over the network.
    #[error("http:// is only for this machine (localhost, 127.0.0.1): requests to {0} must go over https://")]
    InTheClear(String),
}

impl Endpoint {
    /// Returns the URL of `path`, which begins with a slash.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// Returns the value of the header `Host`: the host, and the port if the URL has one.
    pub fn authority(&self) -> &str {
        let rest = self.base.split_once("://").map_or("", |(_, rest)| rest);
        rest.split('/').next().unwrap_or(rest)
    }

    /// Returns whether the endpoint is on this machine.
    pub fn is_loopback(&self) -> bool {
        self.loopback
    }

    /// Returns the Region in the host name, `<id>.execute-api.<region>.amazonaws.com`.
    pub fn region(&self) -> Option<&str> {
        let mut labels = self.host.split('.').skip_while(|label| *label != "execute-api").skip(1);
        let region = labels.next()?;
        let is_aws = labels.any(|label| label == "amazonaws");
        is_aws.then_some(region)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.base)
    }
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let no_url = || EndpointError::NoUrl(text.chars().take(200).collect());
        // `Uri` would drop it silently.
        if text.contains('#') {
            return Err(EndpointError::Part("fragment (#)"));
        }
        let uri: Uri = text.parse().map_err(|_| no_url())?;
        let (scheme, host) = uri.scheme_str().zip(uri.host()).ok_or_else(no_url)?;
        let host = host.to_ascii_lowercase();
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err(EndpointError::Part(
                "user or password, because the client finds AWS credentials by itself",
            ));
        }
        if uri.query().is_some() {
            return Err(EndpointError::Part("query (?)"));
        }
        let loopback = is_loopback(&host);
        match scheme {
            "https" => {}
            "http" if loopback => {}
            "http" => return Err(EndpointError::InTheClear(host)),
            _ => return Err(no_url()),
        }
        Ok(Self { base: text.trim_end_matches('/').to_owned(), host, loopback })
    }
}

fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(text: &str) -> Endpoint {
        text.parse().unwrap()
    }

    #[test]
    fn the_region_is_read_from_the_host_name() {
        for (text, region) in [
            ("https://abc.execute-api.eu-west-1.amazonaws.com", Some("eu-west-1")),
            ("https://ABC.Execute-API.us-east-2.amazonaws.com/prod/", Some("us-east-2")),
            ("https://abc.execute-api.cn-north-1.amazonaws.com.cn", Some("cn-north-1")),
            ("https://abc-vpce-1.execute-api.us-east-1.amazonaws.com/prod", Some("us-east-1")),
            ("https://vpce-1.execute-api.us-east-1.vpce.amazonaws.com", Some("us-east-1")),
            ("https://tuning.example.com", None),
            ("https://execute-api.example.com", None),
            ("http://127.0.0.1:8080", None),
        ] {
            assert_eq!(endpoint(text).region(), region, "{text}");
        }
    }

    #[test]
    fn a_path_follows_the_stage() {
        let staged = endpoint("https://abc.execute-api.eu-west-1.amazonaws.com/prod/");
        let expected = "https://abc.execute-api.eu-west-1.amazonaws.com/prod/tuning-jobs";
        assert_eq!(staged.url("/tuning-jobs"), expected);
        assert_eq!(staged.authority(), "abc.execute-api.eu-west-1.amazonaws.com");
        assert_eq!(endpoint("http://localhost:80/").authority(), "localhost:80");
    }

    #[test]
    fn plain_http_is_allowed_only_on_this_machine() {
        for text in ["http://localhost:1", "http://127.0.0.1", "http://127.8.9.1:80/x", "http://[::1]:8080"] {
            assert!(endpoint(text).is_loopback(), "{text}");
        }
        for text in
            ["http://example.com", "http://10.0.0.1", "http://localhost.example.com", "http://0.0.0.0"]
        {
            let error = text.parse::<Endpoint>().unwrap_err();
            assert!(matches!(error, EndpointError::InTheClear(_)), "{text}: {error}");
        }
        assert!(!endpoint("https://10.0.0.1").is_loopback());
    }

    #[test]
    fn an_invalid_address_is_rejected() {
        for text in ["", "abc", "example.com", "/x", "https://", "ftp://localhost", "https:// x"] {
            assert!(matches!(text.parse::<Endpoint>(), Err(EndpointError::NoUrl(_))), "{text}");
        }
        for text in ["https://u:p@example.com", "https://example.com?x=1", "https://example.com#x"] {
            assert!(matches!(text.parse::<Endpoint>(), Err(EndpointError::Part(_))), "{text}");
        }
    }
}
