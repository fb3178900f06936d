#!/bin/sh
# A minimal training program. Its "accuracy" rises with the epochs to a limit that depends on the learning rate.
# It reads its hyperparameters from the environment, prints its metric every epoch, writes a checkpoint, and continues
# from the checkpoint after a restart.
set -eu
show() {
  awk -v rate="$SM_HP_LEARNING_RATE" -v epoch="$1" 'BEGIN {
    distance = log(rate / 0.03); height = 0.95 / (1 + 0.1 * distance * distance)
    printf "epoch %d accuracy=%.4f\n", epoch, height * (1 - exp(-epoch / 5))
  }'
}
checkpoint="$SM_ROOT/checkpoints/epoch"
epoch=$(cat "$checkpoint" 2>/dev/null || echo 0)
# The previous attempt wrote its last checkpoint, but its value may be lost. Print the value again.
[ "$epoch" -lt "$SM_HP_EPOCHS" ] || show "$epoch"
while [ "$epoch" -lt "$SM_HP_EPOCHS" ]; do
  epoch=$((epoch + 1))
  show "$epoch"
  # All hosts of a job share the checkpoint folder.
  new="$checkpoint.new-$SM_CURRENT_HOST"
  echo "$epoch" > "$new"
  mv "$new" "$checkpoint"
  # A stopped job keeps the model that it saved last.
  printf '{"learning_rate": %s, "epoch": %d}\n' "$SM_HP_LEARNING_RATE" "$epoch" > "$SM_MODEL_DIR/model.json"
  sleep "${SM_HP_SECONDS_PER_EPOCH:-0.1}"
done
