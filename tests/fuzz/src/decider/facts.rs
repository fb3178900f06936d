//! Facts from fuzz bytes, within the bounds of recorded facts, mostly about open jobs.

use tuning::log::fact::{Fact, JobEnd, JobKey, JobPhase, MetricLine, Recorded};
use tuning::state::State;
use tuning::unit::limits::{MAX_LINES_PER_FACT, MAX_MESSAGE_CHARS};
use tuning::unit::money::MicroUsd;
use tuning::unit::time::Time;

use super::{CREATED, DOLLAR};
use crate::bytes::Bytes;

const ENDS: [JobEnd; 7] = [
    JobEnd::Completed,
    JobEnd::Stopped,
    JobEnd::MaxRuntime,
    JobEnd::MaxWait,
    JobEnd::AlgorithmError,
    JobEnd::CapacityError,
    JobEnd::ServiceError,
];
const PHASES: [JobPhase; 7] = [
    JobPhase::Starting,
    JobPhase::Downloading,
    JobPhase::Training,
    JobPhase::Interrupted,
    JobPhase::Stopping,
    JobPhase::Uploading,
    JobPhase::Other,
];

pub(super) fn submitted() -> Recorded {
    Recorded { key: "submitted".to_owned(), at: Time(CREATED), fact: Fact::TuningSubmitted }
}

/// Makes facts. Keeps a clock and all facts so far, which can be delivered again.
#[derive(Debug, Default)]
pub(super) struct Maker {
    /// Seconds since the submission.
    seconds: i64,
    made: Vec<Recorded>,
    /// The epoch of the last line. Epochs increase from it, so that few bytes give many lines.
    epoch: u64,
}

impl Maker {
    /// Returns the fact of the next command, if there is one, and whether the delivery ends with it.
    pub(super) fn next(&mut self, bytes: &mut Bytes<'_>, state: &State) -> (Option<Recorded>, bool) {
        let command = bytes.byte();
        let last = command & 128 == 0;
        self.seconds = self.seconds.saturating_add(i64::from(command >> 5 & 3).pow(4));
        let fact = match command & 31 {
            0 => Fact::StopRequested,
            1 | 2 => {
                self.seconds = self.seconds.saturating_add(i64::from(bytes.short()));
                Fact::TimePassed
            }
            3 | 4 => self.state_changed(bytes, state),
            5..=8 => self.described(bytes, state),
            9 if bytes.below(2) == 0 => Fact::RestRead { job: job(bytes, state) },
            9 => Fact::LogRead { job: job(bytes, state), streams: u32::from(bytes.below(4)) },
            10 | 11 => Fact::JobStarted { job: job(bytes, state) },
            12 => {
                Fact::StartRefused { job: job(bytes, state), message: message(bytes), name_is_foreign: false }
            }
            13 => Fact::JobNeverStarted { job: job(bytes, state) },
            14 => Fact::StopAccepted { job: job(bytes, state) },
            15 => Fact::ActionDeferred {
                job: job(bytes, state),
                not_before: Time(self.now().saturating_add(bytes.number())),
                reason: message(bytes),
                quota_exceeded: bytes.below(2) == 1,
            },
            16 => {
                // A repeated delivery.
                let index = usize::from(bytes.byte());
                let again = self.made.len().checked_sub(1).and_then(|last| self.made.get(last.min(index)));
                return (again.cloned(), last);
            }
            17 => limits_changed(bytes),
            20 => Fact::JobStopRequested { job: job(bytes, state) },
            18 => Fact::SilenceSeen { job: job(bytes, state), since: Time(self.now()) },
            19 => {
                let booked = state.billed_jobs().filter_map(|(key, job)| Some((key, job.bill.seconds()?)));
                Fact::BillsConfirmed { bills: booked.take(usize::from(bytes.below(4))).collect() }
            }
            _ => self.logged(bytes, state),
        };
        let late = if command & 31 == 31 { bytes.number() } else { 0 };
        let at = self.now().saturating_sub(late);
        let recorded = Recorded { key: format!("{}#{at}", self.made.len()), at: Time(at), fact };
        self.made.push(recorded.clone());
        (Some(recorded), last)
    }

    fn now(&self) -> i64 {
        CREATED.saturating_add(self.seconds.saturating_mul(1_000))
    }

    /// Returns the fact with the end and the bill of a job.
    pub(super) fn bill(&mut self, job: JobKey) -> Recorded {
        self.seconds = self.seconds.saturating_add(60);
        let at = self.now();
        let fact = Fact::JobDescribed {
            job,
            end: JobEnd::Stopped,
            started: Some(Time(at)),
            ended: Some(Time(at)),
            billable_seconds: 60,
            message: None,
            interruptions: 0,
        };
        Recorded { key: format!("bill#{job}"), at: Time(at), fact }
    }

    /// Returns the fact that the log of an ended job was read.
    pub(super) fn read(&self, job: JobKey) -> Recorded {
        Recorded { key: format!("rest-read#{job}"), at: Time(self.now()), fact: Fact::RestRead { job } }
    }

    /// Returns the fact that these bills were read once more.
    pub(super) fn confirmed(&self, bills: Vec<(JobKey, u64)>) -> Recorded {
        let fact = Fact::BillsConfirmed { bills };
        Recorded { key: format!("bills#{}", self.now()), at: Time(self.now()), fact }
    }

    pub(super) fn stop(&self) -> Recorded {
        Recorded { key: "stop".to_owned(), at: Time(self.now()), fact: Fact::StopRequested }
    }

    fn state_changed(&self, bytes: &mut Bytes<'_>, state: &State) -> Fact {
        let job = job(bytes, state);
        let kind = usize::from(bytes.below(14));
        let phase = match kind.checked_sub(PHASES.len()) {
            None => PHASES[kind],
            Some(end) => JobPhase::Ended(ENDS[end]),
        };
        Fact::JobStateChanged {
            job,
            phase,
            started: self.time(bytes),
            ended: None,
            message: Some(message(bytes)),
        }
    }

    fn described(&self, bytes: &mut Bytes<'_>, state: &State) -> Fact {
        let job = job(bytes, state);
        let end = ENDS[usize::from(bytes.below(7))];
        let billable_seconds = u64::try_from(bytes.number()).unwrap_or(0);
        Fact::JobDescribed {
            job,
            end,
            started: self.time(bytes),
            ended: self.time(bytes),
            billable_seconds,
            message: None,
            interruptions: u32::from(bytes.below(3)),
        }
    }

    fn time(&self, bytes: &mut Bytes<'_>) -> Option<Time> {
        match bytes.below(4) {
            0 => None,
            1 => Some(Time(bytes.number())),
            _ => Some(Time(self.now())),
        }
    }

    fn logged(&mut self, bytes: &mut Bytes<'_>, state: &State) -> Fact {
        let job = job(bytes, state);
        let shape = bytes.byte();
        let count =
            if shape & 7 == 7 { MAX_LINES_PER_FACT } else { usize::from(shape & 7).saturating_add(1) };
        let number = shape >> 3 & 3;
        let stream = format!("hb1-3fa1c2-{job}/algo-1-{}", if number == 3 { bytes.byte() } else { number });
        match shape >> 5 {
            0 => self.epoch = 0,
            1 => self.epoch = u64::from(bytes.byte()),
            2 => self.epoch = bytes.number().unsigned_abs(),
            _ => {}
        }
        let base = f64::from(bytes.byte()) / 255.0;
        let lines = (0..count).map(|place| {
            self.epoch = self.epoch.saturating_add(1);
            let id = format!("{:056}", self.epoch.wrapping_add(u64::from(shape)));
            let at = self.now().saturating_add(i64::try_from(place).unwrap_or(0));
            let value = (number != 3).then_some(base + f64::from(u8::try_from(place % 7).unwrap_or(0)));
            MetricLine { id, at: Time(at), index: (shape >> 5 & 1 == 0).then_some(self.epoch), value }
        });
        let lines = lines.collect();
        Fact::MetricsLogged { job, stream, lines, began: None }
    }
}

/// Returns the key of an open job in most cases, otherwise of any job.
fn job(bytes: &mut Bytes<'_>, state: &State) -> JobKey {
    let choice = bytes.byte();
    let live = state.jobs().count();
    let chosen = usize::from(choice & 63).checked_rem(live).and_then(|place| state.jobs().nth(place));
    match chosen {
        Some((key, _, _)) if choice < 192 => key,
        Some((key, _, _)) if choice < 224 => JobKey { attempt: key.attempt.wrapping_add(1), ..key },
        _ => JobKey::new(u32::from(choice & 7), u32::from(choice >> 3 & 1), 1),
    }
}

/// Returns a change of limits: a cap of up to 64 dollars, a number of parallel jobs, a pause, or its end.
fn limits_changed(bytes: &mut Bytes<'_>) -> Fact {
    let (kind, size) = (bytes.below(4), bytes.byte());
    Fact::LimitsChanged {
        cap: (kind == 0).then_some(MicroUsd(u64::from(size >> 2).saturating_mul(DOLLAR))),
        max_parallel: (kind == 1).then_some(u32::from(size & 7).saturating_add(1)),
        paused: (kind >= 2).then_some(kind == 2),
    }
}

fn message(bytes: &mut Bytes<'_>) -> String {
    match bytes.below(4) {
        0 => "\u{1}".repeat(MAX_MESSAGE_CHARS),
        1 => "\u{1F600}".repeat(MAX_MESSAGE_CHARS),
        _ => "no such role".to_owned(),
    }
}
