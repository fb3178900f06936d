//! The text of each command's help after its options.

pub(super) const EXAMPLES: &str = "\
Examples:
  hyperband init lr=log:1e-5..1e-1 depth=int:2..10 --metric accuracy --max-resource 27
  hyperband run request.json -- python3 train.py
  hyperband describe xgb-1
  hyperband report xgb-1 -o report.html
  hyperband submit request.json --watch --endpoint https://abc123.execute-api.eu-west-1.amazonaws.com

Exit codes: 0 success, 1 the tuning failed, 2 invalid request or usage, 3 table or endpoint error, 130 interrupted.";

pub(super) const INIT_EXAMPLES: &str = "\
A RANGE is one of:

  NAME=MIN..MAX        numbers; a logarithmic scale for learning rates and wide ranges
  NAME=log:MIN..MAX    numbers on a logarithmic scale; linear: for a linear one
  NAME=int:MIN..MAX    whole numbers
  NAME=choice:A,B,C    one of these texts

On a terminal, the command asks for missing values of RANGE, --metric, --goal and --max-resource, unless they follow \
from the log or the name of the metric. It writes nothing if the request is invalid.

Examples:
  hyperband init
  hyperband init lr=log:1e-5..1e-1 depth=int:2..10 --metric accuracy --max-resource 27
  hyperband init lr=log:1e-5..1e-1 dropout=0..0.5 act=choice:relu,tanh --log training.log
  hyperband init depth=int:2..10 --log training.log --metric val_loss -o deep.json --force";

pub(super) const RUN_EXAMPLES: &str = "\
Each instance of a training job is one process of COMMAND. It runs in the current folder, with the environment of a \
SageMaker container:

  $SM_HPS                                      hyperparameters as JSON
  $SM_ROOT/input/config/hyperparameters.json   hyperparameters as a file
  $SM_HOSTS, $SM_HOST_ADDRESSES                hosts of the training job
  $SM_ROOT/checkpoints                         folder for checkpoints
  $SM_USER_ARGS                                hyperparameters as a JSON list of options

In COMMAND, the value of the hyperparameter NAME replaces {NAME}. --pass-args adds all hyperparameters as options. A \
program with argparse or Hydra therefore needs no change.

The output of the process is the log of the training job. The metric definitions of the request find the objective in \
this log.

The request needs no AWS fields, such as RoleArn, ResourceConfig or TrainingImage. `hyperband check` lists the fields \
that a stack requires.

To continue an interrupted run, even after kill -9, repeat the same command line or use `hyperband resume NAME`.

Examples:
  hyperband run request.json -- python3 train.py
  hyperband run request.json --name second-try --data-dir /tmp/tuning -- ./train.sh --quick
  hyperband run request.json --fresh -- python3 train.py
  hyperband run request.json --try lr=0.1,depth=6 --try lr=0.01 -- python3 train.py
  hyperband run request.json --jobs 50 --max-time 8h -- python3 train.py --lr {lr}
  hyperband run request.json --pass-args --devices 0,1,2,3 -- python3 train.py
  hyperband run request.json --spot-interruptions 6 -- python3 train.py
  hyperband run - --output json -- python3 train.py < request.json > result.json";

pub(super) const RESUME_EXAMPLES: &str = "\
Starts the training program of the latest `hyperband run` of the tuning, in the folder of that run, with its options. \
A second `resume` at the same time does no harm: it reports that the first one uses the data directory.

Examples:
  hyperband resume xgb-1
  hyperband resume xgb-1 --data-dir /tmp/tuning";

pub(super) const MODEL_EXAMPLES: &str = "\
The best model comes from the refit, if the request has Controller.Refit and the refit completed. Otherwise, it comes \
from the best training job. The command prints the location of the model to standard output, and its training job to \
standard error. The models of a stack are in S3.

Examples:
  hyperband model xgb-1
  hyperband model xgb-1 -o best-model
  aws s3 cp $(hyperband model xgb-1 --endpoint https://abc123.execute-api.eu-west-1.amazonaws.com) model.tar.gz";

pub(super) const PLAN_EXAMPLES: &str = "\
Starts nothing. The expected time and cost come from a simulation in which all trials are equally likely to be the \
best. Start-up time counts as billed time. Prices come from the request (Controller.InstancePricesUsdPerHour).

Examples:
  hyperband plan request.json
  hyperband plan request.json --epoch-seconds 45 --startup-seconds 240
  hyperband plan request.json --epoch-seconds 45 --output json | jq .FullSet";

pub(super) const CHECK_EXAMPLES: &str = "\
Starts nothing. The log is plain text: the output of the training program, or a log exported from CloudWatch. The exit \
code is 0 for a valid request, even with warnings, and 2 for an invalid one.

A note lists the fields that a stack requires and for which this machine has defaults.

Examples:
  hyperband check request.json
  hyperband check request.json --stack
  hyperband check request.json --log training.log
  ./train.sh | hyperband check request.json --log -
  hyperband check request.json --output json | jq -r '.Warnings[].Code'";

pub(super) const SUBMIT_EXAMPLES: &str = "\
The stack runs the tuning, so you can switch this machine off. The command first validates the request, like \
`hyperband check --stack`, and then sends it.

The command signs requests with AWS credentials from the environment, a profile, SSO, a container or an instance. The \
credentials need execute-api:Invoke. The policy in the stack's output TuningUsersPolicyArn grants this permission. An \
endpoint lambda:FUNCTION needs lambda:InvokeFunction on the function instead.

The command retries a submission whose response was lost. A stack has a name only once, so a retry cannot start a \
second tuning.

Examples:
  export HYPERBAND_ENDPOINT=https://abc123.execute-api.eu-west-1.amazonaws.com
  hyperband submit request.json
  hyperband submit request.json --name second-try --watch
  jq '.Controller.MaxCostUsd = 20' request.json | hyperband submit - --output json";

pub(super) const WATCH_EXAMPLES: &str = "\
Shows all decisions from the beginning until the tuning ends. Ctrl-C stops watching; the tuning continues. The exit \
code is 1 if the tuning failed.

Examples:
  hyperband watch xgb-1 --endpoint https://abc123.execute-api.eu-west-1.amazonaws.com
  hyperband watch xgb-1 --interval 30
  hyperband watch xgb-1 --output json 2> progress.log | jq .TuningJob.BestTrainingJob";

pub(super) const LIST_EXAMPLES: &str = "\
Examples:
  hyperband list
  hyperband list --data-dir /tmp/tuning --output json
  hyperband list --endpoint https://abc123.execute-api.eu-west-1.amazonaws.com
  hyperband list --endpoint lambda:hyperband-prod-InvokeFunction-a1B2c3D4e5F6";

pub(super) const DESCRIBE_EXAMPLES: &str = "\
Examples:
  hyperband describe xgb-1
  hyperband describe xgb-1 --endpoint https://abc123.execute-api.eu-west-1.amazonaws.com
  hyperband describe xgb-1 --output json | jq .BestTrainingJob.TunedHyperParameters";

pub(super) const DELETE_EXAMPLES: &str = "\
The name is free again at once. A stack removes the other rows over the next hours.

Examples:
  hyperband delete xgb-1 --endpoint https://abc123.execute-api.eu-west-1.amazonaws.com
  hyperband delete xgb-1 --yes --output json";

pub(super) const CHANGE_EXAMPLES: &str = "\
Other limits stay unchanged. Running training jobs continue, even if a new limit is lower. If the new cap is below the \
spent and reserved amount, the tuning starts no more training jobs. A pause does not stop the clock of \
MaxRuntimeInSeconds.

Examples:
  hyperband change xgb-1 --max-cost 50
  hyperband change xgb-1 --max-parallel 2 --data-dir /tmp/tuning
  hyperband change xgb-1 --pause
  hyperband change xgb-1 --resume --output json";

pub(super) const STOP_EXAMPLES: &str = "\
Running training jobs get SIGTERM, and SIGKILL after the grace period. The command does not wait for them to end.

Examples:
  hyperband stop xgb-1
  hyperband stop xgb-1 --endpoint https://abc123.execute-api.eu-west-1.amazonaws.com
  hyperband stop --all --yes";

pub(super) const EXPLAIN_EXAMPLES: &str = "\
For each rung, shows the compared value, and the other trials with their values and ranks. Also shows the rule, the \
time and the step of the decision, and the cost of the trial so far. The text output shortens long lists; the JSON \
output does not.

Examples:
  hyperband explain xgb-1 7
  hyperband explain xgb-1 xgb-1-3fa1c2-7-0-1
  hyperband explain xgb-1 7 --output json | jq '.Entries[] | select(.Rung) | .Rung.Rule'";

pub(super) const REPLAY_EXAMPLES: &str = "\
The exit code is 0 if all decisions are identical, and 1 if a decision differs.

Examples:
  hyperband replay xgb-1";

pub(super) const AUDIT_EXAMPLES: &str = "\
The audit computes everything anew from the recorded facts, with code of its own.
The exit code is 0 if all promises are kept, and 1 if one is broken. Text shows the first
violation of a tuning, and `--output json` up to 100.

Examples:
  hyperband audit xgb-1
  hyperband audit --endpoint $API
  zcat AWSDynamoDB/*/data/*.json.gz > rows.json && hyperband audit xgb-1 --rows rows.json";

pub(super) const REPORT_EXAMPLES: &str = "\
Examples:
  hyperband report xgb-1 -o report.html
  hyperband report xgb-1 -o - > report.html";

pub(super) const DOCTOR_EXAMPLES: &str = "\
Submits one tuning with two training jobs of at most three minutes each, and stops the second job early. Then compares \
what SageMaker and CloudWatch Logs report with the assumptions in docs/UNVERIFIED.md. Asks for confirmation first and \
takes a few minutes. Stops everything that it started, even on Ctrl-C. Any training image works: a failed job gives \
the same information, except for bill-past-limit and limit-start. These two need --input and a program that saves a \
large model; docs/UNVERIFIED.md has one.

Required permissions: execute-api:Invoke (the stack's output TuningUsersPolicyArn), sagemaker:DescribeTrainingJob, \
sagemaker:ListTrainingJobs, sagemaker:ListTags, logs:DescribeLogStreams and logs:FilterLogEvents.

Optional permissions: sagemaker:StopTrainingJob for the checks stop-ended and job-absent; sagemaker:CreateTrainingJob \
and iam:PassRole for the check name-taken. Without them, these checks are incomplete or not tried.

AWS_ENDPOINT_URL, AWS_ENDPOINT_URL_SAGEMAKER and AWS_ENDPOINT_URL_CLOUDWATCH_LOGS set the endpoints of the AWS \
services. A stack that requires a VPC (RequireVpc) needs --subnet and --security-group.

With --before, checks the account before a stack exists: credentials, quotas, the log group of training jobs, the \
price list, the execution role, VPC endpoints, and denials by policies. It only reads, starts nothing, costs nothing \
and asks no questions. It ends with the parameters for infra/samconfig.toml. A check without permission is \"not \
tried\". A warning does not prevent the deployment.

Permissions with --before: lambda:GetAccountSettings, logs:DescribeLogGroups, logs:DescribeSubscriptionFilters, \
pricing:GetProducts, iam:GetRole, iam:SimulatePrincipalPolicy, servicequotas:ListServiceQuotas, \
servicequotas:ListAWSDefaultServiceQuotas; with --vpc or --subnet also ec2:DescribeSubnets, ec2:DescribeVpcEndpoints \
and ec2:DescribeRouteTables. IAM's simulation does not evaluate session policies or resource policies. It knows only \
some condition keys, so a denial that depends on a condition is not certain.

The exit code is 0 if no check prints no, 1 if a check prints no, and 3 if the endpoint fails.

Examples:
  hyperband doctor --before --role arn:aws:iam::111122223333:role/training --region eu-west-1
  hyperband doctor --before --role ARN --instance-type ml.g5.xlarge --instance-type ml.m5.large \\
      --spot --subnet subnet-1 --subnet subnet-2
  hyperband doctor --before --role ARN --principal arn:aws:iam::111122223333:role/deployer
  hyperband doctor --before --output json | jq .Parameters
  hyperband doctor --role arn:aws:iam::111122223333:role/training \\
      --s3-output s3://example-bucket/doctor \\
      --image 683313688378.dkr.ecr.us-east-1.amazonaws.com/sagemaker-xgboost:1.7-1 \\
      --endpoint https://abc123.execute-api.us-east-1.amazonaws.com
  hyperband doctor --role ARN --s3-output S3_URI --image URI --spot --yes --output json \\
      | jq '.Checks[] | select(.Verdict == \"no\")'";

pub(super) const SIMULATE_EXAMPLES: &str = "\
The decider and its sampler run as in a real tuning. For each configuration, the nearest recorded one supplies the \
values. The request's strategy, rungs, limits, cap and prices apply. The command prints one line of JSON for each \
seed; the same seed gives the same bytes.

Examples:
  hyperband simulate request.json --curves digits-mlp.jsonl.gz --seeds 0..20 --until-seconds 3600
  hyperband simulate request.json --curves digits-mlp.jsonl.gz --seeds 0..200 --trials 30 --time-jitter 0.2";
