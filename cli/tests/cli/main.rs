//! Tests of the built program.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail with their test")]

mod after;
mod again;
mod arguments;
mod audit;
mod before;
mod change;
mod check;
mod cost;
mod definitions;
mod delete;
mod disk;
mod doctor;
mod errors;
mod explain;
mod failures;
mod help;
mod http;
mod init;
mod interrupted;
mod local;
mod log_end;
mod logs;
mod messages;
mod metrics;
mod model;
mod month;
mod pages;
mod plan;
mod promote;
mod proxy;
mod remote;
mod report;
mod run;
mod serve;
mod signing;
mod simulate;
mod sizes;
mod stop;
mod training_service;
mod warm_start;
mod whole;
mod world;
