#!/bin/sh
# A training program in a few lines: its "accuracy" rises with the epochs towards a height that the learning rate sets.
# It reads its hyperparameters from the environment, prints its metric once an epoch, keeps a checkpoint, and goes on
# from it when it is started again.
set -eu
show() {
  awk -v rate="$SM_HP_LEARNING_RATE" -v epoch="$1" 'BEGIN {
    distance = log(rate / 0.03); height = 0.95 / (1 + 0.1 * distance * distance)
    printf "epoch %d accuracy=%.4f\n", epoch, height * (1 - exp(-epoch / 5))
  }'
}
checkpoint="$SM_ROOT/checkpoints/epoch"
epoch=$(cat "$checkpoint" 2>/dev/null || echo 0)
# Its machine went away after its last checkpoint: the value may never have been read.
[ "$epoch" -lt "$SM_HP_EPOCHS" ] || show "$epoch"
while [ "$epoch" -lt "$SM_HP_EPOCHS" ]; do
  epoch=$((epoch + 1))
  show "$epoch"
  # All hosts of a job keep their checkpoints in one place.
  new="$checkpoint.new-$SM_CURRENT_HOST"
  echo "$epoch" > "$new"
  mv "$new" "$checkpoint"
  sleep "${SM_HP_SECONDS_PER_EPOCH:-0.1}"
done
