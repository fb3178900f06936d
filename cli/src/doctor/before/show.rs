//! Prints the findings as text or JSON, and the parameters of the stack.

use serde_json::{Map, Value, json};

use super::finding::Finding;
use super::identity::Identity;
use crate::arguments::Output;
use crate::doctor::show::{INDENT, check_json, check_text, one_line};
use crate::doctor::verdict::Verdict;
use crate::failure::Exit;
use crate::output::show_styled;
use crate::text::counted;

/// The only parameter without a default.
const ROLES: &str = "ExecutionRoleArns";

/// Where the stack will be.
#[derive(Debug)]
pub(super) struct Place<'a> {
    pub(super) identity: Option<Identity>,
    pub(super) region: &'a str,
    pub(super) stack: &'a str,
}

pub(super) fn show(findings: &[Finding], place: &Place<'_>, output: Output) -> Exit {
    show_styled(output, || as_text(findings, place), || as_json(findings, place));
    if findings.iter().any(Finding::is_no) { Exit::Failed } else { Exit::Done }
}

/// Returns the parameters without repetitions, in the order of the checks. The only required parameter is the first.
fn parameters(findings: &[Finding]) -> Vec<(&'static str, &str)> {
    let mut found: Vec<(&'static str, &str)> = Vec::new();
    for (name, value) in findings.iter().flat_map(|finding| &finding.parameters) {
        match found.iter_mut().find(|(known, _)| known == name) {
            // A later check knows more: the policies forbid a value that an earlier check recommends.
            Some(known) => known.1 = value,
            None => found.push((name, value)),
        }
    }
    found.sort_by_key(|(name, _)| *name != ROLES);
    found
}

pub(super) fn as_json(findings: &[Finding], place: &Place<'_>) -> Value {
    let checks = findings.iter().map(|finding| {
        let mut shown = check_json(finding.id, finding.expects, &finding.verdict);
        if let Some(fix) = &finding.fix {
            shown["Fix"] = json!(fix);
        }
        shown
    });
    let parameters = parameters(findings).into_iter().map(|(name, value)| (name.to_owned(), json!(value)));
    json!({
        "Account": place.identity.as_ref().map(|identity| &identity.account),
        "Region": place.region,
        "StackName": place.stack,
        "Checks": checks.collect::<Vec<Value>>(),
        "Parameters": parameters.collect::<Map<String, Value>>(),
    })
}

pub(super) fn as_text(findings: &[Finding], place: &Place<'_>) -> String {
    let mut lines = Vec::new();
    for finding in findings {
        lines.push(check_text(finding.id, finding.expects, &finding.verdict));
        if let Some(fix) = &finding.fix {
            lines.push(format!("{INDENT}fix: {}", one_line(fix)));
        }
    }
    let count = |word| findings.iter().filter(|finding| finding.verdict.word() == word).count();
    let [yes, warnings, no, untried] = ["yes", "warning", "no", "not tried"].map(count);
    let warnings = counted(u64::try_from(warnings).unwrap_or(u64::MAX), "warning");
    let (stack, region) = (place.stack, place.region);
    lines.push(format!("\n{yes} yes, {warnings}, {no} no, {untried} not tried; nothing was started"));
    let parameters = parameters(findings);
    if !findings
        .iter()
        .any(|finding| matches!(finding.verdict, Verdict::No(_)) && finding.id == "credentials")
    {
        lines.push(format!(
            "\nparameters of {stack} in {region}, for parameter_overrides in infra/samconfig.toml:\n"
        ));
        if !parameters.iter().any(|(name, _)| *name == ROLES) {
            lines.push(format!("  # \"{ROLES}=arn:aws:iam::111122223333:role/training\","));
        }
        for (name, value) in parameters {
            lines.push(format!("  \"{name}={}\",", one_line(value)));
        }
    }
    lines.push(String::new());
    lines.join("\n")
}
