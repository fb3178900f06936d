#!/usr/bin/env bash
# Deploys the stack: `sam deploy` with the same arguments, after it has created a missing log group of training jobs. Needs the AWS
# CLI and the SAM CLI.
#
#   infra/deploy.sh                       stage dev of samconfig.toml
#   infra/deploy.sh --config-env prod
#
# The stack subscribes to this log group, which the first training job of an account and Region creates. CloudFormation can create a
# log group or use an existing one, but cannot choose between the two.
set -euo pipefail
cd "$(dirname "$0")"

group=/aws/sagemaker/TrainingJobs

# Prints the value of option $1, or else of its key in the stage's settings. The AWS CLI must use the account and the Region that
# the SAM CLI deploys to.
option() {
  local name=$1 value='' stage=default i
  for ((i = 0; i < ${#arguments[@]}; i++)); do
    case ${arguments[i]} in
      --config-env) stage=${arguments[i + 1]-} ;;
      --config-env=*) stage=${arguments[i]#*=} ;;
      "--$name") value=${arguments[i + 1]-} ;;
      "--$name="*) value=${arguments[i]#*=} ;;
    esac
  done
  if [ -z "$value" ]; then
    value=$(awk -F'"' -v stage="$stage" -v key="$name" '
      /^\[/ { inside = index($0, "[" stage ".deploy.") == 1 || index($0, "[" stage ".global.") == 1 }
      inside && $0 ~ "^" key " *=" { print $2; exit }' samconfig.toml)
  fi
  echo "$value"
}

arguments=("$@")
region=$(option region) profile=$(option profile)
call=(aws logs create-log-group --log-group-name "$group" ${region:+--region "$region"} ${profile:+--profile "$profile"})
if grep -Eq '^[^#]*CreateTrainingLogGroup=true' samconfig.toml || [[ " $* " == *CreateTrainingLogGroup=true* ]]; then
  echo "The stack creates the log group $group (CreateTrainingLogGroup=true)."
elif message=$("${call[@]}" 2>&1); then
  echo "Created the log group $group: no training job has run in this account and Region."
elif [[ $message != *ResourceAlreadyExistsException* ]]; then
  # A user without the permission can still deploy where the log group exists.
  echo "Warning: cannot create the log group $group. The deployment fails if it does not exist. $message" >&2
fi

exec sam deploy "$@"
