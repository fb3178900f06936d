//! The options of `hyperband logs`.

use clap::Args;

use super::{Output, Source};

pub(super) const EXAMPLES: &str = "\
Without TRIAL, prints the log of the latest failed training job, else of the newest running job, else of the best job. \
The command prints the job's name to standard error.

With --output json, each line of the log is one JSON object with the members job, host, timestamp and line.

With --endpoint, reads CloudWatch Logs with your AWS credentials, which need logs:FilterLogEvents on the log group \
/aws/sagemaker/TrainingJobs.

Examples:
  hyperband logs xgb-1
  hyperband logs xgb-1 7 --follow
  hyperband logs xgb-1 xgb-1-3fa1c2-7-0-1 --host algo-2 --data-dir /tmp/tuning
  hyperband logs xgb-1 --endpoint https://abc123.execute-api.eu-west-1.amazonaws.com --output json | jq -r .line";

#[derive(Debug, Args)]
pub(crate) struct Logs {
    /// Name of the tuning
    pub(crate) name: String,
    /// Name of a training job, or number of a trial for its newest training job
    pub(crate) trial: Option<String>,
    /// Print only the lines of this host, for example algo-1
    #[arg(long, value_name = "HOST", value_parser = parse_host)]
    pub(crate) host: Option<String>,
    /// Print new lines until the training job ends
    #[arg(long, short)]
    pub(crate) follow: bool,
    #[command(flatten)]
    pub(crate) place: Source,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) output: Output,
}

fn parse_host(text: &str) -> Result<String, String> {
    let number = text.strip_prefix("algo-").unwrap_or_default();
    let is_host = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    if is_host {
        Ok(text.to_owned())
    } else {
        Err("expected a host of SageMaker, for example algo-1".to_owned())
    }
}
