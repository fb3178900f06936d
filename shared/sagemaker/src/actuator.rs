//! The actuator on an AWS account, for the actuator and sweeper functions: their settings and the services behind its
//! ports.
//!
//! Assumes Lambda's environment. Wiring only; must never decide anything.

mod settings;

use std::sync::Arc;

use crate::SageMaker;
use aws::SdkConfig;
use aws::event_bus::EventBus;
use dynamodb::DynamoTable;
use lambda::SystemClock;
use tuning::unit::time::Millis;
use use_cases::pace::Pace;
use use_cases::perform::{ABANDONED, Actuator, CLAIM, LOG_LAG};
use use_cases::store::Store;

pub use settings::Settings;

/// First delay before a deferred action is retried. The sweeper retries, once a minute.
const DEFER: Millis = Millis::from_seconds(5);

/// The actuator on AWS.
pub type AwsActuator = Actuator<DynamoTable, SageMaker, EventBus, SystemClock>;

/// Creates the actuator. Call this once a process, since its clients hold connections.
pub fn actuator(account: &SdkConfig, settings: &Settings) -> AwsActuator {
    let table = dynamodb::aws::table_of(account, &settings.table.table_name, settings.table.fact_days);
    Actuator {
        store: Arc::new(Store::new(Arc::new(table))),
        jobs: SageMaker::new(account),
        bus: EventBus::new(account, settings.event_bus_name.clone()),
        clock: SystemClock,
        pace: Some(Pace::default()),
        stack: settings.table.stack_name.clone(),
        log_lag_ms: LOG_LAG,
        bills_are_final: false,
        claim_ms: CLAIM,
        defer_ms: DEFER,
        abandoned_ms: ABANDONED,
        monthly_cap: settings.monthly_cap,
        place: settings.place.clone(),
    }
}
