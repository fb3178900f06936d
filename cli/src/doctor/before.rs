//! `hyperband doctor --before`: checks an account before the deployment, and prints the parameters to deploy with.
//!
//! Only reads, with the permissions of the caller, and asks no questions. If a call is denied, its check reports "not
//! tried". Must never change anything in the account.

mod actions;
mod calls;
mod finding;
mod identity;
mod logs;
mod network;
mod permissions;
mod prices;
mod quotas;
mod role;
mod show;
#[cfg(test)]
mod tests;

use api_client::{Caller, ClientError};
use serde_json::json;

use crate::arguments::Doctor;
use crate::failure::{Exit, Failure};
use crate::remote::{LOG_GROUP, failed};
use calls::{Calls, Endpoints};
use finding::Finding;
use identity::Identity;

/// Performs `hyperband doctor --before`.
pub(super) async fn before(options: &Doctor) -> Result<Exit, Failure> {
    let role = options.role.as_deref().map(role::parse).transpose().map_err(Failure::usage)?;
    let endpoints = Endpoints::of_environment()?;
    let region = options.region.as_deref();
    let caller = Caller::connect(region, endpoints.is_loopback()).await.map_err(without_stack)?;
    let calls = Calls::new(&caller, &endpoints).map_err(without_stack)?;
    let region = caller.region().unwrap_or_default();
    let answer = calls.sts.read("GetCallerIdentity", &json!({})).await;
    let identity = Identity::parse(&answer);
    let mut findings = vec![identity::judge(&answer, region)];
    // Without valid credentials every other check fails for the same reason.
    if !findings[0].is_no() {
        let checks = checks(&calls, options, role.as_ref(), identity.as_ref(), region);
        findings.extend(Box::pin(checks).await);
    }
    let place = show::Place { identity, region, stack: options.stack_name() };
    Ok(show::show(&findings, &place, options.output))
}

/// Makes all checks that need valid credentials.
async fn checks(
    calls: &Calls<'_>,
    options: &Doctor,
    role: Option<&role::RoleArn>,
    identity: Option<&Identity>,
    region: &str,
) -> Vec<Finding> {
    let types = options.instance_types.as_slice();
    let (settings, groups, filters, prices, found_role, quotas, network) = tokio::join!(
        calls.lambda.get("/2016-08-19/account-settings"),
        calls.log_groups(),
        calls.subscription_filters(),
        prices::read(&calls.pricing, types, region),
        calls.role(role.map(|role| role.name.as_str())),
        quotas::read(&calls.quotas, types),
        network::find(&calls.ec2, options.vpc.as_deref(), &options.subnets),
    );
    let home = identity::home(identity, options.principal.as_deref(), region, options.stack_name());
    let made = [
        // A response to the simulation proves it.
        ("iam:SimulatePrincipalPolicy", true),
        ("lambda:GetAccountSettings", settings.is_ok()),
        ("logs:DescribeLogGroups", groups.is_ok()),
    ];
    let is_caller = options.principal.is_none();
    let made: Vec<&str> =
        made.iter().filter(|(_, done)| *done && is_caller).map(|(action, _)| *action).collect();
    let simulated = permissions::decisions(calls, home.as_ref(), &made).await;
    let mut findings = vec![
        quotas::judge_concurrency(&settings),
        logs::judge_group(&groups, &filters, options.stack_name()),
        logs::judge_subscriptions(&filters, options.stack_name()),
        prices::judge(prices.as_deref(), region),
        role::judge(role, found_role.as_ref(), identity),
        quotas::judge_training(&quotas, types),
        quotas::judge_spot(&quotas, types, options.spot),
    ];
    findings.extend(network::judge(network.as_ref(), region));
    findings.push(permissions::judge(&simulated));
    findings.push(permissions::judge_organization(&simulated));
    findings
}

/// Converts an error of the connection. The hint of a missing Region names the option.
fn without_stack(error: ClientError) -> Failure {
    match error {
        ClientError::NoRegion => Failure::usage("the Region is missing")
            .hint("set --region, AWS_REGION or the Region of the profile to the Region of the stack"),
        error => failed(error),
    }
}
