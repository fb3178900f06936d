#!/usr/bin/env bash
# Fuzzes every reader of outside bytes for SECONDS each, and prints one line per target. Needs a nightly toolchain, a C++
# compiler, and access to the crate registry (once, to install cargo-fuzz). The nightly job runs it too.
#
#   tests/fuzz/run.sh SECONDS [TARGET...]     fuzz the named targets, or all targets
#   tests/fuzz/run.sh minimize [TARGET...]    reduce corpus and found inputs to a small corpus with the same coverage
#
# Fuzzing keeps new inputs in target/fuzz/found and reuses them in later runs; it does not change the corpus.
# A crash, a hang (60 s for one input, far above the usual time) or more than 512 MB ends the target, saves the input in
# target/fuzz/artifacts, and sets the exit status to 1. To reproduce:
#   target/fuzz/x86_64-unknown-linux-gnu/release/TARGET FILE
# No sanitizer is used: the workspace forbids unsafe code, so fuzzing looks for panics, broken properties, time and
# memory.
set -euo pipefail
cd "$(dirname "$0")"
usage() { sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2; }
[ $# -ge 1 ] || usage
mode=$1
shift
[[ $mode == minimize || $mode =~ ^[1-9][0-9]*$ ]] || usage
all=$(sed -n 's/^name = "\(.*\)"/\1/p' libfuzzer/Cargo.toml | grep -v '^libfuzzer$')
targets=${*:-$all}

out=$(cd ../.. && pwd)/target/fuzz
mkdir -p "$out"
cargo fuzz --version > /dev/null 2>&1 || cargo install cargo-fuzz --locked
if ! cargo +nightly fuzz build --fuzz-dir libfuzzer --target-dir "$out" --sanitizer none > "$out/build.log" 2>&1; then
  cat "$out/build.log" >&2
  exit 1
fi
binaries=$out/$(rustc +nightly -vV | sed -n 's/^host: //p')/release

# The longest input, in bytes: somewhat more than a valid input needs. Longer inputs only take time.
longest() {
  case $1 in
    words) echo 512 ;;
    decider) echo 600 ;;
    metric) echo 2048 ;;
    logs | service) echo 16384 ;;
    *) echo 8192 ;;
  esac
}

# Prints the last number after a word in libFuzzer's log.
last() { sed -n "s/.*$1 *\([0-9][0-9]*\).*/\1/p" "$2" | tail -1; }

# Maximum number of files and bytes that "minimize" adds to the corpus of a target.
added_files_max=120
added_bytes_max=50000

failed=0
for target in $targets; do
  binary=$binaries/$target
  [ -x "$binary" ] || { echo "unknown target $target" >&2; exit 2; }
  found=$out/found/$target
  mkdir -p "$found" "$out/artifacts/$target"
  flags=(-rss_limit_mb=512 -timeout=60 -max_len="$(longest "$target")" -dict=dictionary
    -artifact_prefix="$out/artifacts/$target/")
  if [ "$mode" = minimize ]; then
    # Handwritten inputs (any name but a digest) stay. Inputs that add coverage are added, up to the maximum.
    rm -rf "$out/minimized"
    mkdir "$out/minimized"
    find "corpus/$target" -type f | grep -vE '/[0-9a-f]{40}$' | xargs -r -I{} cp {} "$out/minimized/"
    "$binary" "${flags[@]}" -set_cover_merge=1 "$out/minimized" "corpus/$target" "$found" > "$out/$target.log" 2>&1
    rm -rf "corpus/$target"
    mkdir "corpus/$target"
    find "$out/minimized" -type f | grep -vE '/[0-9a-f]{40}$' | xargs -r -I{} cp {} "corpus/$target/"
    find "$out/minimized" -type f -printf '%s %p\n' | grep -E '/[0-9a-f]{40}$' | sort -n > "$out/added"
    # Choose evenly over all sizes: small inputs alone cover little.
    awk -v n="$(wc -l < "$out/added")" -v m="$added_files_max" \
      'n <= m || int(NR * m / n) > int((NR - 1) * m / n)' "$out/added" > "$out/chosen"
    bytes=0
    while read -r size file; do
      bytes=$((bytes + size))
      [ "$bytes" -le "$added_bytes_max" ] || break
      cp "$file" "corpus/$target/"
    done < "$out/chosen"
    printf '%-10s %s files, %s bytes\n' "$target" "$(find "corpus/$target" -type f | wc -l)" \
      "$(cat "corpus/$target"/* | wc -c)"
    continue
  fi
  before=$(find "$found" -type f | wc -l)
  status=ok
  "$binary" "${flags[@]}" -max_total_time="$mode" -print_final_stats=1 "$found" "corpus/$target" \
    > "$out/$target.log" 2>&1 || status=FAILED
  new=$(($(find "$found" -type f | wc -l) - before))
  printf '%-10s %-6s %12s executions %8s/s %8s covered %6s new inputs\n' "$target" "$status" \
    "$(last 'stat::number_of_executed_units:' "$out/$target.log")" \
    "$(last 'stat::average_exec_per_sec:' "$out/$target.log")" "$(last 'cov:' "$out/$target.log")" "$new"
  if [ "$status" = FAILED ]; then
    failed=1
    grep -aE -A2 'panicked at|ERROR: libFuzzer|Test unit written' "$out/$target.log" | head -12 >&2
  fi
done
exit "$failed"
