//! The decider: names the next ruling that the state calls for.
//!
//! [`next`] reads the state and changes nothing. The caller applies the ruling and calls [`next`] again, until it
//! returns `None`. The order of `RULES` is itself a rule: criteria that end the tuning, running trials, ended jobs, new
//! jobs, and last the end of the tuning.

use std::collections::BTreeSet;

use crate::definition::Definition;
use crate::job::{Job, must_end_at};
use crate::log::fact::JobKey;
use crate::log::ruling::Ruling;
use crate::rules::outlook::outlook;
use crate::rules::{
    Rule, View, bill, conclude, final_log, finish, grant, judge, notice, overrun, pool, promote, silence,
    start, stop,
};
use crate::state::State;
use crate::unit::limits::SETTLE_DEADLINE;
use crate::unit::time::Time;

/// The number of rules.
pub const RULE_COUNT: usize = 24;

/// The rules, in their order.
static RULES: [Rule; RULE_COUNT] = [
    // Later bills of concluded jobs come first, because they change what is left of the cap.
    bill::BOOKED,
    overrun::EXTENDED,
    notice::OVERRUN,
    notice::CAPACITY_LACKING,
    finish::ENDING,
    // Running trials: compare them at rungs, look at silent jobs, stop jobs.
    judge::JUDGEMENT,
    promote::RESOURCE_REPEATED,
    promote::CLOSED_RUNG,
    silence::CHECK,
    stop::STOP,
    overrun::STOP_OTHER,
    // Ended jobs: read their bills and logs, conclude them, settle their warm pools.
    bill::READ,
    bill::SETTLED_IN_FULL,
    final_log::READ,
    conclude::CONCLUSION,
    pool::SETTLED,
    pool::READ,
    grant::MOVED_ON,
    // By the outlook: eliminate trials, start jobs, return unused money, end the tuning.
    promote::ELIMINATED,
    notice::LEVEL_REACHED,
    start::START,
    pool::RELEASE,
    grant::RETURN_UNUSED,
    finish::END,
];

/// Returns the next ruling, or `None` when nothing is left to decide for now.
pub fn next(definition: &Definition, state: &State) -> Option<Ruling> {
    next_by_rule(definition, state).map(|(_, ruling)| ruling)
}

/// Like [`next`], with the place of the rule in the order of the rules.
pub fn next_by_rule(definition: &Definition, state: &State) -> Option<(usize, Ruling)> {
    if !state.submitted || state.is_ended() {
        return None;
    }
    let view = View::new(definition, state, outlook);
    RULES.iter().enumerate().find_map(|(place, rule)| Some((place, (rule.next)(&view)?)))
}

/// Returns the next time at which [`next`] may return a ruling although no other fact arrives.
pub fn deadline(definition: &Definition, state: &State) -> Option<Time> {
    let view = View::new(definition, state, outlook);
    let wakes = RULES.iter().filter(|_| !state.is_ended()).filter_map(|rule| (rule.wakes)(&view));
    wakes.min()
}

/// Returns the jobs that a [`crate::log::fact::Fact::TimePassed`] at time `at` may settle or give up.
///
/// The caller must fold all stored facts of these jobs before that fact: one of them may hold the bill.
pub fn must_fold_first(definition: &Definition, state: &State, at: Time) -> Vec<JobKey> {
    let view = View::new(definition, state, outlook);
    let jobs: BTreeSet<JobKey> = RULES.iter().flat_map(|rule| (rule.folds_first)(&view, at)).collect();
    jobs.into_iter().collect()
}

/// Returns when the sweeper must report a quiet running job as still present ([`crate::log::fact::Fact::JobSeen`]): once it has
/// used up its reservation, and long before it would be presumed deleted. Else at most a few times an hour.
pub fn job_seen_due_at(definition: &Definition, state: &State, job: &Job) -> Option<Time> {
    let quiet = job.seen_at() + (must_end_at(definition, job)? - job.seen_at() + SETTLE_DEADLINE).half();
    overrun::used_at(definition, state, job).into_iter().chain([quiet]).min()
}
