//! Notices for the user: problems that the logs of a tuning show, in words.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tuning::definition::Definition;
use tuning::log::fact::JobKey;
use tuning::log::problem::LogProblem;
use tuning::state::State;

use crate::names::training_job_name;
use crate::request::NUMBER_PATTERN;

/// A problem that does not end a tuning, and how to solve it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct Notice {
    /// The kind, as in the warnings of `hyperband check`.
    pub code: String,
    /// The problem, in sentences.
    pub message: String,
    /// How to solve it, in sentences.
    pub advice: String,
    /// The training job whose log shows it first; `None` = it concerns several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training_job_name: Option<String>,
}

impl Notice {
    /// Returns the notice of a problem.
    pub fn of_problem(problem: &LogProblem) -> Self {
        match problem {
            LogProblem::NumberCut { captured, whole, line, is_epoch: false } => notice(
                "NumberCutInLog",
                format!(
                    "The Regex of the objective cuts a number in the log: in the line \"{line}\" it captures \
                     '{captured}' of {whole}."
                ),
                if whole.contains(',') {
                    "Print numbers with a decimal point and without separators of thousands.".to_owned()
                } else {
                    format!("Capture the whole number with {NUMBER_PATTERN}, directly after the text before it.")
                },
            ),
            LogProblem::NumberCut { captured, whole, line, is_epoch: true } => notice(
                "EpochCutInLog",
                format!(
                    "EpochPattern cuts a number in the log: in the line \"{line}\" it captures '{captured}' of {whole}."
                ),
                "Capture a whole number that counts the lines with the objective, or remove EpochPattern: then each \
                 of these lines counts as one epoch."
                    .to_owned(),
            ),
            LogProblem::Redrawn { line } => notice(
                "LineRedrawn",
                format!(
                    "The program redraws a line with the objective, and the line counts as one epoch, with its last \
                     value: \"{line}\"."
                ),
                "Set Controller.EpochPattern to a pattern that captures the epoch from this line, or print the \
                 objective on a line of its own after every epoch."
                    .to_owned(),
            ),
            LogProblem::Burst { epochs } => notice(
                "OutputBuffered",
                format!(
                    "{epochs} epochs arrived at once: the program's output is buffered, or its epochs are very \
                     short. A trial can only be stopped after its values arrive."
                ),
                "Flush the output after every epoch: set PYTHONUNBUFFERED=1 for Python, or run other programs with \
                 `stdbuf -oL`."
                    .to_owned(),
            ),
            LogProblem::NoValue { hint, .. } => notice(
                "ObjectiveNotInLog",
                format!("A training job completed without a value of the objective: {hint}."),
                "Correct the Regex, EpochPattern or the output of the program; `hyperband check --log` tests them on \
                 a log."
                    .to_owned(),
            ),
        }
    }

    /// Returns the notices of a tuning.
    pub fn of_tuning(definition: &Definition, state: &State) -> Vec<Self> {
        let id = definition.id();
        let of_job = |(job, problem): &(JobKey, LogProblem)| Self {
            training_job_name: Some(training_job_name(&id, *job)),
            ..Self::of_problem(problem)
        };
        let logs = state.results.log_problems.iter().map(of_job);
        let base = (state.epoch_base == Some(0)).then(Self::base_zero);
        logs.chain(base).chain(state.search.is_constant().then(Self::constant)).collect()
    }

    /// Returns the notice that the log counts epochs from 0.
    pub fn base_zero() -> Self {
        notice(
            "EpochBaseZero",
            "The log counts epochs from 0, so EpochBase 0 applies to this tuning: index 0 is the first epoch.".to_owned(),
            "Set Controller.EpochBase if this is wrong.".to_owned(),
        )
    }

    /// Returns the notice that the objective never changes.
    pub fn constant() -> Self {
        notice(
            "ObjectiveConstant",
            "All values of the objective are equal, over all epochs of all trials: no trial can be better than another."
                .to_owned(),
            "Check that the Regex captures the objective and not, for example, the title of a column, and that the \
             program learns."
                .to_owned(),
        )
    }

    /// Returns the notice as a warning for a terminal.
    pub fn text(&self) -> String {
        format!("warning: {} [{}]\n  {}", self.message, self.code, self.advice)
    }
}

fn notice(code: &str, message: String, advice: String) -> Notice {
    Notice { code: code.to_owned(), message, advice, training_job_name: None }
}
