//! The signals that interrupt a run or a service.

use std::future::pending;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

/// SIGINT and SIGTERM, which no longer end the process by themselves.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Takes the signals over.
    pub(crate) fn listen() -> Result<Self, Failure> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) {
        let heard = tokio::select! {
            heard = self.interrupt.recv() => heard,
            heard = self.terminate.recv() => heard,
        };
        if heard.is_none() {
            // The runtime ends.
            pending::<()>().await;
        }
    }
}
