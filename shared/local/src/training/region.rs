//! The Region of a training job: the Region of the client that created the job.

use serde::{Deserialize, Serialize};

/// The longest name of a Region; AWS's have up to 14 characters.
const LENGTH_MAX: usize = 32;

/// The name of an AWS Region, such as `eu-west-1`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Region(String);

impl Region {
    /// Parses a name: words of lower-case letters, then a number, joined by hyphens.
    pub fn parse(text: &str) -> Option<Self> {
        let (words, number) = text.rsplit_once('-')?;
        let is_number = (1..=2).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit());
        let is_word = |word: &str| word.len() >= 2 && word.bytes().all(|byte| byte.is_ascii_lowercase());
        let is_region =
            text.len() <= LENGTH_MAX && is_number && words.contains('-') && words.split('-').all(is_word);
        is_region.then(|| Self(text.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

pub(crate) fn partition(region: &str) -> &'static str {
    match region.split('-').next() {
        Some("cn") => "aws-cn",
        Some("us") if region.starts_with("us-gov-") => "aws-us-gov",
        _ => "aws",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_has_words_and_a_number() {
        for good in ["us-east-1", "ap-southeast-2", "us-gov-west-1", "us-isob-east-1", "mx-central-1"] {
            assert_eq!(Region::parse(good).map(|region| region.0), Some(good.to_owned()));
        }
        let long = format!("us-{}-1", "east".repeat(8));
        for bad in [
            "",
            "local",
            "us-1",
            "us-east",
            "us-east-",
            "us-east-123",
            "us--1",
            "US-EAST-1",
            "u-east-1",
            &long,
        ] {
            assert_eq!(Region::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_region_is_in_its_partition() {
        for (region, expected) in [
            ("eu-west-1", "aws"),
            ("local", "aws"),
            ("cn-north-1", "aws-cn"),
            ("us-gov-east-1", "aws-us-gov"),
        ] {
            assert_eq!(partition(region), expected, "{region}");
        }
    }
}
