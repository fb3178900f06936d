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
use tuning::time::Millis;
use use_cases::pace::Paced;
use use_cases::perform::{ABANDONED, Actuator, CLAIM, LOG_LAG};
use use_cases::store::Store;

pub use settings::Settings;

/// First delay before a deferred action is retried. The sweeper retries, once a minute.
const DEFER: Millis = Millis::from_seconds(5);

/// The actuator on AWS.
pub type AwsActuator =
    Actuator<DynamoTable, Paced<SageMaker, DynamoTable, SystemClock>, EventBus, SystemClock>;

/// Creates the actuator. Call this once a process, since its clients hold connections.
pub fn actuator(account: &SdkConfig, settings: &Settings) -> AwsActuator {
    let table = dynamodb::aws::table_of(account, &settings.table.table_name, settings.table.fact_days);
    let table = Arc::new(table);
    Actuator {
        store: Arc::new(Store::new(Arc::clone(&table))),
        jobs: Paced::new(SageMaker::new(account), table, SystemClock),
        bus: EventBus::new(account, settings.event_bus_name.clone()),
        clock: SystemClock,
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
