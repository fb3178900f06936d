//! An address to listen on.

use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;

/// An IP address or a host name, with a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listen {
    /// The first address of the host.
    pub(crate) address: SocketAddr,
    /// The host as typed.
    pub(crate) host: String,
}

impl FromStr for Listen {
    type Err = String;

    /// Resolves a name, such as `localhost`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let expected = || "expected HOST:PORT, for example 127.0.0.1:8080 or localhost:8080".to_owned();
        let address = text.to_socket_addrs().map_err(|_| expected())?.next().ok_or_else(expected)?;
        let (host, _) = text.rsplit_once(':').ok_or_else(expected)?;
        Ok(Self { address, host: host.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_be_a_name() {
        let name: Listen = "localhost:8321".parse().unwrap();
        assert!(name.address.ip().is_loopback() && name.host == "localhost");
        assert_eq!("127.0.0.1:0".parse::<Listen>().unwrap().address.to_string(), "127.0.0.1:0");
        for wrong in ["localhost", "8321", "127.0.0.1:99999"] {
            assert!(wrong.parse::<Listen>().unwrap_err().starts_with("expected HOST:PORT"), "{wrong}");
        }
    }
}
