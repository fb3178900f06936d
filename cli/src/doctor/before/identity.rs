//! The caller: account, partition, and the principal whose permissions are simulated.

use api_client::{ClientError, ServiceError};

use super::finding::{Check, Finding};
use crate::doctor::account::Answer;
use crate::doctor::verdict::Verdict;

const CHECK: Check = ("credentials", "the credentials are valid");

/// The answer of `GetCallerIdentity`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) arn: String,
    pub(super) account: String,
}

/// Where the stack will be, and who deploys it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Home {
    pub(super) partition: String,
    pub(super) account: String,
    pub(super) region: String,
    pub(super) stack: String,
    pub(super) principal: Principal,
}

/// An identity whose policies IAM may be able to simulate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Principal {
    /// The ARN of a user or a role.
    Known(String),
    /// The name of a role, whose ARN also needs a path.
    Role(String),
    /// The ARN of a principal without policies of its own, such as the root user.
    Other(String),
}

impl Identity {
    pub(super) fn parse(answer: &Answer) -> Option<Self> {
        let result = &answer.as_ref().ok()?["GetCallerIdentityResult"];
        let text = |member: &str| result[member].as_str().map(str::to_owned);
        Some(Self { arn: text("Arn")?, account: text("Account")? })
    }
}

/// Returns the home of the stack. `None` if neither the caller nor `--principal` is known.
pub(super) fn home(
    identity: Option<&Identity>,
    principal: Option<&str>,
    region: &str,
    stack: &str,
) -> Option<Home> {
    let arn = principal.or(identity.map(|identity| identity.arn.as_str()))?;
    let mut parts = arn.splitn(6, ':').skip(1);
    let (partition, service) = (parts.next()?, parts.next()?);
    let (account, resource) = (parts.nth(1)?, parts.next()?);
    let principal = match (service, resource.split_once('/')) {
        ("iam", Some(("user" | "role", _))) => Principal::Known(arn.to_owned()),
        ("sts", Some(("assumed-role", rest))) => {
            Principal::Role(rest.split('/').next().unwrap_or(rest).to_owned())
        }
        _ => Principal::Other(arn.to_owned()),
    };
    Some(Home {
        partition: partition.to_owned(),
        account: account.to_owned(),
        region: region.to_owned(),
        stack: stack.to_owned(),
        principal,
    })
}

pub(super) fn judge(answer: &Answer, region: &str) -> Finding {
    match answer {
        Ok(_) => match Identity::parse(answer) {
            Some(Identity { arn, account }) => {
                Finding::new(CHECK, Verdict::Yes(format!("{arn} in account {account}, Region {region}")))
            }
            None => {
                Finding::new(CHECK, Verdict::not_tried("the response of sts:GetCallerIdentity has no ARN"))
            }
        },
        // The operation needs no permission, so a refusal concerns the credentials.
        Err(error @ ServiceError::Refused { .. }) => {
            let fix = format!(
                "sign in again (`aws sso login`) or renew the credentials; check that {region} is a Region of the \
                 account, and the clock of this machine"
            );
            Finding::new(CHECK, Verdict::No(error.to_string())).fix(fix)
        }
        Err(ServiceError::Failed(error @ ClientError::Credentials(_))) => {
            Finding::new(CHECK, Verdict::No(error.to_string())).fix(error.hint().unwrap_or_default())
        }
        Err(error) => Finding::unanswered(CHECK, "sts:GetCallerIdentity", error),
    }
}
