//! Runs every target on all files of its corpus.

use std::path::Path;

use fuzz::TARGETS;

/// Maximum size of the whole corpus, in bytes.
const CORPUS_BYTES_MAX: u64 = 1_000_000;

#[test]
fn no_file_of_the_corpus_breaks_a_property() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let (mut bytes, mut broken) = (0, Vec::new());
    for (name, run) in TARGETS {
        let mut files: Vec<_> = std::fs::read_dir(corpus.join(name))
            .unwrap_or_else(|error| panic!("corpus of {name}: {error}"))
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect();
        files.sort();
        assert!(!files.is_empty(), "the corpus of {name} is empty");
        for file in files {
            let input = std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            bytes += u64::try_from(input.len()).unwrap_or(u64::MAX);
            if std::panic::catch_unwind(|| run(&input)).is_err() {
                broken.push(file.display().to_string());
            }
        }
    }
    assert!(broken.is_empty(), "these inputs break a property: {broken:#?}");
    assert!(bytes <= CORPUS_BYTES_MAX, "the corpus has {bytes} bytes");
}
