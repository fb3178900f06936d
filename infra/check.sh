#!/usr/bin/env bash
# Checks the templates without an account: their form, known mistakes, and every policy; the template also with each overlay, and with
# all of them. Checks the form of the example pipeline.
# Needs Python 3.11+. The script installs its tools into .work folders and then needs no network. tests/stack-template compares the template with the code.
set -euo pipefail
cd "$(dirname "$0")"
. ../tests/stack/environment.sh
environment .work/check check-requirements.txt
environment ../tests/stack/.work/sam ../tests/stack/requirements-sam.txt
export SAM_CLI_TELEMETRY=0 AWS_EC2_METADATA_DISABLED=true AWS_DEFAULT_REGION=us-east-1

overlays=(overlays/*.yaml)
overlays=("${overlays[@]##*/}")
overlays=("${overlays[@]%.yaml}")
rm -f .work/merged-*.yaml
for overlay in "${overlays[@]}"; do
  python3 -B overlay.py "$overlay" > ".work/merged-$overlay.yaml"
done
python3 -B overlay.py "${overlays[@]}" > .work/merged-all.yaml

# Each tool reads all templates in one run, since its start takes longer than a template.
templates=(template.yaml .work/merged-*.yaml samples/*/template.yaml)
.work/check/bin/cfn-lint "${templates[@]}"
.work/check/bin/checkov --config-file checkov.yaml --file "${templates[@]}"
.work/check/bin/python check_policies.py "${templates[@]}"
# cfn-lint has transformed each template already. SAM's own check runs on the template, on it with all overlays, and on the
# sample that uses SAM.
for template in template.yaml .work/merged-all.yaml samples/step-functions/template.yaml; do
  ../tests/stack/.work/sam/bin/sam validate --lint --template-file "$template" > /dev/null
done
# The template without SAM, as in a release. It has the same roles and resources, so only its form can be wrong.
environment .work/release release-requirements.txt
.work/release/bin/python translate.py arm64 > .work/template-translated.yaml
.work/release/bin/python translate.py arm64 "${overlays[@]/#/--overlay=}" > .work/template-translated-all.yaml
.work/check/bin/cfn-lint .work/template-translated.yaml .work/template-translated-all.yaml
# The merge, and what deploy.sh does with it.
python3 -B ../tests/stack/test_overlays.py
# deploy-policy.json has the permissions of a deployment of the template.
.work/check/bin/python ../tests/stack/test_deploy_policy.py
# The example pipeline, by the schema of its format that the checker includes.
.work/check/bin/check-jsonschema --builtin-schema vendor.github-workflows ../examples/ci/github-actions.yml
# docs/PARAMETERS.md has the parameters of the template and of the overlays.
.work/check/bin/python parameters.py --check
# samconfig.toml sets only parameters and values of the template.
.work/check/bin/python check_policies.py --settings samconfig.toml template.yaml
