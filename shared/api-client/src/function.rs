//! The name of a stack's function for direct calls, which the client invokes in place of the HTTP API.

use std::fmt;
use std::str::FromStr;

use crate::endpoint::EndpointError;

/// Prefix of an address that names a function.
pub(crate) const PREFIX: &str = "lambda:";
/// Limits of Lambda, in characters.
const NAME_MAX: usize = 64;
const QUALIFIER_MAX: usize = 128;

/// The name or the ARN of a function, with an optional alias or version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// The name, `NAME:ALIAS` or the ARN.
    text: String,
    region: Option<String>,
}

impl Function {
    /// Returns the Region in the ARN; `None` for a name.
    pub fn region(&self) -> Option<&str> {
        self.region.as_deref()
    }

    /// Returns the path of its invocations.
    pub(crate) fn path(&self) -> String {
        // The only characters of names and ARNs that a path segment must escape.
        let segment = self.text.replace(':', "%3A").replace('$', "%24");
        format!("/2015-03-31/functions/{segment}/invocations")
    }
}

impl fmt::Display for Function {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{PREFIX}{}", self.text)
    }
}

impl FromStr for Function {
    type Err = EndpointError;

    /// Reads `NAME`, `NAME:ALIAS` or an ARN, without the prefix `lambda:`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || EndpointError::NoFunction(text.chars().take(200).collect());
        let parts: Vec<&str> = text.split(':').collect();
        let (region, name, qualifier) = match parts.as_slice() {
            ["arn", partition, "lambda", region, account, "function", rest @ ..] => {
                let is_account = account.len() == 12 && account.bytes().all(|byte| byte.is_ascii_digit());
                if !partition.starts_with("aws") || !is_account || !is_word(region, NAME_MAX) {
                    return Err(invalid());
                }
                let [name, qualifier @ ..] = rest else { return Err(invalid()) };
                (Some((*region).to_owned()), *name, qualifier)
            }
            [name, qualifier @ ..] => (None, *name, qualifier),
            [] => return Err(invalid()),
        };
        let is_qualifier = match qualifier {
            [] | ["$LATEST"] => true,
            [alias] => is_word(alias, QUALIFIER_MAX),
            _ => false,
        };
        if !is_word(name, NAME_MAX) || !is_qualifier {
            return Err(invalid());
        }
        Ok(Self { text: text.to_owned(), region })
    }
}

fn is_word(text: &str, limit: usize) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=limit).contains(&text.len()) && text.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(text: &str) -> Result<Function, EndpointError> {
        text.parse()
    }

    #[test]
    fn a_function_is_a_name_with_an_optional_alias_or_an_arn_with_its_region() {
        for (text, region) in [
            ("hyperband-prod-InvokeFunction-a1B2", None),
            ("tune:live", None),
            ("tune:$LATEST", None),
            ("arn:aws:lambda:eu-west-1:111122223333:function:tune", Some("eu-west-1")),
            ("arn:aws-cn:lambda:cn-north-1:111122223333:function:tune:7", Some("cn-north-1")),
        ] {
            let read = function(text).unwrap();
            assert_eq!((read.region(), read.to_string()), (region, format!("lambda:{text}")));
        }
    }

    #[test]
    fn an_invalid_function_is_rejected_with_an_example() {
        for text in [
            "",
            "a/b",
            "tune:",
            "tune:a:b",
            "tune:$X",
            "https://example.com",
            "arn:aws:lambda:eu-west-1:111122223333:function",
            "arn:aws:lambda:eu-west-1:1111:function:tune",
            "arn:aws:lambda:evil.example.com/:111122223333:function:tune",
            "arn:aws:sqs:eu-west-1:111122223333:function:tune",
            "arn:aws:lambda:eu-west-1:111122223333:layer:tune",
        ] {
            let error = function(text).unwrap_err().to_string();
            assert!(error.starts_with(&format!("invalid function '{text}': expected ")), "{error}");
        }
        assert!(function(&"x".repeat(NAME_MAX + 1)).is_err());
    }

    #[test]
    fn the_path_escapes_the_colons_of_an_arn() {
        let path = function("arn:aws:lambda:eu-west-1:111122223333:function:tune:$LATEST").unwrap().path();
        let expected = "/2015-03-31/functions/arn%3Aaws%3Alambda%3Aeu-west-1%3A111122223333%3Afunction%3Atune\
                        %3A%24LATEST/invocations";
        assert_eq!(path, expected);
    }
}
