//! What the help of each command says after its options.

pub(super) const EXAMPLES: &str = "\
Examples:
  hyperband run request.json -- python3 train.py
  hyperband describe xgb-1
  hyperband report xgb-1 -o report.html
  hyperband submit request.json --watch --endpoint https://abc123.execute-api.eu-west-1.amazonaws.com

Exit codes: 0 done, 1 the tuning failed, 2 bad request or usage, 3 table or endpoint error, 130 interrupted.";

pub(super) const RUN_EXAMPLES: &str = "\
Every instance of a training job is one process of COMMAND, in the folder you are in. It finds what a SageMaker \
container finds: hyperparameters in $SM_HPS and in $SM_ROOT/input/config/hyperparameters.json, the other hosts in \
$SM_HOSTS and $SM_HOST_ADDRESSES, a folder for checkpoints in $SM_ROOT/checkpoints. What it prints is the log in which \
the request's metric definitions find the objective.

Interrupted in any way, even by kill -9, the same command line continues where it was.

Examples:
  hyperband run request.json -- python3 train.py
  hyperband run request.json --name second-try --data-dir /tmp/tuning -- ./train.sh --quick
  hyperband run request.json --spot-interruptions 6 -- python3 train.py
  hyperband run - --output json -- python3 train.py < request.json > result.json";

pub(super) const PLAN_EXAMPLES: &str = "\
Nothing is started. Time and cost come from a small simulation in which trials are equally likely to be good; start-ups \
count as billed. Prices are those of the request (Controller.InstancePricesUsdPerHour).

Examples:
  hyperband plan request.json
  hyperband plan request.json --epoch-seconds 45 --startup-seconds 240
  hyperband plan request.json --epoch-seconds 45 --output json | jq .FullSet";

pub(super) const CHECK_EXAMPLES: &str = "\
The log is plain text, as CloudWatch shows it or as the program prints it. Exit code 0 when the request is valid, with \
warnings or without, 2 when it is not.

Examples:
  hyperband check request.json
  hyperband check request.json --log training.log
  ./train.sh | hyperband check request.json --log -
  hyperband check request.json --output json | jq -r '.Warnings[].Code'";

pub(super) const SUBMIT_EXAMPLES: &str = "\
The stack runs the tuning; this machine may be switched off. The request is checked here first, as `hyperband check` does. \
Requests to AWS are signed with the credentials that every AWS tool finds (environment, profile, SSO, container, instance); \
they need execute-api:Invoke, which the policy of the stack's output TuningUsersPolicyArn gives.

A submission whose answer is lost is sent again; the same name is never taken twice.

Examples:
  export HYPERBAND_ENDPOINT=https://abc123.execute-api.eu-west-1.amazonaws.com
  hyperband submit request.json
  hyperband submit request.json --name second-try --watch
  jq '.Controller.MaxCostUsd = 20' request.json | hyperband submit - --output json";

pub(super) const WATCH_EXAMPLES: &str = "\
Shows what is decided as `run` does, from the beginning, until the tuning has ended. Ctrl-C ends the watching, not the \
tuning. Exit code 1 when the tuning failed.

Examples:
  hyperband watch xgb-1 --endpoint https://abc123.execute-api.eu-west-1.amazonaws.com
  hyperband watch xgb-1 --interval 30
  hyperband watch xgb-1 --output json 2> progress.log | jq .TuningJob.BestTrainingJob";

pub(super) const LIST_EXAMPLES: &str = "\
Examples:
  hyperband list
  hyperband list --data-dir /tmp/tuning --output json
  hyperband list --endpoint https://abc123.execute-api.eu-west-1.amazonaws.com";

pub(super) const DESCRIBE_EXAMPLES: &str = "\
Examples:
  hyperband describe xgb-1
  hyperband describe xgb-1 --endpoint https://abc123.execute-api.eu-west-1.amazonaws.com
  hyperband describe xgb-1 --output json | jq .BestTrainingJob.TunedHyperParameters";

pub(super) const CHANGE_EXAMPLES: &str = "\
What is not named stays as it is, and jobs that run go on, whatever is lowered. Under a cap below what is spent and \
reserved, nothing further is reserved. A pause does not hold up a limit of time.

Examples:
  hyperband change xgb-1 --max-cost 50
  hyperband change xgb-1 --max-parallel 2 --data-dir /tmp/tuning
  hyperband change xgb-1 --pause
  hyperband change xgb-1 --resume --output json";

pub(super) const STOP_EXAMPLES: &str = "\
Running training jobs are sent SIGTERM and, after the grace time, SIGKILL. The command does not wait for that.

Examples:
  hyperband stop xgb-1
  hyperband stop xgb-1 --endpoint https://abc123.execute-api.eu-west-1.amazonaws.com
  hyperband stop --all --yes";

pub(super) const EXPLAIN_EXAMPLES: &str = "\
Reads a data directory (--data-dir) only, not an --endpoint. \
For each rung: the value that was compared, the others that had arrived by then with their values and ranks, the rule with \
its numbers, when and in which step it was decided, and what the trial had cost until then. The text cuts long lists, the \
JSON has all.

Examples:
  hyperband explain xgb-1 7
  hyperband explain xgb-1 xgb-1-3fa1c2-7-0-1
  hyperband explain xgb-1 7 --output json | jq '.Entries[] | select(.Rung) | .Rung.Rule'";

pub(super) const COST_EXAMPLES: &str = "\
Reads a data directory (--data-dir) only, not an --endpoint. \
Every training job is described anew by the training service: BILLED are its billable seconds as it tells them now, \
COMPUTED is what they cost at the price, BOOKED is what the ledger has. Jobs of which the two differ are marked, with the \
likely reason. Exit code 0 also with differences.

Examples:
  hyperband cost xgb-1
  hyperband cost xgb-1 --output json | jq '.TrainingJobs[] | select(.Differs)'";

pub(super) const REPLAY_EXAMPLES: &str = "\
Reads a data directory (--data-dir) only, not an --endpoint. \
Exit code 0 when every decision comes out as it was recorded, 1 when one differs.

Examples:
  hyperband replay xgb-1";

pub(super) const REPORT_EXAMPLES: &str = "\
Reads a data directory (--data-dir) only, not an --endpoint.

Examples:
  hyperband report xgb-1 -o report.html
  hyperband report xgb-1 -o - > report.html";

pub(super) const DOCTOR_EXAMPLES: &str = "\
Submits one tuning of two training jobs of a minute at most, the second of which is stopped as soon as it is there, and \
reads what SageMaker and CloudWatch Logs say of them. It asks before it starts anything, takes some minutes, and stops \
what it started, also on Ctrl-C. Any training image will do: a job that fails for want of data tells as much.

Needs execute-api:Invoke (the stack's output TuningUsersPolicyArn), and sagemaker:DescribeTrainingJob, ListTrainingJobs and \
ListTags, logs:DescribeLogStreams and FilterLogEvents. Only with sagemaker:StopTrainingJob, stops of jobs that have ended or \
are not there are tried; only with sagemaker:CreateTrainingJob and iam:PassRole, a name that is taken. Where SageMaker and \
CloudWatch Logs are, AWS_ENDPOINT_URL and the variables of each service may say. A stack that takes jobs in a VPC only \
(RequireVpc) needs --subnet and --security-group.

Exit code 0 without a no, 1 with one, 3 when the endpoint fails. docs/UNVERIFIED.md describes each check.

Examples:
  hyperband doctor --role arn:aws:iam::111122223333:role/training \\
      --s3-output s3://example-bucket/doctor \\
      --image 683313688378.dkr.ecr.us-east-1.amazonaws.com/sagemaker-xgboost:1.7-1 \\
      --endpoint https://abc123.execute-api.us-east-1.amazonaws.com
  hyperband doctor --role ARN --s3-output S3_URI --image URI --spot --yes --output json \\
      | jq '.Checks[] | select(.Verdict == \"no\")'";

pub(super) const TRAINING_SERVICE_EXAMPLES: &str = "\
CreateTrainingJob, DescribeTrainingJob, StopTrainingJob, UpdateTrainingJob, ListTrainingJobs, AddTags and ListTags of \
SageMaker, for boto3, the AWS CLI and every AWS SDK. Every instance of a training job is one process of COMMAND, as with \
`hyperband run`. Nobody is authenticated: whoever reaches the address may start COMMAND. GET /ping answers once it is up.

The address is printed as one line; then each change of a job's state is told on standard error. SIGTERM and SIGINT end \
all training processes and the service; started again on the same folder, it goes on with spot jobs, and on-demand jobs \
have failed.

An endpoint on this machine needs no AWS credentials. Event buses refuse sources that begin with `aws.`, so give another \
--event-source where the bus is one of AWS's or a faithful emulator.

Examples:
  hyperband training-service -- python3 train.py
  hyperband training-service --listen 127.0.0.1:0 --output json -- ./train.sh
  hyperband training-service --events-endpoint http://127.0.0.1:4566 --event-source test.sagemaker \\
      --logs-endpoint http://127.0.0.1:4566 -- python3 train.py
  AWS_ENDPOINT_URL_SAGEMAKER=http://127.0.0.1:8321 aws sagemaker list-training-jobs";
