//! Checks of promotion that need to see both sides: what a job was told and what its program really did, and what was
//! ruled.

use tuning::fact::JobKey;
use tuning::ruling::{Ruling, StopWhy, TrialEnd};

use super::World;
use super::training::Job;
use crate::case::Epochs;
use crate::fault::Kind;

/// Two values, those that are not finite being one.
fn same(logged: Option<f64>, told: Option<f64>) -> bool {
    logged.filter(|value| value.is_finite()).map(f64::to_bits) == told.map(f64::to_bits)
}

impl World {
    /// What is wrong with the request of a job that was created just now.
    pub(super) fn wrongly_told(&self, index: usize) -> Vec<String> {
        let job = &self.training.jobs[index];
        let (name, case) = (&job.now.name, &self.cases[job.case]);
        let mut wrong = Vec::new();
        let book = self.check.books.get(&job.id).and_then(|book| book.jobs.get(&job.key));
        let largest = case.choices.hyperband.map(|(_, max, _)| max);
        // Without rungs nobody is told any.
        let level = book.and_then(|book| book.level).or(largest).filter(|_| largest.is_some());
        if job.told != level {
            wrong.push(format!("P6: {name} is told {:?} epochs, its level is {level:?}", job.told));
        }
        for other in self.training.of(&job.id) {
            let one_trial = other.key.trial == job.key.trial;
            if one_trial != (other.checkpoints_at == job.checkpoints_at) {
                let (here, there) = (&job.checkpoints_at, &other.checkpoints_at);
                wrong.push(format!("P6: {name} has its checkpoints at {here}, job {} at {there}", other.key));
                break;
            }
        }
        wrong
    }

    /// What is wrong with a ruling on a trial that is promoted.
    pub(super) fn wrongly_promoted(&mut self, id: &str, ruling: &Ruling) -> Option<String> {
        match ruling {
            Ruling::RungReached { job, trial, .. } => {
                let mut jobs = self.training.of(id).filter(|other| other.key.trial == *trial);
                let last = jobs.by_ref().max_by_key(|other| other.key.attempt)?;
                let (right, wrong) = self.wrongly_reached(last, ruling);
                let untold = job.and_then(|job| self.untold(id, job));
                self.check.judged(right);
                wrong.or(untold)
            }
            Ruling::AttemptAwaited { job, .. } => self.untold(id, *job),
            Ruling::TrialFinished { job: Some(job), how, .. } => {
                self.untold(id, *job).or_else(|| self.should_wait(id, *job, how))
            }
            Ruling::ResourceRepeated { job, had, from } => self.wrongly_repeated(id, *job, *had, *from),
            Ruling::StopOrdered { job, why: StopWhy::PastLevel { level } } => {
                let job = self.training.of(id).find(|other| other.key == *job)?;
                let beyond = job.logged.is_some_and(|(_, last)| last > *level);
                let right = beyond && job.told == Some(*level);
                (!right).then(|| {
                    let (name, logged) = (&job.now.name, job.logged);
                    format!(
                        "P6: {name} is stopped above {level}, it was told {:?}, logged {logged:?}",
                        job.told
                    )
                })
            }
            _ => None,
        }
    }

    /// Whether all that the job logged is sure to be known when it is concluded.
    fn is_read(&self, job: &Job) -> bool {
        let book = self.check.books.get(&job.id).and_then(|book| book.jobs.get(&job.key));
        let in_full = book.is_none_or(|book| book.in_full);
        !in_full && !job.deleted && self.faults.rate(Kind::LogReadLag) == 0.0
    }

    /// The same of all jobs of its trial.
    fn is_all_read(&self, job: &Job) -> bool {
        let mut jobs = self.training.of(&job.id).filter(|other| other.key.trial == job.key.trial);
        jobs.all(|other| self.is_read(other))
    }

    /// Whether a trial waits with the value that its program showed at that epoch, and what is wrong with it.
    fn wrongly_reached(&self, last: &Job, ruling: &Ruling) -> (bool, Option<String>) {
        let Ruling::RungReached { trial, level, resource, value, .. } = ruling else { return (true, None) };
        let program = &last.program;
        let shown = |epoch: u32| {
            let mut jobs = self.training.of(&last.id).filter(|other| other.key.trial == *trial);
            jobs.any(|job| job.logged.is_some_and(|(first, last)| first <= epoch && epoch <= last))
        };
        let right = same(program.value(*resource), *value);
        let wrong =
            |why: String| Some(format!("P6: trial {trial} waits with {value:?} at {resource}: {why}"));
        let completed = last.now.status == "Completed";
        if resource < level && !completed {
            return (right, wrong(format!("below its level {level}, and its job did not end well")));
        }
        let furthest = last.logged.map(|(_, furthest)| furthest);
        if self.cases[last.case].epochs == Epochs::Absolute {
            if !right || !shown(*resource) {
                return (right, wrong(format!("its program logged {:?} there", program.value(*resource))));
            }
            let early = resource < level && self.is_read(last) && furthest != Some(*resource);
            return (right, early.then(|| wrong(format!("its job logged up to {furthest:?}"))).flatten());
        }
        // The end of a job that trained just to its level tells where its lines belong.
        if completed && furthest == Some(*level) && self.is_all_read(last) {
            let exact = right && resource == level;
            return (right, (!exact).then(|| wrong(format!("its job ended well at {level}"))).flatten());
        }
        // Else a later value may stand for an earlier one. Where lines are missing, or the program ended before its level,
        // that is not known.
        let from = if furthest >= Some(*level) && self.is_all_read(last) { *level } else { 1 };
        let any = (from..=program.epochs.max(*level))
            .any(|epoch| shown(epoch) && same(program.value(epoch), *value));
        (right, (!any).then(|| wrong(format!("its program never logged that at {from} or later"))).flatten())
    }

    /// A job is concluded that began below what its trial had, and nobody was told.
    fn untold(&self, id: &str, key: JobKey) -> Option<String> {
        let job = self.training.of(id).find(|job| job.key == key)?;
        let book = self.check.books.get(id)?;
        let told = book.jobs.get(&key)?.repeats_from;
        let had = book.jobs.get(&key)?.had;
        let (first, _) = job.logged?;
        let absolute = self.cases[job.case].epochs == Epochs::Absolute;
        // The one at the epoch it was promoted with may be its value shown again.
        let due = absolute && first < had && told.is_none() && self.is_read(job);
        due.then(|| format!("P6: job {key} of {id} began at {} instead of {had}, nobody was told", first - 1))
    }

    /// Somebody is told that a job began below what its trial had, and it did not.
    fn wrongly_repeated(&self, id: &str, key: JobKey, had: u32, from: u32) -> Option<String> {
        let job = self.training.of(id).find(|job| job.key == key)?;
        let absolute = self.cases[job.case].epochs == Epochs::Absolute;
        // What counts anew is placed by the level that the program was told.
        if !absolute && job.program.ignores_epochs {
            return None;
        }
        let first = job.logged.map(|(first, _)| first);
        let began = first.is_some_and(|first| first <= had);
        let right = began && (!absolute || first.is_some_and(|first| first <= from + 1));
        (!right).then(|| {
            format!(
                "P6: job {key} of {id} is said to begin at {from} instead of {had}, it logged from {first:?}"
            )
        })
    }

    /// A trial whose job ended well with a value waits, unless its tuning ends.
    fn should_wait(&self, id: &str, key: JobKey, how: &TrialEnd) -> Option<String> {
        let job = self.training.of(id).find(|job| job.key == key)?;
        let book = self.check.books.get(id)?;
        let over = book.ending.is_some() || book.ended.is_some() || book.is_for_the_last_rung(key);
        let due = *how == TrialEnd::Completed
            && self.cases[job.case].promotes()
            && !over
            && self.is_read(job)
            && job.logged.is_some();
        due.then(|| format!("P6: job {key} of {id} ended well with a value, its trial is over"))
    }
}
