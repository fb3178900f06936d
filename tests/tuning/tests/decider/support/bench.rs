//! A training service without time, faults or delays, to compare the decider with papers.
//!
//! Programs have given values and run one epoch at a time, in an order that the test chooses.

use tuning::definition::Definition;
use tuning::log::fact::{JobEnd, JobKey, Recorded};
use tuning::log::ruling::{Order, Ruling};

use super::build::{described, logged, logged_nan, submitted};
use super::run::Run;

/// The program of a trial.
#[derive(Debug, Clone, Default)]
pub(crate) struct Program {
    /// The value at each epoch; `None` = not a number.
    pub(crate) values: Vec<Option<i32>>,
    /// Whether the program fails after the last value.
    pub(crate) fails: bool,
}

/// A tuning over given programs.
#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) run: Run,
    /// Facts in order of delivery.
    pub(crate) delivered: Vec<Recorded>,
    programs: Vec<Program>,
    /// Running jobs, in order of start, and their logged epochs.
    running: Vec<(JobKey, usize)>,
}

impl Bench {
    /// Plays `programs[trial]` for every trial to the end of the tuning.
    ///
    /// `choose` takes the number of running jobs and returns the index of the job that emits next.
    #[track_caller]
    pub(crate) fn play(
        definition: &Definition,
        programs: Vec<Program>,
        mut choose: impl FnMut(usize) -> usize,
    ) -> Self {
        let run = Run::sampled(definition, 20);
        let mut bench = Self { run, delivered: Vec::new(), programs, running: Vec::new() };
        bench.deliver(submitted());
        // The first trial logs a value before other trials may fail: otherwise, five failures would end the tuning.
        bench.emit(0);
        while !bench.running.is_empty() {
            let index = choose(bench.running.len());
            bench.emit(index);
        }
        bench.run.check_end();
        bench
    }

    /// Delivers the next epoch of a running job, or its end.
    fn emit(&mut self, index: usize) {
        let seconds = self.seconds();
        let (job, epochs) = self.running[index];
        let program = &self.programs[job.trial.index()];
        let Some(value) = program.values.get(epochs).copied() else {
            let end = if program.fails { JobEnd::AlgorithmError } else { JobEnd::Completed };
            self.running.remove(index);
            return self.deliver(described(seconds, job, end, 1));
        };
        self.running[index].1 += 1;
        let epoch = u64::try_from(epochs).unwrap() + 1;
        self.deliver(match value {
            Some(value) => logged(seconds, job, epoch, f64::from(value)),
            None => logged_nan(seconds, job, epoch),
        });
    }

    fn seconds(&self) -> i64 {
        i64::try_from(self.delivered.len()).unwrap()
    }

    fn deliver(&mut self, fact: Recorded) {
        let rulings = self.run.take(std::slice::from_ref(&fact));
        self.delivered.push(fact);
        for ruling in rulings {
            match ruling {
                Ruling::Order(Order::Start { job, .. }) => self.running.push((job, 0)),
                Ruling::Order(Order::Stop { job, .. }) => {
                    self.running.retain(|(running, _)| *running != job);
                    self.deliver(described(self.seconds(), job, JobEnd::Stopped, 1));
                }
                _ => {}
            }
        }
    }

    /// Returns the trained epochs of each trial, in order of trial.
    pub(crate) fn epochs(&self) -> Vec<u32> {
        let mut epochs = vec![0; self.programs.len()];
        for job in &self.run.concluded {
            epochs[job.job.trial.index()] = job.resource.0;
        }
        epochs
    }
}
