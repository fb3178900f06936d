//! A naive reference model of stopping-type ASHA whose brackets share the arrivals at a level. The same arrivals must
//! give the same verdicts.
//!
//! The model has only trials, brackets and values: no jobs, steps or money. It counts instead of sorting.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tuning::definition::{Definition, Objective};
use tuning::log::fact::{Fact, JobEnd, Recorded};
use tuning::log::ruling::{Order, Ruling, SearchRuling};
use tuning::unit::epochs::Epochs;

use crate::support::bench::{Bench, Program};
use crate::support::build::jobs;
use crate::support::cases;

/// A verdict: trial, bracket, rung, value, whether the trial continues.
type Judged = (u32, u32, u32, Option<f64>, bool);

#[derive(Default)]
struct Model {
    eta: usize,
    minimize: bool,
    /// Levels below the last, by bracket.
    levels: Vec<Vec<u32>>,
    /// All arrived values, by level, in order of arrival.
    arrived: BTreeMap<u32, Vec<(f64, u32)>>,
    /// The number of arrivals, including values that are not numbers.
    seen: BTreeMap<u32, usize>,
    brackets: BTreeMap<u32, u32>,
    /// The next rung of each trial (`u32::MAX` after it was stopped) and its last value.
    racing: BTreeMap<u32, (u32, Option<f64>)>,
    /// How many values in a row are not numbers.
    row: BTreeMap<u32, u32>,
    /// The best value of each trial so far.
    best: BTreeMap<u32, Option<f64>>,
    judged: Vec<Judged>,
}

impl Model {
    fn new(definition: &Definition, rulings: &[Ruling]) -> Self {
        let plan = definition.compared().expect("only Hyperband has rungs");
        let (min_resource, max_resource, eta) = (plan.min_resource(), plan.max_resource(), plan.eta());
        // Bracket s has levels R / eta^s, R / eta^(s - 1), ... below R; the first bracket has the most levels.
        let mut levels: Vec<Vec<u32>> = vec![Vec::new()];
        let mut power = eta;
        while max_resource / power >= min_resource && power <= max_resource / min_resource {
            let mut more = levels[0].clone();
            more.insert(0, max_resource / power);
            levels.insert(0, more);
            power *= eta;
        }
        let brackets = rulings.iter().filter_map(|ruling| {
            if let Ruling::Order(Order::Start { job, bracket, .. }) = ruling {
                Some((job.trial.0, bracket.0))
            } else {
                None
            }
        });
        Self {
            eta: usize::try_from(eta).unwrap(),
            minimize: definition.objective == Objective::Minimize,
            levels,
            brackets: brackets.collect(),
            ..Self::default()
        }
    }

    fn observe(&mut self, fact: &Recorded) {
        match &fact.fact {
            Fact::MetricsLogged { job, lines, .. } => {
                for line in lines {
                    // A trial competes with its best value so far, and not at all if it has diverged.
                    let best = self.best.entry(job.trial.0).or_default();
                    *best = match (*best, line.value) {
                        (Some(best), Some(value)) if self.minimize => Some(best.min(value)),
                        (Some(best), Some(value)) => Some(best.max(value)),
                        (best, value) => best.or(value),
                    };
                    // Up to two values in a row that are not numbers are glitches: the next number counts.
                    let row = self.row.entry(job.trial.0).or_default();
                    *row = if line.value.is_some() { 0 } else { *row + 1 };
                    let row = *row;
                    let value = best.filter(|_| row < 3);
                    self.racing.entry(job.trial.0).or_insert((0, None)).1 = value;
                    let epoch = u32::try_from(line.index.unwrap()).unwrap();
                    if row == 0 || row >= 3 {
                        self.arrive(job.trial.0, epoch, value);
                    }
                }
            }
            // A completed trial competes at all remaining rungs with its last value.
            Fact::JobDescribed { job, end: JobEnd::Completed, .. } => {
                if let Some((_, value)) = self.racing.get(&job.trial.0).copied() {
                    self.arrive(job.trial.0, u32::MAX, value);
                }
            }
            _ => {}
        }
    }

    fn arrive(&mut self, trial: u32, epoch: u32, value: Option<f64>) {
        let bracket = self.brackets[&trial];
        while let Some((rung, _)) = self.racing.get(&trial).copied() {
            let levels = &self.levels[usize::try_from(bracket).unwrap()];
            let Some(level) = levels.get(usize::try_from(rung).unwrap()).copied() else { return };
            if level > epoch {
                return;
            }
            let seen = self.seen.entry(level).or_default();
            *seen += 1;
            let others = self.arrived.entry(level).or_default();
            let continues = value.is_some_and(|value| {
                let better = |other: f64| if self.minimize { other < value } else { other > value };
                let ahead = others.iter().filter(|(other, number)| {
                    better(*other) || (!better(*other) && other.total_cmp(&value).is_eq() && *number < trial)
                });
                ahead.count() < (*seen / self.eta).max(1)
            });
            others.extend(value.map(|value| (value, trial)));
            self.judged.push((trial, bracket, rung, value, continues));
            self.racing.insert(trial, (rung + 1, value));
            if !continues {
                // The trial is stopped: its later values do not count.
                self.racing.insert(trial, (u32::MAX, value));
            }
        }
    }
}

fn judged(ruling: &Ruling) -> Option<Judged> {
    if let Ruling::Search(SearchRuling::TrialJudged { trial, bracket, rung, value, verdict, .. }) = ruling {
        Some((trial.0, bracket.0, rung.0, *value, verdict.continues))
    } else {
        None
    }
}

proptest! {
    #![proptest_config(cases(96))]

    /// For any plan and direction, curves cross, tie, diverge, end early or fail, at any parallelism and in any order
    /// of emission. The rule is the stopping form of asynchronous successive halving (Li et al., MLSys 2020). A
    /// rejected trial stops at its rung.
    #[test]
    fn verdicts_on_any_curves_in_any_order_equal_those_of_a_naive_model(
        (max_resource, eta) in (1_u32..40, 2_u32..5),
        (max_jobs, max_parallel) in (1_u32..60, 1_u32..9),
        curves in prop::collection::vec(
            (prop::collection::vec(prop::option::weighted(0.9, -3_i32..4), 1..40), any::<bool>()),
            1..60,
        ),
        order in prop::collection::vec(any::<usize>(), 1..60),
        minimize in any::<bool>(),
    ) {
        let mut definition = jobs(max_jobs, max_parallel);
        definition.strategy = crate::support::build::comparing(1, max_resource, eta);
        if minimize {
            definition.objective = Objective::Minimize;
        }
        let program = |trial: usize| {
            let (values, fails) = curves[trial % curves.len()].clone();
            // The first trial logs a number, so that the tuning does not fail for lack of values.
            let values = if trial == 0 { vec![Some(0); 40] } else { values };
            Program { values, fails }
        };
        let programs = (0..usize::try_from(max_jobs).unwrap()).map(program).collect();
        let mut turn = 0;

        let bench = Bench::play(&definition, programs, |running| {
            turn += 1;
            order[turn % order.len()] % running
        });

        let mut model = Model::new(&definition, &bench.run.rulings);
        for fact in &bench.delivered {
            model.observe(fact);
        }
        let rulings = &bench.run.rulings;
        prop_assert_eq!(rulings.iter().filter_map(judged).collect::<Vec<_>>(), model.judged.clone());
        for (trial, bracket, rung, _, continues) in &model.judged {
            if !continues {
                let job = bench.run.concluded.iter().find(|job| job.job.trial.0 == *trial).unwrap();
                let level = model.levels[usize::try_from(*bracket).unwrap()][usize::try_from(*rung).unwrap()];
                // A value that is not a number may be a glitch: the next two epochs show it.
                prop_assert!(job.resource <= Epochs(level + 2), "trial {} must stop at epoch {}: {:?}", trial, level, job);
            }
        }
    }
}
