//! The real SDK against an emulated price list on loopback.
#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

use aws::prices::PriceList;
use aws::{SdkConfig, limited};
use aws_sdk_pricing::config::{BehaviorVersion, Credentials, Region, SharedCredentialsProvider};
use loopback::{Answer, Service};
use serde_json::{Value, json};
use use_cases::ports::{Prices, PricesError};

fn list(service: &Service, region: &'static str) -> PriceList {
    let credentials = Credentials::new("AKIDEXAMPLE", "secret", None, None, "test");
    let account = SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new(region))
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .endpoint_url(&service.endpoint)
        .build();
    PriceList::new(&limited(account))
}

fn row(usage: &str, unit: &str, usd: &str) -> String {
    let dimension = json!({"unit": unit, "pricePerUnit": {"USD": usd}});
    json!({
        "product": {"attributes": {"usagetype": usage}},
        "terms": {"OnDemand": {"A": {"priceDimensions": {"A.B": dimension}}}},
    })
    .to_string()
}

/// Returns the requested usage types.
fn asked(service: &Service) -> Vec<String> {
    let calls = service.calls();
    calls.iter().map(|call| call.body["Filters"][0]["Value"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn an_instance_is_requested_by_its_billing_usage_type() {
    let service = Service::start(|call| {
        assert_eq!(call.target, "AWSPriceListService.GetProducts");
        assert_eq!(call.body["ServiceCode"], "AmazonSageMaker");
        let filter = &call.body["Filters"][0];
        assert_eq!((&filter["Type"], &filter["Field"]), (&json!("TERM_MATCH"), &json!("usagetype")));
        let usage = filter["Value"].as_str().unwrap();
        Answer::done(&json!({"PriceList": [row(usage, "Hrs", "1.5150000000"), row("other", "Hrs", "9")]}))
    });
    let price = list(&service, "eu-west-1").instance_hour("ml.g5.2xlarge").await;
    assert_eq!(price, Ok(Some(1_515_000)));
    assert_eq!(asked(&service), ["EU-Train:ml.g5.2xlarge"]);
}

#[tokio::test]
async fn the_hourly_price_of_a_volume_is_that_of_the_shortest_month() {
    let service = Service::start(|call| {
        let usage = call.body["Filters"][0]["Value"].as_str().unwrap();
        Answer::done(&json!({"PriceList": [row(usage, "GB-Mo", "0.1400000000")]}))
    });
    // 0.14 USD x 1,000 GB / 672 hours, rounded up.
    assert_eq!(list(&service, "us-east-1").volume_kilo_gib_hour().await, Ok(Some(208_334)));
    assert_eq!(asked(&service), ["USE1-Train:VolumeUsage.gp2"]);
}

#[tokio::test]
async fn a_price_without_a_row_is_unknown_after_every_form_of_the_region() {
    let service = Service::start(|_| Answer::done(&json!({"PriceList": []})));
    assert_eq!(list(&service, "us-east-1").instance_hour("ml.x.large").await, Ok(None));
    assert_eq!(asked(&service), ["USE1-Train:ml.x.large", "Train:ml.x.large"]);
    let unknown = Service::start(|_| Answer::done(&Value::Null));
    assert_eq!(list(&unknown, "xx-north-9").instance_hour("ml.m5.large").await, Ok(None));
    assert_eq!(list(&unknown, "us-gov-west-1").instance_hour("ml.m5.large").await, Ok(None));
    assert!(unknown.calls().is_empty(), "an unknown Region needs no request");
}

#[tokio::test]
async fn a_refused_or_failed_request_is_an_error_and_not_an_unknown_price() {
    for (status, code, refused) in [
        (400, "AccessDeniedException", true),
        (400, "ThrottlingException", false),
        (500, "InternalErrorException", false),
    ] {
        let service = Service::start(move |_| Answer::error(status, code, "m"));
        let error = list(&service, "us-east-1").instance_hour("ml.m5.large").await.unwrap_err();
        assert_eq!(matches!(&error, PricesError::Refused(_)), refused, "{code}: {error}");
    }
}
