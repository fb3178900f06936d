//! What a training program does: its curve and its speed, the same for the same hyperparameters in every attempt.

use crate::case::{Case, Epochs};
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
    style: Epochs,
    base: u32,
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
    /// The program of a job with hyperparameters `configuration`.
    pub(crate) fn new(world: &World, case: &Case, configuration: &str) -> Self {
        let mut dice = Dice::new(world.seed, "program", fnv(configuration));
        let mut rate = |kind: Kind| dice.chance(world.faults.rate(kind));
        let (silent, flat, diverges) =
            (rate(Kind::ProgramSilent), rate(Kind::ProgramFlat), rate(Kind::ProgramDiverges));
        let all_hosts = case.instances > 1 && rate(Kind::ProgramAllHosts);
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
        Self {
            curve,
            epochs: case.program_epochs,
            epoch_ms: epoch_ms.max(1),
            checkpoint_every: dice.count(1, 3),
            hosts: if all_hosts { case.instances } else { 1 },
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
        curve.into_iter().chain((self.hosts > 1).then_some(Kind::ProgramAllHosts)).collect()
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
