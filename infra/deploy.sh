#!/usr/bin/env bash
# Deploys the stack: merges overlays into the template, creates a missing log group of training jobs, then runs `sam deploy` with the
# other arguments. Needs the AWS CLI and the SAM CLI, and for overlays Python 3.8+.
#
#   infra/deploy.sh                       stage dev of samconfig.toml
#   infra/deploy.sh --config-env prod
#   infra/deploy.sh --overlay kms --overlay vpc
#
# `overlay.py` lists the overlays. Those of every deployment of a stage belong into samconfig.toml: a deployment without an overlay
# removes what the overlay added.
#
# The stack subscribes to this log group, which the first training job of an account and Region creates. CloudFormation can create a
# log group or use an existing one, but cannot choose between the two.
set -euo pipefail
cd "$(dirname "$0")"

group=/aws/sagemaker/TrainingJobs
# Longer than SageMaker lets a training job run (28 days), since the sweeper reads the logs of running jobs. LogRetentionDays is for
# the stack's own logs: in a dev stage it would also shorten the logs of all other training jobs.
retention_days=90
stage=default region='' profile='' previous='' option='' overlays='' given=''
arguments=()
case " $* " in *" --help "* | *" -h "*) sed -n '2,/^$/{/^#/s/^# \{0,1\}//p}' "${0##*/}" | sed '/^set /,$d'; exec sam deploy --help ;; esac
for argument in "$@"; do
  case $previous in
    --config-env) stage=$argument ;;
    --region) region=$argument ;;
    --profile) profile=$argument ;;
    --overlay) overlays+=" $argument" ;;
  esac
  case $argument in
    --config-env=*) stage=${argument#*=} ;;
    --region=*) region=${argument#*=} ;;
    --profile=*) profile=${argument#*=} ;;
    --overlay=*) overlays+=" ${argument#*=}" ;;
  esac
  case $argument in --*) option=${argument%%=*} ;; esac
  value=${argument#--parameter-overrides}
  [ "$option" != --parameter-overrides ] || given+=" ${value#=}"
  case $previous:$argument in --overlay:* | *:--overlay | *:--overlay=*) ;; *) arguments+=("$argument") ;; esac
  previous=$argument
done

# Without its overlay, a deployment would remove what the overlay added.
case $previous:" $* " in --overlay:* | *" --overlay= "*)
  echo "infra/deploy.sh: missing value of --overlay: expected a name, for example --overlay kms" >&2
  exit 2 ;;
esac
# The lines of the stage, without comments. Another stage may belong to another account.
settings=$(awk -v stage="$stage" '
  /^\[/ { inside = index($0, "[" stage ".deploy.") == 1 || index($0, "[" stage ".global.") == 1 || $0 == "[" stage ".overlays]" }
  inside && !/^ *#/' samconfig.toml)
# The AWS CLI must use the account and the Region that the SAM CLI deploys to.
setting() { awk -F'"' -v name="$1" '$0 ~ "^" name " *=" { print $2; exit }' <<< "$settings"; }
region=${region:-$(setting region)} profile=${profile:-$(setting profile)}

# A section that this script does not read would be left out without a word.
sections=$(grep -E '^[[:space:]]*\[[^]]*overlays' samconfig.toml || true)
if grep -qvE '^(\[[A-Za-z0-9_-]+\.overlays\])?$' <<< "$sections" || awk -v stage="$stage" '
  /^\[/ { inside = $0 == "[" stage ".overlays]"; next }
  inside && NF && !/^ *#/ && !/^names = "[a-z -]+"$/ { wrong = 1 } END { exit !wrong }' samconfig.toml; then
  echo "infra/deploy.sh: invalid overlays in samconfig.toml: expected [$stage.overlays] and, below it, names = \"dashboard kms\"" >&2
  exit 2
fi

template=template.yaml
read -ra overlays <<< "$overlays $(setting names)" || true
if [ ${#overlays[@]} -gt 0 ]; then
  template=template-merged.yaml
  python3 -B overlay.py "${overlays[@]}" > "$template"
  arguments+=(--template-file "$template")
  echo "Merged the overlays ${overlays[*]} into $template."
fi

# SAM ignores parameters that the template lacks. Without its overlay, a deployment would remove a key or a VPC from the stack.
names() { awk '/^[A-Z]/ { inside = /^Parameters:/ } inside && /^  [A-Za-z]+:/ { sub(/:.*/, ""); print $1 }' "$1"; }
known=$(names "$template")
parameters=$(grep -A200 '^ *parameter_overrides' <<< "$settings" || true)
written=$(grep -oE "(^|[\"' ])(ParameterKey=)?[A-Z][A-Za-z]*[=,]" <<< "${parameters#*=} $given" || true)
for name in $(sed -E "s/^[\"' ]//; s/^ParameterKey=//; s/[=,]$//" <<< "$written"); do
  if [ "$name" != ParameterValue ] && ! grep -qx "$name" <<< "$known"; then
    echo "infra/deploy.sh: unknown parameter $name: expected a parameter of the template" >&2
    for overlay in overlays/*.yaml; do
      ! names "$overlay" | grep -qx "$name" || echo "It belongs to an overlay: add --overlay $(basename "$overlay" .yaml)." >&2
    done
    exit 2
  fi
done

if [[ "$settings $*" == *CreateTrainingLogGroup=true* ]]; then
  echo "The stack creates the log group $group (CreateTrainingLogGroup=true)."
elif message=$(aws logs create-log-group --log-group-name "$group" \
  ${region:+--region "$region"} ${profile:+--profile "$profile"} 2>&1); then
  echo "Created the log group $group: no training job has run in this account and Region."
  aws logs put-retention-policy --log-group-name "$group" --retention-in-days "$retention_days" \
    ${region:+--region "$region"} ${profile:+--profile "$profile"} ||
    echo "Warning: cannot set the retention of $group to $retention_days days. It keeps logs forever." >&2
elif [[ $message != *ResourceAlreadyExistsException* ]]; then
  # A user without the permission can still deploy where the log group exists.
  echo "Warning: cannot create the log group $group: $message" >&2
  echo "The deployment fails if the log group does not exist. Then let an administrator create it." >&2
fi

exec sam deploy ${arguments[@]+"${arguments[@]}"}
