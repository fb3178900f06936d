"""Serves the tuning jobs that Automatic Model Tuning ran, in front of a training service on loopback.

Answers DescribeHyperParameterTuningJob and ListTrainingJobsForHyperParameterTuningJob of the given tuning jobs, in SageMaker's
format and with pages of two jobs. Forwards every other call, also those about other tuning jobs.
"""

import json
import sys
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PAGE = 2
DESCRIBE = "DescribeHyperParameterTuningJob"
LIST = "ListTrainingJobsForHyperParameterTuningJob"


class Server(ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        """Reports an error, but not the end of a function that no longer waits for the answer."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class AutomaticTunings:
    """Listens on `port`. `tunings` has the description and the training job summaries of each tuning job, by its name."""

    def __init__(self, port, service, tunings):
        self.calls = []
        front = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                operation = self.headers.get("x-amz-target", "").rpartition(".")[2]
                members = json.loads(body) if operation in (DESCRIBE, LIST) else {}
                found = tunings.get(members.get("HyperParameterTuningJobName"))
                if found is None:
                    return self.forward(body)
                front.calls.append(operation)
                description, summaries = found
                answer = description if operation == DESCRIBE else page(summaries, members)
                return self.send(200, json.dumps(answer).encode(), "application/x-amz-json-1.1")

            do_GET = do_POST = answer

            def forward(self, body):
                headers = {name: value for name, value in self.headers.items() if name.lower() != "connection"}
                sent = urllib.request.Request(f"{service}{self.path}", data=body or None, headers=headers, method=self.command)
                try:
                    with urllib.request.urlopen(sent, timeout=60) as answer:
                        self.send(answer.status, answer.read(), answer.headers["content-type"])
                except urllib.error.HTTPError as error:
                    with error:
                        self.send(error.code, error.read(), error.headers["content-type"])

            def send(self, status, answer, kind):
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self.server = Server(("127.0.0.1", port), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


def page(summaries, members):
    """Returns a page of the training jobs with a final value, in the order that the call asks for."""
    assert members["SortBy"] == "FinalObjectiveMetricValue", members
    listed = sorted(summaries, key=lambda job: job["FinalHyperParameterTuningJobObjectiveMetric"]["Value"],
                    reverse=members["SortOrder"] == "Descending")
    first = int(members.get("NextToken", 0))
    token = {"NextToken": str(first + PAGE)} if first + PAGE < len(listed) else {}
    return {"TrainingJobSummaries": listed[first:first + PAGE]} | token
