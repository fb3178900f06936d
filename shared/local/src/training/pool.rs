//! Warm pools: the instances that `SageMaker` keeps after the end of a job, for the next one that asks for the same.
//!
//! On one machine nothing is kept; the states and the bill are true. Whether instances are still kept follows from the times
//! in the record, so no timer is needed and nothing is forgotten while no controller runs. Must never let go twice what
//! was kept once.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use service::ports::Millis;
use service::ports::training::WarmPool;

use super::record::{Record, seconds_up};

/// How the keeping ended before its time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LetGo {
    pub(crate) at: Millis,
    /// The job that took the instances; none if they were released.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<String>,
}

/// The instances that a job leaves, or will leave, as others see them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Pool {
    /// The job itself runs on them.
    InUse,
    /// They are kept for another job.
    Available,
    /// Another job took them, after so many seconds.
    Reused(u64, String),
    /// They were kept for so many seconds.
    Terminated(u64),
}

impl Pool {
    /// The pool of `record`'s job, if it has one.
    pub(crate) fn of(record: &Record, now: Millis) -> Option<Self> {
        let Some((since, until)) = kept(record) else { return Self::at_change(record) };
        let seconds = |over: Millis| seconds_up(over.clamp(since, until) - since);
        Some(match &record.let_go {
            Some(LetGo { at, to: Some(job) }) => Self::Reused(seconds(*at), job.clone()),
            Some(LetGo { at, to: None }) => Self::Terminated(seconds(*at)),
            None if now < until => Self::Available,
            None => Self::Terminated(seconds(until)),
        })
    }

    /// The same at the moment of the job's last change of state, when nobody can have taken it yet.
    pub(crate) fn at_change(record: &Record) -> Option<Self> {
        // Only then does it have instances, and did it have any.
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

    /// `WarmPoolStatus`.
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

    /// The port's view.
    pub(crate) fn port(&self) -> WarmPool {
        WarmPool { status: self.status().to_owned(), retained_seconds: self.seconds() }
    }
}

fn keep_alive(record: &Record) -> u64 {
    let asked = record.request.pointer("/ResourceConfig/KeepAlivePeriodInSeconds");
    asked.and_then(Value::as_u64).unwrap_or(0)
}

/// From when until when at most instances are kept after the job; none if it has not ended or never had any.
fn kept(record: &Record) -> Option<(Millis, Millis)> {
    let since = record.ended.filter(|_| record.status.ended() && keep_alive(record) > 0)?;
    let length = i64::try_from(keep_alive(record)).unwrap_or(Millis::MAX).saturating_mul(1_000);
    Some((since, since.saturating_add(length)))
}

impl Record {
    /// Since when instances have been kept after the job, if they still are.
    pub(crate) fn kept_since(&self, now: Millis) -> Option<Millis> {
        let (since, until) = kept(self)?;
        (self.let_go.is_none() && now < until).then_some(since)
    }

    /// Lets the kept instances go, to another job or for good; whether there were any.
    pub(crate) fn let_go(&mut self, to: Option<String>, now: Millis) -> bool {
        let Some(since) = self.kept_since(now) else { return false };
        self.let_go = Some(LetGo { at: now.max(since), to });
        true
    }
}

/// Whether a job of the request `next` may take what is kept after one of the request `ended`.
pub(crate) fn fits(ended: &Value, next: &Value) -> bool {
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

    /// A job that ran from second 2 to 10, whose request asks to keep its instances for `seconds`.
    fn ended(seconds: u64) -> Record {
        let request = json!({"ResourceConfig": {"KeepAlivePeriodInSeconds": seconds}});
        let mut record = Record::new(request, false, 1_000);
        record.begin_run(|number, _| number.to_string(), 1_500);
        record.enter(Secondary::Downloading, 2_000);
        record.finish(End::Completed, 10_000);
        record
    }

    fn shown(record: &Record, now: Millis) -> Value {
        Pool::of(record, now).map_or(Value::Null, |pool| pool.json())
    }

    #[test]
    fn instances_are_kept_for_their_time_and_no_longer() {
        let record = ended(60);
        assert_eq!(shown(&record, 10_000), json!({"Status": "Available"}));
        assert_eq!(shown(&record, 69_999), json!({"Status": "Available"}));
        let over = json!({"Status": "Terminated", "ResourceRetainedBillableTimeInSeconds": 60});
        assert_eq!(shown(&record, 70_000), over);
        assert_eq!(shown(&record, Millis::MAX), over);
        assert_eq!((record.kept_since(69_999), record.kept_since(70_000)), (Some(10_000), None));
    }

    #[test]
    fn what_was_let_go_is_billed_to_that_moment_in_seconds_begun() {
        for (at, seconds) in [(10_000, 0), (10_001, 1), (11_000, 1), (11_001, 2), (69_999, 60)] {
            let mut record = ended(60);
            assert!(record.let_go(None, at));
            let over = json!({"Status": "Terminated", "ResourceRetainedBillableTimeInSeconds": seconds});
            assert_eq!((shown(&record, at), shown(&record, 100_000)), (over.clone(), over), "{at}");
        }
    }

    #[test]
    fn what_another_job_took_shows_who() {
        let mut record = ended(60);
        assert!(record.let_go(Some("next".to_owned()), 12_500));
        let taken =
            json!({"Status": "Reused", "ResourceRetainedBillableTimeInSeconds": 3, "ReusedByJob": "next"});
        assert_eq!((shown(&record, 12_500), shown(&record, 100_000)), (taken.clone(), taken));
        let port = Pool::of(&record, 12_500).unwrap().port();
        assert_eq!(port, WarmPool { status: "Reused".to_owned(), retained_seconds: Some(3) });
        assert_eq!(Pool::at_change(&record), Some(Pool::Available), "when it ended nobody had it");
    }

    #[test]
    fn what_is_kept_no_more_cannot_be_let_go() {
        let mut record = ended(60);
        assert!(!record.clone().let_go(None, 70_000));
        assert!(record.let_go(Some("next".to_owned()), 20_000));
        let taken = record.clone();
        assert!(!record.let_go(None, 21_000) && !record.let_go(Some("third".to_owned()), 21_000));
        assert_eq!(record, taken);
    }

    #[test]
    fn a_clock_that_goes_back_bills_nothing_less_than_nothing() {
        let mut record = ended(60);
        assert!(record.let_go(None, 4_000));
        assert_eq!(Pool::of(&record, 4_000).unwrap().port().retained_seconds, Some(0));
    }

    #[test]
    fn a_job_that_asks_for_none_or_never_had_instances_leaves_none() {
        assert_eq!(Pool::of(&ended(0), 10_000), None);
        let request = json!({"ResourceConfig": {"KeepAlivePeriodInSeconds": 60}});
        let mut record = Record::new(request, false, 1_000);
        assert_eq!(Pool::of(&record, 5_000), None);
        let mut runs = record.clone();
        runs.enter(Secondary::Downloading, 2_000);
        assert_eq!(shown(&runs, 2_000), json!({"Status": "InUse"}));
        assert!(!runs.let_go(None, 2_000), "it is its own while it runs");
        record.finish(End::Completed, 5_000);
        assert!(Pool::of(&record, 5_000).is_none() && !record.let_go(None, 5_000));
    }

    #[test]
    fn a_record_of_an_earlier_version_reads_as_kept() {
        let mut old = serde_json::to_value(ended(60)).unwrap();
        assert!(
            old.as_object_mut().unwrap().remove("let_go").is_none(),
            "absent until there is something to say"
        );
        let read: Record = serde_json::from_value(old).unwrap();
        assert_eq!(read, ended(60));
    }

    #[test]
    fn only_the_same_instances_fit() {
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
        assert!(fits(&kept, &kept));
        let keeps_shorter = request(&|next| next["ResourceConfig"]["KeepAlivePeriodInSeconds"] = json!(5));
        assert!(fits(&kept, &keeps_shorter));
        let says_the_default = request(&|next| {
            next["EnableNetworkIsolation"] = json!(false);
            next["VpcConfig"] = Value::Null;
        });
        assert!(fits(&kept, &says_the_default));
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
            assert!(!fits(&kept, &next) && !fits(&next, &kept), "{path}");
        }
    }
}
