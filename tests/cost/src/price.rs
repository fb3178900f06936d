//! AWS prices in USD: us-east-1, on demand, without free tiers, as of November 2025.
//!
//! All prices of this crate are here. This file omits services that are free for this use: SQS below a million
//! requests, stream reads by Lambda, state changes of SageMaker on the default bus, and SageMaker API calls.

/// A write request unit of DynamoDB: 1 KB; transactions need two units per KB.
pub const WRITE_UNIT: f64 = 0.625e-6;
/// A read request unit of DynamoDB: 4 KB, strongly consistent.
pub const READ_UNIT: f64 = 0.125e-6;
/// DynamoDB storage, per GB and month.
pub const STORED_GB: f64 = 0.25;
/// DynamoDB point-in-time backups, per GB and month.
pub const BACKUP_GB: f64 = 0.20;
/// Overhead that DynamoDB adds to the size of each stored row, in bytes.
pub const ROW_OVERHEAD: u64 = 100;

/// An invocation of Lambda.
pub const INVOCATION: f64 = 0.20e-6;
/// A GB-second of Lambda on arm64.
pub const GB_SECOND: f64 = 0.000_013_333_4;

/// An event that the stack publishes to its bus.
pub const EVENT: f64 = 1.00e-6;
/// A GB of logs ingested by CloudWatch.
pub const LOG_GB: f64 = 0.50;
/// A request of API Gateway (HTTP API).
pub const API_REQUEST: f64 = 1.00e-6;
/// An invocation of EventBridge Scheduler.
pub const SCHEDULED: f64 = 1.00e-6;
/// A request of KMS.
pub const KMS_REQUEST: f64 = 0.03e-4;

/// A CloudWatch alarm on one metric with a period of 60 s or more, per month.
pub const ALARM: f64 = 0.10;
/// A CloudWatch dashboard, per month.
pub const DASHBOARD: f64 = 3.00;
/// A secret of Secrets Manager, per month.
pub const SECRET: f64 = 0.40;
/// A custom CloudWatch metric, per month. Only hours in which it is written are charged.
pub const METRIC: f64 = 0.30;

/// Bytes in a GB.
pub const GB: f64 = 1e9;
/// Minutes in a month of 730 hours, as AWS counts.
pub const MONTH_MINUTES: f64 = 43_800.0;
