//! Prices in USD: us-east-1, on demand, without any free tier, as AWS's price pages had them in November 2025.
//!
//! Nothing else in this crate knows a price. Services that charge nothing for what the stack does are not here: SQS below a
//! million requests, the stream as Lambda reads it, state changes of SageMaker on the default bus, calls of SageMaker.

/// Write request unit of DynamoDB: 1 KB, in a transaction twice that.
pub const WRITE_UNIT: f64 = 0.625e-6;
/// Read request unit of DynamoDB: 4 KB, strongly consistent.
pub const READ_UNIT: f64 = 0.125e-6;
/// Storage of DynamoDB, a GB and month.
pub const STORED_GB: f64 = 0.25;
/// Its backups (point in time), a GB and month.
pub const BACKUP_GB: f64 = 0.20;
/// What DynamoDB adds to the size of each row it stores, bytes.
pub const ROW_OVERHEAD: u64 = 100;

/// Invocation of Lambda.
pub const INVOCATION: f64 = 0.20e-6;
/// A GB of memory for a second, on arm64.
pub const GB_SECOND: f64 = 0.000_013_333_4;

/// Event that the stack publishes to its bus.
pub const EVENT: f64 = 1.00e-6;
/// GB of logs taken in by CloudWatch.
pub const LOG_GB: f64 = 0.50;
/// Request of API Gateway (HTTP API).
pub const API_REQUEST: f64 = 1.00e-6;
/// Invocation of EventBridge Scheduler.
pub const SCHEDULED: f64 = 1.00e-6;
/// Request of KMS.
pub const KMS_REQUEST: f64 = 0.03e-4;

/// Alarm of CloudWatch with one metric of 60 s or more, a month.
pub const ALARM: f64 = 0.10;
/// Dashboard of CloudWatch, a month.
pub const DASHBOARD: f64 = 3.00;
/// Custom metric of CloudWatch, a month; only hours in which it is written count.
pub const METRIC: f64 = 0.30;

/// Bytes of a GB.
pub const GB: f64 = 1e9;
/// Minutes of a month, as AWS counts: 730 hours.
pub const MONTH_MINUTES: f64 = 43_800.0;
