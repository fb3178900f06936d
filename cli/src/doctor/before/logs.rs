//! The log group of training jobs and its subscription filters.

use super::LOG_GROUP;
use super::finding::{Check, Finding};
use crate::doctor::account::Answer;
use crate::doctor::verdict::Verdict;

const GROUP: Check = ("log-group", "the log group of training jobs exists, or the stack creates it");
const SUBSCRIPTIONS: Check =
    ("log-subscriptions", "the log group has room for the subscription of the stack");
/// Maximum subscription filters of a log group.
const FILTERS_MAX: usize = 2;
const NOT_FOUND: &str = "ResourceNotFoundException";

fn names(filters: &Answer) -> Vec<&str> {
    let list = filters.as_ref().ok().and_then(|answer| answer["subscriptionFilters"].as_array());
    list.into_iter().flatten().filter_map(|filter| filter["filterName"].as_str()).collect()
}

fn has_own(filters: &Answer, stack: &str) -> bool {
    names(filters).iter().any(|name| name.strip_suffix("-objective") == Some(stack))
}

pub(super) fn judge_group(groups: &Answer, filters: &Answer, stack: &str) -> Finding {
    let exists = match (groups, filters) {
        (Ok(groups), _) => {
            let mut groups = groups["logGroups"].as_array().into_iter().flatten();
            groups.any(|group| group["logGroupName"].as_str() == Some(LOG_GROUP))
        }
        (Err(_), Ok(_)) => true,
        (Err(_), Err(error)) if error.is(NOT_FOUND) => false,
        (Err(error), Err(_)) => return Finding::unanswered(GROUP, "logs:DescribeLogGroups", error),
    };
    if has_own(filters, stack) {
        // The group may belong to the stack, so its parameter must stay as it is.
        let seen = format!("the stack {stack} already uses {LOG_GROUP}: keep its CreateTrainingLogGroup");
        return Finding::new(GROUP, Verdict::Yes(seen));
    }
    let seen = if exists {
        format!("{LOG_GROUP} exists")
    } else {
        format!("{LOG_GROUP} is missing, because no training job ever ran here: the stack must create it")
    };
    Finding::new(GROUP, Verdict::Yes(seen)).set("CreateTrainingLogGroup", (!exists).to_string())
}

pub(super) fn judge_subscriptions(filters: &Answer, stack: &str) -> Finding {
    match filters {
        Err(error) if error.is(NOT_FOUND) => {
            return Finding::new(SUBSCRIPTIONS, Verdict::Yes("the log group is missing".to_owned()));
        }
        Err(error) => return Finding::unanswered(SUBSCRIPTIONS, "logs:DescribeSubscriptionFilters", error),
        Ok(_) => {}
    }
    let names = names(filters);
    let seen = match names.as_slice() {
        [] => "there is no subscription filter".to_owned(),
        names => format!("subscription filters: {}", names.join(", ")),
    };
    if has_own(filters, stack) || names.len() < FILTERS_MAX {
        return Finding::new(SUBSCRIPTIONS, Verdict::Yes(seen));
    }
    let seen = format!("{seen}; a log group has at most {FILTERS_MAX}, so the sweeper must read the logs");
    let fix = "deploy with MetricsFrom=Polling and without TrainingLogPattern: metrics arrive up to three minutes late. \
               Or delete a filter that is no longer used";
    Finding::new(SUBSCRIPTIONS, Verdict::Warning(seen)).fix(fix).set("MetricsFrom", "Polling")
}
