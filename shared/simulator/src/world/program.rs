//! A training program: its curve and speed, which depend only on its hyperparameters and are the same in every attempt.

use serde_json::{Value, json};
use tuning::unit::ids::ChoiceId;

use crate::case::{Case, Epochs, RESOURCE};
use crate::dice::{Dice, fnv};
use crate::fault::Kind;

use super::World;

/// A program with its properties.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Program {
    curve: Curve,
    /// Number of epochs that it trains.
    pub(crate) epochs: u32,
    /// Duration of an epoch, in ms.
    pub(crate) epoch_ms: i64,
    /// Number of epochs between two checkpoints.
    pub(crate) checkpoint_every: u32,
    /// Number of hosts that log the objective. All but the first log nonsense.
    pub(crate) hosts: u32,
    /// Whether it logs its last epoch again when nothing is left to train.
    pub(crate) repeats_last: bool,
    /// Whether it trains beyond its epoch limit.
    pub(crate) ignores_epochs: bool,
    /// How long it saves its model after its last epoch, in ms.
    pub(crate) saves_ms: i64,
    /// Whether its configuration does not fit its instances: it fails before its first epoch, in each attempt.
    pub(crate) out_of_memory: bool,
    /// An epoch whose value is NaN; the epochs around it have values.
    glitch: Option<u32>,
    style: Epochs,
    base: u32,
}

/// Returns the epoch limit in the hyperparameters of a job.
pub(crate) fn epoch_limit(hyperparameters: &Value) -> Option<u32> {
    hyperparameters[RESOURCE].as_str()?.parse().ok()
}

/// Longest time for which a program usually saves its model, in ms, and for which some do.
const SAVES_MS: (i64, i64) = (100_000, 1_200_000);

/// The value that hosts other than the first log. It must never count.
pub(crate) const NONSENSE: f64 = 777.0;

#[derive(Debug, Clone, PartialEq)]
enum Curve {
    Silent,
    Flat(f64),
    /// Approaches a height from below (or falls), and is NaN from an epoch on.
    Rising {
        height: f64,
        slow: f64,
        falls: bool,
        nan_from: u32,
    },
}

impl Program {
    /// Returns the program of a job with these hyperparameters.
    pub(crate) fn new(world: &World, case: &Case, hyperparameters: &Value, choice: ChoiceId) -> Self {
        // The epoch limit does not change the program: it is always that of the largest resource.
        let mut configuration = hyperparameters.clone();
        let most = case.choices.hyperband.map(|(_, most, _)| most);
        if let Some(most) = most {
            configuration[RESOURCE] = json!(most.to_string());
        }
        let mut dice = Dice::new(world.seed, "program", fnv(&configuration.to_string()));
        let mut rate = |kind: Kind| dice.chance(world.faults.rate(kind));
        let (silent, flat, diverges) =
            (rate(Kind::ProgramSilent), rate(Kind::ProgramFlat), rate(Kind::ProgramDiverges));
        let configured = |what: &str| Dice::new(world.seed, what, fnv(&configuration.to_string()));
        let later = |kind: Kind| configured(kind.name()).chance(world.faults.rate(kind));
        let out_of_memory = later(Kind::ProgramOutOfMemory);
        let glitch =
            later(Kind::ProgramGlitches).then(|| configured("glitch").count(1, case.program_epochs.max(1)));
        let saves_long = later(Kind::ProgramSavesLong);
        let all_hosts = case.choices.instances > 1 && rate(Kind::ProgramAllHosts);
        let height = dice.unit();
        let curve = if silent || out_of_memory {
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
        // Without promotion, only a refit job has a limit below the largest resource.
        let limit = epoch_limit(hyperparameters).filter(|limit| case.promotes() || Some(*limit) < most);
        Self {
            curve,
            epochs: match limit {
                // Even beyond the largest resource.
                Some(_) if ignores_epochs => case.program_epochs * 2,
                // A program that always trains longer than the largest resource ignores the limit too.
                Some(_) if !case.promotes() && Some(case.program_epochs) > most => case.program_epochs,
                Some(limit) => limit.min(case.program_epochs),
                None => case.program_epochs,
            },
            epoch_ms: epoch_ms.max(1),
            checkpoint_every,
            hosts: if all_hosts { case.cluster(choice).count } else { 1 },
            repeats_last: dice.chance(0.5),
            ignores_epochs,
            saves_ms: dice.between(0, if saves_long { SAVES_MS.1 } else { SAVES_MS.0 }),
            out_of_memory,
            glitch,
            style: case.epochs,
            base: case.base,
        }
    }

    /// Returns a program that runs for a long time and logs nothing.
    pub(crate) fn long() -> Self {
        Self {
            curve: Curve::Silent,
            epochs: 1_000,
            epoch_ms: 600_000,
            checkpoint_every: 1,
            hosts: 1,
            repeats_last: false,
            ignores_epochs: false,
            saves_ms: 0,
            out_of_memory: false,
            glitch: None,
            style: Epochs::Ranked,
            base: 0,
        }
    }

    /// Returns the kinds of faults that its properties count as.
    pub(crate) fn traits(&self) -> Vec<Kind> {
        let curve = match self.curve {
            Curve::Silent if self.out_of_memory => Some(Kind::ProgramOutOfMemory),
            Curve::Silent => Some(Kind::ProgramSilent),
            Curve::Flat(_) => Some(Kind::ProgramFlat),
            Curve::Rising { nan_from, .. } => (nan_from < u32::MAX).then_some(Kind::ProgramDiverges),
        };
        let all_hosts = (self.hosts > 1).then_some(Kind::ProgramAllHosts);
        let ignores = self.ignores_epochs.then_some(Kind::ProgramIgnoresEpochs);
        let glitches = self.glitch.map(|_| Kind::ProgramGlitches);
        let saves = (self.saves_ms > SAVES_MS.0).then_some(Kind::ProgramSavesLong);
        curve.into_iter().chain(all_hosts).chain(ignores).chain(glitches).chain(saves).collect()
    }

    /// Returns the value after `epoch` (from 1). `None` = the program logs no value.
    pub(crate) fn value(&self, epoch: u32) -> Option<f64> {
        match self.curve {
            Curve::Silent => None,
            Curve::Flat(_) | Curve::Rising { .. } if self.glitch == Some(epoch) => Some(f64::NAN),
            Curve::Flat(value) => Some(value),
            Curve::Rising { nan_from, .. } if epoch >= nan_from => Some(f64::NAN),
            Curve::Rising { height, slow, falls, .. } => {
                let progress = f64::from(epoch) / (f64::from(epoch) + slow);
                let value = if falls { height * (1.0 - progress) } else { height * progress };
                // Rounded, so that ties occur.
                Some((value * 1_000.0).round() / 1_000.0)
            }
        }
    }

    /// Returns the line that it logs after `epoch`; `from` is the epoch of the checkpoint from which this run
    /// continued.
    pub(crate) fn line(&self, epoch: u32, from: u32) -> String {
        self.format_line(self.value(epoch), epoch, from)
    }

    /// Returns the line that another host logs after `epoch`.
    pub(crate) fn nonsense(&self, epoch: u32, from: u32) -> String {
        self.format_line(Some(NONSENSE), epoch, from)
    }

    fn format_line(&self, value: Option<f64>, epoch: u32, from: u32) -> String {
        let Some(value) = value else { return format!("epoch {epoch} done") };
        let value = if value.is_nan() { "nan".to_owned() } else { value.to_string() };
        let number = match self.style {
            Epochs::Ranked => return format!("auc={value};"),
            Epochs::Absolute => epoch,
            Epochs::PerAttempt => epoch - from,
        };
        format!("[epoch {}] auc={value};", (number + self.base).saturating_sub(1))
    }
}
