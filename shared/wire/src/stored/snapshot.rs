//! Snapshots: the whole state, compressed and split into rows.
//!
//! A snapshot only saves time: replaying all steps yields the same state.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use tuning::state::State;

use super::{StoredError, checked, row, tuning_partition};
use crate::item::{Item, Key};

/// Size of a chunk, in bytes.
const CHUNK_BYTES: usize = 256 * 1024;

/// Maximum size of a state, in bytes of JSON. It limits the damage of a corrupt row and is far above the need of 10,000
/// trials.
const MAX_STATE_BYTES: u64 = 64 * 1024 * 1024;

/// Returns the prefix of the sort keys of the chunks of the snapshot after step `n`.
pub fn snapshot_key_prefix(n: u64) -> String {
    format!("SNAP#{n:010}#")
}

/// Returns the rows of the snapshot of `state` after step `n`. Fails if the state exceeds the maximum size; readers
/// then use an older snapshot and the steps.
pub fn snapshot_chunks(id: &str, n: u64, state: &State) -> Result<Vec<Item>, StoredError> {
    let key = Key::new(tuning_partition(id), snapshot_key_prefix(n));
    let failed = |error: &dyn std::fmt::Display| StoredError::unreadable(&key, error.to_string());
    let json = serde_json::to_vec(state).map_err(|error| failed(&error))?;
    if u64::try_from(json.len()).is_ok_and(|bytes| bytes > MAX_STATE_BYTES) {
        return Err(StoredError::unreadable(
            &key,
            format!("the state exceeds {MAX_STATE_BYTES} bytes of JSON"),
        ));
    }
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&json).map_err(|error| failed(&error))?;
    let bytes = encoder.finish().map_err(|error| failed(&error))?;
    let count = i64::try_from(bytes.chunks(CHUNK_BYTES).count()).unwrap_or(i64::MAX);
    let item = |(index, chunk): (usize, &[u8])| {
        let key = Key::new(tuning_partition(id), format!("{}{index:04}", snapshot_key_prefix(n)));
        row(key, "snapshot").with("chunks", count).with("state", chunk.to_vec())
    };
    Ok(bytes.chunks(CHUNK_BYTES).enumerate().map(item).collect())
}

/// Returns the state in the chunks of one snapshot, given in order. Fails if a chunk is missing.
pub fn snapshot_state(id: &str, n: u64, chunks: &[Item]) -> Result<State, StoredError> {
    let key = Key::new(tuning_partition(id), snapshot_key_prefix(n));
    let mut bytes = Vec::new();
    for chunk in chunks {
        let chunk = checked(chunk, "snapshot")?;
        let whole = chunk.number("chunks") == i64::try_from(chunks.len()).ok();
        let part = chunk.bytes("state").filter(|_| whole);
        bytes.extend_from_slice(part.ok_or_else(|| StoredError::unreadable(&key, "a chunk is missing"))?);
    }
    if bytes.is_empty() {
        return Err(StoredError::unreadable(&key, "all chunks are missing"));
    }
    let mut json = Vec::new();
    DeflateDecoder::new(bytes.as_slice())
        .take(MAX_STATE_BYTES)
        .read_to_end(&mut json)
        .map_err(|error| StoredError::unreadable(&key, error.to_string()))?;
    serde_json::from_slice(&json).map_err(|error| StoredError::unreadable(&key, error.to_string()))
}
