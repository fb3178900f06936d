"""Removes the variables of AWS from this process, so that no client finds an account, a profile or another address.

Adds the project's Python module to the path.
"""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = os.environ["HYPERBAND_BIN"]
REGION = "eu-west-1"

for _name in [name for name in os.environ if name.startswith(("AWS_", "HYPERBAND_")) and name != "HYPERBAND_BIN"]:
    del os.environ[_name]
os.environ.update({
    "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": REGION, "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull, "AWS_EC2_METADATA_DISABLED": "true",
    # Other services than SageMaker refuse every connection.
    "AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_MAX_ATTEMPTS": "1", "SAGEMAKER_SUPPRESS_V2_WARNING": "1",
})
sys.path.insert(0, str(ROOT / "python"))
