//! Measures how many facts per second the decider processes, and how large its state grows.
//!
//! `cargo run --release -p tuning --example decider_throughput [JOBS] [PARALLEL] [Stop|Promote]` runs one tuning
//! (default 10,000 training jobs, 100 at once, Hyperband from 1 to 27 epochs) against an ideal training service, with
//! one fact per step. It prints a line for each tenth of the jobs. Facts per second and bytes of JSON must not depend
//! on the number of finished trials, except for the arrivals at rungs.
#![expect(clippy::print_stdout, reason = "it prints a table")]
#![expect(clippy::disallowed_methods, reason = "it measures time")]

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use search::{Domain, Parameter, Scaling, Space};
use tuning::definition::{Definition, JobShape, Limits, RungExecution, Scheduling, Settings, Strategy};
use tuning::log::fact::{Fact, JobEnd, JobKey, JobPhase, MetricLine, Recorded};
use tuning::log::ruling::{NoticeOrder, Order, ReadOrder, Ruling};
use tuning::state::State;
use tuning::step::advance;
use tuning::unit::epochs::Epochs;
use tuning::unit::ids::TrialId;
use tuning::unit::money::Rate;
use tuning::unit::time::Time;

const EPOCHS: u32 = 27;

fn definition(max_jobs: u32, max_parallel: u32, rungs: RungExecution) -> Definition {
    let domain = Domain::Continuous { min: 0.001, max: 1.0, scaling: Scaling::Logarithmic };
    let space = Space::new(vec![Parameter { name: "rate".to_owned(), domain }]).expect("a valid space");
    let rate = Rate { instance_hour: 461_000, volume_kilo_gib_hour: 191_781 };
    let job = JobShape { instance_count: 3, volume_gib: 30, ..JobShape::new(Some(rate), 86_400) };
    Definition {
        seed: 1,
        strategy: Strategy::hyperband(Epochs(1), Epochs(EPOCHS), 3, rungs).expect("the plan is valid"),
        settings: Settings { max_diverged_epochs: 0, ..Settings::default() },
        ..Definition::new(("throughput", "000000"), Time(0), space, Limits::new(max_jobs, max_parallel), job)
    }
}

/// An ideal training service: the next and the last epoch of each running job, and the facts not yet delivered. All jobs
/// run equally fast.
#[derive(Default)]
struct Service {
    running: VecDeque<(JobKey, u32, u32)>,
    /// The last epoch of each trial.
    trained: BTreeMap<TrialId, u32>,
    facts: VecDeque<Recorded>,
    now: i64,
}

impl Service {
    fn put(&mut self, fact: Fact) {
        self.now += 1;
        self.facts.push_back(Recorded { key: self.now.to_string(), at: Time(self.now), fact });
    }

    fn perform(&mut self, ruling: &Ruling) {
        match ruling {
            Ruling::Order(Order::Start { job, launch, .. }) => {
                self.put(Fact::JobStarted { job: *job });
                self.phase(*job, JobPhase::Training);
                let first = self.trained.get(&job.trial).map_or(1, |epoch| epoch + 1);
                self.running.push_back((*job, first, launch.resource.map_or(EPOCHS, |level| level.0)));
            }
            Ruling::Order(Order::Stop { job, .. }) => {
                self.running.retain(|(other, _, _)| other != job);
                self.phase(*job, JobPhase::Ended(JobEnd::Stopped));
            }
            Ruling::Order(Order::Read(ReadOrder::Bill { job })) => {
                self.put(Fact::JobDescribed {
                    job: *job,
                    end: if self.trained.contains_key(&job.trial) {
                        JobEnd::Completed
                    } else {
                        JobEnd::Stopped
                    },
                    started: None,
                    ended: None,
                    billable_seconds: 100,
                    message: None,
                    interruptions: 0,
                });
                self.put(Fact::BillsConfirmed { bills: vec![(*job, 100)] });
            }
            Ruling::Order(Order::Read(ReadOrder::Rest { job, .. })) => self.put(Fact::RestRead { job: *job }),
            Ruling::Order(Order::Read(ReadOrder::Log { job, streams })) => {
                self.put(Fact::LogRead { job: *job, streams: *streams });
            }
            Ruling::Order(Order::Notice(
                NoticeOrder::CapReached { .. }
                | NoticeOrder::MonthCapReached { .. }
                | NoticeOrder::OverrunSeen
                | NoticeOrder::CapacityLacking { .. },
            )) => {
                self.put(Fact::NoticeGiven { notice: ruling.order().map(Order::action).unwrap_or_default() });
            }
            Ruling::Search(_)
            | Ruling::Attempt(_)
            | Ruling::Booking(_)
            | Ruling::TuningEnding { .. }
            | Ruling::Order(
                Order::Read(ReadOrder::Silence { .. })
                | Order::Pool(_)
                | Order::Grant(_)
                | Order::Notice(NoticeOrder::TuningEnded { .. }),
            ) => {}
        }
    }

    fn phase(&mut self, job: JobKey, phase: JobPhase) {
        self.put(Fact::JobStateChanged { job, phase, started: None, ended: None, message: None });
    }

    /// Returns the next fact: a pending one, or else the next epoch of a job.
    fn next(&mut self) -> Option<Recorded> {
        if self.facts.is_empty()
            && let Some((job, epoch, last)) = self.running.pop_front()
        {
            if epoch < last {
                self.running.push_back((job, epoch + 1, last));
            } else {
                self.trained.insert(job.trial, epoch);
            }
            let height =
                search::seed::Rng::new(search::seed::child(1, "height", job.trial.0.into())).next_f64();
            let value = Some(height * f64::from(epoch) / f64::from(epoch + 1));
            let line = MetricLine {
                id: format!("{epoch:056}"),
                at: Time(self.now),
                index: Some(epoch.into()),
                value,
            };
            self.put(Fact::MetricsLogged {
                job,
                stream: format!("{job}/algo-1"),
                lines: vec![line],
                began: None,
            });
            if epoch == last {
                self.phase(job, JobPhase::Ended(JobEnd::Completed));
            }
        }
        self.facts.pop_front()
    }
}

fn main() {
    let number = |n| std::env::args().nth(n).and_then(|text| text.parse().ok());
    let (trials, parallel) = (number(1).unwrap_or(10_000), number(2).unwrap_or(100));
    let rungs = match std::env::args().nth(3).as_deref() {
        Some("Promote") => RungExecution::Promote(Scheduling::Asynchronous),
        _ => RungExecution::Stop,
    };
    let definition = definition(trials, parallel, rungs);
    let mut state = State::new(&definition);
    let mut service = Service::default();
    service.put(Fact::TuningSubmitted);
    let (mut facts, mut steps, mut time) = (0_u64, 0_u64, Duration::ZERO);
    let mut mark = (trials / 10, 0_u64, Duration::ZERO);
    println!("{:>8} {:>10} {:>12} {:>14} {:>12}", "jobs", "facts", "facts/s", "microseconds", "state bytes");
    while let Some(fact) = service.next() {
        facts += 1;
        let begin = Instant::now();
        let mut rulings = Vec::new();
        let mut given = std::slice::from_ref(&fact);
        loop {
            let advanced = advance(&definition, &mut state, steps + 1, given);
            steps += u64::from(advanced.step.is_some());
            rulings.extend(advanced.step.into_iter().flat_map(|step| step.rulings));
            given = &[];
            if !advanced.has_more {
                break;
            }
        }
        time += begin.elapsed();
        for ruling in &rulings {
            service.perform(ruling);
        }
        if state.results.launched >= mark.0 || state.is_ended() {
            let (count, spent) = (facts - mark.1, time.saturating_sub(mark.2));
            let each = spent.as_nanos() / u128::from(count.max(1));
            let bytes = serde_json::to_string(&state).map_or(0, |text| text.len());
            let rate = 1_000_000_000_u128.checked_div(each).unwrap_or(0);
            println!(
                "{:>8} {facts:>10} {rate:>12} {:>10}.{:03} {bytes:>12}",
                state.results.launched,
                each / 1_000,
                each % 1_000
            );
            mark = (mark.0 + trials / 10, facts, time);
        }
        if state.is_ended() {
            break;
        }
    }
    let arrivals: usize =
        state.search.cohorts.iter().flat_map(|cohort| &cohort.rungs).map(|rung| rung.arrivals.len()).sum();
    println!("{steps} steps, {facts} facts, {arrivals} arrivals at rungs; the decider took {time:?}");
}
