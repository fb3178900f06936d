//! `--devices`: the GPUs that training processes share.

use std::process::{Command, Stdio};
use std::str::FromStr;

use crate::failure::Failure;

const EXPECTED: &str = "expected GPUs with commas between them, for example 0,1,2,3, or auto";

/// The devices as the command line gives them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Devices {
    /// Those that nvidia-smi lists.
    Auto,
    Listed(Vec<String>),
}

impl FromStr for Devices {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        let mut names: Vec<String> = Vec::new();
        for name in text.split(',').map(str::trim) {
            if name.is_empty() || name.chars().any(|letter| letter.is_whitespace() || letter.is_control()) {
                return Err(EXPECTED.to_owned());
            }
            if names.iter().any(|known| known == name) {
                return Err(format!("the device {name} is listed twice"));
            }
            names.push(name.to_owned());
        }
        Ok(Self::Listed(names))
    }
}

impl Devices {
    /// Returns the names for `CUDA_VISIBLE_DEVICES`. Fails if nvidia-smi lists none.
    pub(crate) fn names(&self) -> Result<Vec<String>, Failure> {
        match self {
            Self::Listed(names) => Ok(names.clone()),
            Self::Auto => {
                let arguments = ["--query-gpu=index", "--format=csv,noheader"];
                let asked = Command::new("nvidia-smi").args(arguments).stderr(Stdio::null()).output();
                let listed = asked.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
                let listed = listed.unwrap_or_default();
                let names: Vec<String> = listed
                    .lines()
                    .map(str::trim)
                    .filter(|line| !line.is_empty())
                    .map(str::to_owned)
                    .collect();
                if names.is_empty() {
                    return Err(Failure::usage("--devices auto: nvidia-smi lists no GPU")
                        .hint("list the GPUs, for example --devices 0,1"));
                }
                Ok(names)
            }
        }
    }

    /// Returns the names as the command line gives them.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Auto => "auto".to_owned(),
            Self::Listed(names) => names.join(","),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_names_with_commas_or_auto() {
        let listed =
            |names: &[&str]| Ok(Devices::Listed(names.iter().map(|name| (*name).to_owned()).collect()));
        assert_eq!("auto".parse(), Ok(Devices::Auto));
        assert_eq!("0, 1".parse(), listed(&["0", "1"]));
        assert_eq!("MIG-1/2".parse(), listed(&["MIG-1/2"]));
        for text in ["", "0,,1", "0,"] {
            assert_eq!(text.parse::<Devices>(), Err(EXPECTED.to_owned()), "{text}");
        }
        assert!("1,1".parse::<Devices>().unwrap_err().contains("twice"));
    }
}
