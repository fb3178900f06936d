//! The actuator on an AWS account, for the functions that perform: their settings, and the services behind its ports.
//!
//! Assumes the environment that Lambda gives. Must never decide anything: it puts together what other crates hold.

mod settings;

use std::sync::Arc;

use aws_connection::account;
use dynamodb::DynamoTable;
use eventbridge::EventBus;
use function::SystemClock;
use sagemaker::SageMaker;
use service::perform::{ABANDONED_MS, Actuator, CLAIM_MS, LOG_LAG_MS};
use service::store::Store;

pub use settings::Settings;

/// First wait before a deferred action is tried again. It is the sweeper that tries again, once a minute.
const DEFER_MS: i64 = 5_000;

/// An actuator on AWS.
pub type AwsActuator = Actuator<DynamoTable, SageMaker, EventBus, SystemClock>;

/// The actuator of these settings. Once a process: its clients are made of connections.
pub async fn actuator(settings: &Settings) -> AwsActuator {
    let account = account().await;
    let table = dynamodb::aws::table_of(&account, &settings.table);
    Actuator {
        store: Arc::new(Store::new(Arc::new(table))),
        jobs: SageMaker::new(&account),
        bus: EventBus::new(&account, settings.event_bus_name.clone()),
        clock: SystemClock,
        stack: settings.table.stack_name.clone(),
        log_lag_ms: LOG_LAG_MS,
        claim_ms: CLAIM_MS,
        defer_ms: DEFER_MS,
        abandoned_ms: ABANDONED_MS,
        monthly_cap: settings.monthly_cap,
    }
}
