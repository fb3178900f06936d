"""Starts MiniStack, an emulator of AWS's services, on a free port of loopback. Stops it by its own process ID.

Adds the features that the tests need and MiniStack 1.5 lacks:

- Clients may put events with a source of AWS. In an account SageMaker sends such events.
- Requests count as sent over TLS.
- Policies see the partition keys of a request (`dynamodb:LeadingKeys`). In MiniStack such a condition is always true.
- Workflows may call APIs.
- A log filter may match one of several words, and may select streams by a prefix.
- Policies see calls on a log group as AWS does: with a `:log-stream:` part. MiniStack denies them to a policy for `<group>:*`.
- Templates may create connections and API destinations of EventBridge.
- `RequestParameters` of an HTTP API change the headers of requests for functions.
- Templates may exclude punctuation from generated secrets.
- Templates may create alarms on a sum of metrics. MiniStack refuses them. Here such an alarm watches the first metric only.
- Stream mappings retry, split, accept reported failures and give up like Lambda's. MiniStack ignores these settings: it retries a
  failed batch forever, and records that a function reports as failed count as processed.

Assumes that it runs in the virtual environment of `requirements.txt`. Must never listen on any address except loopback.

    with Emulator(folder, environment) as emulator:
        emulator.client("dynamodb")

MiniStack and every function get the variables of `environment`, for example AWS_ENDPOINT_URL_SAGEMAKER.
"""

import atexit
import contextlib
import contextvars
import faulthandler
import json
import os
import re
import signal
import socket
import string
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

REGION = "us-east-1"
ACCOUNT = "000000000000"
# The longest time that a step of a test takes: many times more than on an idle machine. Covers the slowest recovery, too: the
# claim of a killed actuator expires after three minutes, and the sweeps take more minutes.
SECONDS = 600
RETRY_SECONDS = 1.0


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Emulator:
    """A MiniStack process with its state and its log in `folder`."""

    def __init__(self, folder, environment=None, *, enforce_roles=False):
        self.folder = Path(folder)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = self.folder / "emulator.log"
        self.enforce_roles = enforce_roles
        self.extra = dict(environment or {})
        self.process = None

    def environment(self):
        """Returns the environment of a client, such as `sam` or a function."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        return kept | {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": REGION,
            "AWS_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
            "SAM_CLI_TELEMETRY": "0",
        }

    def start(self):
        temporary, state = self.folder / "tmp", self.folder / "state"
        for path in (temporary, state):
            path.mkdir(parents=True, exist_ok=True)
        environment = self.environment() | self.extra | {
            "GATEWAY_PORT": str(self.port),
            "EDGE_PORT": str(self.port),
            "BIND_HOST": "127.0.0.1",
            "MINISTACK_HOST": "localhost",
            "LAMBDA_EXECUTOR": "local",
            # Each of these opens a port on all addresses.
            "IOT_MTLS_ENABLED": "0",
            "SFTP_ENABLED": "0",
            "AUTH": "true" if self.enforce_roles else "false",
            "TMPDIR": str(temporary),
            "STATE_DIR": str(state),
        }
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(Path(__file__).resolve())],
                env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True,
            )
        # SIGTERM ends a test without its cleanups, and this session outlives its process group. Of all exceptions, only
        # KeyboardInterrupt ends unittest.
        atexit.register(self.stop)
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            self._wait_healthy()
        except BaseException:
            self.stop()
            raise
        return self

    def _wait_healthy(self):
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(f"MiniStack ended with exit code {self.process.returncode}; see {self.log}")
            with contextlib.suppress(urllib.error.URLError, ConnectionError, TimeoutError):
                with urllib.request.urlopen(f"{self.url}/_ministack/health", timeout=2) as answer:
                    if answer.status == 200:
                        return
            time.sleep(0.1)
        raise RuntimeError(f"MiniStack did not respond within {SECONDS} s; see {self.log}")

    def stop(self):
        """Kills MiniStack and the functions that it started: every process of its session."""
        if self.process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process = None

    def client(self, service):
        import boto3

        return boto3.client(
            service, endpoint_url=self.url, region_name=REGION,
            aws_access_key_id="test", aws_secret_access_key="test",
        )

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()


# ---- Code in MiniStack's process -------------------------------------------------------------------------------------------


def allow_aws_sources():
    """Allows clients to put events whose source begins with `aws.`."""
    from ministack.services import eventbridge

    eventbridge._put_events.__defaults__ = (True,)


class Mapping:
    """The pending batches of a stream mapping, oldest first, each with its number of failed attempts."""

    def __init__(self):
        self.batches = []
        self.not_before = 0.0


class StreamPoller:
    """Delivers stream records to functions, with a mapping's retries, splitting, reported failures and failure destination.

    Each record is read once and stays in `Mapping.batches` until it succeeds or the mapping gives it up. A split does not count as
    an attempt. The records after a reported one are delivered again with it. After the last attempt the mapping gives up all of
    them together.
    """

    def __init__(self, lambda_service):
        self.service = lambda_service
        self.mappings = {}

    def poll(self):
        """Polls each mapping once. Returns whether any mapping had work."""
        service, busy = self.service, False
        for account, region, mapping in service._iter_all_esms():
            account_token = service._request_account_id.set(account)
            region_token = service._request_region.set(region)
            try:
                busy = self.poll_mapping(mapping) or busy
            finally:
                service._request_account_id.reset(account_token)
                service._request_region.reset(region_token)
        return busy

    def poll_mapping(self, mapping):
        service = self.service
        source = service.parse_arn(mapping.get("EventSourceArn", ""))
        if source.service != "dynamodb" or not mapping.get("Enabled", True):
            return False
        function, _ = service._get_func_record_for_qualifier(mapping["FunctionName"], mapping.get("Qualifier"))
        if function is None:
            return False
        work = self.mappings.setdefault(mapping["UUID"], Mapping())
        if time.time() < work.not_before:
            return False
        if not work.batches:
            batch, moved = self.read(mapping, source)
            if not batch:
                return moved
            work.batches.append((batch, 0))
        self.deliver(mapping, function, work)
        return True

    def read(self, mapping, source):
        """Returns the next records that match the filter, and whether the position moved."""
        from ministack.services import dynamodb

        service = self.service
        table, _ = service._dynamodb_stream_table_from_arn_spec(source)
        if (dynamodb._tables.get(table) or {}).get("LatestStreamArn") != mapping["EventSourceArn"]:
            return [], False
        oldest, end = dynamodb.stream_start_position(table), dynamodb.stream_end_position(table)
        first = oldest if mapping.get("StartingPosition") == "TRIM_HORIZON" else end
        with service._dynamodb_stream_positions_lock:
            positions = service._dynamodb_stream_positions
            position = max(positions[mapping["UUID"]] if mapping["UUID"] in positions else first, oldest)
            records = dynamodb.stream_records_since(table, position, mapping.get("BatchSize", 100)) or []
            positions[mapping["UUID"]] = position + len(records)
        return (service._apply_filter_criteria(records, mapping) if records else []), bool(records)

    def deliver(self, mapping, function, work):
        batch, tries = work.batches.pop(0)
        result = self.service._execute_function(function, {"Records": batch})
        failed = bool(result.get("error"))
        rest = batch if failed else self.reported(mapping, batch, result)
        mapping["LastProcessingResult"] = "FAILED" if rest else f"OK - {len(batch)} records"
        if not rest:
            return
        work.not_before = time.time() + RETRY_SECONDS
        if self.too_old(mapping, rest):
            self.give_up(mapping, function, rest, result, "MaxRecordAgeExceeded")
        elif failed and mapping.get("BisectBatchOnFunctionError") and len(rest) > 1:
            half = (len(rest) + 1) // 2
            work.batches[:0] = [(rest[:half], tries), (rest[half:], tries)]
        elif 0 <= mapping.get("MaximumRetryAttempts", -1) <= tries:
            self.give_up(mapping, function, rest, result, "RetryAttemptsExhausted")
        else:
            work.batches.insert(0, (rest, tries + 1))

    @staticmethod
    def reported(mapping, batch, result):
        """Returns the records from the first reported failure to the end of the batch."""
        if "ReportBatchItemFailures" not in (mapping.get("FunctionResponseTypes") or []):
            return []
        body = result.get("body")
        with contextlib.suppress(TypeError, ValueError):
            body = json.loads(body) if isinstance(body, (str, bytes)) else body
        failures = (body.get("batchItemFailures") if isinstance(body, dict) else None) or []
        failed = {str(failure.get("itemIdentifier")) for failure in failures}
        for index, record in enumerate(batch):
            if str(record["dynamodb"]["SequenceNumber"]) in failed:
                return batch[index:]
        # An unknown sequence number fails the whole batch.
        return batch if failed else []

    @staticmethod
    def too_old(mapping, records):
        limit = mapping.get("MaximumRecordAgeInSeconds", -1)
        created = min(float(record["dynamodb"].get("ApproximateCreationDateTime", time.time())) for record in records)
        return limit > 0 and time.time() - created > limit

    def give_up(self, mapping, function, records, result, reason):
        stream = mapping["EventSourceArn"]
        self.service._send_ddb_stream_failure_record(mapping, function, records, stream, result, reason)


def count_as_tls():
    """Makes every request count as sent over TLS for policies. On loopback no client uses TLS."""
    from ministack.core import iam_evaluator

    pin = iam_evaluator.pin_request_origin
    iam_evaluator.pin_request_origin = lambda address, _secure: pin(address, True)


class ApiIntegration:
    """`apigateway:invoke` of Step Functions, which MiniStack lacks: a request signed with the role of the state machine."""

    def __init__(self, stepfunctions):
        self.stepfunctions, self.execute = stepfunctions, stepfunctions._execute_task
        self.role = contextvars.ContextVar("role")

    def execute_task(self, state, given, execution, context):
        self.role.set(self.stepfunctions._state_machines[execution["stateMachineArn"]]["roleArn"])
        return self.execute(state, given, execution, context)

    def invoke(self, _resource, parameters):
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest

        body = json.dumps(parameters["RequestBody"]).encode() if "RequestBody" in parameters else None
        request = AWSRequest(
            parameters["Method"], f"http://{parameters['ApiEndpoint']}{parameters['Path']}", data=body,
            headers={"content-type": "application/json"},
        )
        if parameters.get("AuthType") == "IAM_ROLE":
            SigV4Auth(self.credentials(), "execute-api", REGION).add_auth(request)
        # The signature has the API's host name; the request goes to loopback.
        here = f"http://127.0.0.1:{os.environ['GATEWAY_PORT']}{parameters['Path']}"
        headers = dict(request.headers) | {"host": parameters["ApiEndpoint"]}
        try:
            with urllib.request.urlopen(
                    urllib.request.Request(here, data=body, headers=headers, method=parameters["Method"]), timeout=60) as answer:
                return {"StatusCode": answer.status, "StatusText": answer.reason, "ResponseBody": json.loads(answer.read())}
        except urllib.error.HTTPError as refused:
            with refused:
                raise self.stepfunctions._ExecutionError(f"ApiGateway.{refused.code}", refused.read().decode()) from None

    def credentials(self):
        import boto3
        from botocore.credentials import Credentials

        sts = boto3.client(
            "sts", endpoint_url=f"http://127.0.0.1:{os.environ['GATEWAY_PORT']}", region_name=REGION,
            aws_access_key_id="test", aws_secret_access_key="test")
        given = sts.assume_role(RoleArn=self.role.get(), RoleSessionName="workflow")["Credentials"]
        return Credentials(given["AccessKeyId"], given["SecretAccessKey"], given["SessionToken"])


def allow_workflows_to_call_apis():
    from ministack.services import stepfunctions

    integration = ApiIntegration(stepfunctions)
    stepfunctions._execute_task = integration.execute_task
    stepfunctions._SERVICE_DISPATCH["arn:aws:states:::apigateway:invoke"] = integration.invoke


def read_optional_terms():
    """Adds patterns such as `?ERROR ?WARN` to FilterLogEvents: a line with one of the words matches."""
    from ministack.services import cloudwatch_logs

    compiled = cloudwatch_logs._compile_filter_pattern

    def with_optional(pattern):
        terms = pattern.split()
        if terms and all(term.startswith("?") for term in terms):
            return lambda message: any(term[1:] in message for term in terms)
        return compiled(pattern)

    cloudwatch_logs._compile_filter_pattern = with_optional


def read_log_prefixes():
    """Adds `logStreamNamePrefix` to FilterLogEvents. MiniStack ignores it and returns the lines of every stream."""
    from ministack.services import cloudwatch_logs

    filter_log_events = cloudwatch_logs._filter_log_events

    def with_prefix(request):
        prefix = request.get("logStreamNamePrefix")
        group = cloudwatch_logs._log_groups.get(request.get("logGroupName"))
        if prefix and group:
            names = [name for name in list(group["streams"]) if name.startswith(prefix)]
            # An empty list would select every stream.
            request = request | {"logStreamNames": names or ["(none)"]}
        return filter_log_events(request)

    cloudwatch_logs._filter_log_events = with_prefix


def name_log_streams():
    """Adds `:log-stream:` to the resource of calls on a log group, as in the errors of CloudWatch Logs."""
    from ministack.core import iam_actions

    extract = iam_actions.extract_resource_arn

    def with_stream(service, method, path, headers, *arguments):
        resource = extract(service, method, path, headers, *arguments)
        action = headers.get("x-amz-target", "").rsplit(".", 1)[-1]
        if service == "logs" and action in ("FilterLogEvents", "GetLogEvents", "PutLogEvents", "CreateLogStream"):
            return f"{resource}:log-stream:"
        return resource

    iam_actions.extract_resource_arn = with_stream


class PartAction(str):
    """The action of a part of a transaction, with the partition keys of this part only."""

    keys = ()


def partition_keys(request):
    """Returns the partition keys of a request to one table, from its key, its item or its key condition."""
    from ministack.services import dynamodb

    table = dynamodb._tables.get(request.get("TableName")) or {}
    names = [key["AttributeName"] for key in table.get("KeySchema", []) if key["KeyType"] == "HASH"]
    values = [(request.get(place) or {}).get(name) for place in ("Key", "Item") for name in names]
    aliases, given = request.get("ExpressionAttributeNames") or {}, request.get("ExpressionAttributeValues") or {}
    for name, value in re.findall(r"(#?\w+)\s*=\s*(:\w+)", request.get("KeyConditionExpression") or ""):
        if aliases.get(name, name) in names:
            values.append(given.get(value))
    return [text for value in values if value for text in value.values()]


def accept_sums_in_alarms():
    """Adds alarms on a sum of metrics to templates, each with the first metric only."""
    from ministack.services.cloudformation import provisioners

    record = provisioners._cw_metric_alarm_record

    def of_first(name, properties):
        parts = [part["MetricStat"] for part in properties.get("Metrics") or [] if "MetricStat" in part]
        if parts:
            plain = {key: value for key, value in properties.items() if key != "Metrics"}
            properties = plain | parts[0]["Metric"] | {"Period": parts[0]["Period"], "Statistic": parts[0]["Stat"]}
        return record(name, properties)

    provisioners._cw_metric_alarm_record = of_first


def map_headers_for_functions():
    """Applies the headers of `RequestParameters` to requests for functions. MiniStack applies them to HTTP backends only."""
    from ministack.services import apigateway

    invoke = apigateway._invoke_lambda_proxy

    async def with_mapping(integration, api_id, stage, path, method, headers, *arguments, **named):
        headers, _, _ = apigateway._apply_request_parameter_mappings(
            integration, request_headers=headers, request_query={}, request_path=path, path_params={}, context_vars={},
            stage_vars={})
        return await invoke(integration, api_id, stage, path, method, headers, *arguments, **named)

    apigateway._invoke_lambda_proxy = with_mapping


def exclude_punctuation_from_secrets():
    """Adds `ExcludePunctuation` to the secrets that templates generate. MiniStack reads `ExcludeCharacters` only."""
    from ministack.services.cloudformation import provisioners

    generate = provisioners._sm_secret_string

    def without(properties):
        wanted = properties.get("GenerateSecretString") or {}
        if wanted.get("ExcludePunctuation"):
            excluded = wanted.get("ExcludeCharacters", "") + string.punctuation
            properties = properties | {"GenerateSecretString": wanted | {"ExcludeCharacters": excluded}}
        return generate(properties)

    provisioners._sm_secret_string = without


def accept_api_destinations_in_templates():
    """Adds connections and API destinations to templates, with the operations of MiniStack's EventBridge."""
    from ministack.services import eventbridge
    from ministack.services.cloudformation import provisioners

    def handlers(create, delete, arn):
        def created(logical_id, properties, stack_name):
            name = properties.get("Name") or f"{stack_name}-{logical_id}"
            status, _, body = create(properties | {"Name": name})
            if status != 200:
                raise ValueError(body.decode())
            return name, {"Arn": json.loads(body)[arn]}

        return {"create": created, "delete": lambda name, _properties: delete({"Name": name})}

    provisioners._RESOURCE_HANDLERS |= {
        "AWS::Events::Connection": handlers(
            eventbridge._create_connection, eventbridge._delete_connection, "ConnectionArn"),
        "AWS::Events::ApiDestination": handlers(
            eventbridge._create_api_destination, eventbridge._delete_api_destination, "ApiDestinationArn"),
    }


def supply_leading_keys():
    """Sets `dynamodb:LeadingKeys` for policies, separately for each part of a transaction.

    Without the key, every `ForAllValues` condition is true.
    """
    from ministack.core import iam_actions, iam_evaluator

    key = "dynamodb:LeadingKeys"
    context, checks = iam_actions.dynamodb_service_context, iam_actions.dynamodb_transaction_checks
    enforce = iam_evaluator.enforce

    def context_with_keys(body):
        keys = partition_keys(json.loads(body or b"{}"))
        return context(body) | ({key: keys} if keys else {})

    def checks_with_keys(action, body, region, account):
        found = checks(action, body, region, account)
        parts = [part for item in json.loads(body)["TransactItems"] for part in item.values()] if found else []
        actions = [PartAction(part_action) for part_action, _ in found]
        for part_action, part in zip(actions, parts, strict=True):
            part_action.keys = partition_keys(part)
        return [(part_action, arn) for part_action, (_, arn) in zip(actions, found, strict=True)]

    def enforce_with_keys(access_key, action, *arguments, service_context=None, **named):
        if isinstance(action, PartAction):
            service_context = (service_context or {}) | {key: list(action.keys)}
        return enforce(access_key, action, *arguments, service_context=service_context, **named)

    iam_actions.dynamodb_service_context = context_with_keys
    iam_actions.dynamodb_transaction_checks = checks_with_keys
    iam_evaluator.enforce = enforce_with_keys


def run_ministack():
    from ministack.services import lambda_svc

    # `kill -USR1` logs the stack of each thread.
    faulthandler.register(signal.SIGUSR1)
    allow_aws_sources()
    count_as_tls()
    allow_workflows_to_call_apis()
    supply_leading_keys()
    accept_sums_in_alarms()
    accept_api_destinations_in_templates()
    exclude_punctuation_from_secrets()
    map_headers_for_functions()
    read_optional_terms()
    read_log_prefixes()
    name_log_streams()
    lambda_svc._poll_dynamodb_streams = StreamPoller(lambda_svc).poll
    from ministack.app import main

    sys.argv = ["ministack"]
    main()


if __name__ == "__main__":
    run_ministack()
