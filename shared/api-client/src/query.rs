//! The Query protocol of older services: a form as the request, XML as the response.

use std::fmt::Write as _;

use serde_json::Value;
use wire::request::ErrorBody;

/// Returns the body of a call. A list becomes numbered parameters: `Name.member.1` (IAM and STS) or `Name.1` (EC2, with
/// an empty `infix`).
pub(crate) fn form(operation: &str, version: &str, infix: &str, members: &Value) -> String {
    let mut body = format!("Action={operation}&Version={version}");
    flatten(&mut body, "", infix, members);
    body
}

fn flatten(body: &mut String, name: &str, infix: &str, value: &Value) {
    match value {
        Value::Object(members) => {
            for (member, value) in members {
                let name = if name.is_empty() { member.clone() } else { format!("{name}.{member}") };
                flatten(body, &name, infix, value);
            }
        }
        Value::Array(values) => {
            for (number, value) in (1..).zip(values) {
                flatten(body, &format!("{name}.{infix}{number}"), infix, value);
            }
        }
        Value::Null => {}
        Value::String(text) => pair(body, name, text),
        Value::Bool(_) | Value::Number(_) => pair(body, name, &value.to_string()),
    }
}

fn pair(body: &mut String, name: &str, value: &str) {
    body.push('&');
    escape(body, name);
    body.push('=');
    escape(body, value);
}

pub(crate) fn escape(body: &mut String, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            body.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(body, "%{byte:02X}");
        }
    }
}

/// Returns the error of a response: `Error` of IAM and STS, the first of `Errors` of EC2.
pub(crate) fn error(root: &Value) -> ErrorBody {
    let error = if root["Error"].is_object() { &root["Error"] } else { &root["Errors"]["Error"] };
    let text = |member: &str| error[member].as_str().map(str::to_owned);
    ErrorBody { code: text("Code"), message: text("Message"), ..ErrorBody::default() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_become_numbered_parameters() {
        let members =
            json!({"PolicySourceArn": "arn:aws:iam::1:role/a b", "ActionNames": ["iam:GetRole", "s3:*"]});
        assert_eq!(
            form("SimulatePrincipalPolicy", "2010-05-08", "member.", &members),
            "Action=SimulatePrincipalPolicy&Version=2010-05-08&ActionNames.member.1=iam%3AGetRole\
             &ActionNames.member.2=s3%3A%2A&PolicySourceArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fa%20b"
        );
        let members = json!({"Filter": [{"Name": "vpc-id", "Value": ["vpc-1", "vpc-2"]}], "MaxResults": 5});
        assert_eq!(
            form("DescribeVpcEndpoints", "2016-11-15", "", &members),
            "Action=DescribeVpcEndpoints&Version=2016-11-15&Filter.1.Name=vpc-id&Filter.1.Value.1=vpc-1\
             &Filter.1.Value.2=vpc-2&MaxResults=5"
        );
    }

    #[test]
    fn both_forms_of_errors_are_read() {
        let error = json!({"Code": "AccessDenied", "Message": "no"});
        for root in [json!({"Error": error}), json!({"Errors": {"Error": error}, "RequestID": "x"})] {
            let read = super::error(&root);
            assert_eq!((read.code.as_deref(), read.message.as_deref()), (Some("AccessDenied"), Some("no")));
        }
        assert_eq!(super::error(&json!("text")).code, None);
    }
}
