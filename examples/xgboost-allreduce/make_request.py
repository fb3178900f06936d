"""Prints the tuning request: CreateHyperParameterTuningJob's JSON plus the object `Controller`.

The article's tuning: seven hyperparameters, Hyperband from 1 to 30 rounds, 30 jobs, 4 at a time, on spot instances,
under a cap in dollars. The number of instances is one more dimension of the search. Must be a pure function of its
options: tune.sh continues a tuning if its request is unchanged.
"""

import argparse
import json
import sys
from pathlib import Path

INSTANCE = "ml.m5.2xlarge"
USD_PER_HOUR = 0.461
MAX_RUN_SECONDS = 600
MAX_WAIT_SECONDS = 1200
# The ledger adds these to a job's worst case: the grace period of a stop, and the upload of the model.
STOP_AND_UPLOAD_SECONDS = 120 + 180
# XGBoost's line, with a tab, or with "#011", which CloudWatch Logs replaces a tab with.
METRIC_REGEX = r"\[[0-9]+\].*(?:\t|#011){}-auc:([-+.\w]*\w)"


def worst_case_usd(instances):
    seconds = MAX_WAIT_SECONDS + STOP_AND_UPLOAD_SECONDS
    return instances * USD_PER_HOUR * seconds / 3600


def parameter(name, least, greatest):
    return {"Name": name, "MinValue": least, "MaxValue": greatest, "ScalingType": "Auto"}


def channel(name, folder, distribution):
    source = {
        "S3DataType": "S3Prefix",
        "S3Uri": f"{folder.resolve().as_uri()}/{name}/",
        "S3DataDistributionType": distribution,
    }
    return {"ChannelName": name, "DataSource": {"S3DataSource": source}, "ContentType": "text/csv"}


def initial(options):
    """Returns the field for first trials with known values: with few jobs, Hyperband may find none as good."""
    known = dict(pair.split("=", 1) for pair in options.first or [])
    first = [{**known, "InstanceCount": str(count)} for count in options.instances]
    return {"InitialConfigurations": first} if known else {}


def request(options):
    return {
        "HyperParameterTuningJobName": options.name,
        "HyperParameterTuningJobConfig": {
            "Strategy": "Hyperband",
            "StrategyConfig": {"HyperbandStrategyConfig": {"MinResource": 1, "MaxResource": options.max_resource}},
            "RandomSeed": options.seed,
            "HyperParameterTuningJobObjective": {"Type": "Maximize", "MetricName": "validation:auc"},
            "ResourceLimits": {
                "MaxNumberOfTrainingJobs": options.jobs,
                "MaxParallelTrainingJobs": options.parallel,
            },
            "ParameterRanges": {
                "IntegerParameterRanges": [
                    parameter("num_round", "100", "200"),
                    parameter("max_depth", "1", "10"),
                ],
                "ContinuousParameterRanges": [
                    parameter("eta", "0", "1"),
                    parameter("min_child_weight", "1", "10"),
                    parameter("alpha", "0", "2"),
                    # The article has 0 to 1, but XGBoost rejects 0.
                    parameter("colsample_bylevel", "0.01", "1"),
                    parameter("colsample_bytree", "0.01", "1"),
                ],
                "CategoricalParameterRanges": [],
            },
            "TrainingJobEarlyStoppingType": "Off",
        },
        "TrainingJobDefinition": {
            "StaticHyperParameters": {
                "objective": "binary:logistic",
                "eval_metric": "auc",
                "tree_method": "hist",
            },
            "AlgorithmSpecification": {
                "TrainingImage": "example/xgboost-allreduce:local",
                "TrainingInputMode": "File",
                "MetricDefinitions": [
                    {"Name": f"{part}:auc", "Regex": METRIC_REGEX.format(part)} for part in ("train", "validation")
                ],
            },
            "RoleArn": "arn:aws:iam::111122223333:role/example-training-role",
            "InputDataConfig": [
                channel("train", options.data, "ShardedByS3Key"),
                channel("validation", options.data, "FullyReplicated"),
            ],
            "OutputDataConfig": {"S3OutputPath": "s3://example-bucket/xgboost-allreduce/out/"},
            "CheckpointConfig": {"S3Uri": "s3://example-bucket/xgboost-allreduce/checkpoints/"},
            "EnableManagedSpotTraining": True,
            "StoppingCondition": {
                "MaxRuntimeInSeconds": MAX_RUN_SECONDS,
                "MaxWaitTimeInSeconds": MAX_WAIT_SECONDS,
            },
            "ResourceConfig": {
                "InstanceType": INSTANCE,
                "InstanceCount": max(options.instances),
                "VolumeSizeInGB": 30,
            },
        },
        "Controller": {
            "MaxCostUsd": options.cap,
            "InstancePricesUsdPerHour": {INSTANCE: USD_PER_HOUR},
            "Sampler": options.sampler,
            # Hyperband's brackets, as in the article. Without it, the controller compares later.
            "ReductionFactor": 3,
            "EpochPattern": r"\[(\d+)\]",
            # train.py counts rounds from 0 and continues to count after a restart.
            "EpochBase": 0,
            "EpochNumbering": "Absolute",
            "InstanceCounts": options.instances,
            **initial(options),
        },
    }


def counts(text):
    """Returns the numbers of instances, ascending. The comparison needs one instance, and another number."""
    numbers = sorted(int(count) for count in text.split(","))
    if numbers[0] != 1 or len(set(numbers)) < max(len(numbers), 2):
        raise argparse.ArgumentTypeError("expected 1 and different larger numbers, for example 1,2,3")
    return numbers


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder that prepare.py wrote")
    parser.add_argument("--first", nargs="+", metavar="NAME=VALUE", help="hyperparameters of the first trials")
    parser.add_argument("--name", default="xgboost-allreduce")
    parser.add_argument("--jobs", type=int, default=30)
    parser.add_argument("--parallel", type=int, default=4)
    parser.add_argument("--instances", type=counts, default=[1, 2, 3], metavar="N,N...")
    parser.add_argument("--max-resource", type=int, default=30)
    parser.add_argument("--cap", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--sampler", choices=("Model", "Sobol", "Random"), default="Model")
    return parser.parse_args()


def main():
    options = parse()
    worst = worst_case_usd(max(options.instances))
    at_once = int(options.cap / worst)
    print(
        f"cap: ${options.cap:.2f}; a running job reserves its worst case, at most ${worst:.2f}, "
        f"so the cap allows {at_once} jobs at a time"
        + ("" if at_once >= options.parallel else f", fewer than the requested {options.parallel}"),
        file=sys.stderr,
    )
    print(json.dumps(request(options), indent=2))


if __name__ == "__main__":
    main()
