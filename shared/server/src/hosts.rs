//! Refuses the requests of web pages, which a browser on this machine sends to any address.
//!
//! A page of another site has another `Origin`. A page can also make the name of its own site point to this machine
//! (DNS rebinding); then the `Host` of its requests is that name. An IP address or `localhost` cannot be rebound.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use http_api::{Answered, ApiError};

use crate::routes;

/// Where the page of a request is, compared with the server.
const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// What the response is for: `document` for a page in its own tab.
const DESTINATION: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// The hosts in whose name clients may send requests.
#[derive(Debug, Clone)]
pub struct Hosts {
    /// The name or address that the server was asked to listen on.
    name: String,
    /// Whether the server is reachable from other machines, which may use any of its addresses.
    any_address: bool,
    address: IpAddr,
}

impl Hosts {
    /// Returns the hosts of a server at `address`, which was given as `name`, without a port.
    pub fn of(name: &str, address: SocketAddr) -> Self {
        let address = address.ip();
        Self { name: name.to_ascii_lowercase(), any_address: !address.is_loopback(), address }
    }

    /// Returns why a request with these headers is refused, or `None` if it is not.
    fn refusal(&self, headers: &HeaderMap) -> Option<String> {
        let Ok(host) = only(headers, &HOST) else {
            return Some("invalid Host: expected one header Host".to_owned());
        };
        let host = host.unwrap_or_default();
        if !self.accept(host) {
            return Some(format!(
                "invalid Host '{}': expected localhost, 127.0.0.1 or [::1]{}",
                shown(host),
                if self.any_address { ", or an IP address of this machine" } else { "" }
            ));
        }
        let Ok(origin) = only(headers, &ORIGIN) else {
            return Some("invalid Origin: expected one header Origin".to_owned());
        };
        let own = |origin: &str| {
            origin.strip_prefix("http://").is_some_and(|origin| origin.eq_ignore_ascii_case(host))
        };
        if let Some(origin) = origin.filter(|origin| !own(origin)) {
            return Some(format!("requests of pages of {} are not allowed", shown(origin)));
        }
        // A browser sends no `Origin` for an image or a frame, but says where the page is. Links are fine.
        let site = headers.get(&SITE).map(HeaderValue::as_bytes);
        let is_link = headers.get(&DESTINATION).is_some_and(|dest| dest.as_bytes() == b"document");
        let is_own = site.is_none_or(|site| [b"same-origin".as_slice(), b"none"].contains(&site));
        (!is_own && !is_link).then(|| "requests of pages of other sites are not allowed".to_owned())
    }

    fn accept(&self, host: &str) -> bool {
        let Ok(authority) = host.parse::<Authority>() else { return false };
        if authority.as_str().contains('@') {
            return false;
        }
        let host = authority.host().to_ascii_lowercase();
        if host == "localhost" || host == self.name {
            return true;
        }
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        address.is_ok_and(|address| {
            self.any_address
                || address == self.address
                || ["127.0.0.1", "::1"].contains(&address.to_string().as_str())
        })
    }
}

/// Returns the value of a header; an error if it has several, or one that is no text.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, ()> {
    let mut values = headers.get_all(name).iter();
    let first = values.next().map(|value| value.to_str().map_err(|_| ())).transpose()?;
    if values.next().is_some() { Err(()) } else { Ok(first) }
}

fn shown(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(100).collect()
}

/// Returns `router` for requests of programs and of its own pages only. Call it after all routes were added.
pub fn local_only(router: Router, hosts: Hosts) -> Router {
    router.layer(from_fn_with_state(Arc::new(hosts), check))
}

async fn check(State(hosts): State<Arc<Hosts>>, request: Request, next: Next) -> Response {
    let Some(refusal) = hosts.refusal(request.headers()) else { return next.run(request).await };
    let (head, _) = request.into_parts();
    let error = ApiError::of_host("AccessDeniedException", 403, refusal);
    routes::write(Answered::refused(&routes::read(&head), error).response)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn refusal(hosts: &Hosts, host: Option<&str>, origin: Option<&str>) -> Option<String> {
        let mut headers = HeaderMap::new();
        for (name, value) in [(HOST, host), (ORIGIN, origin)] {
            headers.extend(value.map(|value| (name, HeaderValue::from_str(value).unwrap())));
        }
        hosts.refusal(&headers)
    }

    #[test]
    fn only_names_that_cannot_be_rebound_are_accepted() {
        let local = Hosts::of("localhost", "127.0.0.1:8080".parse().unwrap());
        let remote = Hosts::of("Tuner", "0.0.0.0:8080".parse().unwrap());
        for host in ["localhost", "LOCALHOST:1", "127.0.0.1:8080", "[::1]:8080", "[::1]"] {
            assert_eq!(refusal(&local, Some(host), None), None, "{host}");
            assert_eq!(refusal(&remote, Some(host), None), None, "{host}");
        }
        for host in ["10.0.0.7:8080", "[fd00::1]", "tuner:8080"] {
            assert!(refusal(&local, Some(host), None).is_some(), "{host}");
            assert_eq!(refusal(&remote, Some(host), None), None, "{host}");
        }
        for host in
            ["", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "localhost@evil", "a b"]
        {
            let refused = refusal(&remote, Some(host), None);
            assert!(refused.is_some_and(|text| text.starts_with("invalid Host")), "{host}");
        }
        assert!(refusal(&local, None, None).is_some());
        let second = Hosts::of("127.0.0.2", "127.0.0.2:80".parse().unwrap());
        assert_eq!(refusal(&second, Some("127.0.0.2"), None), None);
    }

    #[test]
    fn a_page_of_another_origin_is_refused() {
        let hosts = Hosts::of("localhost", "127.0.0.1:8080".parse().unwrap());
        let host = Some("localhost:8080");
        assert_eq!(refusal(&hosts, host, Some("http://localhost:8080")), None);
        for origin in ["https://evil.example", "http://localhost:8081", "https://localhost:8080", "null", ""]
        {
            assert!(refusal(&hosts, host, Some(origin)).is_some(), "{origin}");
        }
    }

    #[test]
    fn a_page_of_another_site_may_only_link_here() {
        let hosts = Hosts::of("localhost", "127.0.0.1:8080".parse().unwrap());
        for (site, destination, accepted) in [
            ("none", "document", true),
            ("same-origin", "empty", true),
            ("cross-site", "document", true),
            ("cross-site", "image", false),
            ("cross-site", "iframe", false),
            ("same-site", "image", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, HeaderValue::from_static("localhost:8080"));
            headers.insert(SITE, HeaderValue::from_static(site));
            headers.insert(DESTINATION, HeaderValue::from_static(destination));
            assert_eq!(hosts.refusal(&headers).is_none(), accepted, "{site} {destination}");
        }
    }
}
