//! What a training program does: its curve and its speed, the same for the same hyperparameters in every attempt.

use serde_json::{Value, json};

use crate::case::{Case, Epochs, RESOURCE};
use crate::dice::{Dice, fnv};
use crate::fault::Kind;

use super::World;

/// A program with its hyperparameters.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Program {
    curve: Curve,
    /// Epochs it runs.
    pub(crate) epochs: u32,
    /// Time of one.
    pub(crate) epoch_ms: i64,
    /// Epochs between two checkpoints.
    pub(crate) checkpoint_every: u32,
    /// Hosts that log the objective; those after the first log nonsense.
    pub(crate) hosts: u32,
    /// Whether it tells its last epoch again when it finds nothing left to do.
    pub(crate) repeats_last: bool,
    /// Whether it trains on beyond the epochs it was told.
    pub(crate) ignores_epochs: bool,
    style: Epochs,
    base: u32,
}

/// The epochs that a job is told.
pub(crate) fn epochs_told(hyperparameters: &Value) -> Option<u32> {
    hyperparameters[RESOURCE].as_str()?.parse().ok()
}

/// What other hosts than the first log: no value that counts.
pub(crate) const NONSENSE: f64 = 777.0;

#[derive(Debug, Clone, PartialEq)]
enum Curve {
    Silent,
    Flat(f64),
    /// Rises (or falls) towards a height; NaN from an epoch on.
    Rising {
        height: f64,
        slow: f64,
        falls: bool,
        nan_from: u32,
    },
}

impl Program {
    /// The program of a job with these hyperparameters.
    pub(crate) fn new(world: &World, case: &Case, hyperparameters: &Value, choice: u32) -> Self {
        // Whatever epochs its jobs are told, it is the same program: that of the largest resource.
        let mut configuration = hyperparameters.clone();
        let most = case.choices.hyperband.map(|(_, most, _)| most);
        if let Some(most) = most {
            configuration[RESOURCE] = json!(most.to_string());
        }
        let mut dice = Dice::new(world.seed, "program", fnv(&configuration.to_string()));
        let mut rate = |kind: Kind| dice.chance(world.faults.rate(kind));
        let (silent, flat, diverges) =
            (rate(Kind::ProgramSilent), rate(Kind::ProgramFlat), rate(Kind::ProgramDiverges));
        let all_hosts = case.choices.instances > 1 && rate(Kind::ProgramAllHosts);
        let height = dice.unit();
        let curve = if silent {
            Curve::Silent
        } else if flat {
            Curve::Flat(0.5)
        } else {
            let nan_from = if diverges { dice.count(1, case.program_epochs.max(1)) } else { u32::MAX };
            Curve::Rising { height, slow: 0.2 + dice.unit(), falls: dice.chance(0.2), nan_from }
        };
        let epoch_ms = world.plan.epoch_ms * dice.between(50, 200) / 100;
        let checkpoint_every = dice.count(1, 3);
        let ignores_epochs = case.promotes() && dice.chance(world.faults.rate(Kind::ProgramIgnoresEpochs));
        // Where one job runs through, only the one that trains the best once more is told less than the most.
        let told = epochs_told(hyperparameters).filter(|told| case.promotes() || Some(*told) < most);
        Self {
            curve,
            epochs: match told {
                // Beyond the largest resource, too.
                Some(_) if ignores_epochs => case.program_epochs * 2,
                // So does one that always runs for longer than it is told.
                Some(_) if !case.promotes() && Some(case.program_epochs) > most => case.program_epochs,
                Some(told) => told.min(case.program_epochs),
                None => case.program_epochs,
            },
            epoch_ms: epoch_ms.max(1),
            checkpoint_every,
            hosts: if all_hosts { case.cluster(choice).count } else { 1 },
            repeats_last: dice.chance(0.5),
            ignores_epochs,
            style: case.epochs,
            base: case.base,
        }
    }

    /// One that runs for long and logs nothing.
    pub(crate) fn long() -> Self {
        Self {
            curve: Curve::Silent,
            epochs: 1_000,
            epoch_ms: 600_000,
            checkpoint_every: 1,
            hosts: 1,
            repeats_last: false,
            ignores_epochs: false,
            style: Epochs::Ranked,
            base: 0,
        }
    }

    /// Its traits, for the report.
    pub(crate) fn traits(&self) -> Vec<Kind> {
        let curve = match self.curve {
            Curve::Silent => Some(Kind::ProgramSilent),
            Curve::Flat(_) => Some(Kind::ProgramFlat),
            Curve::Rising { nan_from, .. } => (nan_from < u32::MAX).then_some(Kind::ProgramDiverges),
        };
        let all_hosts = (self.hosts > 1).then_some(Kind::ProgramAllHosts);
        let ignores = self.ignores_epochs.then_some(Kind::ProgramIgnoresEpochs);
        curve.into_iter().chain(all_hosts).chain(ignores).collect()
    }

    /// The value after `epoch` (from 1); `None` = it logs none.
    pub(crate) fn value(&self, epoch: u32) -> Option<f64> {
        match self.curve {
            Curve::Silent => None,
            Curve::Flat(value) => Some(value),
            Curve::Rising { nan_from, .. } if epoch >= nan_from => Some(f64::NAN),
            Curve::Rising { height, slow, falls, .. } => {
                let progress = f64::from(epoch) / (f64::from(epoch) + slow);
                let value = if falls { height * (1.0 - progress) } else { height * progress };
                // Coarse, so that ties come about.
                Some((value * 1_000.0).round() / 1_000.0)
            }
        }
    }

    /// The line it logs after `epoch`; `from` = epochs at the checkpoint that this run went on from.
    pub(crate) fn line(&self, epoch: u32, from: u32) -> String {
        self.told(self.value(epoch), epoch, from)
    }

    /// The line that another host logs after `epoch`.
    pub(crate) fn nonsense(&self, epoch: u32, from: u32) -> String {
        self.told(Some(NONSENSE), epoch, from)
    }

    fn told(&self, value: Option<f64>, epoch: u32, from: u32) -> String {
        let Some(value) = value else { return format!("epoch {epoch} done") };
        let value = if value.is_nan() { "nan".to_owned() } else { value.to_string() };
        let told = match self.style {
            Epochs::Ranked => return format!("auc={value};"),
            Epochs::Absolute => epoch,
            Epochs::PerAttempt => epoch - from,
        };
        format!("[epoch {}] auc={value};", (told + self.base).saturating_sub(1))
    }
}
