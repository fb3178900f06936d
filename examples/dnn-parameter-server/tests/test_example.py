"""Tests the example with real training processes that launch.py starts.

Run with the example's Python: .work/venv/bin/python tests/test_example.py. Needs the data package, but not the
controller. Each test has its own folder and leaves no process.
"""

import contextlib
import io
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path
from unittest import mock

os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
EXAMPLE = HERE.parent
sys.path.insert(0, str(EXAMPLE))

import numpy as np  # noqa: E402

import checkpoint  # noqa: E402
import frames  # noqa: E402
import launch  # noqa: E402
import modelled  # noqa: E402
import make_request  # noqa: E402
import network  # noqa: E402
import parameter_server  # noqa: E402
import prepare  # noqa: E402
import table  # noqa: E402
import comparison  # noqa: E402 isort: skip

TRAIN = [sys.executable, str(EXAMPLE / "train.py")]
HYPERPARAMETERS = {"epochs": 6, "learning_rate": 0.02, "momentum": 0.9, "mini_batch": 32, "hidden_units": 32}
ENDLESS = 50_000


def wait_for(condition, message, limit=60):
    deadline = time.monotonic() + limit
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(message())
        time.sleep(0.002)


def wait_for_epoch(job, epoch):
    wait_for(lambda: f"epoch {epoch}: " in job.log(), lambda: f"epoch {epoch} not reached: {job.log()}")


class Example(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shared = tempfile.TemporaryDirectory()
        command = [sys.executable, EXAMPLE / "prepare.py", "--out", Path(cls.shared.name) / "data", "--shards", "4"]
        made = subprocess.run(command, capture_output=True, text=True)
        assert made.returncode == 0, made.stderr
        cls.data = Path(made.stdout.strip())

    @classmethod
    def tearDownClass(cls):
        cls.shared.cleanup()

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def job(self, instances, name="job", attempt=1, **hyperparameters):
        values = {**HYPERPARAMETERS, **hyperparameters}
        return launch.Job(TRAIN, self.folder / name, self.data, instances, values, attempt)

    def trained(self, instances, name="job", attempt=1, **hyperparameters):
        """Runs a job to its end, which must be successful."""
        with self.job(instances, name, attempt, **hyperparameters) as job:
            self.assertTrue(job.wait(), job.log())
        return job

    def assert_same_model(self, one, other):
        one, other = one.model(), other.model()
        self.assertEqual(one.parameters.tobytes(), other.parameters.tobytes())
        self.assertEqual(one.velocity.tobytes(), other.velocity.tobytes())
        self.assertEqual(one.epoch, other.epoch)


class Data(Example):
    def test_the_split_is_60_20_20_and_the_training_part_is_sharded(self):
        rows = {f.relative_to(self.data).as_posix(): len(np.load(f)) for f in self.data.glob("*/*.npy")}
        shards = {f"train/part-{n:03d}.npy": 843 for n in range(4)}
        self.assertEqual(rows, {**shards, "validation/part-000.npy": 1124, "test/part-000.npy": 1124})

    def test_each_image_is_in_one_part(self):
        table = np.arange(prepare.ROWS * 65).reshape(-1, 65)
        table[:, 0] = np.arange(prepare.ROWS) % 10
        parts = [set(part[:, 1].tolist()) for part in prepare.split(table)]
        self.assertEqual(sum(map(len, parts)), prepare.ROWS)
        self.assertEqual(len(set.union(*parts)), prepare.ROWS)


class Mathematics(unittest.TestCase):
    def test_the_gradient_equals_the_numerical_derivative_of_the_loss(self):
        random = np.random.default_rng(1)
        net = network.Network(5)
        images, labels = random.random((7, network.PIXELS), np.float32), random.integers(0, 10, 7)
        parameters = net.initial(3).astype(np.float64)
        gradient, ignored = np.empty(net.size), np.empty(net.size)
        net.gradient(parameters, images, labels, 0, gradient)
        for index in random.choice(net.size, 40, replace=False):
            moved = parameters.copy()
            moved[index] += 1e-6
            above = net.gradient(moved, images, labels, 0, ignored)
            moved[index] -= 2e-6
            below = net.gradient(moved, images, labels, 0, ignored)
            self.assertAlmostEqual(gradient[index], (above - below) / 2e-6, places=5)

    def test_a_pass_has_every_row_once_in_an_order_that_its_number_determines(self):
        batches = network.mini_batches(12, 4, seed=1, rank=2, first_pass=0)
        first, second = ([next(batches) for _ in range(3)] for _ in range(2))
        self.assertEqual(sorted(np.concatenate(first)), list(range(12)))
        again = network.mini_batches(12, 4, seed=1, rank=2, first_pass=1)
        np.testing.assert_array_equal(second, [next(again) for _ in range(3)])
        self.assertFalse(np.array_equal(first, second))


class Framing(unittest.TestCase):
    def setUp(self):
        self.reader = frames.Reader(size=3)
        self.gradient = frames.gradient_frame(7, 0.5, np.array([1, -2, 3.5], np.float32))

    def test_frames_are_assembled_from_pieces_of_any_length(self):
        sent = self.gradient + frames.frame(frames.DONE) + self.gradient
        for length in (1, 2, 5, len(self.gradient) + 1, len(sent)):
            got = []
            for start in range(0, len(sent), length):
                self.reader.feed(sent[start : start + length])
                while (whole := self.reader.next()) is not None:
                    got.append(whole)
            self.assertEqual([kind for kind, _ in got], [frames.GRADIENT, frames.DONE, frames.GRADIENT])
            numbers, vector = frames.vector(got[2][1], frames.GRADIENT_HEAD)
            self.assertEqual((numbers, vector.tolist()), ((7, 0.5), [1, -2, 3.5]))

    def test_an_invalid_length_is_refused_before_its_body_arrives(self):
        for kind, length in ((frames.GRADIENT, 27), (frames.GRADIENT, 2**32 - 1), (frames.DONE, 1), (99, 0)):
            reader = frames.Reader(size=3)
            reader.feed(frames.HEAD.pack(kind, length))
            with self.assertRaises(frames.BadFrame, msg=f"kind {kind}, {length} bytes"):
                reader.next()

    def test_an_incomplete_frame_is_not_returned(self):
        self.reader.feed(self.gradient[:-1])
        self.assertIsNone(self.reader.next())
        self.reader.feed(self.gradient[-1:])
        self.assertEqual(self.reader.next()[0], frames.GRADIENT)


class Serving(unittest.TestCase):
    """Tests the server with workers that the test simulates."""

    def setUp(self):
        self.net = network.Network(1)
        vector = np.zeros(self.net.size, np.float32)
        self.done = []
        epoch_done = lambda training: self.done.append((list(training.ages), training.version))  # noqa: E731
        self.training = parameter_server.Training(vector, vector.copy(), 0, 1, 1.0, 0.0, epoch_done)
        listener = socket.create_server(("127.0.0.1", 0))
        self.address = listener.getsockname()
        hosts = ["algo-1", "algo-2"]
        self.server = parameter_server.Server(listener, self.training, hosts, "token", self.net.size, mini_batch=1)
        self.outcome = None
        self.thread = threading.Thread(target=self._serve)
        self.thread.start()
        self.addCleanup(listener.close)
        self.addCleanup(self.thread.join, 30)
        self.links = []

    def _serve(self):
        try:
            self.server.serve()
            self.outcome = "done"
        except parameter_server.HostLost as error:
            self.outcome = str(error)
        finally:
            self.server.close()

    def greet(self, rank, token="token", rows=3):
        link = socket.create_connection(self.address, timeout=30)
        self.addCleanup(link.close)
        hello = {"token": token, "rank": rank, "rows": rows, "size": self.net.size}
        link.sendall(frames.frame(frames.HELLO, json.dumps(hello).encode()))
        return link, frames.Reader(self.net.size)

    def version(self, link, reader):
        kind, body = frames.receive(link, reader)
        self.assertEqual(kind, frames.PARAMETERS)
        return frames.vector(body, frames.PARAMETERS_HEAD)[0][0]

    def push(self, link, version):
        link.sendall(frames.gradient_frame(version, 1.0, np.full(self.net.size, -1, np.float32)))

    def test_gradients_are_applied_on_arrival_and_their_age_is_counted(self):
        one, two = self.greet(0), self.greet(1)
        self.assertEqual((self.version(*one), self.version(*two)), (0, 0))
        for expected in (1, 2, 3):
            self.push(one[0], expected - 1)
            self.assertEqual(self.version(*one), expected, "the server does not wait for the other worker")
        self.push(two[0], 0)
        self.assertEqual(self.version(*two), 4)
        self.push(two[0], 4)
        self.assertEqual(self.version(*two), 5)
        self.push(one[0], 3)
        for link, reader in (one, two):
            if link is two[0]:
                self.push(link, 5)
            self.assertEqual(frames.receive(link, reader)[0], frames.DONE)
        self.thread.join(30)
        self.assertEqual(self.outcome, "done")
        self.assertEqual(self.done, [([0, 0, 0, 3, 0, 2], 6)])
        self.assertTrue((self.training.parameters == 6).all(), "each gradient is applied once, except the one after the end")

    def test_a_worker_that_is_too_far_ahead_waits_for_the_slowest(self):
        one, two = self.greet(0, rows=50), self.greet(1, rows=50)
        self.version(*two)
        for version in range(parameter_server.LEAD_MAX + 1):
            self.assertEqual(self.version(*one), version)
            self.push(one[0], version)
        one[0].settimeout(0.2)
        with self.assertRaises(TimeoutError):
            frames.receive(*one)
        self.push(two[0], 0)
        one[0].settimeout(30)
        # The server applies the push of the slowest worker first, then the delayed one.
        self.assertEqual(self.version(*two), parameter_server.LEAD_MAX + 1)
        self.assertEqual(self.version(*one), parameter_server.LEAD_MAX + 2)
        one[0].close()

    def test_an_unknown_connection_is_closed_and_the_job_continues(self):
        link, reader = self.greet(0, token="another job's")
        with self.assertRaises(ConnectionError):
            frames.receive(link, reader)
        one, two = self.greet(0), self.greet(1)
        self.assertEqual((self.version(*one), self.version(*two)), (0, 0))
        one[0].close()

    def test_an_unexpected_gradient_ends_the_job(self):
        one, two = self.greet(0), self.greet(1)
        self.version(*one), self.version(*two)
        self.push(one[0], 1)
        self.thread.join(30)
        self.assertIn("algo-1 sent an unexpected gradient", self.outcome)

    def test_a_failed_worker_reports_the_reason(self):
        one, _ = self.greet(0), self.greet(1)
        self.version(*one)
        one[0].sendall(frames.frame(frames.FAILED, b"out of luck"))
        self.thread.join(30)
        self.assertEqual(self.outcome, "algo-1 failed: out of luck")


class Resuming(Example):
    def test_one_host_resumes_to_the_same_bits_after_a_kill_at_any_moment(self):
        unbroken = self.trained(1, "unbroken", epochs=30)
        curve = {}
        # The kill may come during training, printing or writing.
        for attempt, epoch in enumerate((3, 9, 16, 22), 1):
            with self.job(1, "broken", attempt, epochs=30) as job:
                wait_for_epoch(job, epoch)
                job.signal(signal.SIGKILL)
            self.assertLess(max(job.curve()), 30, "killed too late for the test")
            curve = {**job.curve(), **curve}
        last = self.trained(1, "broken", attempt=5, epochs=30)
        self.assertIn("continuing from the checkpoint of", last.log())
        self.assertGreater(min(last.curve()), 20)
        self.assertEqual({**last.curve(), **curve}, unbroken.curve())
        self.assert_same_model(last, unbroken)

    def test_a_promotion_from_3_to_9_epochs_equals_9_epochs_in_one_job(self):
        first = self.trained(1, "promoted", epochs=3)
        self.assertEqual(list(first.curve()), [1, 2, 3])
        with self.job(1, "promoted", 2, epochs=9) as killed:
            wait_for_epoch(killed, 5)
            killed.signal(signal.SIGKILL)
        self.assertEqual(min(killed.curve()), 4)
        second = self.trained(1, "promoted", 3, epochs=9)
        self.assertEqual(max(second.curve()), 9)
        self.assert_same_model(second, self.trained(1, "at-once", epochs=9))

    def test_a_promotion_of_four_hosts_survives_a_kill(self):
        self.trained(4, epochs=2)
        with self.job(4, attempt=2, epochs=9) as killed:
            wait_for_epoch(killed, 4)
            killed.signal(signal.SIGKILL)
        self.assertEqual(min(killed.curve()), 3)
        last = self.trained(4, attempt=3, epochs=9)
        self.assertGreaterEqual(min(last.curve()), 4)
        self.assertEqual((max(last.curve()), last.model().epoch), (9, 9))
        self.assertGreater(last.curve()[9], 0.9)

    def test_an_attempt_without_remaining_work_prints_its_value(self):
        for instances in (1, 4):
            with self.subTest(instances=instances):
                first = self.trained(instances, f"job-{instances}")
                second = self.trained(instances, f"job-{instances}", attempt=2)
                self.assertEqual(second.curve(), {6: first.curve()[6]})
                self.assert_same_model(first, second)

    def test_a_damaged_or_foreign_checkpoint_is_reported_and_training_starts_again(self):
        whole = self.trained(1, epochs=3)
        file = whole.folder / "checkpoints" / checkpoint.NAME
        content = file.read_bytes()
        flipped = bytearray(content)
        flipped[len(content) // 2] ^= 1
        damages = {"cut": content[:-100], "flipped": bytes(flipped), "empty": b"", "text": b"no checkpoint"}
        for attempt, (name, damaged) in enumerate(damages.items(), 2):
            with self.subTest(name):
                file.write_bytes(damaged)
                again = self.trained(1, attempt=attempt, epochs=3)
                self.assertIn("checkpoint ignored, training starts again", again.log())
                self.assertEqual(list(again.curve()), [1, 2, 3])
                self.assert_same_model(again, whole)
        other = self.trained(1, attempt=9, epochs=3, hidden_units=16)
        self.assertIn("has another network", other.log())

    def test_an_interrupted_write_keeps_the_previous_checkpoint(self):
        vector = np.arange(5, dtype=np.float32)
        checkpoint.save(self.folder, checkpoint.Checkpoint(vector, vector, 1, 0, "epoch 1"))

        def cut_off(file, **_):
            file.write(b"half")
            raise OSError("killed")

        with mock.patch.object(np, "savez", cut_off), self.assertRaises(OSError):
            checkpoint.save(self.folder, checkpoint.Checkpoint(vector, vector, 2, 0, "epoch 2"))
        found = checkpoint.load_for(self.folder, 5, 0)
        self.assertEqual((found.epoch, found.line, found.parameters.tolist()), (1, "epoch 1", [0, 1, 2, 3, 4]))


class Training(Example):
    def test_four_hosts_train_one_model_with_stale_gradients(self):
        job = self.trained(4, epochs=2)
        self.assertEqual(list(job.curve()), [1, 2])
        self.assertGreater(job.curve()[2], 0.6)
        # Each of 4 workers always has a gradient in flight, so a gradient is 3 updates old, except at the start.
        self.assertAlmostEqual(job.staleness(), 3, delta=0.2)
        for host in job.hosts[1:]:
            self.assertNotIn("validation-accuracy", job.log(host), "only the first host prints metrics")
            self.assertFalse((job.roots[host] / "model/model.npz").exists())
        self.assertFalse((job.folder / "checkpoints/.server.json").exists())
        self.assertGreater(launch.test_accuracy(job.model(), self.data), 0.6)

    def test_a_lost_host_ends_the_job_with_a_reason(self):
        for victim in ("algo-1", "algo-3"):
            with self.subTest(victim=victim), self.job(4, f"job-{victim}", epochs=ENDLESS) as job:
                wait_for_epoch(job, 2)
                job.signal(signal.SIGKILL, [victim])
                self.assertFalse(job.wait(peer_seconds=20))
                others = {host: code for host, code in job.exit_codes().items() if host != victim}
                # Code 0 would mean that the launcher stopped them after 20 s.
                self.assertEqual(set(others.values()), {3}, others)
                self.assertIn("was lost", job.failure("algo-2"))
                if victim != "algo-1":
                    self.assertRegex(job.failure("algo-1"), f"{victim} (ended before|was lost)")

    def test_sigterm_ends_all_hosts_with_a_model(self):
        with self.job(4, epochs=ENDLESS) as job:
            wait_for_epoch(job, 2)
            job.signal(signal.SIGTERM)
            self.assertTrue(job.wait(), job.exit_codes())
        self.assertGreaterEqual(job.model().epoch, 1)
        self.assertIsNone(job.failure("algo-1"))

    def test_hosts_ignore_the_rendezvous_of_an_earlier_attempt(self):
        foreign = socket.create_server(("127.0.1.1", 0))
        self.addCleanup(foreign.close)
        file, begin = self.folder / "job/checkpoints/.server.json", self.folder / "begin"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps({"attempt": "job-0", "port": foreign.getsockname()[1], "token": "old"}))
        # The server starts late, so the others first find only the file of the earlier attempt.
        late = f'[ $SM_CURRENT_HOST != algo-1 ] || until [ -e "{begin}" ]; do sleep 0.01; done; exec "$@"'
        command = ["sh", "-c", late, "sh", *TRAIN]
        with launch.Job(command, self.folder / "job", self.data, 4, {**HYPERPARAMETERS, "epochs": 1}) as job:
            foreign.settimeout(1)
            with self.assertRaises(TimeoutError, msg="a host connected to the server of an earlier attempt"):
                foreign.accept()
            begin.touch()
            self.assertTrue(job.wait(), job.log())

    def test_a_diverged_training_succeeds_with_a_low_accuracy(self):
        job = self.trained(1, epochs=2, learning_rate=900)
        self.assertLess(job.curve()[2], 0.3)

    def test_invalid_hyperparameters_are_named(self):
        with self.job(1, momentum=1, mini_batch="many", epoch=3, learning_rate=0) as job:
            self.assertFalse(job.wait())
        self.assertEqual(job.exit_codes(), {"algo-1": 1})
        for part in (
            "momentum=1 must be at least 0 and at most 0.9999",
            "mini_batch='many'",
            "unknown epoch: ",
            "learning_rate=0 must be greater than 0",
        ):
            self.assertIn(part, job.failure("algo-1"))

    def test_a_host_without_data_reports_it(self):
        with self.job(5) as job:
            self.assertFalse(job.wait(peer_seconds=1))
        self.assertIn("no .npy file", job.failure("algo-5"))


class Launching(Example):
    def test_hosts_die_with_a_killed_launcher(self):
        marker = self.folder / "pid"
        command = ["sh", "-c", f'echo $$ >> "{marker}"; exec sleep 60']
        launcher = subprocess.Popen(
            [sys.executable, EXAMPLE / "launch.py", "--instances", "2", "--data", self.data]
            + ["--folder", self.folder / "job", "--", *command]
        )
        wait_for(lambda: marker.exists() and len(marker.read_text().split()) == 2, lambda: "no hosts")
        launcher.kill()
        launcher.wait()

        def ended():
            states = []
            for pid in marker.read_text().split():
                with contextlib.suppress(FileNotFoundError):
                    states.append(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0])
            return all(state == "Z" for state in states)

        wait_for(ended, lambda: "still running", limit=10)

    def test_the_launcher_fails_with_its_host(self):
        command = [sys.executable, EXAMPLE / "launch.py", "--instances", "1", "--data", self.data]
        done = subprocess.run([*command, "--folder", self.folder / "job", "--", "false"], capture_output=True)
        self.assertEqual(done.returncode, 1)


class Requests(unittest.TestCase):
    @staticmethod
    def request(*options):
        text = io.StringIO()
        arguments = ["make_request.py", "--data", str(HERE), *options]
        with (
            mock.patch.object(sys, "argv", arguments),
            contextlib.redirect_stdout(text),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            make_request.main()
        return json.loads(text.getvalue())

    def test_only_stop_mode_sets_static_epochs(self):
        for mode, controller, static in (("promote", "Promote", None), ("stop", "Stop", "27")):
            request = self.request("--mode", mode)
            self.assertEqual(request["Controller"]["RungExecution"], controller)
            self.assertEqual(request["TrainingJobDefinition"]["StaticHyperParameters"].get("epochs"), static)

    def test_the_sampler_is_the_model_unless_another_is_given(self):
        samplers = [self.request(*options)["Controller"]["Sampler"] for options in ((), ("--sampler", "Sobol"))]
        self.assertEqual(samplers, ["Model", "Sobol"])

    def test_the_cap_allows_all_parallel_jobs(self):
        request = self.request()
        parallel = request["HyperParameterTuningJobConfig"]["ResourceLimits"]["MaxParallelTrainingJobs"]
        self.assertGreaterEqual(request["Controller"]["MaxCostUsd"], parallel * make_request.worst_case_usd(4))

    def test_the_first_trials_have_the_untuned_values_and_their_jobs_the_same_mini_batch(self):
        controller = self.request("--first", "momentum=0.9", "mini_batch=32")["Controller"]
        self.assertEqual(controller["InstanceCounts"], [1, 2, 4])
        self.assertEqual(controller["ScaleWithInstances"], ["mini_batch"])
        first = [(each["InstanceCount"], each["mini_batch"]) for each in controller["InitialConfigurations"]]
        self.assertEqual(first, [("1", "32"), ("2", "16"), ("4", "8")])

    def test_the_test_images_are_not_a_channel(self):
        channels = self.request()["TrainingJobDefinition"]["InputDataConfig"]
        self.assertEqual([channel["ChannelName"] for channel in channels], ["train", "validation"])


class Modelling(unittest.TestCase):
    def test_one_host_has_no_network_and_more_hosts_share_the_waits_until_the_server_is_full(self):
        seconds = lambda hosts: modelled.network_seconds(hosts, rows=1000, mini_batch=10, hidden_units=64)  # noqa: E731
        self.assertEqual(seconds(1), 0)
        size = 4 * network.Network(64).size
        wait = 2 * 0.0001 + 2 * size / 1.25e9
        self.assertAlmostEqual(seconds(2), 100 * wait / 2)
        self.assertAlmostEqual(seconds(100), 100 * size / 1.25e9)


class Comparison(unittest.TestCase):
    def setUp(self):
        self.result = json.loads((HERE / "sample_result.json").read_text())
        self.request = Requests.request()
        untuned = {1: (0.980, 0.984), 2: (0.90, 0.94), 4: (0.10, 0.30)}
        self.untuned = [[self.measured(count, test) for test in tests] for count, tests in untuned.items()]
        self.tuned = [[self.measured(4, test, learning_rate="0.3") for test in (0.981, 0.985)]]

    @staticmethod
    def measured(instances, test, learning_rate="0.1"):
        return {
            "instances": instances,
            "validation": test,
            "test": test,
            "epochs": 27,
            "staleness": instances - 1.0,
            "modelled_seconds": 2.5,
            "hyperparameters": {"seed": "1", "learning_rate": learning_rate},
        }

    def test_there_is_a_row_for_each_number_of_instances(self):
        lines = list(comparison.render(table.rows(self.untuned, self.tuned), "test accuracy"))
        self.assertEqual(len(lines), 5)
        self.assertRegex(lines[1], r"^1 instance, its .* 0\.9820 \(0\.9800-0\.9840\) +0\.9820 +2\.50 +2\.50$")
        self.assertRegex(lines[3], r"^4 instances, the same .* 0\.2000 \(0\.1000-0\.3000\) +0\.2000 +2\.50 +10\.00$")
        self.assertRegex(lines[4], r"^4 instances, tuned .* 0\.9830 \(0\.9810-0\.9850\) +0\.9830 +2\.50 +10\.00$")
        text = " ".join(table.remarks(self.untuned, self.tuned))
        self.assertIn("4 instances with the hyperparameters of one cost 78.2 points of accuracy", text)
        self.assertIn("their gradients were 3.00 updates old", text)
        self.assertIn("same hyperparameters, 4 instances: +78.3 points. Against one instance: +0.1.", text)

    def test_differences_within_noise_are_reported_as_noise(self):
        self.untuned[2] = [self.measured(4, test, learning_rate="0.2") for test in (0.981, 0.984)]
        text = " ".join(table.remarks(self.untuned, self.tuned))
        self.assertIn("4 instances with the hyperparameters of one cost no clear accuracy here (+0.0 points", text)
        self.assertIn("same hyperparameters, 4 instances: +0.1 points. This is within noise.", text)

    def test_one_seed_shows_large_differences_only_and_none_near_chance(self):
        one = lambda test: [self.measured(4, test, learning_rate=str(test))]  # noqa: E731
        self.assertTrue(table.is_noise(one(0.95), one(0.98)))
        self.assertFalse(table.is_noise(one(0.5), one(0.98)))
        self.assertTrue(table.is_noise(one(0.1), one(0.2)))

    def test_the_untuned_hyperparameters_as_result_are_no_gain(self):
        text = " ".join(table.remarks(self.untuned, [[self.measured(4, 0.5)]]))
        self.assertIn("Tuning found nothing better than the same hyperparameters, 4 instances.", text)

    def test_a_mini_batch_that_the_instances_do_not_divide_is_refused(self):
        with self.assertRaisesRegex(SystemExit, "invalid --instances 3: expected a divisor of the mini-batch 32"):
            Requests.request("--instances", "1,3", "--first", "mini_batch=32")
        small = Requests.request("--instances", "1,8", "--first", "mini_batch=32")
        ranges = small["HyperParameterTuningJobConfig"]["ParameterRanges"]["IntegerParameterRanges"]
        self.assertEqual(ranges[0]["MinValue"], "4")

    def test_the_tuning_has_its_shares_and_its_epochs(self):
        text = " ".join(comparison.of_the_tuning(self.request, self.result, "epochs"))
        self.assertIn("4 jobs of 3 configurations (2 with 1 instance, 1 with 4 instances) in 20.5 s", text)
        # A promoted trial has two jobs.
        self.assertIn("It trained 11 epochs; all epochs of its configurations are 81.", text)

    def test_a_tuned_row_has_the_hyperparameters_that_the_best_job_of_its_size_got(self):
        self.assertEqual(table.tuned({}, self.result, 4), {"learning_rate": "0.02", "mini_batch": "160"})
        self.assertEqual(table.tuned({}, self.result, 1)["learning_rate"], "0.2")
        self.assertEqual(table.tuned({}, self.result, 2), {})

    def test_a_tuning_without_a_best_job_says_so(self):
        self.result["TuningJob"].pop("BestTrainingJob")
        self.result["TrainingJobs"] = []
        self.assertIn("The tuning found no best job.", comparison.of_the_tuning(self.request, self.result, "epochs"))
        self.assertEqual(table.tuned({}, self.result, 4), {})


if __name__ == "__main__":
    unittest.main()
