//! Several training job definitions: which trial, which space and which brackets belong to each.
//!
//! The number of a trial determines its definition. The brackets of all definitions are numbered consecutively.

use hyperband::plan::BracketPlan;
use hyperband::rung::Rule;
use search::Space;

use super::job_shape::{JobTerms, OtherDefinition};
use super::{Definition, JobLimits};
use crate::unit::ids::{BracketId, ChoiceId, DefinitionId, RungId, SizeId, TrialId, count};

impl Definition {
    /// Returns whether the request has several training job definitions.
    pub fn has_definitions(&self) -> bool {
        !self.others.is_empty()
    }

    /// Returns the training job definitions.
    pub fn definitions(&self) -> impl Iterator<Item = DefinitionId> + use<> {
        (0..self.definition_count()).map(DefinitionId::at)
    }

    /// Returns the number of training job definitions.
    pub fn definition_count(&self) -> usize {
        self.others.len().saturating_add(1)
    }

    /// Returns the training job definition of a trial.
    pub fn definition_of(&self, trial: TrialId) -> DefinitionId {
        DefinitionId::of(trial, self.definition_count())
    }

    /// Returns the number of a trial among those of its training job definition, from 0.
    pub fn index_of(&self, trial: TrialId) -> u32 {
        trial.0.checked_div(count(self.definition_count())).unwrap_or(trial.0)
    }

    /// Returns the trial with this index among those of a training job definition.
    pub fn trial(&self, of: DefinitionId, index: u32) -> TrialId {
        TrialId(index.saturating_mul(count(self.definition_count())).saturating_add(of.0))
    }

    /// Returns the first trial of a training job definition whose number is at least `number`.
    pub(crate) fn trial_from(&self, number: TrialId, of: DefinitionId) -> TrialId {
        self.trial(of, number.0.saturating_sub(of.0).div_ceil(count(self.definition_count()).max(1)))
    }

    /// Returns the search space of a training job definition.
    pub fn space_of(&self, of: DefinitionId) -> &Space {
        self.other(of.index()).map_or(&self.space, |other| &other.space)
    }

    /// Returns the terms of the jobs of a cluster size; with several training job definitions, those of its definition.
    pub fn terms(&self, size: SizeId) -> JobTerms {
        self.other(size.index()).map_or(self.job.terms(), |other| other.terms)
    }

    /// Returns the terms of the jobs on an instance choice.
    pub fn terms_on(&self, choice: ChoiceId) -> JobTerms {
        self.terms(self.job.size(choice))
    }

    /// Returns the terms of the jobs of a trial.
    pub fn terms_of(&self, trial: TrialId) -> JobTerms {
        self.other(self.definition_of(trial).index()).map_or(self.job.terms(), |other| other.terms)
    }

    /// Returns the limits of the longest job on an instance choice, with its kept instances.
    pub fn greatest_limits(&self, choice: ChoiceId) -> JobLimits {
        let keep_alive_seconds = self.terms_on(choice).keep_alive_seconds;
        JobLimits { keep_alive_seconds, ..self.longest_limits(self.job.size(choice)) }
    }

    /// Returns the choice of the first instance type whose longest jobs can cost most; one without a known price, if any.
    pub fn dearest(&self) -> ChoiceId {
        let firsts = self.job.all_sizes().filter_map(|size| self.job.choices_of(size).next());
        let cost = |choice: &ChoiceId| {
            let worst = self.worst_case(self.greatest_limits(*choice), *choice);
            (worst.is_none(), worst, self.job.instances(*choice).count)
        };
        firsts.max_by_key(cost).unwrap_or_default()
    }

    fn other(&self, definition: usize) -> Option<&OtherDefinition> {
        self.others.get(definition.checked_sub(1)?)
    }

    /// Adds the training job definition of another tuning as a further one.
    pub fn join(&mut self, other: Self) {
        let choices = other.job.choices().map(|choice| other.job.instances(choice));
        self.job.definitions.push(ChoiceId::at(self.job.choices().count()));
        self.job.fallbacks.extend(choices);
        self.others.push(OtherDefinition { terms: other.job.terms(), space: other.space });
    }

    /// Returns a bracket of a training job definition, by its place in the plan.
    pub fn bracket(&self, of: DefinitionId, in_plan: usize) -> BracketId {
        BracketId::at(of.index().saturating_mul(self.plan().brackets().len()).saturating_add(in_plan))
    }

    /// Returns all brackets, in the order of the definitions.
    pub fn brackets(&self) -> impl Iterator<Item = BracketId> + use<> {
        (0..self.plan().brackets().len().saturating_mul(self.definition_count())).map(BracketId::at)
    }

    /// Returns the place of a bracket in the plan; one beyond the last for the bracket of a refit.
    pub fn in_plan(&self, bracket: BracketId) -> usize {
        let each = self.plan().brackets().len();
        let is_refit = bracket.index() >= each.saturating_mul(self.definition_count());
        if is_refit { each } else { bracket.index().checked_rem(each).unwrap_or(0) }
    }

    /// Returns the rule by which running trials are compared at a rung.
    pub fn rule(&self, bracket: BracketId, rung: RungId) -> Rule {
        self.plan().rule(self.in_plan(bracket), rung.index())
    }

    /// Returns the training job definition of a bracket.
    pub fn definition_of_bracket(&self, bracket: BracketId) -> DefinitionId {
        let each = self.plan().brackets().len();
        let beyond = bracket.index().checked_sub(each.saturating_mul(self.definition_count()));
        DefinitionId::at(beyond.unwrap_or_else(|| bracket.index().checked_div(each).unwrap_or(0)))
    }

    /// Returns the trials of one round of a bracket.
    pub fn round_of(&self, bracket: BracketId) -> u32 {
        self.plan().brackets().get(self.in_plan(bracket)).map_or(1, BracketPlan::trials)
    }

    /// Returns the number of rungs of a bracket.
    pub fn rung_count(&self, bracket: BracketId) -> usize {
        self.plan().rung_count(self.in_plan(bracket))
    }
}
