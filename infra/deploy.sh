#!/usr/bin/env bash
# Deploys the stack: creates a missing log group of training jobs, then runs `sam deploy` with the same arguments. Needs the AWS CLI
# and the SAM CLI.
#
#   infra/deploy.sh                       stage dev of samconfig.toml
#   infra/deploy.sh --config-env prod
#
# The stack subscribes to this log group, which the first training job of an account and Region creates. CloudFormation can create a
# log group or use an existing one, but cannot choose between the two.
set -euo pipefail
cd "$(dirname "$0")"

group=/aws/sagemaker/TrainingJobs
stage=default region='' profile='' previous=''
for argument in "$@"; do
  case $previous in
    --config-env) stage=$argument ;;
    --region) region=$argument ;;
    --profile) profile=$argument ;;
  esac
  case $argument in
    --config-env=*) stage=${argument#*=} ;;
    --region=*) region=${argument#*=} ;;
    --profile=*) profile=${argument#*=} ;;
  esac
  previous=$argument
done

# The lines of the stage, without comments. Another stage may belong to another account.
settings=$(awk -v stage="$stage" '
  /^\[/ { inside = index($0, "[" stage ".deploy.") == 1 || index($0, "[" stage ".global.") == 1 }
  inside && !/^ *#/' samconfig.toml)
# The AWS CLI must use the account and the Region that the SAM CLI deploys to.
setting() { awk -F'"' -v name="$1" '$0 ~ "^" name " *=" { print $2; exit }' <<< "$settings"; }
region=${region:-$(setting region)} profile=${profile:-$(setting profile)}

if [[ "$settings $*" == *CreateTrainingLogGroup=true* ]]; then
  echo "The stack creates the log group $group (CreateTrainingLogGroup=true)."
elif message=$(aws logs create-log-group --log-group-name "$group" \
  ${region:+--region "$region"} ${profile:+--profile "$profile"} 2>&1); then
  echo "Created the log group $group: no training job has run in this account and Region."
elif [[ $message != *ResourceAlreadyExistsException* ]]; then
  # A user without the permission can still deploy where the log group exists.
  echo "Warning: cannot create the log group $group: $message" >&2
  echo "The deployment fails if the log group does not exist. Then let an administrator create it." >&2
fi

exec sam deploy "$@"
