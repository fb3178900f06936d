#!/bin/sh
# A training program for the tests: that of examples/hello, without pauses. With the hyperparameter `endless` it only waits, and with
# `broken` it fails.
set -eu
[ -z "${SM_HP_BROKEN:-}" ] || exit 3
[ -z "${SM_HP_ENDLESS:-}" ] || exec sleep 600
SM_HP_SECONDS_PER_EPOCH=0
export SM_HP_SECONDS_PER_EPOCH
exec "$(dirname "$0")/../../examples/hello/train.sh"
