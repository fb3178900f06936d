//! Prints the findings as text or JSON, and the parameters of the stack.

use console::style;
use serde_json::{Map, Value, json};

use super::finding::Finding;
use super::identity::Identity;
use crate::arguments::Output;
use crate::doctor::show::{WORD_WIDTH, colour, one_line};
use crate::doctor::verdict::Verdict;
use crate::failure::Exit;
use crate::output::show_styled;

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
        let mut shown = json!({
            "Check": finding.id,
            "Verdict": finding.verdict.word(),
            "Assumption": finding.expects,
            "Seen": finding.verdict.evidence(),
        });
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
    let indent = " ".repeat(WORD_WIDTH);
    for finding in findings {
        let verdict = &finding.verdict;
        let word = colour(verdict).apply_to(format!("{:WORD_WIDTH$}", verdict.word()));
        lines.push(format!("{word}  {}: {}", finding.id, finding.expects));
        lines.push(format!("{indent}  {}", style(one_line(verdict.evidence())).dim()));
        if let Some(fix) = &finding.fix {
            lines.push(format!("{indent}  fix: {}", one_line(fix)));
        }
    }
    let count = |word| findings.iter().filter(|finding| finding.verdict.word() == word).count();
    let [yes, warnings, no, untried] = ["yes", "warning", "no", "not tried"].map(count);
    let noun = if warnings == 1 { "warning" } else { "warnings" };
    let (stack, region) = (place.stack, place.region);
    lines.push(format!("\n{yes} yes, {warnings} {noun}, {no} no, {untried} not tried; nothing was started"));
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
