//! The tuning that the doctor submits: two short training jobs of any image, one after the other.
//!
//! The first job runs to its end. It may fail, for example because it has no data: its events, log and bill give the
//! same information. Every number in its log counts as the objective, so that any output shows how log lines arrive.
//! The doctor stops the second job as soon as it exists. Must never exceed the cap of the user.

use serde_json::{Map, Value, json};
use wire::request::{Request, RequestError};

use crate::arguments::Doctor;

/// Time limit of the jobs: enough to write a model of some gigabytes, even if the limit contains the download.
pub(crate) const MAX_RUNTIME_SECONDS: u64 = 180;
/// `StartupAllowanceSeconds`: longer than SageMaker was seen to exceed a limit, and a download of some gigabytes.
const STARTUP_ALLOWANCE_SECONDS: u64 = 600;
/// `UploadAllowanceSeconds`: for a model of some gigabytes.
const UPLOAD_ALLOWANCE_SECONDS: u64 = 600;
/// Time limit of the jobs, including the wait for spot instances.
pub(crate) const MAX_WAIT_SECONDS: u64 = 600;
const METRIC: &str = "doctor:number";
/// Any number in any line.
const NUMBER: &str = "([0-9]+)";
/// Room for data and a model of some gigabytes, and for its archive.
const VOLUME_GIB: u64 = 30;

/// Returns the request of the tuning `name`.
pub(super) fn request(options: &Doctor, instance_type: &str, name: &str) -> Result<Request, RequestError> {
    let statics: Map<String, Value> =
        options.hyperparameters.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    let mut body = json!({
        "HyperParameterTuningJobName": name,
        "HyperParameterTuningJobConfig": {
            "Strategy": "Random",
            "HyperParameterTuningJobObjective": {"Type": "Maximize", "MetricName": METRIC},
            "ResourceLimits": {"MaxNumberOfTrainingJobs": 2, "MaxParallelTrainingJobs": 1},
            "ParameterRanges": {
                // A hyperparameter of the built-in XGBoost. Other programs can ignore it.
                "ContinuousParameterRanges": [{"Name": "eta", "MinValue": "0.1", "MaxValue": "0.3"}],
            },
        },
        "TrainingJobDefinition": {
            "StaticHyperParameters": statics,
            "AlgorithmSpecification": {
                "TrainingImage": options.image,
                "TrainingInputMode": "File",
                "MetricDefinitions": [{"Name": METRIC, "Regex": NUMBER}],
            },
            "RoleArn": options.role,
            "OutputDataConfig": {"S3OutputPath": options.s3_output},
            "ResourceConfig": {
                "InstanceCount": 1,
                "InstanceType": instance_type,
                "VolumeSizeInGB": VOLUME_GIB,
            },
            "StoppingCondition": {"MaxRuntimeInSeconds": MAX_RUNTIME_SECONDS},
        },
        // The controller's own clock must not end the job before its limit.
        "Controller": {
            "MaxCostUsd": options.max_cost.typed,
            "StartupAllowanceSeconds": STARTUP_ALLOWANCE_SECONDS,
            "UploadAllowanceSeconds": UPLOAD_ALLOWANCE_SECONDS,
        },
    });
    if let Some(input) = &options.input {
        // The channel of the built-in XGBoost. `File` mode downloads all data before the program runs.
        let source =
            json!({"S3DataType": "S3Prefix", "S3Uri": input, "S3DataDistributionType": "FullyReplicated"});
        body["TrainingJobDefinition"]["InputDataConfig"] =
            json!([{"ChannelName": "train", "DataSource": {"S3DataSource": source}}]);
    }
    if !options.subnets.is_empty() {
        body["TrainingJobDefinition"]["VpcConfig"] =
            json!({"Subnets": options.subnets, "SecurityGroupIds": options.security_groups});
    }
    if options.spot {
        let job = &mut body["TrainingJobDefinition"];
        job["EnableManagedSpotTraining"] = json!(true);
        job["StoppingCondition"]["MaxWaitTimeInSeconds"] = json!(MAX_WAIT_SECONDS);
    }
    Request::check(body)
}

/// Returns a `CreateTrainingJob` request under a name that a job of the tuning already has. It is like that job, so
/// that only the name is invalid, but without the tuning's tags, so that the tuning ignores the job if SageMaker
/// accepts it.
pub(super) fn duplicate_job(request: &Request, name: &str) -> Value {
    let definition = &request.body()["TrainingJobDefinition"];
    let mut job = json!({"TrainingJobName": name, "HyperParameters": definition["StaticHyperParameters"]});
    for member in ["RoleArn", "OutputDataConfig", "ResourceConfig", "StoppingCondition"] {
        job[member] = definition[member].clone();
    }
    job["AlgorithmSpecification"] = json!({
        "TrainingImage": definition["AlgorithmSpecification"]["TrainingImage"],
        "TrainingInputMode": "File",
    });
    for member in ["EnableManagedSpotTraining", "InputDataConfig", "VpcConfig"] {
        if let Some(given) = definition.get(member) {
            job[member] = given.clone();
        }
    }
    job
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use tuning::unit::ids::ChoiceId;
    use tuning::unit::money::MicroUsd;
    use tuning::unit::time::Time;
    use wire::request::PriceAnswer;

    use super::*;
    use crate::arguments::{Arguments, Command};

    fn options(more: &[&str]) -> Result<Doctor, String> {
        let role = "arn:aws:iam::111122223333:role/training";
        let fixed = [
            "hyperband",
            "doctor",
            "--role",
            role,
            "--image",
            "image:1",
            "--s3-output",
            "s3://example-bucket/out",
        ];
        let parsed =
            Arguments::try_parse_from(fixed.iter().chain(more)).map_err(|error| error.to_string())?;
        match parsed.command {
            Command::Doctor(options) => Ok(*options),
            other => Err(format!("{other:?}")),
        }
    }

    /// The docs of the doctor have these amounts.
    #[test]
    fn the_worst_case_of_all_jobs_is_within_the_cap() {
        for (more, seconds) in [(&[][..], 180), (&["--spot"], 360)] {
            let options = options(more).unwrap();
            let request = request(&options, "ml.m5.large", "doctor-a").unwrap();
            // 0.115 USD an hour, and 30 GB at 0.30 USD a month of 730 hours, above every known price.
            let prices = PriceAnswer::uniform(&request, 115_000, 300_000_000 / 730);
            let definition = request.definition(Time(0), "000000", &prices).unwrap();
            let limits = definition.longest_limits(tuning::unit::ids::SizeId::default());
            let one = definition.worst_case(limits, ChoiceId(0)).unwrap();
            // With 600 s to start, 120 s to stop and 600 s to upload.
            let hourly = 115_000 + 30 * 300_000 / 730;
            let expected = hourly * (seconds + 1_320) / 3_600;
            assert!(one.0.abs_diff(expected) <= 2, "{one:?}, not {expected}");
            // The two jobs of the tuning, and one under a taken name.
            assert!(MicroUsd(3 * one.0) <= MicroUsd(options.max_cost.micro), "{one:?}");
        }
    }

    #[test]
    fn the_jobs_download_the_input() {
        let uri = "s3://example-bucket/doctor/input";
        let program = [
            "sagemaker_program=train.py",
            "sagemaker_submit_directory=s3://example-bucket/doctor/sourcedir.tar.gz",
        ];
        let given = ["--input", uri, "--hyperparameter", program[0], "--hyperparameter", program[1]];
        let request = request(&options(&given).unwrap(), "ml.m5.large", "doctor-a").unwrap();
        let job = &request.body()["TrainingJobDefinition"];
        let channel = &job["InputDataConfig"][0];
        assert_eq!(
            (&channel["ChannelName"], &channel["DataSource"]["S3DataSource"]["S3Uri"]),
            (&json!("train"), &json!(uri))
        );
        assert_eq!(job["AlgorithmSpecification"]["TrainingInputMode"], "File");
        assert_eq!(job["StaticHyperParameters"]["sagemaker_program"], "train.py");
        assert_eq!(duplicate_job(&request, "x")["InputDataConfig"], job["InputDataConfig"]);
        let without = super::request(&options(&[]).unwrap(), "ml.m5.large", "doctor-a").unwrap();
        assert!(without.body()["TrainingJobDefinition"].get("InputDataConfig").is_none());
        let error =
            super::request(&options(&["--input", "data"]).unwrap(), "ml.m5.large", "doctor-a").unwrap_err();
        assert!(error.to_string().contains("S3Uri"), "{error}");
    }

    #[test]
    fn regression_jobs_run_in_a_vpc_if_the_stack_requires_one() {
        let given = ["--subnet", "subnet-1", "--subnet", "subnet-2", "--security-group", "sg-1"];
        let request = request(&options(&given).unwrap(), "ml.m5.large", "doctor-a").unwrap();
        let vpc = json!({"Subnets": ["subnet-1", "subnet-2"], "SecurityGroupIds": ["sg-1"]});
        assert_eq!(request.body()["TrainingJobDefinition"]["VpcConfig"], vpc);
        assert_eq!(duplicate_job(&request, "x")["VpcConfig"], vpc);
        let without = super::request(&options(&[]).unwrap(), "ml.m5.large", "doctor-a").unwrap();
        assert!(without.body()["TrainingJobDefinition"].get("VpcConfig").is_none());
        for alone in [["--subnet", "subnet-1"], ["--security-group", "sg-1"]] {
            assert!(options(&alone).is_err(), "{alone:?}");
        }
    }
}
