#!/usr/bin/env bash
# Tunes a distributed XGBoost with Hyperband on this machine and compares the result with no tuning.
# Sets up its virtual environment, data and build in $XGB_EXAMPLE_WORK. Needs a Rust toolchain and Python 3.11 or newer.
# Safe to interrupt at any moment: the next run continues an unfinished tuning. Must never delete a folder that it did
# not create.
set -euo pipefail

usage() {
    cat <<'END'
usage: tune.sh [options]
  --quick                    a small run: 6 jobs of up to 9 rounds
  --jobs N                   training jobs (30)
  --parallel N               training jobs at a time (4)
  --instances N              instances of each job, which are processes here (3)
  --seed N                   the tuning's RandomSeed (7)
  --sampler NAME             Model, Sobol or Random (Model)
  --cap USD                  the tuning's cap (5)
  --spot-interruptions RATE  random interruptions per job and hour, like those of spot capacity (0)
  --data FILE                CSV with a header and a target column y of yes and no, such as UCI's
                             bank-additional-full.csv, instead of the MAGIC telescope data
  --drop COLUMNS             columns of FILE to ignore, separated by commas
  --replicate N              copies of each training row; more copies make a round slower (20)
  --data-dir DIR             the controller's folder of the tuning (.work/run, with --quick .work/run-quick)
  --keep                     show a finished tuning instead of starting a new one
  --help
environment:
  XGB_EXAMPLE_WORK           folder of the virtual environment, data and results (.work in the script's folder)
  HYPERBAND_BIN              a built `hyperband`; without it the script builds one
  PYTHON                     the Python of the virtual environment
END
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
# shellcheck source=../setup.sh
. "$root/examples/setup.sh"

jobs='' replicate='' parallel=4 instances=3 cap=5 max_resource=30
seed=7 sampler=Model spot=0 data='' drop='' data_dir='' keep='' quick=''
while (($#)); do
    option=$1
    shift
    case $option in
    --quick) quick=1 && continue ;;
    --keep) keep=1 && continue ;;
    -h | --help) usage && exit 0 ;;
    esac
    (($#)) || fail "unknown option $option, or its value is missing; see --help"
    value=$1
    shift
    case $option in
    --jobs | --parallel | --instances | --replicate | --seed)
        [[ $value =~ ^[1-9][0-9]{0,5}$ ]] || fail "invalid $option '$value': expected a whole number of at least 1"
        ;;
    --cap | --spot-interruptions)
        [[ $value =~ ^[0-9]+(\.[0-9]+)?$ ]] || fail "invalid $option '$value': expected a number"
        ;;
    esac
    case $option in
    --jobs) jobs=$value ;;
    --parallel) parallel=$value ;;
    --instances) instances=$value ;;
    --seed) seed=$value ;;
    --sampler) sampler=$value ;;
    --cap) cap=$value ;;
    --spot-interruptions) spot=$value ;;
    --data) data=$value ;;
    --drop) drop=$value ;;
    --replicate) replicate=$value ;;
    --data-dir) data_dir=$value ;;
    *) fail "unknown option $option; see --help" ;;
    esac
done
[[ -z $drop || -n $data ]] || fail "--drop needs --data"

[[ $sampler =~ ^(Model|Sobol|Random)$ ]] || fail "invalid --sampler '$sampler': expected Model, Sobol or Random"

variant=''
if [[ -n $quick ]]; then
    variant='-quick' max_resource=9
    jobs=${jobs:-6}
fi
jobs=${jobs:-30} replicate=${replicate:-20}

open_work "${XGB_EXAMPLE_WORK:-$here/.work}"
make_environment
prepared=$("$python" "$here/prepare.py" --out "$work/data" --shards "$instances" --replicate "$replicate" \
    ${data:+--data "$data"} ${drop:+--drop "$drop"})

find_hyperband
"$python" "$here/make_request.py" --data "$prepared" --jobs "$jobs" --parallel "$parallel" \
    --instances "$instances" --cap "$cap" --max-resource "$max_resource" \
    --seed "$seed" --sampler "$sampler" >"$request.new"
open_tuning

# --- no tuning: one instance, and the instances of the tuning's jobs ---------------------------------------------

counts=(1)
if ((instances > 1)); then counts+=("$instances"); fi
for count in "${counts[@]}"; do
    echo "tune.sh: training without tuning on $count instance(s)" >&2
    # The article's hyperparameters, with the tuning's rounds, and hist because XGBoost does not distribute exact.
    "$python" "$here/launch.py" --instances "$count" --data "$prepared" --folder "$rows/job-$count" \
        --hp num_round="$max_resource" --hp eta=0.3 --hp colsample_bylevel=0.5 --hp colsample_bytree=0.8 \
        -- "$python" "$here/train.py" >"$rows/baseline-$count"
done

# --- the tuning --------------------------------------------------------------------------------------------------

run_tuning "$spot" "$python" "$here/train.py"
"$python" "$here/table.py" --baselines "${counts[@]/#/$rows/baseline-}" \
    --request "$request" --result "$result" | tee "$work/comparison$variant.txt"

write_report
