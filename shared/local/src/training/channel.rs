//! Locates the data of input channels on this machine.
//!
//! `file:///dir` and `file://dir` name local folders or files. Data at any other address is not available. The
//! functions block.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The maximum number of files in a sharded channel. More files hint at a mistake, such as the root folder.
const FILES_MAX: usize = 1_000_000;

/// The location of a channel's data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    Local(PathBuf),
    /// Not on this machine.
    Remote,
}

/// Parses an `S3Uri`.
pub(crate) fn source(uri: &str) -> Source {
    match uri.strip_prefix("file://") {
        Some(path) if !path.is_empty() => Source::Local(PathBuf::from(path)),
        _ => Source::Remote,
    }
}

/// Returns every file below `folder`, relative to it, sorted by path like S3 keys.
pub(crate) fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![PathBuf::new()];
    while let Some(relative) = open.pop() {
        for entry in fs::read_dir(folder.join(&relative))? {
            let entry = entry?;
            let path = relative.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                open.push(path);
            } else {
                found.push(path);
            }
            if found.len() > FILES_MAX {
                return Err(io::Error::other(format!("too many files: expected at most {FILES_MAX}")));
            }
        }
    }
    found.sort_by(|a, b| a.as_os_str().cmp(b.as_os_str()));
    Ok(found)
}
