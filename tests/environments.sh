#!/usr/bin/env bash
# Creates the Python environments of the tests and of infra/check.sh with uv, each in the folder where its script looks for it.
# Scripts also create their own environments, with pip, which takes ten times as long.
set -euo pipefail
cd "$(dirname "$0")"
. stack/environment.sh
# Modules of the temporary folders of earlier runs.
rm -rf "$PYTHONPYCACHEPREFIX$(realpath "${TMPDIR:-/tmp}")"
# The installer of the others.
environment .work/uv requirements-uv.txt
export UV=$PWD/.work/uv/bin/uv
# In the order in which tests/run.sh uses them.
environment stack/.work/emulator stack/requirements.txt
environment stack/.work/sam stack/requirements-sam.txt
environment stack/.work/aws stack/requirements-aws.txt
environment ../infra/.work/build ../infra/build-requirements.txt
environment ../infra/.work/release ../infra/release-requirements.txt
environment dynamodb/.work/moto dynamodb/requirements.txt
environment training-service/.work/venv training-service/requirements.txt
environment openapi/.work/venv openapi/requirements.txt
for name in boto3 sdk2 sdk3 tune; do
  environment "clients/.work/$name" "clients/requirements-$name.txt"
done
environment ../infra/.work/check ../infra/check-requirements.txt
