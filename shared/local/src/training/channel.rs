//! Where the data of an input channel is on this machine.
//!
//! `file:///dir` and `file://dir` are folders (or single files) here; every other address is elsewhere. Blocks.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Files that one sharded channel may have; more is taken for a mistake, such as the root folder.
const FILES_MAX: usize = 1_000_000;

/// Where a channel's data is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// On this machine.
    Here(PathBuf),
    /// Out of reach.
    Elsewhere,
}

/// Understands an `S3Uri`.
pub(crate) fn source(uri: &str) -> Source {
    match uri.strip_prefix("file://") {
        Some(path) if !path.is_empty() => Source::Here(PathBuf::from(path)),
        _ => Source::Elsewhere,
    }
}

/// Every file below `folder`, relative to it, sorted by name as S3 sorts keys.
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
                return Err(io::Error::other(format!("there are more than {FILES_MAX} files")));
            }
        }
    }
    found.sort_by(|a, b| a.as_os_str().cmp(b.as_os_str()));
    Ok(found)
}
