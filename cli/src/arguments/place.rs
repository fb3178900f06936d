//! Options that locate tunings: a data directory or an endpoint.
//!
//! Options have precedence over the environment. clap's own `env` is not used, because clap treats a variable as a
//! typed option, which conflicts with `--data-dir`.

#![expect(clippy::doc_markdown, reason = "clap prints these docs as help, with the backticks")]

use std::path::{Path, PathBuf};

use api_client::Address;
use clap::{Args, ValueHint};

use super::{DATA_DIR, folder_parser};
use crate::failure::Failure;
use crate::text::quoted;

/// Environment variable with the endpoint, used if no option is given.
const ENDPOINT_VARIABLE: &str = "HYPERBAND_ENDPOINT";

/// Options for a data directory or an endpoint.
#[derive(Debug, Args)]
pub(crate) struct Source {
    /// Folder of the table, the training jobs and their checkpoints [default: .hyperband]
    #[arg(long = "data-dir", value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "endpoint")]
    #[arg(value_parser = folder_parser())]
    data_dir: Option<PathBuf>,
    #[command(flatten)]
    remote: RemotePlace,
}

/// Option for the endpoint of a deployed stack.
#[derive(Debug, Args)]
pub(crate) struct RemotePlace {
    /// URL of a stack's HTTP API (output ApiUrl) or of a local server, or lambda:FUNCTION for a stack's function
    /// (output InvokeFunctionName) [env: HYPERBAND_ENDPOINT]
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    endpoint: Option<Address>,
}

/// Returns the option that a suggested command needs to reach the data directory `folder`.
pub(crate) fn folder_option(folder: &Path) -> String {
    if folder == Path::new(DATA_DIR) {
        String::new()
    } else {
        format!(" --data-dir {}", quoted(&folder.to_string_lossy()))
    }
}

/// Location of tunings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Where {
    /// A data directory.
    Folder(PathBuf),
    /// A stack.
    Endpoint(Address),
}

impl Source {
    /// Returns the folder or the endpoint: the options, else the environment, else the default folder.
    pub(crate) fn place(&self) -> Result<Where, Failure> {
        if let Some(folder) = &self.data_dir {
            return Ok(Where::Folder(folder.clone()));
        }
        let endpoint = self.remote.place()?;
        Ok(endpoint.map_or_else(|| Where::Folder(PathBuf::from(DATA_DIR)), Where::Endpoint))
    }
}

impl RemotePlace {
    /// Returns the endpoint from the option, else from the environment. `None` if neither is set.
    pub(crate) fn place(&self) -> Result<Option<Address>, Failure> {
        if self.endpoint.is_some() {
            return Ok(self.endpoint.clone());
        }
        let variable = std::env::var(ENDPOINT_VARIABLE).unwrap_or_default();
        if variable.is_empty() {
            return Ok(None);
        }
        variable.parse().map(Some).map_err(|error| Failure::usage(format!("{ENDPOINT_VARIABLE}: {error}")))
    }

    /// Returns the endpoint. Fails if neither is set; `otherwise` ends the hint.
    pub(crate) fn required(&self, otherwise: &str) -> Result<Address, Failure> {
        self.place()?.ok_or_else(|| {
            Failure::usage("the endpoint of the stack is missing").hint(format!(
                "set --endpoint or {ENDPOINT_VARIABLE} to the stack's output ApiUrl{otherwise}"
            ))
        })
    }

    /// Returns the options that a suggested command needs to reach the same location.
    pub(crate) fn location_options(&self) -> String {
        self.endpoint
            .as_ref()
            .map_or_else(String::new, |endpoint| format!(" --endpoint {}", quoted(&endpoint.to_string())))
    }
}

impl Source {
    /// Returns the options that a suggested command needs to reach the same location.
    pub(crate) fn location_options(&self) -> String {
        self.data_dir.as_ref().map_or_else(|| self.remote.location_options(), |folder| folder_option(folder))
    }
}
