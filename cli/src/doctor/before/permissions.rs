//! Checks the permissions of the principal that deploys, and the policies of its organization, with IAM's policy
//! simulator.
//!
//! The simulator reads the policies and performs nothing. It does not evaluate session policies or resource policies,
//! and knows only some context keys. In some organizations, it denies everything, so actions that the caller has just
//! performed serve as a control.

use api_client::ServiceError;
use serde_json::{Value, json};

use super::actions::{GROUPS, Group, Need};
use super::calls::Calls;
use super::finding::{Check, Finding};
use super::identity::{Home, Principal};
use crate::doctor::verdict::Verdict;

const PERMISSIONS: Check = ("permissions", "the policies of the principal allow the deployment");
const ORGANIZATION: Check =
    ("organization", "policies of the organization allow the deployment and the calls of the stack");
/// Maximum pages of a simulation.
const PAGES_MAX: usize = 10;

/// The simulated decision about one action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Decision {
    pub(super) action: String,
    pub(super) need: Need,
    pub(super) allowed: bool,
    /// Whether the organization allows the action; `None` outside an organization.
    pub(super) by_organization: Option<bool>,
    /// Whether the permissions boundary denies the action.
    pub(super) beyond_boundary: bool,
    /// Context keys that the policies read and the simulation lacks.
    pub(super) missing_keys: Vec<String>,
}

#[derive(Debug)]
pub(super) enum Simulated {
    /// The principal, and the decisions.
    Done(String, Vec<Decision>),
    /// Why there was nothing to simulate, and how to change that.
    Skipped(String, Option<&'static str>),
    Failed(ServiceError),
}

/// Simulates all actions. `made`: actions that the principal just performed.
pub(super) async fn decisions(calls: &Calls<'_>, home: Option<&Home>, made: &[&str]) -> Simulated {
    let Some(home) = home else {
        return Simulated::Skipped(
            "the caller is unknown".to_owned(),
            Some("repeat the command with --principal"),
        );
    };
    let arn = match &home.principal {
        Principal::Known(arn) => arn.clone(),
        Principal::Role(name) => role_arn(calls, home, name).await,
        Principal::Other(arn) => {
            let why = format!("IAM cannot simulate {arn}, which is neither a user nor a role");
            return Simulated::Skipped(why, Some("repeat the command with --principal"));
        }
    };
    let mut decisions = Vec::new();
    for group in GROUPS {
        match simulate(calls, &arn, home, group.actions, &group.resource(home), Some(group)).await {
            Ok(more) => decisions.extend(more),
            Err(error) => return Simulated::Failed(error),
        }
    }
    if !made.is_empty() {
        match simulate(calls, &arn, home, made, "*", None).await {
            Ok(more) => decisions.extend(more),
            Err(error) => return Simulated::Failed(error),
        }
    }
    Simulated::Done(arn, decisions)
}

/// Returns the ARN of a role. The ARN of a session lacks the role's path.
async fn role_arn(calls: &Calls<'_>, home: &Home, name: &str) -> String {
    let found = calls.iam.read("GetRole", &json!({"RoleName": name})).await;
    let arn = found.ok().and_then(|found| found["GetRoleResult"]["Role"]["Arn"].as_str().map(str::to_owned));
    arn.unwrap_or_else(|| format!("arn:{}:iam::{}:role/{name}", home.partition, home.account))
}

/// Simulates actions on one resource. Without a group they are controls.
async fn simulate(
    calls: &Calls<'_>,
    arn: &str,
    home: &Home,
    actions: &[&str],
    resource: &str,
    group: Option<&Group>,
) -> Result<Vec<Decision>, ServiceError> {
    let key = |name: &str, value: &str| json!({"ContextKeyName": name, "ContextKeyType": "string", "ContextKeyValues": [value]});
    let mut context = vec![key("aws:RequestedRegion", &home.region)];
    context
        .extend(group.and_then(|group| group.passed_to).map(|service| key("iam:PassedToService", service)));
    let mut asked = json!({
        "PolicySourceArn": arn, "ActionNames": actions, "ResourceArns": [resource], "ContextEntries": context,
    });
    let need = group.map_or(Need::Control, |group| group.need);
    let mut decisions = Vec::new();
    for _ in 0..PAGES_MAX {
        let answer = calls.iam.read("SimulatePrincipalPolicy", &asked).await?;
        let result = &answer["SimulatePrincipalPolicyResult"];
        let results = result["EvaluationResults"].as_array().into_iter().flatten();
        decisions.extend(results.filter_map(|result| decision(result, need)));
        match &result["Marker"] {
            Value::String(marker) if result["IsTruncated"] == "true" => asked["Marker"] = json!(marker),
            _ => break,
        }
    }
    Ok(decisions)
}

fn decision(result: &Value, need: Need) -> Option<Decision> {
    // IAM reports missing keys of a simulation of one resource below that resource.
    let of_resources = result["ResourceSpecificResults"].as_array().into_iter().flatten();
    let keys = of_resources.chain([result]).filter_map(|result| result["MissingContextValues"].as_array());
    let mut missing_keys: Vec<String> =
        keys.flatten().filter_map(|key| key.as_str().map(str::to_owned)).collect();
    missing_keys.sort_unstable();
    missing_keys.dedup();
    let flag = |detail: &str, member: &str| result[detail][member].as_str().map(|text| text == "true");
    Some(Decision {
        action: result["EvalActionName"].as_str()?.to_owned(),
        need,
        allowed: result["EvalDecision"].as_str()? == "allowed",
        by_organization: flag("OrganizationsDecisionDetail", "AllowedByOrganizations"),
        beyond_boundary: flag("PermissionsBoundaryDecisionDetail", "AllowedByPermissionsBoundary")
            == Some(false),
        missing_keys,
    })
}

/// Returns the decisions, or the finding of a simulation without usable decisions.
fn usable(check: Check, simulated: &Simulated) -> Result<(&str, &[Decision]), Finding> {
    let (arn, decisions) = match simulated {
        Simulated::Done(arn, decisions) => (arn.as_str(), decisions.as_slice()),
        Simulated::Skipped(why, fix) => {
            let finding = Finding::new(check, Verdict::not_tried(why.clone()));
            return Err(match fix {
                Some(fix) => finding.fix(*fix),
                None => finding,
            });
        }
        Simulated::Failed(error) => {
            return Err(Finding::unanswered(check, "iam:SimulatePrincipalPolicy", error));
        }
    };
    let wrong = decisions.iter().find(|one| one.need == Need::Control && !one.allowed);
    if let Some(wrong) = wrong {
        let why = format!(
            "the simulation denies {} to {arn}, but the caller just performed it: IAM cannot simulate this account",
            wrong.action
        );
        return Err(Finding::new(check, Verdict::not_tried(why))
            .fix("ask the administrator of the organization for its service control policies"));
    }
    if decisions.iter().all(|one| one.need == Need::Control) {
        return Err(Finding::new(check, Verdict::not_tried("the simulation returned no decision")));
    }
    Ok((arn, decisions))
}

fn names<'a>(decisions: impl IntoIterator<Item = &'a Decision>) -> String {
    let mut names: Vec<&str> = decisions.into_iter().map(|one| one.action.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names.join(", ")
}

/// Adds the parameters that make the denied actions unnecessary.
fn with_parameters(mut finding: Finding, denied: &[&Decision]) -> Finding {
    for decision in denied {
        let parameter = match decision.need {
            Need::Unless(name, value) => (name, value.to_owned()),
            Need::Stack if decision.action == "pricing:GetProducts" => ("PricesInRequests", "Any".to_owned()),
            Need::Deployment | Need::Stack | Need::Control => continue,
        };
        if !finding.parameters.contains(&parameter) {
            finding.parameters.push(parameter);
        }
    }
    finding
}

pub(super) fn judge(simulated: &Simulated) -> Finding {
    let (arn, decisions) = match usable(PERMISSIONS, simulated) {
        Ok(found) => found,
        Err(finding) => return finding,
    };
    let concerned = |one: &&Decision| !matches!(one.need, Need::Stack | Need::Control);
    let denied: Vec<&Decision> = decisions
        .iter()
        .filter(concerned)
        .filter(|one| !one.allowed && one.by_organization != Some(false))
        .collect();
    if denied.is_empty() {
        let count = decisions.iter().filter(concerned).count();
        return Finding::new(PERMISSIONS, Verdict::Yes(format!("{count} actions are not denied to {arn}")));
    }
    let boundary =
        if denied.iter().any(|one| one.beyond_boundary) { " (by its permissions boundary)" } else { "" };
    let required: Vec<&Decision> =
        denied.iter().copied().filter(|one| one.need == Need::Deployment).collect();
    let certain = required.iter().any(|one| one.missing_keys.is_empty());
    let mut keys: Vec<&str> =
        denied.iter().flat_map(|one| one.missing_keys.iter().map(String::as_str)).collect();
    keys.sort_unstable();
    keys.dedup();
    let unknown = if keys.is_empty() {
        String::new()
    } else {
        format!("; policies read context keys that the simulation lacks: {}", keys.join(", "))
    };
    let seen = format!("denied to {arn}{boundary}: {}{unknown}", names(denied.iter().copied()));
    if certain {
        let fix = "allow these actions, or deploy with another role (--principal checks it), or with a CloudFormation \
                   service role";
        return Finding::new(PERMISSIONS, Verdict::No(seen)).fix(fix);
    }
    let fix = if required.is_empty() {
        "deploy with the parameters below, which need none of these actions, or allow the actions"
    } else {
        "check the conditions of the policies"
    };
    with_parameters(Finding::new(PERMISSIONS, Verdict::Warning(seen)).fix(fix), &denied)
}

pub(super) fn judge_organization(simulated: &Simulated) -> Finding {
    let (_, decisions) = match usable(ORGANIZATION, simulated) {
        Ok(found) => found,
        Err(finding) => return finding,
    };
    if decisions.iter().all(|one| one.by_organization.is_none()) {
        let seen = "the simulation reports no policy of an organization";
        return Finding::new(ORGANIZATION, Verdict::Yes(seen.to_owned()));
    }
    let denied: Vec<&Decision> = decisions
        .iter()
        .filter(|one| one.by_organization == Some(false) && one.need != Need::Control)
        .collect();
    if denied.is_empty() {
        let seen = format!("{} actions are not denied", decisions.len());
        return Finding::new(ORGANIZATION, Verdict::Yes(seen));
    }
    let seen = format!("denied by a policy of the organization: {}", names(denied.iter().copied()));
    if denied.iter().any(|one| one.need == Need::Deployment) {
        let fix = "ask the administrator of the organization to allow these actions, or use another account";
        return Finding::new(ORGANIZATION, Verdict::No(seen)).fix(fix);
    }
    let fix = "deploy with the parameters below if there are any. Denied calls of the stack may depend on a condition, for \
               example on VpcConfig: ask the administrator of the organization";
    with_parameters(Finding::new(ORGANIZATION, Verdict::Warning(seen)).fix(fix), &denied)
}
