//! The instances of training jobs: the choices of a request, and their numbers.

use std::collections::BTreeSet;

use super::Request;
use super::fields::Instances;

/// One choice of instances for a training job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InstanceChoice<'a> {
    /// `InstanceType`.
    pub instance_type: &'a str,
    /// `InstanceCount`.
    pub count: u32,
    /// `VolumeSizeInGB`: the volume of each instance, in GiB.
    pub volume_gib: u32,
}

impl<'a> InstanceChoice<'a> {
    fn of(given: &'a Instances) -> Self {
        Self {
            instance_type: given.instance_type.as_deref().unwrap_or_default(),
            count: given.count.unwrap_or(1),
            volume_gib: given.volume_gib.unwrap_or(0),
        }
    }
}

impl Request {
    /// Returns the choices of instances in order of preference: the entries of `InstanceConfigs`, else the flat fields
    /// of either resource configuration. With `InstanceCounts`, each is a choice for each count. With
    /// several training job definitions, those of one follow those of the other. Never empty.
    pub fn instance_choices(&self) -> Vec<InstanceChoice<'_>> {
        self.definitions().flat_map(Self::own_choices).collect()
    }

    /// Like [`Request::instance_choices`], of the first training job definition.
    pub fn own_choices(&self) -> Vec<InstanceChoice<'_>> {
        let others = self.fields.job.tuning_resources.choices.iter().skip(1);
        let all = std::iter::once(self.first_choice()).chain(others.map(InstanceChoice::of));
        match self.instance_counts().as_slice() {
            [] => all.collect(),
            counts => all
                .flat_map(|choice| counts.iter().map(move |count| InstanceChoice { count: *count, ..choice }))
                .collect(),
        }
    }

    /// Returns `InstanceCounts`, the cluster sizes among which the search chooses, ascending; empty = jobs have one size.
    pub fn instance_counts(&self) -> Vec<u32> {
        let given = self.fields.controller.instance_counts.iter().flatten().copied();
        given.collect::<BTreeSet<u32>>().into_iter().collect()
    }

    /// Returns `ScaleWithInstances`, the hyperparameters that are multiplied by the number of instances of a job.
    pub fn scaled_hyperparameters(&self) -> &[String] {
        self.fields.controller.scaled.as_deref().unwrap_or_default()
    }

    /// Returns the first choice of instances.
    pub fn first_choice(&self) -> InstanceChoice<'_> {
        let job = &self.fields.job;
        let (flat, tuning) = (&job.instances, &job.tuning_instances);
        job.tuning_resources.choices.first().map_or_else(
            || InstanceChoice {
                instance_type: tuning
                    .instance_type
                    .as_ref()
                    .or(flat.instance_type.as_ref())
                    .map_or("", |name| name),
                count: tuning.count.or(flat.count).unwrap_or(1),
                volume_gib: tuning.volume_gib.or(flat.volume_gib).unwrap_or(0),
            },
            InstanceChoice::of,
        )
    }

    /// Returns the path of the field with the instance type of choice `index` of the first training job definition.
    pub fn instance_type_path(&self, index: usize) -> String {
        let index = index / self.instance_counts().len().max(1);
        let tuning = "TrainingJobDefinition.HyperParameterTuningResourceConfig";
        if !self.fields.job.tuning_resources.choices.is_empty() {
            format!("{tuning}.InstanceConfigs[{index}].InstanceType")
        } else if self.fields.job.tuning_instances.instance_type.is_some() {
            format!("{tuning}.InstanceType")
        } else {
            "TrainingJobDefinition.ResourceConfig.InstanceType".to_owned()
        }
    }

    /// Returns the instance type of the first choice.
    pub fn instance_type(&self) -> &str {
        self.first_choice().instance_type
    }

    /// Returns the number of instances of the first choice, the largest of `InstanceCounts` if the search chooses it, and
    /// of several training job definitions.
    pub fn instance_count(&self) -> u32 {
        let own = |one: &Self| one.instance_counts().last().copied().unwrap_or(one.first_choice().count);
        self.definitions().map(own).max().unwrap_or(1)
    }
}
