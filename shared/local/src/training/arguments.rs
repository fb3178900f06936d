//! The hyperparameters of a job as arguments of its program.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use serde_json::Value;

/// Names of hyperparameters that are SageMaker's own begin with one of these.
const OWN: [&str; 2] = ["sagemaker_", "_tuning_"];

/// The hyperparameters of a job: their texts, by name.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Hyperparameters(BTreeMap<String, String>);

impl Hyperparameters {
    pub(crate) fn of(texts: &BTreeMap<String, String>) -> Self {
        Self(texts.clone())
    }

    /// Returns the names with their values. A text that is JSON has its value.
    pub(crate) fn values(&self) -> impl Iterator<Item = (&String, Value)> {
        self.0.iter().map(|(name, text)| (name, value(text)))
    }

    /// Returns the options, such as `--lr 0.1`, in the order of the names. Like SageMaker's training toolkit, a name of
    /// one letter has one dash, and truth values are `True` and `False`.
    pub(crate) fn options(&self) -> Vec<String> {
        let users = self.0.iter().filter(|(name, _)| !OWN.iter().any(|own| name.starts_with(own)));
        let option = |(name, text): (&String, &String)| {
            let dashes = if name.chars().count() == 1 { "-" } else { "--" };
            let argument = match text.as_str() {
                "true" => "True".to_owned(),
                "false" => "False".to_owned(),
                text => argument(text),
            };
            [format!("{dashes}{name}"), argument]
        };
        users.flat_map(option).collect()
    }

    /// Returns the command with the text of a hyperparameter for each `{NAME}`, and with the options if `pass` is set.
    /// Other braces stay.
    pub(crate) fn fill(&self, command: &[OsString], pass: bool) -> Vec<OsString> {
        let words = command.iter().map(|word| self.filled(word));
        words.chain(self.options().into_iter().filter(|_| pass).map(OsString::from)).collect()
    }

    fn filled(&self, word: &OsStr) -> OsString {
        let Some(mut rest) = word.to_str().filter(|text| text.contains('{')) else { return word.to_owned() };
        let mut text = String::new();
        while let Some((before, after)) = rest.split_once('{') {
            text.push_str(before);
            let named = after.split_once('}').and_then(|(name, end)| Some((self.0.get(name)?, end)));
            rest = if let Some((value, end)) = named {
                text.push_str(&argument(value));
                end
            } else {
                text.push('{');
                after
            };
        }
        text.push_str(rest);
        text.into()
    }
}

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}

/// Returns a text as an argument: unquoted if it is a JSON string, else unchanged.
fn argument(text: &str) -> String {
    match value(text) {
        Value::String(plain) => plain,
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hyperparameters() -> Hyperparameters {
        let texts = [
            ("lr", "1.0e-3"),
            ("C", "2"),
            ("opt", "\"adam\""),
            ("nesterov", "true"),
            ("_tuning_objective_metric", "loss"),
            ("sagemaker_program", "a.py"),
        ];
        Hyperparameters::of(&texts.map(|(name, text)| (name.to_owned(), text.to_owned())).into())
    }

    fn filled(words: &[&str], pass: bool) -> Vec<String> {
        let command: Vec<OsString> = words.iter().map(OsString::from).collect();
        let filled = hyperparameters().fill(&command, pass);
        filled.into_iter().map(|word| word.into_string().unwrap()).collect()
    }

    #[test]
    fn options_are_those_of_the_training_toolkit() {
        let expected = ["-C", "2", "--lr", "1.0e-3", "--nesterov", "True", "--opt", "adam"];
        assert_eq!(hyperparameters().options(), expected);
        assert_eq!(filled(&["python3", "a.py"], true), [&["python3", "a.py"], &expected[..]].concat());
    }

    #[test]
    fn a_name_in_braces_is_replaced_and_other_braces_stay() {
        let command =
            ["a.py", "model.lr={lr}", "{opt}-{C}-{nesterov}", "{print $1}", "{unknown}{lr}", "{", "}{lr"];
        let expected =
            ["a.py", "model.lr=1.0e-3", "adam-2-true", "{print $1}", "{unknown}1.0e-3", "{", "}{lr"];
        assert_eq!(filled(&command, false), expected);
    }
}
