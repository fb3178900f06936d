//! The rows of the table, by part of the request.

mod controller;
mod job;
mod resources;
mod tuning;

pub(super) use controller::CONTROLLER;
pub(super) use job::JOB;
pub(super) use resources::RESOURCES;
pub(super) use tuning::TUNING;

/// Name of a tuning job or of a definition, without its bound on the length.
const NAME: &str = "[a-zA-Z0-9](-*[a-zA-Z0-9])*";
/// An instance type. Not the list of the service model: that grows with each new type.
const INSTANCE_TYPE: &str = r"ml\.[a-z0-9-]+\.[a-z0-9-]+";
/// An address in S3.
const S3_URI: &str = "(https|s3)://([^/]+)/?(.*)";
/// Input data may also lie on the machine that runs the jobs; SageMaker itself refuses that.
const INPUT_URI: &str = "(https|s3)://([^/]+)/?(.*)|file:///.+";
/// A key of KMS.
const KMS_KEY: &str = "[a-zA-Z0-9:/_-]*";
