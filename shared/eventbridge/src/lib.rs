//! The event bus of an AWS account, for notices to people and other programs, and for what happens to training jobs.
//!
//! An event may be published twice when an answer is lost: its readers must bear that, as of everything on a bus. Must
//! never take an event for published that the bus did not take.

use aws_connection::{Failure, SdkConfig, at_most};
use aws_sdk_eventbridge::Client;
use aws_sdk_eventbridge::config::Builder;
use aws_sdk_eventbridge::primitives::DateTime;
use aws_sdk_eventbridge::types::PutEventsRequestEntry;
use serde_json::Value;
use service::ports::{Bus, BusError, Millis, SOURCE};

/// How often an event is sent at most.
const TRIES: u32 = 2;

/// The status that an entry's error would have, were it the answer.
const BAD_REQUEST: u16 = 400;

/// One event bus.
#[derive(Debug, Clone)]
pub struct EventBus {
    client: Client,
    name: String,
}

impl EventBus {
    /// The bus `name` of `account`. `AWS_ENDPOINT_URL_EVENTBRIDGE` leads elsewhere.
    pub fn new(account: &SdkConfig, name: String) -> Self {
        let config = Builder::from(account).retry_config(at_most(TRIES)).build();
        Self { client: Client::from_conf(config), name }
    }
}

/// An event.
#[derive(Debug, Clone)]
pub struct Event<'a> {
    /// Who tells it. The bus of an account refuses what begins with `aws.`.
    pub source: &'a str,
    /// `DetailType`.
    pub detail_type: &'a str,
    /// `Detail`.
    pub detail: &'a Value,
    /// ARNs of what it is about.
    pub resources: Vec<String>,
    /// When it happened; without it, when the bus takes it.
    pub time: Option<Millis>,
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
            .set_time(event.time.map(DateTime::from_millis))
            .event_bus_name(&self.name)
            .build();
        let answer = self.client.put_events().entries(entry).send().await;
        let answer = answer.map_err(|error| meaning(Failure::of(&error)))?;
        // The call succeeds even if the bus took nothing.
        let entry = answer.entries().first();
        match entry.and_then(|entry| entry.error_code().map(|code| (code, entry.error_message()))) {
            Some((code, message)) => {
                Err(meaning(Failure::by_code(code, message.unwrap_or("no message"), BAD_REQUEST)))
            }
            None if answer.failed_entry_count() > 0 => {
                Err(BusError::Unavailable("the event was not taken, and it was not said why".to_owned()))
            }
            None => Ok(()),
        }
    }
}

fn meaning(failure: Failure) -> BusError {
    match failure {
        Failure::Unavailable(reason) => BusError::Unavailable(reason),
        Failure::Throttled => BusError::Unavailable("it is throttling".to_owned()),
        Failure::Refused { code, message } => BusError::Refused(format!("{code}: {message}")),
    }
}
