//! The event bus of an AWS account: notices for users and programs, and state changes of training jobs.
//!
//! An event may be published twice when a response is lost; consumers must be idempotent, as for every EventBridge
//! event. Must never report an event as published that the bus did not accept.

use crate::{Failure, SdkConfig, at_most};
use aws_sdk_eventbridge::Client;
use aws_sdk_eventbridge::config::Builder;
use aws_sdk_eventbridge::primitives::DateTime;
use aws_sdk_eventbridge::types::PutEventsRequestEntry;
use serde_json::Value;
use use_cases::ports::{Bus, BusError, SOURCE, Time};

/// Maximum attempts to send an event.
const TRIES: u32 = 2;

/// The HTTP status that stands for the error of an entry.
const BAD_REQUEST: u16 = 400;

/// One event bus.
#[derive(Debug, Clone)]
pub struct EventBus {
    client: Client,
    name: String,
}

impl EventBus {
    /// Creates a client of the bus `name`. `AWS_ENDPOINT_URL_EVENTBRIDGE` overrides the endpoint.
    pub fn new(account: &SdkConfig, name: String) -> Self {
        let config = Builder::from(account).retry_config(at_most(TRIES)).build();
        Self { client: Client::from_conf(config), name }
    }
}

/// An event.
#[derive(Debug, Clone)]
pub struct Event<'a> {
    /// `Source`. EventBridge rejects sources that begin with `aws.`.
    pub source: &'a str,
    /// `DetailType`.
    pub detail_type: &'a str,
    /// `Detail`.
    pub detail: &'a Value,
    /// `Resources`: ARNs of the resources that the event concerns.
    pub resources: Vec<String>,
    /// `Time`. `None`: the time at which the bus accepts the event.
    pub time: Option<Time>,
}

impl Bus for EventBus {
    async fn publish(&self, detail_type: &str, detail: &Value) -> Result<(), BusError> {
        self.put(Event { source: SOURCE, detail_type, detail, resources: Vec::new(), time: None }).await
    }
}

impl EventBus {
    /// Publishes an event of any source.
    pub async fn put(&self, event: Event<'_>) -> Result<(), BusError> {
        let entry = PutEventsRequestEntry::builder()
            .source(event.source)
            .detail_type(event.detail_type)
            .detail(event.detail.to_string())
            .set_resources(Some(event.resources).filter(|resources| !resources.is_empty()))
            .set_time(event.time.map(|time| DateTime::from_millis(time.0)))
            .event_bus_name(&self.name)
            .build();
        let answer = self.client.put_events().entries(entry).send().await;
        let answer = answer.map_err(|error| bus_error(Failure::of(&error)))?;
        // The call succeeds even if the bus accepted no entry.
        let entry = answer.entries().first();
        match entry.and_then(|entry| entry.error_code().map(|code| (code, entry.error_message()))) {
            Some((code, message)) => {
                Err(bus_error(Failure::by_code(code, message.unwrap_or("no message"), BAD_REQUEST)))
            }
            None if answer.failed_entry_count() > 0 => Err(BusError::Unavailable(
                "the bus did not accept the event and returned no error code".to_owned(),
            )),
            None => Ok(()),
        }
    }
}

fn bus_error(failure: Failure) -> BusError {
    match failure {
        Failure::Unavailable(reason) => BusError::Unavailable(reason),
        Failure::Throttled => BusError::Unavailable("EventBridge is throttling".to_owned()),
        Failure::Refused { code, message } => BusError::Refused(format!("{code}: {message}")),
    }
}
