"""Runs a tuning with the client that is generated from the OpenAPI document. `mypy --strict` checks this file too.

    use_client.py URL REQUEST     prints the name of the best training job and its best value
"""

import json
import sys
import time
from pathlib import Path
from typing import TypeVar

from generated import Client
from generated.api.default import (
    create_tuning_job,
    describe_tuning_job,
    get_training_job,
    list_training_jobs,
    stop_tuning_job,
)
from generated.models import (
    CreatedTuning,
    ErrorBody,
    TrainingJobDetail,
    TrainingJobPage,
    TrainingJobSummary,
    TuningJob,
    TuningRequest,
)

# Limits a test that would otherwise never end. No test needs a fast machine.
SECONDS = 600

T = TypeVar("T")


def expect(kind: type[T], answer: object) -> T:
    """Returns the answer, or ends the program if it is another one."""
    if isinstance(answer, kind):
        return answer
    sys.exit(f"expected {kind.__name__}, received {answer}")


def best_value(job: TrainingJobSummary) -> float:
    value = job.controller.best_value
    return value if isinstance(value, float) else float("-inf")


def main(url: str, request: Path) -> None:
    client = Client(base_url=url)
    body = TuningRequest.from_dict(json.loads(request.read_text()))
    name = body.hyper_parameter_tuning_job_name
    arn = expect(CreatedTuning, create_tuning_job.sync(client=client, body=body)).hyper_parameter_tuning_job_arn
    # The same request again is answered alike.
    again = expect(CreatedTuning, create_tuning_job.sync(client=client, body=body))
    assert again.hyper_parameter_tuning_job_arn == arn
    end = time.monotonic() + SECONDS
    while (job := expect(TuningJob, describe_tuning_job.sync(name, client=client))).hyper_parameter_tuning_job_status == "InProgress":
        assert time.monotonic() < end, f"the tuning did not end within {SECONDS} s"
        time.sleep(0.2)
    assert job.hyper_parameter_tuning_job_status == "Completed", job
    page = expect(TrainingJobPage, list_training_jobs.sync(name, client=client, max_results=100))
    best = max(page.training_job_summaries, key=best_value)
    detail = expect(TrainingJobDetail, get_training_job.sync(name, best.training_job_name, client=client))
    values = [point.value for point in detail.curve if isinstance(point.value, float)]
    assert detail.training_job_name == best.training_job_name
    refused = expect(ErrorBody, stop_tuning_job.sync(name, client=client))
    assert refused.field_type_ == "ValidationException", refused
    print(best.training_job_name, max(values))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
