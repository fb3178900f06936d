//! Serde modules for times in epoch seconds and money in dollars, for use with `#[serde(with = "…")]`.
//!
//! A written value reads back to the same millisecond or micro-dollar.

#![expect(
    clippy::trivially_copy_pass_by_ref,
    clippy::ref_option,
    reason = "serde passes references to fields"
)]

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Number;
use tuning::unit::money::MicroUsd;
use tuning::unit::time::Time;

use crate::request::{decimal, micro_usd_down, usd};

/// Converts ms since the epoch to seconds with up to three decimals.
fn epoch_seconds(ms: i64) -> f64 {
    let magnitude = decimal(ms.unsigned_abs(), 1_000, 3).as_f64().unwrap_or(0.0);
    if ms < 0 { -magnitude } else { magnitude }
}

/// Converts a time to seconds since the epoch, as `SageMaker` writes times.
pub fn seconds_of(time: Time) -> f64 {
    epoch_seconds(time.0)
}

fn ms_of<E: Error>(seconds: f64) -> Result<i64, E> {
    let ms = (seconds * 1_000.0).round();
    if !(-9.0e15..=9.0e15).contains(&ms) {
        return Err(E::custom("expected a time in seconds since 1970, for example 1789000000.5"));
    }
    #[expect(clippy::cast_possible_truncation, reason = "the value is whole and below 2^53")]
    let whole = ms as i64;
    Ok(whole)
}

fn micro_of<E: Error>(dollars: &Number) -> Result<MicroUsd, E> {
    micro_usd_down(dollars)
        .map(MicroUsd)
        .ok_or_else(|| E::custom("expected an amount in US dollars of at least 0, for example 4.21"))
}

/// Writes milliseconds since the epoch as seconds.
pub(crate) mod seconds {
    use super::{Deserialize, Deserializer, Serialize, Serializer, epoch_seconds, ms_of};

    pub(crate) fn serialize<S: Serializer>(ms: &i64, to: S) -> Result<S::Ok, S::Error> {
        epoch_seconds(*ms).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
        ms_of(f64::deserialize(from)?)
    }
}

/// Like [`seconds`], but for an optional time.
pub(crate) mod optional_seconds {
    use super::{Deserialize, Deserializer, Serialize, Serializer, epoch_seconds, ms_of};

    pub(crate) fn serialize<S: Serializer>(ms: &Option<i64>, to: S) -> Result<S::Ok, S::Error> {
        ms.map(epoch_seconds).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
        Option::<f64>::deserialize(from)?.map(ms_of).transpose()
    }
}

/// Writes micro-dollars as dollars.
pub(crate) mod dollars {
    use super::{Deserialize, Deserializer, MicroUsd, Number, Serialize, Serializer, micro_of, usd};

    pub(crate) fn serialize<S: Serializer>(amount: &MicroUsd, to: S) -> Result<S::Ok, S::Error> {
        usd(*amount).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<MicroUsd, D::Error> {
        micro_of(&Number::deserialize(from)?)
    }
}

/// Like [`dollars`], but for an optional amount.
pub(crate) mod optional_dollars {
    use super::{Deserialize, Deserializer, MicroUsd, Number, Serialize, Serializer, micro_of, usd};

    pub(crate) fn serialize<S: Serializer>(amount: &Option<MicroUsd>, to: S) -> Result<S::Ok, S::Error> {
        amount.map(usd).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<MicroUsd>, D::Error> {
        Option::<Number>::deserialize(from)?.as_ref().map(micro_of).transpose()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Shape {
        #[serde(with = "seconds")]
        at: i64,
        #[serde(with = "optional_seconds", default, skip_serializing_if = "Option::is_none")]
        ended: Option<i64>,
        #[serde(with = "dollars")]
        cost: MicroUsd,
        #[serde(with = "optional_dollars", default, skip_serializing_if = "Option::is_none")]
        cap: Option<MicroUsd>,
    }

    #[test]
    fn times_are_written_in_seconds_and_money_in_dollars() {
        let shape = Shape {
            at: 1_790_000_000_250,
            ended: None,
            cost: MicroUsd(28_750),
            cap: Some(MicroUsd(5_000_000)),
        };
        let text = serde_json::to_string(&shape).unwrap();
        assert_eq!(text, r#"{"at":1790000000.25,"cost":0.02875,"cap":5}"#);
    }

    #[test]
    fn times_are_seconds_with_milliseconds() {
        for (ms, text) in [
            (1_788_999_990_500, "1788999990.5"),
            (0, "0.0"),
            (1, "0.001"),
            (1_789_000_000_123, "1789000000.123"),
            (-1_500, "-1.5"),
        ] {
            assert_eq!(serde_json::json!(epoch_seconds(ms)).to_string(), text);
        }
    }

    #[test]
    fn invalid_times_and_amounts_are_rejected() {
        for text in [r#"{"at":1e300,"cost":0}"#, r#"{"at":0,"cost":-1}"#, r#"{"at":0,"cost":1,"cap":1e40}"#] {
            assert!(serde_json::from_str::<Shape>(text).is_err(), "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_written_value_reads_back_unchanged(
            at in 0_i64..253_402_300_800_000,
            ended in proptest::option::of(0_i64..253_402_300_800_000),
            cost in 0_u64..1_000_000_000_000,
            cap in proptest::option::of(0_u64..1_000_000_000_000),
        ) {
            let shape = Shape { at, ended, cost: MicroUsd(cost), cap: cap.map(MicroUsd) };
            let text = serde_json::to_string(&shape).unwrap();
            prop_assert_eq!(serde_json::from_str::<Shape>(&text).unwrap(), shape);
        }
    }
}
