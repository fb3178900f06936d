//! Where a command looks: in a data directory or at an endpoint.
//!
//! What is typed goes before the environment. That is not left to clap, which takes a variable for something that was typed,
//! in conflict with --data-dir.

#![expect(clippy::doc_markdown, reason = "these docs are the help, where backticks would be shown")]

use std::path::PathBuf;

use clap::{Args, ValueHint};
use client::Endpoint;

use super::{DATA_DIR, folder};
use crate::text::quoted;

/// Where tunings are unless an option says so.
pub(crate) const ENDPOINT_VARIABLE: &str = "HYPERBAND_ENDPOINT";

/// Where the tunings are: on this machine or at an endpoint.
#[derive(Debug, Args)]
pub(crate) struct Source {
    /// Folder with the table, the training jobs and their checkpoints [default: .hyperband]
    #[arg(long = "data-dir", value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "endpoint")]
    #[arg(value_parser = folder())]
    data_dir: Option<PathBuf>,
    #[command(flatten)]
    remote: RemotePlace,
}

/// A deployed stack, or another server of its API.
#[derive(Debug, Args)]
pub(crate) struct RemotePlace {
    /// HTTP API of a deployed stack (its output ApiUrl), or of a server on this machine [env: HYPERBAND_ENDPOINT]
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    endpoint: Option<Endpoint>,
}

/// Where a command looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Where {
    /// In a data directory.
    Folder(PathBuf),
    /// At an endpoint.
    Endpoint(Endpoint),
}

impl Source {
    /// The folder or the endpoint.
    pub(crate) fn place(&self) -> Result<Where, String> {
        if let Some(folder) = &self.data_dir {
            return Ok(Where::Folder(folder.clone()));
        }
        let endpoint = self.remote.place()?;
        Ok(endpoint.map_or_else(|| Where::Folder(PathBuf::from(DATA_DIR)), Where::Endpoint))
    }
}

impl RemotePlace {
    /// The endpoint that was given, or that of the environment.
    pub(crate) fn place(&self) -> Result<Option<Endpoint>, String> {
        if self.endpoint.is_some() {
            return Ok(self.endpoint.clone());
        }
        let told = std::env::var(ENDPOINT_VARIABLE).unwrap_or_default();
        if told.is_empty() {
            return Ok(None);
        }
        told.parse().map(Some).map_err(|error| format!("{ENDPOINT_VARIABLE}: {error}"))
    }

    /// The words that lead a further command to the same place.
    pub(crate) fn words(&self) -> String {
        self.endpoint
            .as_ref()
            .map_or_else(String::new, |endpoint| format!(" --endpoint {}", quoted(&endpoint.to_string())))
    }
}

impl Source {
    /// The words that lead a further command to the same place.
    pub(crate) fn words(&self) -> String {
        let folder =
            self.data_dir.as_ref().map(|folder| format!(" --data-dir {}", quoted(&folder.to_string_lossy())));
        folder.unwrap_or_else(|| self.remote.words())
    }
}
