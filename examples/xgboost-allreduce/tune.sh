#!/usr/bin/env bash
# Tunes a distributed XGBoost with Hyperband on this machine and compares the result with no tuning.
# Sets up its virtual environment, data and build in $XGB_EXAMPLE_WORK. Needs a Rust toolchain and Python 3.11 or newer.
# Safe to interrupt at any moment: the next run continues an unfinished tuning. Must never delete a folder that it did
# not create.
set -euo pipefail

usage() {
    cat <<'END'
usage: tune.sh [options]
  --quick                    a small run: 6 jobs of up to 9 rounds, with fewer training rows
  --jobs N                   training jobs (30)
  --parallel N               training jobs at a time (4)
  --instances N,N...         numbers of instances of a job, which are processes here; 1 is one of them (1,2,3)
  --seed N                   the tuning's RandomSeed (7)
  --sampler NAME             Model, Sobol or Random (Model)
  --cap USD                  the tuning's cap (5)
  --spot-interruptions RATE  random interruptions per job and hour, like those of spot capacity (0)
  --data FILE                CSV with a header and a target column y of yes and no, such as UCI's
                             bank-additional-full.csv, instead of the caravan policies
  --drop COLUMNS             columns of FILE to ignore, separated by commas
  --replicate N              copies of each training row; more copies make a round slower (20; with --quick 4)
  --split N                  seed of the split into rows to train, to validate and to test (7)
  --seeds N                  jobs of each row of the comparison, with the seeds 1 to N (3; with --quick 1)
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

jobs='' replicate='' parallel=4 instances=1,2,3 cap=5 max_resource=30
seed=7 sampler=Model spot=0 data='' drop='' data_dir='' keep='' quick='' split=7 seeds=''
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
        [[ $value =~ ^1(,[1-9][0-9]?)+$ ]] || fail "invalid $option '$value': expected 1 and larger numbers, for example 1,2,3"
        ;;
    --jobs | --parallel | --replicate | --seed | --split | --seeds)
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
    --split) split=$value ;;
    --seeds) seeds=$value ;;
    --data-dir) data_dir=$value ;;
    *) fail "unknown option $option; see --help" ;;
    esac
done
[[ -z $drop || -n $data ]] || fail "--drop needs --data"

[[ $sampler =~ ^(Model|Sobol|Random)$ ]] || fail "invalid --sampler '$sampler': expected Model, Sobol or Random"

variant=''
if [[ -n $quick ]]; then
    variant='-quick' max_resource=9
    jobs=${jobs:-6} seeds=${seeds:-1} replicate=${replicate:-4}
fi
jobs=${jobs:-30} replicate=${replicate:-20} seeds=${seeds:-3}
mapfile -t counts < <(tr , '\n' <<<"$instances" | sort -n -u)

open_work "${XGB_EXAMPLE_WORK:-$here/.work}"
make_environment
# As many shards as all numbers of instances divide, so that the hosts of a job have equally many rows.
shards=$("$python" -c 'import math, sys; print(math.lcm(*map(int, sys.argv[1:])))' "${counts[@]}")
prepared=$("$python" "$here/prepare.py" --out "$work/data" --shards "$shards" --replicate "$replicate" \
    --split "$split" \
    ${data:+--data "$data"} ${drop:+--drop "$drop"})

# The values of the article's notebook, and XGBoost's defaults. They are the first trials too, on each number of
# instances, so that the tuning starts from what it shall improve.
untuned=(eta=0.3 colsample_bylevel=0.5 colsample_bytree=0.8 max_depth=6 min_child_weight=1 alpha=0)

find_hyperband
"$python" "$here/make_request.py" --data "$prepared" --jobs "$jobs" --parallel "$parallel" \
    --instances "$instances" --cap "$cap" --max-resource "$max_resource" \
    --seed "$seed" --sampler "$sampler" --first num_round=150 "${untuned[@]}" >"$request.new"
open_tuning

# --- no tuning, on each number of instances -----------------------------------------------------------------------

# row NAME INSTANCES NAME=VALUE...: trains a job per seed without the controller, and tests it on the test rows.
row() {
    local name=$1 count=$2 seed
    shift 2
    echo "tune.sh: training $name ($count instance(s), $seeds seed(s))" >&2
    for ((seed = 1; seed <= seeds; seed++)); do
        "$python" "$here/launch.py" --instances "$count" --data "$prepared" --folder "$rows/$name-$seed" \
            --hp seed="$seed" "${@/#/--hp=}" -- "$python" "$here/train.py" >>"$rows/$name"
    done
}

# As many rounds as a job of the tuning may train.
for count in "${counts[@]}"; do
    row "untuned-$count" "$count" num_round="$max_resource" "${untuned[@]}"
done

# --- the tuning --------------------------------------------------------------------------------------------------

run_tuning "$spot" "$python" "$here/train.py"

# --- tuned, on each number of instances ---------------------------------------------------------------------------

train_tuned

"$python" "$here/table.py" "${compared[@]}" \
    --output "$work/comparison$variant.json" | tee "$work/comparison$variant.txt"

write_report
