//! The options of `hyperband training-service`.

use std::ffi::OsString;

use ::training_service::{EVENT_SOURCE, LOG_GROUP};
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueHint};

use super::{Listen, Output, Place, Processes};

pub(super) const EXAMPLES: &str = "\
Implements CreateTrainingJob, DescribeTrainingJob, StopTrainingJob, UpdateTrainingJob, ListTrainingJobs, AddTags and \
ListTags of SageMaker, for boto3, the AWS CLI and the AWS SDKs. Each instance of a training job is one process of \
COMMAND, as with `hyperband run`. GET /ping returns 200 once the service is ready.

There is no authentication: each program that reaches the address can start COMMAND.

Prints the address as one line to standard output, and each state change of a job to standard error. SIGTERM and \
SIGINT end all training processes and the service. A restart on the same folder continues the jobs; after \
kill -9, on-demand jobs have failed.

An endpoint on this machine needs no AWS credentials. Amazon EventBridge rejects event sources that begin with `aws.`: \
set --event-source if you send events to it or to an emulator that does the same.

Examples:
  hyperband training-service -- python3 train.py
  hyperband training-service --listen 127.0.0.1:0 --output json -- ./train.sh
  hyperband training-service --events-endpoint http://127.0.0.1:4566 --event-source test.sagemaker \\
      --logs-endpoint http://127.0.0.1:4566 -- python3 train.py
  AWS_ENDPOINT_URL_SAGEMAKER=http://127.0.0.1:8321 aws sagemaker list-training-jobs";

#[derive(Debug, Args)]
pub(crate) struct TrainingService {
    /// Training program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
    /// Address to listen on; port 0 selects a free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8321")]
    pub(crate) listen: Listen,
    #[command(flatten)]
    pub(crate) place: Place,
    /// EventBridge endpoint for state changes of the jobs [default: no events are sent]
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url, value_parser = parse_endpoint)]
    pub(crate) events_endpoint: Option<String>,
    /// CloudWatch Logs endpoint for the logs of the jobs [default: logs stay in the data directory]
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url, value_parser = parse_endpoint)]
    pub(crate) logs_endpoint: Option<String>,
    /// Source of the events
    #[arg(long, value_name = "NAME", default_value = EVENT_SOURCE, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) event_source: String,
    /// Log group; created if missing
    #[arg(long, value_name = "NAME", default_value = LOG_GROUP, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) log_group: String,
    #[command(flatten)]
    pub(crate) processes: Processes,
    /// Output format of the address
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) output: Output,
}

fn parse_endpoint(text: &str) -> Result<String, String> {
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    match rest {
        Some(rest) if !rest.is_empty() && !rest.starts_with('/') => Ok(text.to_owned()),
        _ => Err("expected a URL such as http://127.0.0.1:4566".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_has_a_scheme_and_a_host() {
        for good in ["http://127.0.0.1:4566", "https://events.us-east-1.amazonaws.com"] {
            assert_eq!(parse_endpoint(good), Ok(good.to_owned()));
        }
        for bad in ["", "127.0.0.1:4566", "http://", "http:///x", "ftp://host"] {
            assert!(parse_endpoint(bad).is_err(), "{bad}");
        }
    }
}
