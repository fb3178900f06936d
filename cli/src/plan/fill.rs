//! Checks whether the training jobs of a request fill a bracket, and suggests changes.

use hyperband::plan::{BracketPlan, Plan};
use wire::request::Request;

use crate::plan::simulate::{full_set, trials_of};
use crate::warning::Warning;

/// Largest reduction factor to suggest.
const FACTOR_MAX: u32 = 10;

/// Returns how many of the first `trials` each bracket gets.
pub(super) fn shares(plan: &Plan, trials: u32) -> Vec<u32> {
    let mut started = vec![0; plan.brackets().len()];
    for _ in 0..trials {
        let bracket = plan.next_bracket(&started);
        if let Some(count) = started.get_mut(bracket) {
            *count += 1;
        }
    }
    started
}

/// Returns a warning if no bracket is filled.
pub(crate) fn warning(request: &Request) -> Option<Warning> {
    let hyperband = request.hyperband()?;
    let plan = hyperband.plan()?.ok()?;
    let jobs = request.max_jobs();
    let execution = request.rung_execution();
    let started = shares(&plan, trials_of(&plan, execution, jobs).min(plan.trials()));
    let brackets = plan.brackets().iter().map(BracketPlan::trials);
    if started.iter().zip(brackets).any(|(count, trials)| *count >= trials) {
        return None;
    }
    let (has, wants) = (started.first()?, plan.brackets().first()?.trials());
    let message = format!(
        "{jobs} training jobs do not fill a bracket: bracket 0 gets {has} of its {wants} trials, so its rungs compare \
         too few trials."
    );
    let full =
        format!("Set MaxNumberOfTrainingJobs to {}, one full set of brackets", full_set(&plan, execution));
    let advice = match suggestions(hyperband.min_resource, plan.max_resource(), plan.eta(), jobs).as_slice() {
        [] => format!("{full}. No single other change fits {jobs} jobs."),
        others => format!("{full}. Or keep {jobs} and set {}.", others.join(", or ")),
    };
    Some(Warning::new("MaxJobsFillNoBracket", message, advice))
}

/// Returns changes of one field each, with which `jobs` trials are at least a full set with more than one bracket.
fn suggestions(min: u32, max: u32, eta: u32, jobs: u32) -> Vec<String> {
    let fits = |min, max, eta| {
        let plan = Plan::hyperband(min, max, eta).ok()?;
        (plan.brackets().len() > 1 && plan.trials() <= jobs).then_some(plan)
    };
    // Tries fewer and fewer brackets. The first that fits keeps the most brackets.
    let powers = || (1..32).rev().filter_map(|power| eta.checked_pow(power));
    let mut found = Vec::new();
    let mut larger_min = powers().map(|power| max / power + 1).filter(|candidate| *candidate > min);
    if let Some((value, plan)) = larger_min.find_map(|min| Some((min, fits(min, max, eta)?))) {
        found.push(format!("MinResource to {value} ({})", bracket_sizes(&plan)));
    }
    let smaller_max = powers().filter_map(|power| min.checked_mul(power)?.checked_sub(1));
    let mut smaller_max = smaller_max.filter(|candidate| (min..max).contains(candidate));
    if let Some((value, plan)) = smaller_max.find_map(|max| Some((max, fits(min, max, eta)?))) {
        found.push(format!("MaxResource to {value} ({})", bracket_sizes(&plan)));
    }
    if let Some((value, plan)) = (eta + 1..=FACTOR_MAX).find_map(|eta| Some((eta, fits(min, max, eta)?))) {
        found.push(format!("ReductionFactor to {value} ({})", bracket_sizes(&plan)));
    }
    found
}

fn bracket_sizes(plan: &Plan) -> String {
    let trials: Vec<String> = plan.brackets().iter().map(|bracket| bracket.trials().to_string()).collect();
    format!("brackets of {} trials", trials.join(" + "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_suggestion_fits_the_jobs_and_has_several_brackets() {
        for (min, max, eta) in [(1, 27, 3), (1, 30, 3), (2, 100, 2), (5, 400, 4), (1, 20_000, 3)] {
            for jobs in 5..40 {
                for text in suggestions(min, max, eta, jobs) {
                    let words: Vec<&str> = text.split(' ').collect();
                    let value: u32 = words[2].parse().unwrap();
                    let plan = match words[0] {
                        "MinResource" => Plan::hyperband(value, max, eta),
                        "MaxResource" => Plan::hyperband(min, value, eta),
                        _ => Plan::hyperband(min, max, value),
                    };
                    let plan = plan.unwrap();
                    assert!(plan.trials() <= jobs && plan.brackets().len() > 1, "{text} for {jobs}");
                }
            }
        }
    }

    #[test]
    fn five_jobs_for_a_plan_of_49_get_fitting_suggestions() {
        assert_eq!(
            suggestions(1, 27, 3, 5),
            ["MinResource to 4 (brackets of 3 + 2 trials)", "MaxResource to 8 (brackets of 3 + 2 trials)"]
        );
        assert_eq!(suggestions(1, 27, 3, 3), Vec::<String>::new());
    }
}
