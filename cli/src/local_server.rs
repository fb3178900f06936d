//! The server of `serve` and `proxy`: its address, its URL, and its shutdown by a signal.

use std::net::SocketAddr;

use server::{Hosts, Router, api_limits, local_only};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::arguments::{Listen, Output};
use crate::failure::Failure;
use crate::output::{print_err, show_url};

/// A server that does not accept requests yet.
#[derive(Debug)]
pub(crate) struct LocalServer {
    listener: TcpListener,
    address: SocketAddr,
    hosts: Hosts,
}

/// A server that accepts requests.
#[derive(Debug)]
pub(crate) struct Serving {
    task: JoinHandle<()>,
    end: oneshot::Sender<()>,
}

/// Listens on an address. Returns the address with the port, which the system may have chosen.
pub(crate) async fn listen(listen: &Listen) -> Result<(TcpListener, SocketAddr), Failure> {
    let listener = TcpListener::bind(listen.address).await.map_err(|error| {
        Failure::endpoint(error)
            .context(format!("cannot listen on {}", listen.address))
            .hint("use another address with --listen; port 0 selects a free port")
    })?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

impl LocalServer {
    /// Listens on an address. `risk` says what each program that reaches it can do.
    pub(crate) async fn bind(listen: &Listen, allow_remote: bool, risk: &str) -> Result<Self, Failure> {
        let is_local = listen.address.ip().is_loopback();
        if !is_local && !allow_remote {
            return Err(Failure::usage(format!(
                "{} can be reached from other machines, and there is no authentication: each program that reaches it \
                 {risk}",
                listen.address
            ))
            .hint("use an address of this machine only, such as 127.0.0.1:8080, or add --allow-remote"));
        }
        let (listener, address) = self::listen(listen).await?;
        if !is_local {
            print_err(&format!(
                "warning: {address} can be reached from other machines, and there is no authentication: each program \
                 that reaches it {risk}\n"
            ));
        }
        Ok(Self { listener, address, hosts: Hosts::of(&listen.host, address) })
    }

    /// Serves `router`, and prints the URL.
    pub(crate) fn serve(self, router: Router, output: Output) -> Serving {
        let (end, ended) = oneshot::channel();
        let until = async {
            // A dropped sender also ends the server.
            let _ = ended.await;
        };
        let router = local_only(router, self.hosts);
        let task = tokio::spawn(server::serve(self.listener, api_limits(), router, until));
        let url = format!("http://{}", self.address);
        show_url(output, "serving", &url);
        Serving { task, end }
    }
}

impl Serving {
    /// Waits until the server ends, which it does only by an error.
    pub(crate) async fn broken(&mut self) -> Failure {
        let ended = (&mut self.task).await;
        Failure::endpoint(anyhow::anyhow!("the server ended unexpectedly: {ended:?}"))
    }

    /// Accepts no more requests, and waits up to 5 seconds for those that run.
    pub(crate) async fn close(self) {
        let _ = self.end.send(());
        // `broken` has taken the result of a server that ended.
        if !self.task.is_finished() {
            let _ = self.task.await;
        }
    }
}
