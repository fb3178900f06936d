#!/usr/bin/env bash
# Tunes a small neural network that up to four processes train with an asynchronous parameter server. The number of
# processes is a dimension of the search. Compares each number, with the hyperparameters of one and with tuned ones.
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
  --jobs N                   training jobs (140)
  --parallel N               training jobs at a time (3)
  --instances N,N...         numbers of instances of a job, which are processes here; 1 is one of them (1,2,4)
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

jobs='' seeds='' replicate=4 parallel=3 instances=1,2,4 cap=3 max_resource=27 spot=100 mode=promote
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
    --instances)
        [[ $value =~ ^1(,[1-9][0-9]?)+$ ]] || fail "invalid $option '$value': expected 1 and larger numbers, for example 1,2,4"
        ;;
    --jobs | --parallel | --seeds | --replicate | --seed)
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
[[ $sampler =~ ^(Model|Sobol|Random)$ ]] || fail "invalid --sampler '$sampler': expected Model, Sobol or Random"

variant=''
if [[ -n $quick ]]; then
    variant='-quick' max_resource=9
    jobs=${jobs:-8} seeds=${seeds:-1}
fi
jobs=${jobs:-140} seeds=${seeds:-3}
mapfile -t counts < <(tr , '\n' <<<"$instances" | sort -n -u)

open_work "${DNN_EXAMPLE_WORK:-$here/.work}"
make_environment
# As many shards as all numbers of instances divide, so that the hosts of a job have equally many rows.
shards=$("$python" -c 'import math, sys; print(math.lcm(*map(int, sys.argv[1:])))' "${counts[@]}")
prepared=$("$python" "$here/prepare.py" --out "$work/data" --shards "$shards" --replicate "$replicate")

# Usual values, which are good on one instance (README.md). They are the first trials too, on each number of instances, so
# that the tuning starts from what it shall improve.
untuned=(learning_rate=0.1 momentum=0.9 mini_batch=32 hidden_units=64 weight_decay=0.000001)

find_hyperband
"$python" "$here/make_request.py" --data "$prepared" --mode "$mode" --jobs "$jobs" \
    --parallel "$parallel" --instances "$instances" --cap "$cap" --max-resource "$max_resource" \
    --seed "$seed" --sampler "$sampler" --first "${untuned[@]}" >"$request.new"
open_tuning

# --- the hyperparameters of one instance, on each number of instances --------------------------------------------

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

for count in "${counts[@]}"; do
    row "untuned-$count" "$count" "${untuned[@]}"
done

# --- the tuning --------------------------------------------------------------------------------------------------

run_tuning "$spot" "$python" "$here/train.py"

# --- tuned, on each number of instances --------------------------------------------------------------------------

# Trained with seeds that the tuning never used: the best of many jobs is also a lucky one.
train_tuned

"$python" "$here/table.py" "${compared[@]}" |
    tee "$work/comparison$variant.txt"

write_report
