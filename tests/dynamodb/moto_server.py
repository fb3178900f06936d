"""Serves moto on a free port of loopback, one request at a time, and prints the address.

moto restores the whole table after a failed transaction. Requests that run at the same time would lose their writes: DynamoDB
restores only the rows of the transaction. Runs in the virtual environment of `requirements.txt`.
"""

import threading

from moto.server import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import run_simple

MOTO = DomainDispatcherApplication(create_backend_app)
ONE_REQUEST = threading.Lock()


def serve(environment, start_response):
    with ONE_REQUEST:
        return list(MOTO(environment, start_response))


if __name__ == "__main__":
    run_simple("127.0.0.1", 0, serve, threaded=True, request_handler=MotoRequestHandler)
