#!/usr/bin/env bash
# Tunes a small neural network that four processes train with an asynchronous parameter server. Compares the result with
# one instance, and with four instances that use the hyperparameters of one.
# Sets up its virtual environment, data and build in $DNN_EXAMPLE_WORK. Needs a Rust toolchain and Python 3.11 or newer.
# Safe to interrupt at any moment: the next run continues an unfinished tuning. Must never delete a folder that it did
# not create.
set -euo pipefail

usage() {
    cat <<'END'
usage: tune.sh [options]
  --quick                    a small run: 8 jobs of up to 9 epochs, one seed
  --mode promote|stop        promote: a job trains to its rung, and the best third start again from their checkpoints
                             with three times the epochs; stop: a job starts with all its epochs and stops at a rung
                             where it is not among the best third (promote)
  --jobs N                   training jobs (one full set of brackets)
  --parallel N               training jobs at a time (3)
  --instances N              instances of each job, which are processes here, at least 2 (4)
  --seed N                   the tuning's RandomSeed (7)
  --sampler NAME             Model, Sobol or Random (Model)
  --cap USD                  the tuning's cap (3)
  --spot-interruptions RATE  random interruptions per job and hour, like those of spot capacity (100)
  --seeds N                  jobs per row of the comparison, with the seeds 1 to N (3)
  --replicate N              copies of each training image; more copies make an epoch slower (4)
  --data-dir DIR             the controller's folder of the tuning (.work/run, with --quick .work/run-quick)
  --keep                     show a finished tuning instead of starting a new one
  --help
environment:
  DNN_EXAMPLE_WORK           folder of the virtual environment, data and results (.work in the script's folder)
  HYPERBAND_BIN              a built `hyperband`; without it the script builds one
  PYTHON                     the Python of the virtual environment
END
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
# shellcheck source=../setup.sh
. "$root/examples/setup.sh"

jobs='' seeds='' replicate=4 parallel=3 instances=4 cap=3 max_resource=27 spot=100 mode=promote
seed=7 sampler=Model
data_dir='' keep='' quick=''
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
    --jobs | --parallel | --instances | --seeds | --replicate | --seed)
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
    --mode) mode=$value ;;
    --seeds) seeds=$value ;;
    --replicate) replicate=$value ;;
    --data-dir) data_dir=$value ;;
    *) fail "unknown option $option; see --help" ;;
    esac
done
[[ $mode == promote || $mode == stop ]] || fail "invalid --mode '$mode': expected promote or stop"
((instances > 1)) || fail "invalid --instances $instances: expected at least 2, because the comparison has one instance"

[[ $sampler =~ ^(Model|Sobol|Random)$ ]] || fail "invalid --sampler '$sampler': expected Model, Sobol or Random"

variant=''
if [[ -n $quick ]]; then
    variant='-quick' max_resource=9
    jobs=${jobs:-8} seeds=${seeds:-1}
fi
seeds=${seeds:-3}

open_work "${DNN_EXAMPLE_WORK:-$here/.work}"
make_environment
prepared=$("$python" "$here/prepare.py" --out "$work/data" --shards "$instances" --replicate "$replicate")

# Usual values, which are good on one instance (README.md). They are the first trial too, so that the tuning starts from
# what it shall improve.
untuned=(learning_rate=0.1 momentum=0.9 mini_batch=32 hidden_units=64 weight_decay=0.000001)

find_hyperband
"$python" "$here/make_request.py" --data "$prepared" --mode "$mode" ${jobs:+--jobs "$jobs"} \
    --parallel "$parallel" --instances "$instances" --cap "$cap" --max-resource "$max_resource" \
    --seed "$seed" --sampler "$sampler" --first "${untuned[@]}" >"$request.new"
open_tuning

# --- one instance, and several with its hyperparameters ----------------------------------------------------------

# row NAME INSTANCES NAME=VALUE...: trains a job per seed without the controller, and tests it on the test images.
row() {
    local name=$1 count=$2 seed
    shift 2
    echo "tune.sh: training $name ($count instance(s), $seeds seed(s))" >&2
    for ((seed = 1; seed <= seeds; seed++)); do
        "$python" "$here/launch.py" --instances "$count" --data "$prepared" --folder "$rows/$name-$seed" \
            --hp epochs="$max_resource" --hp seed="$seed" "${@/#/--hp=}" -- "$python" "$here/train.py" >>"$rows/$name"
    done
}

row alone 1 "${untuned[@]}"
row untuned "$instances" "${untuned[@]}"

# --- the tuning --------------------------------------------------------------------------------------------------

run_tuning "$spot" "$python" "$here/train.py"

# --- several instances, tuned ------------------------------------------------------------------------------------

# Trained with seeds that the tuning never used: the best of many jobs is also a lucky one.
mapfile -t tuned < <("$python" -c '
import json, sys
best = json.load(sys.stdin)["TuningJob"].get("BestTrainingJob", {}).get("TunedHyperParameters", {})
print(*(f"{name}={value}" for name, value in best.items() if name not in ("epochs", "seed")), sep="\n")' <"$result")
groups=("$rows/alone" "$rows/untuned")
if [[ -n ${tuned[0]} ]]; then
    row tuned "$instances" "${tuned[@]}"
    groups+=("$rows/tuned")
fi

"$python" "$here/table.py" --jobs "${groups[@]}" --request "$request" --result "$result" |
    tee "$work/comparison$variant.txt"

write_report
