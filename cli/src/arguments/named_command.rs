//! `--command NAME=COMMAND`: the training command of one training job definition.

use std::ffi::OsString;
use std::str::FromStr;

/// The training command of the definition with this name, as words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedCommand {
    pub(crate) definition: String,
    pub(crate) words: Vec<String>,
}

impl NamedCommand {
    pub(crate) fn os_words(&self) -> Vec<OsString> {
        self.words.iter().map(OsString::from).collect()
    }
}

impl FromStr for NamedCommand {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || "expected NAME=COMMAND, for example small='python3 small.py'".to_owned();
        let (definition, command) = text.split_once('=').ok_or_else(expected)?;
        let words = shlex::split(command).ok_or_else(|| format!("a quote in `{command}` has no end"))?;
        if definition.is_empty() || words.is_empty() {
            return Err(expected());
        }
        Ok(Self { definition: definition.to_owned(), words })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_split_like_a_shell_does() {
        let parsed: NamedCommand = "small=python3 'my train.py' --lr {lr} a=b".parse().unwrap();
        assert_eq!(parsed.definition, "small");
        assert_eq!(parsed.words, ["python3", "my train.py", "--lr", "{lr}", "a=b"]);
        for wrong in ["small", "=python3", "small=", "small='x"] {
            assert!(wrong.parse::<NamedCommand>().is_err(), "{wrong}");
        }
    }
}
