//! AWS's price list: its endpoint for a Region, the usage types of a bill, and its rows.
//!
//! AWS publishes no list of the prefixes of usage types; these are from its bills. A Region that is missing here has no
//! prices, so its users set them in the request. AWS `GovCloud` (US) has none either: the price list exists only in the
//! commercial partition, where `GovCloud` credentials are invalid.

mod row;

pub use row::{RowError, Unit, price};

/// The service code of SageMaker.
pub const SERVICE: &str = "AmazonSageMaker";
/// The usage type of a volume, without its prefix.
pub const VOLUME: &str = "Train:VolumeUsage.gp2";

/// Returns the usage type of an instance type, without its prefix.
pub fn instance(instance_type: &str) -> String {
    format!("Train:{instance_type}")
}

/// Returns the Region of the price list's endpoint. The price list has endpoints in a few Regions only.
pub fn endpoint(region: &str) -> &'static str {
    match region {
        _ if region.starts_with("cn-") => "cn-northwest-1",
        _ if region.starts_with("eu-") => "eu-central-1",
        _ if region.starts_with("ap-") => "ap-south-1",
        _ => "us-east-1",
    }
}

/// Returns the prefixes of a Region's usage types, the most likely first.
pub fn prefixes(region: &str) -> Option<&'static [&'static str]> {
    Some(match region {
        "us-east-1" => &["USE1-", ""],
        "us-east-2" => &["USE2-"],
        "us-west-1" => &["USW1-"],
        "us-west-2" => &["USW2-"],
        "ca-central-1" => &["CAN1-"],
        "ca-west-1" => &["CAN2-"],
        "mx-central-1" => &["MXC1-"],
        "sa-east-1" => &["SAE1-"],
        "eu-west-1" => &["EU-", "EUW1-"],
        "eu-west-2" => &["EUW2-"],
        "eu-west-3" => &["EUW3-"],
        "eu-central-1" => &["EUC1-"],
        "eu-central-2" => &["EUC2-"],
        "eu-north-1" => &["EUN1-"],
        "eu-south-1" => &["EUS1-"],
        "eu-south-2" => &["EUS2-"],
        "ap-northeast-1" => &["APN1-"],
        "ap-northeast-2" => &["APN2-"],
        "ap-northeast-3" => &["APN3-"],
        "ap-southeast-1" => &["APS1-"],
        "ap-southeast-2" => &["APS2-"],
        "ap-southeast-3" => &["APS4-"],
        "ap-southeast-4" => &["APS6-"],
        "ap-southeast-5" => &["APS7-"],
        "ap-south-1" => &["APS3-"],
        "ap-south-2" => &["APS5-"],
        "ap-east-1" => &["APE1-"],
        "me-south-1" => &["MES1-"],
        "me-central-1" => &["MEC1-"],
        "af-south-1" => &["AFS1-"],
        "il-central-1" => &["ILC1-"],
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_region_has_no_prefix() {
        assert_eq!(prefixes("us-east-1"), Some(["USE1-", ""].as_slice()));
        assert_eq!(prefixes("xx-north-9"), None);
        assert_eq!(prefixes("us-gov-west-1"), None, "its credentials are invalid at the price list");
        assert_eq!(endpoint("eu-west-1"), "eu-central-1");
        assert_eq!(endpoint("sa-east-1"), "us-east-1");
    }
}
