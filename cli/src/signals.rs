//! The signals that interrupt a run or a service.

use std::future::pending;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

/// Receives SIGINT and SIGTERM, which then no longer end the process.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Installs the signal handlers.
    pub(crate) fn listen() -> Result<Self, Failure> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    pub(crate) async fn next(&mut self) {
        let signal = tokio::select! {
            signal = self.interrupt.recv() => signal,
            signal = self.terminate.recv() => signal,
        };
        if signal.is_none() {
            // The runtime is shutting down.
            pending::<()>().await;
        }
    }
}
