//! The options of `hyperband serve` and `hyperband proxy`.

use std::ffi::OsString;

use clap::{Args, ValueHint};

use crate::request::channels::Channel;

use super::{Listen, Output, Place, Processes, RemotePlace};

pub(super) const SERVE_EXAMPLES: &str = "\
Serves the same API as a deployed stack: JSON on /tuning-jobs, and SageMaker's own protocol for boto3, the AWS CLI and \
the SageMaker Python SDK. Each instance of a training job is one process of COMMAND, as with `hyperband run`. A \
request needs no AWS fields, such as RoleArn.

Tunings share --slots. Training jobs without a free slot wait in status Starting, are not billed, and start in the \
order of their creation. A training job with more instances than slots runs alone.

There is no authentication: each program that reaches the address can submit tunings, which start COMMAND. Only this \
machine can reach the default address. The server refuses requests from web pages of other sites.

When the server is ready, it prints its URL as one line to standard output. For each tuning that begins or ends, it \
prints one line to standard error. SIGTERM and SIGINT end the server and all training processes. The same command line \
continues all tunings, even after kill -9.

Examples:
  hyperband serve -- python3 train.py
  hyperband serve --channel train=data/train --channel test=data/test -- python3 train.py
  hyperband serve --slots 4 --listen 127.0.0.1:0 --output json -- ./train.sh
  hyperband submit request.json --watch --endpoint http://127.0.0.1:8080
  curl http://127.0.0.1:8080/tuning-jobs
  AWS_ENDPOINT_URL_SAGEMAKER=http://127.0.0.1:8080 aws sagemaker list-hyper-parameter-tuning-jobs";

pub(super) const PROXY_EXAMPLES: &str = "\
Forwards each request to the stack, signed with AWS credentials from the environment, a profile, SSO, a container or \
an instance, as all commands with --endpoint do. A SageMaker client needs only the address of the proxy.

With an endpoint lambda:FUNCTION, the proxy serves only the paths /tuning-jobs, not SageMaker's own protocol.

There is no authentication: each program that reaches the address acts with your AWS credentials. Only this machine \
can reach the default address. The server refuses requests from web pages of other sites.

Examples:
  hyperband proxy --endpoint https://abc123.execute-api.eu-west-1.amazonaws.com
  AWS_ENDPOINT_URL_SAGEMAKER=http://127.0.0.1:8081 aws sagemaker list-hyper-parameter-tuning-jobs
  curl http://127.0.0.1:8081/tuning-jobs";

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Training program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
    /// Address to listen on; port 0 selects a free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    pub(crate) listen: Listen,
    /// Listen on an address that other machines can reach, without authentication; clients use the IP address
    #[arg(long)]
    pub(crate) allow_remote: bool,
    #[command(flatten)]
    pub(crate) place: Place,
    /// Data of an input channel on this machine, for example train=data/train; replaces the data in the request;
    /// repeatable
    #[arg(long = "channel", value_name = "NAME=PATH", value_parser = str::parse::<Channel>)]
    pub(crate) channels: Vec<Channel>,
    /// Continue interrupted tunings even if COMMAND or its folder has changed
    #[arg(long)]
    pub(crate) command_changed: bool,
    #[command(flatten)]
    pub(crate) processes: Processes,
    /// Output format of the URL
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Proxy {
    #[command(flatten)]
    pub(crate) place: RemotePlace,
    /// Address to listen on; port 0 selects a free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8081")]
    pub(crate) listen: Listen,
    /// Listen on an address that other machines can reach, without authentication; clients use the IP address
    #[arg(long)]
    pub(crate) allow_remote: bool,
    /// Output format of the URL
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) output: Output,
}
