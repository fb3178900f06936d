//! The number of attempts of each call, and the error for an unreachable service.

use std::net::TcpListener;

use loopback::{Answer, Service};
use serde_json::json;
use use_cases::ports::training::{JobLogs, TrainingJobListing, TrainingJobs, TrainingJobsError};

use crate::account::{at, at_endpoint};
use tuning::unit::time::Time;

#[tokio::test]
async fn a_write_is_sent_once_and_a_read_twice() {
    let service = Service::start(|_| Answer::error(503, "ServiceUnavailable", "busy"));
    let jobs = at(&service);
    let unavailable = || TrainingJobsError::Unavailable("ServiceUnavailable: busy".to_owned());
    assert_eq!(jobs.create(&json!({})).await, Err(unavailable()));
    assert_eq!(jobs.stop("j").await, Err(unavailable()));
    assert_eq!(jobs.release("j").await, Err(unavailable()));
    assert_eq!(service.calls().len(), 3);
    assert_eq!(jobs.describe("j").await, Err(unavailable()));
    assert_eq!(service.calls().len(), 5);
    assert_eq!(jobs.in_progress(Time(0), None).await, Err(unavailable()));
    assert_eq!(service.calls().len(), 7);
    assert_eq!(jobs.read("j", "algo-1", Time(0), None).await, Err(unavailable()));
    assert_eq!(service.calls().len(), 9);
}

#[tokio::test]
async fn an_unreachable_service_is_unavailable() {
    // A free port, on which no program listens.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let stopped = at_endpoint(&format!("http://{address}")).stop("j").await;
    assert!(matches!(stopped, Err(TrainingJobsError::Unavailable(_))), "{stopped:?}");
}
