//! The rows of the table, grouped by part of the request.

mod controller;
mod job;
mod resources;
mod training_job;
mod tuning;

pub(super) use controller::{CONTROLLER, SETTINGS};
pub(super) use job::JOB;
pub(super) use resources::RESOURCES;
pub(super) use training_job::TRAINING_JOB;
pub(super) use tuning::TUNING;

/// Pattern of the name of a tuning job or of a definition. The rows bound the length.
const NAME: &str = "[a-zA-Z0-9](-*[a-zA-Z0-9])*";
/// Pattern of an instance type. The list in the service model is not used, because it grows with each new type.
const INSTANCE_TYPE: &str = r"ml\.[a-z0-9-]+\.[a-z0-9-]+";
/// Pattern of an S3 URI.
const S3_URI: &str = "(https|s3)://([^/]+)/?(.*)";
/// Pattern of an input URI. The local service also reads `file:///`; SageMaker rejects such a URI.
const INPUT_URI: &str = "(https|s3)://([^/]+)/?(.*)|file:///.+";
const KMS_KEY: &str = "[a-zA-Z0-9:/_-]*";
