//! A tuning with many trials: the decider with an ideal training service, whose jobs train in turns.

use std::collections::VecDeque;

use benchmark::analytic;
use serde_json::json;
use tuning::definition::Definition;
use tuning::log::fact::{Fact, JobEnd, JobKey, JobPhase, MetricLine, Recorded};
use tuning::log::ruling::{Order, ReadOrder, Ruling};
use tuning::state::State;
use tuning::step::advance;
use tuning::unit::time::Time;

/// A tuning whose last trial has just started.
pub(crate) struct TuningAt {
    pub(crate) definition: Definition,
    pub(crate) state: State,
    steps: u64,
    now: i64,
    facts: Vec<Recorded>,
    /// Running jobs with their trained epochs; the next to train is the first.
    running: VecDeque<(JobKey, u32)>,
}

impl TuningAt {
    /// Returns a tuning of the Hartmann function with so many trials, drawn at random.
    pub(crate) fn trials(trials: u32) -> Self {
        let case = analytic::case("hartmann-6").unwrap();
        // One job more: otherwise the last one would end the tuning.
        let jobs = trials.checked_add(1).map_or(trials, |jobs| jobs.min(10_000));
        let definition = case.definition(&json!({"Sampler": "Random"}), jobs).unwrap();
        let state = State::new(&definition);
        let (facts, running) = (Vec::new(), VecDeque::new());
        let mut tuning = Self { definition, state, steps: 0, now: 0, facts, running };
        tuning.happens(Fact::TuningSubmitted);
        tuning.deliver();
        while tuning.state.results.launched < trials {
            tuning.train();
        }
        // The last trial is the next to train. All others but the running ones have left the state.
        tuning.running.rotate_right(1);
        assert!(tuning.state.trials.len() < 8, "{} trials are live", tuning.state.trials.len());
        tuning
    }

    /// Returns the line of an epoch of the last trial.
    pub(crate) fn line_of(&self, epoch: u32) -> Recorded {
        let (job, _) = self.running.front().copied().unwrap();
        Recorded { key: epoch.to_string(), at: Time(self.now + 1), fact: self.line(job, epoch) }
    }

    fn line(&self, job: JobKey, epoch: u32) -> Fact {
        // Values that differ between trials and improve with the epoch.
        let value =
            f64::from(job.trial.0.wrapping_mul(2_654_435_761) >> 8) / f64::from(1 << 24) - f64::from(epoch);
        let line = MetricLine {
            id: format!("{epoch:06}"),
            at: Time(self.now),
            index: self.definition.epochs.captured.then_some(u64::from(epoch)),
            value: Some(value),
        };
        Fact::MetricsLogged { job, stream: format!("{job}/0"), lines: vec![line], began: None }
    }

    fn happens(&mut self, fact: Fact) {
        self.now += 1;
        self.facts.push(Recorded { key: self.now.to_string(), at: Time(self.now), fact });
    }

    fn ends(&mut self, job: JobKey, end: JobEnd) {
        let phase = JobPhase::Ended(end);
        self.happens(Fact::JobStateChanged { job, phase, started: None, ended: None, message: None });
    }

    fn train(&mut self) {
        let (job, epoch) = self.running.pop_front().unwrap();
        let epoch = epoch + 1;
        self.happens(self.line(job, epoch));
        if epoch < 81 {
            self.running.push_back((job, epoch));
        } else {
            self.ends(job, JobEnd::Completed);
        }
        self.deliver();
    }

    fn deliver(&mut self) {
        while !self.facts.is_empty() {
            let mut facts = std::mem::take(&mut self.facts);
            loop {
                let advanced = advance(&self.definition, &mut self.state, self.steps + 1, &facts);
                facts.drain(..advanced.taken);
                if let Some(step) = advanced.step {
                    self.steps = step.n;
                    step.rulings.iter().for_each(|ruling| self.perform(ruling));
                }
                if facts.is_empty() && !advanced.has_more {
                    break;
                }
            }
        }
    }

    fn perform(&mut self, ruling: &Ruling) {
        let Ruling::Order(order) = ruling else { return };
        match order {
            Order::Start { job, .. } => {
                self.happens(Fact::JobStarted { job: *job });
                let (phase, started) = (JobPhase::Training, Some(Time(self.now)));
                self.happens(Fact::JobStateChanged { job: *job, phase, started, ended: None, message: None });
                self.running.push_back((*job, 0));
            }
            Order::Stop { job, .. } => {
                self.running.retain(|(other, _)| other != job);
                self.ends(*job, JobEnd::Stopped);
            }
            Order::Read(ReadOrder::Bill { job }) => {
                self.happens(Fact::JobDescribed {
                    job: *job,
                    end: JobEnd::Completed,
                    started: None,
                    ended: None,
                    billable_seconds: 100,
                    message: None,
                    interruptions: 0,
                });
                self.happens(Fact::BillsConfirmed { bills: vec![(*job, 100)] });
            }
            Order::Read(ReadOrder::Rest { job, .. }) => self.happens(Fact::RestRead { job: *job }),
            Order::Read(ReadOrder::Log { job, streams }) => {
                self.happens(Fact::LogRead { job: *job, streams: *streams });
            }
            Order::Read(ReadOrder::Silence { .. }) | Order::Notice(_) | Order::Pool(_) | Order::Grant(_) => {}
        }
    }
}
