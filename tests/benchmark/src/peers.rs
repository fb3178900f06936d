//! Recorded figures of other systems on the public tables: `tests/benchmark/peers.json`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use crate::error::BenchmarkError;

/// Jobs of a tuning in [`Peers::thirty_jobs`].
pub const THIRTY_JOBS: u32 = 30;

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Peers {
    /// How the figures were measured.
    pub about: String,
    /// The name and version of the system whose methods begin with a prefix.
    pub versions: BTreeMap<String, String>,
    /// Tunings of two hours, by table; measured at [`crate::world::CHECKPOINTS`].
    pub tables: BTreeMap<String, Vec<Peer>>,
    /// Tunings of [`THIRTY_JOBS`] training jobs, by table; measured at their end.
    pub thirty_jobs: BTreeMap<String, Vec<Peer>>,
}

/// The means of a method over seeds. `None` = not recorded.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Peer {
    /// The name of the method.
    pub method: String,
    /// The number of seeds.
    pub seeds: u32,
    /// The regret of the best value at any epoch, at each time.
    pub obs: Vec<Option<f64>>,
    /// Its standard errors.
    pub obs_se: Vec<Option<f64>>,
    /// The regret of the best value at the last epoch, at the last time.
    pub full: Option<f64>,
    /// Its standard error.
    pub full_se: Option<f64>,
    /// The number of configurations.
    pub trials: u32,
    /// Billed training time without start-ups, in minutes.
    pub billed_minutes: f64,
}

impl Peers {
    /// Reads the file.
    pub fn read() -> Result<Self, BenchmarkError> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers.json");
        let text = std::fs::read(&path).map_err(|why| BenchmarkError::Read { path: path.clone(), why })?;
        serde_json::from_slice(&text).map_err(|why| BenchmarkError::Json { path, why })
    }
}
