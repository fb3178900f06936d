//! Shrinks a failing history: removes everything that is not needed for the same kind of failure.
//!
//! Shrinking is deterministic. It is bounded by a number of runs, not by time. A change alters all later draws, so a
//! smaller history that no longer fails is also tried with a few other seeds.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::Run;
use crate::case::{Case, Choices, Epochs, OwnTerms, Rungs};
use crate::encode::remade;
use crate::plan::{CrashOnce, MINUTE, Order, Plan};
use crate::report::History;

/// Default number of runs to try.
pub const RUNS: u32 = 400;
/// Number of seeds with which a smaller history is tried, including its own.
const SEEDS_TRIED: u64 = 3;
/// Number of seeds tried at the end to find a shorter history.
const SEEDS_SHORTER: u64 = 8;
/// Number of words of a violation that define its kind.
const WORDS: usize = 6;

/// The size of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Number of kinds of faults.
    pub faults: usize,
    /// Number of tunings.
    pub cases: usize,
    /// Number of events.
    pub events: u64,
}

/// The result of shrinking.
#[derive(Debug, Clone)]
pub struct Shrunk {
    /// The smallest history found that fails in the same way.
    pub run: Run,
    /// Its violation.
    pub violation: String,
    /// Number of histories tried.
    pub runs: u32,
    /// Size before.
    pub from: Size,
    /// Size after.
    pub to: Size,
}

/// Plays the history of `run`. A panic of the system or of the simulator becomes a violation.
pub fn history(run: &Run) -> History {
    catch_unwind(AssertUnwindSafe(|| run.clone().history())).unwrap_or_else(|panic| {
        let message = panic.downcast_ref::<String>().cloned();
        let message = message.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
        History::panicked(run.seed, &message.unwrap_or_default())
    })
}

/// Returns the kind of a violation: the promise and the first words, without names and numbers.
pub fn kind(violation: &str) -> String {
    let promise = (1..=9).filter_map(|n| violation.find(&format!("P{n}: "))).min();
    let text = violation.get(promise.unwrap_or(0)..).unwrap_or_default();
    let text = if promise.is_none() { text.split_once(" ms: ").map_or(text, |(_, rest)| rest) } else { text };
    let (label, text) = text.split_at(if promise.is_some() { 3 } else { 0 });
    let plain = |word: &&str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphabetic());
    let words = text.split_whitespace().map(|word| word.trim_end_matches([',', ':', ';', '.'])).filter(plain);
    words.take(WORDS).fold(label.to_owned(), |kind, word| kind + " " + word).trim().to_owned()
}

/// Shrinks `run`, whose history was `failed`, in at most `runs_max` further runs. Returns `None` if the history has no
/// violation.
pub fn shrink(run: &Run, failed: &History, runs_max: u32) -> Option<Shrunk> {
    let violation = failed.violations.first()?.clone();
    let from = size(run, failed.events);
    let mut best = Best {
        run: Run { trace: false, ..run.clone() },
        kind: kind(&violation),
        violation,
        events: failed.events,
        runs: 0,
        runs_max,
        seeds: 1,
    };
    loop {
        let before = best.run.clone();
        best.round();
        if best.run == before || best.runs >= runs_max {
            if best.seeds == SEEDS_TRIED || best.runs >= runs_max {
                break;
            }
            best.seeds = SEEDS_TRIED;
        }
    }
    best.lower_rates();
    best.try_shorter_seeds();
    let Best { run, violation, events, runs, .. } = best;
    Some(Shrunk { violation, runs, from, to: size(&run, events), run })
}

fn size(run: &Run, events: u64) -> Size {
    Size { faults: run.plan.rates.len(), cases: run.cases.len(), events }
}

/// The smallest failing history so far.
struct Best {
    run: Run,
    kind: String,
    violation: String,
    events: u64,
    runs: u32,
    runs_max: u32,
    seeds: u64,
}

impl Best {
    /// Plays the history of `run`, if a run is left. Returns its violation of the same kind and its number of events.
    fn fails(&mut self, run: &Run) -> Option<(String, u64)> {
        if self.runs >= self.runs_max {
            return None;
        }
        self.runs += 1;
        let history = history(run);
        let same = history.violations.into_iter().find(|violation| kind(violation) == self.kind)?;
        Some((same, history.events))
    }

    fn take(&mut self, run: Run, (violation, events): (String, u64)) {
        self.run = run;
        self.violation = violation;
        self.events = events;
    }

    /// Applies a change to the history and keeps it if the history still fails. Returns whether it does.
    fn try_change(&mut self, change: impl FnOnce(&mut Run)) -> bool {
        let mut smaller = self.run.clone();
        change(&mut smaller);
        if smaller == self.run {
            return false;
        }
        for n in 0..self.seeds {
            let run = Run { seed: self.run.seed.wrapping_add(n), ..smaller.clone() };
            if let Some(failure) = self.fails(&run) {
                self.take(run, failure);
                return true;
            }
        }
        false
    }

    /// Tries every change once.
    fn round(&mut self) {
        for index in (0..self.run.cases.len()).rev() {
            if self.run.cases.len() > 1 {
                self.try_change(|run| _ = run.cases.remove(index));
            }
        }
        self.fewer_faults();
        for simpler in PLAN {
            self.try_change(|run| simpler(&mut run.plan));
        }
        while self.run.plan.safety_ms >= 2 * MINUTE && self.try_change(|run| run.plan.safety_ms /= 2) {}
        for index in 0..self.run.cases.len() {
            self.simpler_case(index);
        }
    }

    /// Halves the rates, after nothing else can be removed.
    fn lower_rates(&mut self) {
        let kinds: Vec<_> = self.run.plan.rates.keys().copied().collect();
        for kind in kinds {
            self.try_change(|run| {
                if let Some(rate) = run.plan.rates.get_mut(&kind).filter(|rate| **rate > 0.01) {
                    *rate = (*rate * 5_000.0).ceil() / 10_000.0;
                }
            });
        }
    }

    /// Removes all kinds of faults, then halves, quarters, and so on down to single kinds.
    fn fewer_faults(&mut self) {
        let mut chunk = self.run.plan.rates.len();
        while chunk > 0 {
            let mut at = 0;
            while at < self.run.plan.rates.len() {
                let chosen: Vec<_> = self.run.plan.rates.keys().copied().skip(at).take(chunk).collect();
                if !self.try_change(|run| run.plan.rates.retain(|kind, _| !chosen.contains(kind))) {
                    at += chunk;
                }
            }
            chunk /= 2;
        }
    }

    fn simpler_case(&mut self, index: usize) {
        self.try_change(|run| run.cases[index].stop_at = None);
        self.try_change(|run| run.cases[index].has_parent = false);
        self.try_change(|run| {
            let case = &mut run.cases[index];
            case.stop_at = case.stop_at.map(|at| at - case.submit_at);
            case.submit_at = 0;
        });
        self.try_change(|run| {
            let Case { submit_at, has_parent, stop_at, changes, name, choices, .. } = &run.cases[index];
            let (submit_at, has_parent, stop_at, changes) =
                (*submit_at, *has_parent, *stop_at, changes.clone());
            run.cases[index] = Case { submit_at, has_parent, stop_at, changes, ..Case::of(name, choices) };
        });
        for change in (0..self.run.cases[index].changes.len()).rev() {
            self.try_change(|run| _ = run.cases[index].changes.remove(change));
            self.try_change(|run| {
                if let Some(change) = run.cases[index].changes.get_mut(change) {
                    change.pause_ms = None;
                }
            });
        }
        for simpler in CHOICES {
            while self.try_change(|run| {
                let case = &mut run.cases[index];
                let mut choices = case.choices.clone();
                simpler(&mut choices);
                if let Some(simpler) = remade(case, &choices) {
                    *case = simpler;
                }
            }) {}
        }
    }

    /// Tries other seeds, which may fail after fewer events.
    fn try_shorter_seeds(&mut self) {
        let first = self.run.seed;
        for n in 1..=SEEDS_SHORTER {
            let run = Run { seed: first.wrapping_add(n), ..self.run.clone() };
            if let Some(failure) = self.fails(&run).filter(|(_, events)| *events < self.events) {
                self.take(run, failure);
            }
        }
    }
}

/// Changes that simplify a plan.
const PLAN: &[fn(&mut Plan)] = &[
    |plan| plan.stream_outage = None,
    |plan| plan.crash_once = CrashOnce::Never,
    |plan| plan.order = Order::Natural,
    |plan| plan.skew_ms_max = 0,
    |plan| plan.stream_tries_max = Plan::calm().stream_tries_max,
    |plan| plan.whole_seconds = true,
    |plan| plan.runtime_per_attempt = false,
    |plan| plan.shards = 1,
    |plan| plan.epoch_ms = Plan::calm().epoch_ms,
];

/// Changes that simplify a request. Each is repeated while it succeeds, so each must reach a fixed point.
const CHOICES: &[fn(&mut Choices)] = &[
    |choices| choices.max_jobs = choices.max_jobs.div_ceil(2),
    |choices| choices.max_jobs = choices.max_jobs.saturating_sub(1).max(1),
    |choices| choices.max_parallel = choices.max_parallel.div_ceil(2),
    |choices| choices.max_parallel = choices.max_parallel.saturating_sub(1).max(1),
    |choices| choices.rungs = Rungs::Stop,
    |choices| {
        if choices.rungs == Rungs::Synchronous {
            choices.rungs = Rungs::Asynchronous;
        }
    },
    |choices| choices.hyperband = None,
    |choices| choices.late = None,
    |choices| choices.hyperband = choices.hyperband.map(|(_, max, _)| (1, max.min(3), 3)),
    |choices| choices.hyperband = choices.hyperband.map(|(_, max, _)| (1, max.min(9), 3)),
    |choices| choices.refit = false,
    |choices| choices.keep_alive_seconds = 0,
    |choices| choices.max_pending_seconds = None,
    |choices| choices.spot_fallback = false,
    |choices| _ = choices.others.pop(),
    |choices| choices.small_quota = false,
    |choices| choices.sizes.clear(),
    |choices| choices.own_terms = OwnTerms::Same,
    |choices| choices.definitions = 1,
    |choices| choices.known_results = 0,
    |choices| choices.tolerance = None,
    |choices| {
        if choices.max_wait_seconds.is_some() || !choices.others.is_empty() {
            choices.keep_alive_seconds = 0;
        }
    },
    |choices| {
        choices.spot_fallback = false;
        choices.max_wait_seconds = None;
    },
    |choices| choices.cap_jobs = None,
    |choices| choices.own_price = true,
    |choices| choices.epochs = Epochs::Absolute,
    |choices| choices.maximize = true,
    |choices| choices.extra.clear(),
    |choices| _ = choices.extra.pop(),
    |choices| choices.extra = choices.extra.iter().skip(1).cloned().collect(),
    |choices| choices.instances = 1,
    |choices| choices.max_interruptions /= 2,
    |choices| choices.max_runtime_seconds = Choices::plain().max_runtime_seconds,
];
