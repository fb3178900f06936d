//! The tables that are played: recorded ones, read from files, and computed ones.

use std::fs;
use std::path::{Path, PathBuf};

use curves::{Table, TableError};

use crate::analytic;
use crate::case::{Case, Source, request};
use crate::error::BenchmarkError;

/// Folders with recorded tables, below the root of the project. The first has public ones.
const FOLDERS: [(&str, Source); 3] = [
    ("examples/curves", Source::Recorded),
    ("tests/benchmark/tables", Source::Recorded),
    ("tests/benchmark/tables/held-out", Source::HeldOut),
];
const ENDING: &str = ".jsonl.gz";

/// Returns the cases of these names, or all: the recorded tables by folder and name, then the computed ones.
pub fn cases(names: &[String]) -> Result<Vec<Case>, BenchmarkError> {
    cases_with(names, None)
}

/// Like [`cases`]; `more` is a further folder with held-out tables, of which those with the name of a known table do not
/// count.
pub fn cases_with(names: &[String], more: Option<&Path>) -> Result<Vec<Case>, BenchmarkError> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = FOLDERS.map(|(folder, source)| (root.join(folder), source));
    let more = more.map(|folder| (folder.to_owned(), Source::HeldOut));
    let mut files: Vec<(String, PathBuf, Source)> = Vec::new();
    for (folder, source) in folders.into_iter().chain(more) {
        let found = tables_of(&folder)?.into_iter();
        let new = found.filter(|(name, _)| files.iter().all(|(known, ..)| known != name));
        let new: Vec<_> = new.map(|(name, path)| (name, path, source)).collect();
        files.extend(new);
    }
    let known: Vec<&str> = files.iter().map(|(name, ..)| name.as_str()).chain(analytic::NAMES).collect();
    if let Some(name) = names.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(BenchmarkError::UnknownTable { name: name.clone(), known: known.join(", ") });
    }
    let is_wanted = |name: &str| names.is_empty() || names.iter().any(|wanted| wanted == name);
    let wanted = files.iter().filter(|(name, ..)| is_wanted(name));
    let recorded = wanted.map(|(name, path, source)| read(name, path, *source));
    let computed = analytic::NAMES.into_iter().filter(|name| is_wanted(name)).map(analytic::case);
    recorded.chain(computed).collect()
}

/// Returns the cases of the tables whose rows have different numbers of instances, and these numbers.
pub fn counts() -> Result<Vec<(Case, Vec<u32>)>, BenchmarkError> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tables/counts");
    let case = |(name, path): (String, PathBuf)| {
        let case = read(&name, &path, Source::Recorded)?;
        let counts = case.table.counts();
        Ok((case, counts))
    };
    tables_of(&folder)?.into_iter().map(case).collect()
}

/// Returns the tables of a folder, by name.
fn tables_of(folder: &Path) -> Result<Vec<(String, PathBuf)>, BenchmarkError> {
    let wrong = |why| BenchmarkError::Read { path: folder.to_owned(), why };
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(wrong)? {
        let path = entry.map_err(wrong)?.path();
        let name = path.file_name().and_then(|name| name.to_str()?.strip_suffix(ENDING)).map(str::to_owned);
        found.extend(name.map(|name| (name, path)));
    }
    found.sort_unstable();
    Ok(found)
}

/// Reads a table. The request beside it counts; without one, its space gives the request.
fn read(name: &str, path: &Path, source: Source) -> Result<Case, BenchmarkError> {
    let beside = |ending: &str| path.with_file_name(format!("{name}{ending}"));
    let bytes = |path: PathBuf| fs::read(&path).map_err(|why| BenchmarkError::Read { path, why });
    let (space, example) = (beside(".space.json"), beside(".json"));
    let space_text = bytes(space.clone())?;
    let body = if example.exists() {
        let text = bytes(example.clone())?;
        serde_json::from_slice(&text).map_err(|why| BenchmarkError::Json { path: example, why })?
    } else {
        let file = serde_json::from_slice(&space_text);
        // A tuning's name has at most 32 characters.
        request(
            name.get(..32).unwrap_or(name).trim_end_matches('-'),
            &file.map_err(|why| BenchmarkError::Json { path: space, why })?,
        )
    };
    let unusable = |why: TableError| BenchmarkError::Table { table: name.to_owned(), why };
    let table = Table::read(&bytes(path.to_owned())?, &space_text).map_err(unusable)?;
    Ok(Case::new(name, table, body, source))
}
