//! Warm pools: the instances that `SageMaker` retains after a job, for a later job with the same instances.
//!
//! On this machine no instances exist, but the states and the billed times are SageMaker's. The state of a pool follows
//! from the times in the record, so no timer is needed, and pools expire even while no controller runs. A pool is
//! released at most once.

use serde_json::{Value, json};
use use_cases::ports::training::WarmPool;

use super::record::{Record, Release};
use tuning::unit::time::{Millis, Time};

/// The state of a job's warm pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Pool {
    /// The job itself runs on the instances.
    InUse,
    /// The instances wait for another job.
    Available,
    /// Another job reuses the instances: the retained seconds and the job's name.
    Reused(u64, String),
    /// The instances were released: the retained seconds.
    Terminated(u64),
}

impl Pool {
    /// Returns the warm pool of the job at `now`, or `None` if it has none.
    pub(crate) fn of(record: &Record, now: Time) -> Option<Self> {
        let Some((since, until)) = retention(record) else { return Self::at_last_change(record) };
        let seconds = |end: Time| (end.clamp(since, until) - since).seconds_rounded_up();
        Some(match &record.pool_release {
            Some(Release { at, to: Some(job) }) => Self::Reused(seconds(*at), job.clone()),
            Some(Release { at, to: None }) => Self::Terminated(seconds(*at)),
            None if now < until => Self::Available,
            None => Self::Terminated(seconds(until)),
        })
    }

    /// Like [`Pool::of`], but at the time of the job's last state change, before any release.
    pub(crate) fn at_last_change(record: &Record) -> Option<Self> {
        // A job that never started never had instances.
        record.started.filter(|_| keep_alive(record) > 0)?;
        Some(if record.status.ended() { Self::Available } else { Self::InUse })
    }

    fn status(&self) -> &'static str {
        match self {
            Self::InUse => "InUse",
            Self::Available => "Available",
            Self::Reused(..) => "Reused",
            Self::Terminated(_) => "Terminated",
        }
    }

    fn seconds(&self) -> Option<u64> {
        match self {
            Self::InUse | Self::Available => None,
            Self::Reused(seconds, _) | Self::Terminated(seconds) => Some(*seconds),
        }
    }

    /// Returns `WarmPoolStatus` of the API.
    pub(crate) fn json(&self) -> Value {
        let mut status = json!({ "Status": self.status() });
        if let Some(seconds) = self.seconds() {
            status["ResourceRetainedBillableTimeInSeconds"] = json!(seconds);
        }
        if let Self::Reused(_, job) = self {
            status["ReusedByJob"] = json!(job);
        }
        status
    }

    pub(crate) fn port(&self) -> WarmPool {
        WarmPool { status: self.status().to_owned(), retained_seconds: self.seconds() }
    }
}

fn keep_alive(record: &Record) -> u64 {
    let asked = record.request.pointer("/ResourceConfig/KeepAlivePeriodInSeconds");
    asked.and_then(Value::as_u64).unwrap_or(0)
}

/// Returns start and latest end of the warm pool; `None` if the job has not ended or retains no instances.
fn retention(record: &Record) -> Option<(Time, Time)> {
    let since = record.ended.filter(|_| record.status.ended() && keep_alive(record) > 0)?;
    Some((since, since + Millis::from_seconds(keep_alive(record))))
}

impl Record {
    /// Returns the start of the warm pool if it is available at `now`.
    pub(crate) fn pool_available_since(&self, now: Time) -> Option<Time> {
        let (since, until) = retention(self)?;
        (self.pool_release.is_none() && now < until).then_some(since)
    }

    /// Releases the warm pool to the job `to`, or for good. Returns false if no pool is available.
    pub(crate) fn release_pool(&mut self, to: Option<String>, now: Time) -> bool {
        let Some(since) = self.pool_available_since(now) else { return false };
        self.pool_release = Some(Release { at: now.max(since), to });
        true
    }
}

/// Returns whether a job of the request `next` can reuse the warm pool of a job of the request `ended`.
pub(crate) fn can_reuse(ended: &Value, next: &Value) -> bool {
    const SAME: [&str; 6] = [
        "/RoleArn",
        "/ResourceConfig/InstanceType",
        "/ResourceConfig/InstanceCount",
        "/ResourceConfig/VolumeKmsKeyId",
        "/ResourceConfig/VolumeSizeInGB",
        "/VpcConfig",
    ];
    const FLAGS: [&str; 2] = ["/EnableInterContainerTrafficEncryption", "/EnableNetworkIsolation"];
    let given = |request: &Value, path: &str| request.pointer(path).cloned().unwrap_or_default();
    let flag = |request: &Value, path: &str| given(request, path).as_bool().unwrap_or(false);
    SAME.iter().all(|path| given(ended, path) == given(next, path))
        && FLAGS.iter().all(|path| flag(ended, path) == flag(next, path))
}

#[cfg(test)]
mod tests {
    use super::super::record::{End, Secondary};
    use super::*;

    /// Returns a job that ran from second 2 to 10 and retains its instances for `seconds`.
    fn ended(seconds: u64) -> Record {
        let request = json!({"ResourceConfig": {"KeepAlivePeriodInSeconds": seconds}});
        let mut record = Record::new(request, None, false, Time(1_000));
        record.begin_run(|number, _| number.to_string(), Time(1_500));
        record.enter(Secondary::Downloading, Time(2_000));
        record.finish(End::Completed, Time(10_000));
        record
    }

    fn shown(record: &Record, now: Time) -> Value {
        Pool::of(record, now).map_or(Value::Null, |pool| pool.json())
    }

    #[test]
    fn a_pool_expires_after_its_keep_alive_period() {
        let record = ended(60);
        assert_eq!(shown(&record, Time(10_000)), json!({"Status": "Available"}));
        assert_eq!(shown(&record, Time(69_999)), json!({"Status": "Available"}));
        let over = json!({"Status": "Terminated", "ResourceRetainedBillableTimeInSeconds": 60});
        assert_eq!(shown(&record, Time(70_000)), over);
        assert_eq!(shown(&record, Time::MAX), over);
        assert_eq!(
            (record.pool_available_since(Time(69_999)), record.pool_available_since(Time(70_000))),
            (Some(Time(10_000)), None)
        );
    }

    #[test]
    fn a_released_pool_is_billed_until_its_release_in_started_seconds() {
        for (at, seconds) in [(10_000, 0), (10_001, 1), (11_000, 1), (11_001, 2), (69_999, 60)] {
            let mut record = ended(60);
            assert!(record.release_pool(None, Time(at)));
            let over = json!({"Status": "Terminated", "ResourceRetainedBillableTimeInSeconds": seconds});
            assert_eq!(
                (shown(&record, Time(at)), shown(&record, Time(100_000))),
                (over.clone(), over),
                "{at}"
            );
        }
    }

    #[test]
    fn a_reused_pool_names_the_job_that_reuses_it() {
        let mut record = ended(60);
        assert!(record.release_pool(Some("next".to_owned()), Time(12_500)));
        let taken =
            json!({"Status": "Reused", "ResourceRetainedBillableTimeInSeconds": 3, "ReusedByJob": "next"});
        assert_eq!((shown(&record, Time(12_500)), shown(&record, Time(100_000))), (taken.clone(), taken));
        let port = Pool::of(&record, Time(12_500)).unwrap().port();
        assert_eq!(port, WarmPool { status: "Reused".to_owned(), retained_seconds: Some(3) });
        assert_eq!(
            Pool::at_last_change(&record),
            Some(Pool::Available),
            "the event of the end shows the pool before its reuse"
        );
    }

    #[test]
    fn an_expired_or_released_pool_cannot_be_released() {
        let mut record = ended(60);
        assert!(!record.clone().release_pool(None, Time(70_000)));
        assert!(record.release_pool(Some("next".to_owned()), Time(20_000)));
        let taken = record.clone();
        assert!(
            !record.release_pool(None, Time(21_000))
                && !record.release_pool(Some("third".to_owned()), Time(21_000))
        );
        assert_eq!(record, taken);
    }

    #[test]
    fn a_clock_that_goes_back_bills_zero_seconds() {
        let mut record = ended(60);
        assert!(record.release_pool(None, Time(4_000)));
        assert_eq!(Pool::of(&record, Time(4_000)).unwrap().port().retained_seconds, Some(0));
    }

    #[test]
    fn a_job_without_keep_alive_or_without_instances_has_no_pool() {
        assert_eq!(Pool::of(&ended(0), Time(10_000)), None);
        let request = json!({"ResourceConfig": {"KeepAlivePeriodInSeconds": 60}});
        let mut record = Record::new(request, None, false, Time(1_000));
        assert_eq!(Pool::of(&record, Time(5_000)), None);
        let mut runs = record.clone();
        runs.enter(Secondary::Downloading, Time(2_000));
        assert_eq!(shown(&runs, Time(2_000)), json!({"Status": "InUse"}));
        assert!(!runs.release_pool(None, Time(2_000)), "a running job's instances are not available");
        record.finish(End::Completed, Time(5_000));
        assert!(Pool::of(&record, Time(5_000)).is_none() && !record.release_pool(None, Time(5_000)));
    }

    #[test]
    fn a_record_without_a_release_has_an_available_pool() {
        let mut old = serde_json::to_value(ended(60)).unwrap();
        assert!(
            old.as_object_mut().unwrap().remove("pool_release").is_none(),
            "the field is absent before a release"
        );
        let read: Record = serde_json::from_value(old).unwrap();
        assert_eq!(read, ended(60));
    }

    #[test]
    fn only_a_request_with_the_same_instances_reuses_a_pool() {
        let request = |change: &dyn Fn(&mut Value)| {
            let mut request = json!({
                "RoleArn": "role",
                "ResourceConfig": {
                    "InstanceType": "ml.m5.large", "InstanceCount": 2, "VolumeSizeInGB": 30,
                    "KeepAlivePeriodInSeconds": 60,
                },
            });
            change(&mut request);
            request
        };
        let kept = request(&|_| {});
        assert!(can_reuse(&kept, &kept));
        let keeps_shorter = request(&|next| next["ResourceConfig"]["KeepAlivePeriodInSeconds"] = json!(5));
        assert!(can_reuse(&kept, &keeps_shorter));
        let says_the_default = request(&|next| {
            next["EnableNetworkIsolation"] = json!(false);
            next["VpcConfig"] = Value::Null;
        });
        assert!(can_reuse(&kept, &says_the_default));
        for (path, value) in [
            ("/RoleArn", json!("other")),
            ("/ResourceConfig/InstanceType", json!("ml.m5.xlarge")),
            ("/ResourceConfig/InstanceCount", json!(1)),
            ("/ResourceConfig/VolumeKmsKeyId", json!("key")),
            ("/ResourceConfig/VolumeSizeInGB", json!(31)),
            ("/VpcConfig", json!({"Subnets": ["s"]})),
            ("/EnableInterContainerTrafficEncryption", json!(true)),
            ("/EnableNetworkIsolation", json!(true)),
        ] {
            let next = request(&|next| {
                let (object, field) = path.rsplit_once('/').unwrap();
                next.pointer_mut(object).unwrap()[field] = value.clone();
            });
            assert!(!can_reuse(&kept, &next) && !can_reuse(&next, &kept), "{path}");
        }
    }
}
