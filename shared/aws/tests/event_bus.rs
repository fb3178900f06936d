//! The real SDK against an emulated event bus on loopback.

use aws::event_bus::EventBus;
use aws::{SdkConfig, limited};
use aws_sdk_eventbridge::config::{BehaviorVersion, Credentials, Region, SharedCredentialsProvider};
use loopback::{Answer, Service};
use serde_json::{Value, json};
use use_cases::ports::{Bus, BusError};

async fn publish(service: &Service, detail: &Value) -> Result<(), BusError> {
    let credentials = Credentials::new("AKIDEXAMPLE", "secret", None, None, "test");
    let account = SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .endpoint_url(&service.endpoint)
        .build();
    EventBus::new(&limited(account), "tunings".to_owned()).publish("A Kind", detail).await
}

#[tokio::test]
async fn an_event_is_published_with_its_detail_as_text() {
    let service =
        Service::start(|_| Answer::done(&json!({"FailedEntryCount": 0, "Entries": [{"EventId": "1"}]})));
    let detail = json!({"Alarm": "Overrun", "SpentUsd": 1.5});
    publish(&service, &detail).await.unwrap();
    let calls = service.calls();
    assert_eq!((calls.len(), calls[0].target.as_str()), (1, "AWSEvents.PutEvents"));
    let entry = &calls[0].body["Entries"][0];
    let text = |name: &str| entry[name].as_str().unwrap();
    assert_eq!(
        (text("Source"), text("DetailType"), text("EventBusName")),
        ("custom.hyperband", "A Kind", "tunings")
    );
    assert_eq!(serde_json::from_str::<Value>(text("Detail")).unwrap(), detail);
}

#[tokio::test]
async fn a_failed_entry_of_a_successful_call_is_an_error() {
    let unavailable = |text: &str| Err(BusError::Unavailable(text.to_owned()));
    let entry = |code: &str| json!({"ErrorCode": code, "ErrorMessage": "m"});
    for (entries, expected) in [
        (json!([entry("ThrottlingException")]), unavailable("EventBridge is throttling")),
        (json!([entry("InternalException")]), unavailable("InternalException: m")),
        (json!([entry("InternalFailure")]), unavailable("InternalFailure: m")),
        (
            json!([entry("NotAuthorizedForSourceException")]),
            Err(BusError::Refused("NotAuthorizedForSourceException: m".to_owned())),
        ),
        (json!([]), unavailable("the bus did not accept the event and returned no error code")),
    ] {
        let service =
            Service::start(move |_| Answer::done(&json!({"FailedEntryCount": 1, "Entries": entries})));
        assert_eq!(publish(&service, &json!({})).await, expected);
    }
}

#[tokio::test]
async fn a_permanent_error_is_refused_and_a_transient_one_is_unavailable_after_two_attempts() {
    for (answer, expected, calls) in [
        (
            Answer::error(400, "ResourceNotFoundException", "Event bus tunings does not exist."),
            BusError::Refused("ResourceNotFoundException: Event bus tunings does not exist.".to_owned()),
            1,
        ),
        (
            Answer::error(500, "InternalException", "oh"),
            BusError::Unavailable("InternalException: oh".to_owned()),
            2,
        ),
    ] {
        let service = Service::start(move |_| answer.clone());
        assert_eq!(publish(&service, &json!({})).await, Err(expected));
        assert_eq!(service.calls().len(), calls);
    }
}
