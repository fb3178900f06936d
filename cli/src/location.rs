//! Where a model is: on this machine or in S3.

use std::fs;
use std::path::PathBuf;

/// Where the model of a training job is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Location {
    Folder(PathBuf),
    /// An object in S3, which exists if the job left a model.
    Object(String),
    /// The job left no model.
    Missing,
}

impl Location {
    /// Returns the location at a URI of S3, or of a folder on this machine.
    pub(crate) fn of_uri(uri: &str) -> Self {
        let Some(folder) = uri.strip_prefix("file://").map(PathBuf::from) else {
            return Self::Object(uri.to_owned());
        };
        let has_files = fs::read_dir(&folder).is_ok_and(|mut entries| entries.next().is_some());
        if has_files { Self::Folder(folder) } else { Self::Missing }
    }

    pub(crate) fn text(&self) -> String {
        match self {
            Self::Folder(folder) => folder.display().to_string(),
            Self::Object(uri) => uri.clone(),
            Self::Missing => "none: the training program saved none in $SM_MODEL_DIR".to_owned(),
        }
    }

    /// Returns the location for JSON: `None` if there is no model.
    pub(crate) fn path(&self) -> Option<String> {
        (*self != Self::Missing).then(|| self.text())
    }
}
