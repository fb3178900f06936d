//! Checks whether the execution role of training jobs exists, and whether SageMaker may assume it.

use serde_json::Value;

use super::finding::{Check, Finding};
use super::identity::Identity;
use crate::doctor::account::Answer;
use crate::doctor::verdict::Verdict;

const CHECK: Check = ("execution-role", "SageMaker may assume the execution role");
const SAGEMAKER: &str = "sagemaker.amazonaws.com";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RoleArn {
    pub(super) arn: String,
    pub(super) account: String,
    /// The name without its path.
    pub(super) name: String,
}

pub(super) fn parse(arn: &str) -> Result<RoleArn, String> {
    let invalid = || {
        format!(
            "invalid --role \"{arn}\": expected one ARN, for example arn:aws:iam::111122223333:role/training"
        )
    };
    let parts: Vec<&str> = arn.splitn(6, ':').collect();
    let ["arn", partition, "iam", "", account, resource] = parts.as_slice() else { return Err(invalid()) };
    let path = resource.strip_prefix("role/").ok_or_else(invalid)?;
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_name =
        |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_+=,.@-".contains(&byte));
    let is_account = account.len() == 12 && account.bytes().all(|byte| byte.is_ascii_digit());
    if !partition.starts_with("aws") || !is_account || name.is_empty() || !path.split('/').all(is_name) {
        return Err(invalid());
    }
    Ok(RoleArn { arn: arn.to_owned(), account: (*account).to_owned(), name: name.to_owned() })
}

pub(super) fn judge(role: Option<&RoleArn>, found: Option<&Answer>, caller: Option<&Identity>) -> Finding {
    let (Some(role), Some(found)) = (role, found) else {
        return Finding::new(CHECK, Verdict::not_tried("the doctor ran without --role"))
            .fix("repeat the command with the ARN of the role, the required parameter ExecutionRoleArns");
    };
    if let Some(caller) = caller.filter(|caller| caller.account != role.account) {
        let seen =
            format!("{} is not in account {}, but SageMaker requires it there", role.arn, caller.account);
        return Finding::new(CHECK, Verdict::No(seen)).fix("use a role of the account of the stack");
    }
    let found = match found {
        Ok(found) => &found["GetRoleResult"]["Role"],
        Err(error) if error.is("NoSuchEntity") => {
            let fix = "create the role, with a trust policy for sagemaker.amazonaws.com";
            return Finding::new(CHECK, Verdict::No(format!("{} does not exist", role.arn))).fix(fix);
        }
        // The parameter is as the user wrote it, also if nothing is known about the role.
        Err(error) => {
            return Finding::unanswered(CHECK, "iam:GetRole", error)
                .set("ExecutionRoleArns", role.arn.clone());
        }
    };
    if let Some(arn) = found["Arn"].as_str().filter(|arn| *arn != role.arn) {
        return Finding::new(CHECK, Verdict::No(format!("the role's ARN is {arn}, not {}", role.arn)))
            .fix(format!("use --role {arn}"));
    }
    let policy = found["AssumeRolePolicyDocument"].as_str().and_then(decoded);
    let Some(policy) = policy.and_then(|text| serde_json::from_str::<Value>(&text).ok()) else {
        return Finding::new(CHECK, Verdict::not_tried("the role's trust policy is unreadable"))
            .set("ExecutionRoleArns", role.arn.clone());
    };
    match trust(&policy) {
        Trust::Allowed => Finding::new(CHECK, Verdict::Yes(format!("the trust policy allows {SAGEMAKER}")))
            .set("ExecutionRoleArns", role.arn.clone()),
        Trust::Conditional => {
            let seen = format!(
                "the trust policy allows {SAGEMAKER} under a condition, which this check does not read"
            );
            let fix = "check that the condition, for example aws:SourceAccount, includes training jobs of this account";
            Finding::new(CHECK, Verdict::Warning(seen)).fix(fix).set("ExecutionRoleArns", role.arn.clone())
        }
        Trust::Refused => {
            let fix =
                format!("allow {SAGEMAKER} to perform sts:AssumeRole in the trust policy of {}", role.name);
            Finding::new(CHECK, Verdict::No(format!("the trust policy does not allow {SAGEMAKER}"))).fix(fix)
        }
    }
}

/// Whether a trust policy allows SageMaker.
enum Trust {
    Allowed,
    Conditional,
    Refused,
}

fn trust(policy: &Value) -> Trust {
    let concerns = |statement: &&Value| {
        let principal = &statement["Principal"];
        let service = has(principal, "*") || has(&principal["Service"], SAGEMAKER);
        service && ["sts:AssumeRole", "sts:*", "*"].iter().any(|action| has(&statement["Action"], action))
    };
    let statements: Vec<&Value> = list(&policy["Statement"]).into_iter().filter(concerns).collect();
    let (denies, allows): (Vec<&Value>, Vec<&Value>) =
        statements.into_iter().partition(|statement| statement["Effect"] == "Deny");
    let is_free = |statement: &&Value| statement.get("Condition").is_none();
    if allows.is_empty() || denies.iter().any(is_free) {
        Trust::Refused
    } else if denies.is_empty() && allows.iter().any(is_free) {
        Trust::Allowed
    } else {
        Trust::Conditional
    }
}

/// Returns the elements of a list, or a value that is not a list as the only element.
fn list(value: &Value) -> Vec<&Value> {
    value.as_array().map_or_else(|| vec![value], |values| values.iter().collect())
}

fn has(value: &Value, text: &str) -> bool {
    list(value).iter().any(|one| one.as_str().is_some_and(|one| one.eq_ignore_ascii_case(text)))
}

/// Returns a policy document without its percent encoding.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first == b'%' {
            let (digits, after) = after.split_at_checked(2)?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
            rest = after;
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).ok()
}
