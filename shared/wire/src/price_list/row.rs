//! One row of the price list: JSON inside a string.
//!
//! Only on-demand terms and prices of the requested unit count. An unreadable row is an error, never a price of zero.

use serde_json::{Number, Value};
use thiserror::Error;

use crate::request::micro_usd_up;

/// An unreadable row.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unreadable row of {usage} in the price list: {problem}")]
pub struct RowError {
    usage: String,
    problem: String,
}

/// The unit of a price.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// One hour of an instance.
    Hour,
    /// One gigabyte of a volume for a month.
    GigabyteMonth,
}

impl Unit {
    fn is(self, text: &str) -> bool {
        match self {
            Self::Hour => matches!(text, "Hrs" | "Hours" | "hours"),
            Self::GigabyteMonth => matches!(text, "GB-Mo" | "GB-month"),
        }
    }
}

/// Returns the highest on-demand price of a row, in micro-dollars a unit, rounded up; `None` if the row is of another usage
/// type or has no on-demand price.
pub fn price(row: &str, usage: &str, unit: Unit) -> Result<Option<u64>, RowError> {
    let unreadable = |problem: &str| RowError { usage: usage.to_owned(), problem: problem.to_owned() };
    let row: Value = serde_json::from_str(row).map_err(|error| unreadable(&error.to_string()))?;
    if row["product"]["attributes"]["usagetype"] != usage {
        return Ok(None);
    }
    let members = |value: &Value| value.as_object().cloned().unwrap_or_default();
    let mut dearest = None;
    for (_, term) in members(&row["terms"]["OnDemand"]) {
        for (_, dimension) in members(&term["priceDimensions"]) {
            let text = dimension["unit"].as_str().unwrap_or_default();
            if !unit.is(text) {
                return Err(unreadable(&format!("a price for '{text}'")));
            }
            let usd = dimension["pricePerUnit"]["USD"].as_str();
            let number: Option<Number> = usd.and_then(|usd| usd.parse().ok());
            let price = number.as_ref().and_then(micro_usd_up);
            dearest = dearest.max(Some(price.ok_or_else(|| unreadable("a price that is not in USD"))?));
        }
    }
    // A free on-demand price is a promotion or an expired row.
    Ok(dearest.filter(|price| *price > 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn row(usage: &str, unit: &str, usd: &Value) -> String {
        let dimension = json!({"unit": unit, "beginRange": "0", "endRange": "Inf", "pricePerUnit": usd});
        json!({
            "product": {"productFamily": "ML Instance", "attributes": {"usagetype": usage, "regionCode": "us-east-1"}},
            "serviceCode": "AmazonSageMaker",
            "terms": {"OnDemand": {"SKU.T": {"priceDimensions": {"SKU.T.D": dimension}}}},
        })
        .to_string()
    }

    #[test]
    fn a_price_is_rounded_up_to_whole_micro_dollars() {
        let read = |usd: &str| price(&row("U", "Hrs", &json!({"USD": usd})), "U", Unit::Hour);
        assert_eq!(read("0.1150000000"), Ok(Some(115_000)));
        assert_eq!(read("0.7364000000"), Ok(Some(736_400)));
        assert_eq!(read("0.00000012"), Ok(Some(1)));
        assert_eq!(read("0.0000000000"), Ok(None));
    }

    #[test]
    fn a_row_of_another_usage_type_has_no_price() {
        let other = row("USE1-Train:ml.m5.large-x", "Hrs", &json!({"USD": "1"}));
        assert_eq!(price(&other, "USE1-Train:ml.m5.large", Unit::Hour), Ok(None));
    }

    #[test]
    fn a_row_without_an_on_demand_price_has_no_price() {
        let reserved = json!({"product": {"attributes": {"usagetype": "U"}}, "terms": {"Reserved": {}}});
        assert_eq!(price(&reserved.to_string(), "U", Unit::Hour), Ok(None));
    }

    #[test]
    fn an_unreadable_price_is_an_error() {
        for (unit, usd) in [
            ("Quantity", json!({"USD": "1"})),
            ("Hrs", json!({"CNY": "1"})),
            ("Hrs", json!({"USD": "-1"})),
            ("Hrs", json!({"USD": "one"})),
        ] {
            assert!(price(&row("U", unit, &usd), "U", Unit::Hour).is_err(), "{unit} {usd}");
        }
        assert!(price("{", "U", Unit::Hour).is_err());
    }

    #[test]
    fn a_volume_has_a_monthly_price() {
        let volume = row("V", "GB-Mo", &json!({"USD": "0.1400000000"}));
        assert_eq!(price(&volume, "V", Unit::GigabyteMonth), Ok(Some(140_000)));
    }
}
