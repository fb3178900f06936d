"""Tests the example with real training processes that launch.py starts.

Run with the example's Python: .work/venv/bin/python tests/test_example.py. Needs the data package, but not the
controller. Each test has its own folder and leaves no process.
"""

import argparse
import contextlib
import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
EXAMPLE = HERE.parent
sys.path.insert(0, str(EXAMPLE))

import launch  # noqa: E402
import make_request  # noqa: E402
import modelled  # noqa: E402
import table  # noqa: E402
import comparison  # noqa: E402 isort: skip

TRAIN = [sys.executable, str(EXAMPLE / "train.py")]
HYPERPARAMETERS = {"num_round": 40, "eta": 0.3}


def prepare(out, *options):
    command = [sys.executable, EXAMPLE / "prepare.py", "--out", out, "--shards", "3", *options]
    return subprocess.run(command, capture_output=True, text=True)


def wait_for_round(job, index, limit=60):
    deadline = time.monotonic() + limit
    while f"[{index}]\t" not in job.log():
        if time.monotonic() > deadline:
            raise AssertionError(f"round {index} not reached: {job.log()}")
        time.sleep(0.005)


def checksum(folder):
    return hashlib.sha256((folder / "xgboost-model").read_bytes()).hexdigest()


class Example(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shared = tempfile.TemporaryDirectory()
        made = prepare(Path(cls.shared.name) / "data")
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


class Data(Example):
    def test_the_split_is_by_class_and_the_training_part_is_sharded(self):
        parts = {f.relative_to(self.data): f.read_text().splitlines() for f in self.data.rglob("*.csv")}
        rows = {str(name): (len(lines), sum(line.startswith("1,") for line in lines)) for name, lines in parts.items()}
        train = [rows.pop(f"train/part-{n:03d}.csv") for n in range(3)]
        self.assertEqual(rows, {f"{name}/part-000.csv": (1746, 104) for name in ("validation", "test")})
        self.assertEqual([count for count, _ in train], [777, 777, 776])
        self.assertEqual(sum(positive for _, positive in train), 140)

    def test_another_seed_of_the_split_gives_other_test_rows(self):
        made = prepare(self.folder / "out", "--split", "8")
        other = Path(made.stdout.strip()) / "test/part-000.csv"
        self.assertNotEqual(other.read_text(), (self.data / "test/part-000.csv").read_text())

    def test_unchanged_data_is_not_written_again(self):
        file = self.data / "validation/part-000.csv"
        before = file.stat().st_mtime_ns
        self.assertEqual(Path(prepare(self.data.parent).stdout.strip()), self.data)
        self.assertEqual(file.stat().st_mtime_ns, before)

    def test_text_columns_of_a_csv_are_one_hot_encoded(self):
        bank = self.folder / "bank.csv"
        lines = [f'{20 + n};"{("cat", "dog")[n % 2]}";{n};"{("yes", "no")[n % 3 == 0]}"' for n in range(60)]
        bank.write_text("\n".join(['"age";"pet";"duration";"y"', *lines]))
        made = prepare(self.folder / "out", "--data", bank, "--drop", "duration")
        self.assertEqual(made.returncode, 0, made.stderr)
        first = (Path(made.stdout.strip()) / "train/part-000.csv").read_text().splitlines()[0]
        self.assertEqual(len(first.split(",")), 4, "label, age, cat, dog")

    def test_a_csv_without_the_target_is_refused(self):
        bank = self.folder / "bank.csv"
        bank.write_text("a,b\n1,2\n")
        made = prepare(self.folder / "out", "--data", bank)
        self.assertEqual(made.returncode, 1)
        self.assertIn("has no column y", made.stderr)


class Training(Example):
    def test_three_hosts_grow_the_trees_of_one_host(self):
        """The features have few distinct values, so the hosts' sketches are exact, and so is their merge."""
        with self.job(1, "one") as one:
            self.assertTrue(one.wait(), one.log())
        with self.job(3, "three") as three:
            self.assertTrue(three.wait(), three.log())
        self.assertEqual(sorted(one.curve()), list(range(40)))
        self.assertEqual(three.curve(), one.curve())
        model = three.roots["algo-1"] / "model/xgboost-model"
        self.assertNotEqual(launch.test_auc(model, self.data), three.curve()[39], "the test has other rows")
        for host in ("algo-2", "algo-3"):
            self.assertNotIn("validation-auc", three.log(host), "only the first host prints metrics")
            self.assertFalse((three.roots[host] / "model/xgboost-model").exists())
        self.assertFalse(list((three.folder / "checkpoints").glob(".rendezvous-*")))

    def check_resume(self, instances, interrupt):
        with self.job(instances, "unbroken") as unbroken:
            self.assertTrue(unbroken.wait(), unbroken.log())
        with self.job(instances, "broken") as first:
            wait_for_round(first, 5)
            interrupt(first)
        self.assertLess(max(first.curve()), 39, "interrupted too late for the test")
        with self.job(instances, "broken", attempt=2) as second:
            self.assertTrue(second.wait(), second.log())
        self.assertIn("continuing from the checkpoint of", second.log())
        self.assertGreater(min(second.curve()), 0)
        self.assertEqual({**second.curve(), **first.curve()}, unbroken.curve())
        self.assertEqual(checksum(second.roots["algo-1"] / "model"), checksum(unbroken.roots["algo-1"] / "model"))

    def test_one_host_resumes_to_the_same_model_after_a_kill(self):
        self.check_resume(1, lambda job: job.signal(signal.SIGKILL))

    def test_three_hosts_resume_to_the_same_model_after_a_kill(self):
        self.check_resume(3, lambda job: job.signal(signal.SIGKILL))

    def test_a_resume_with_column_sampling_reaches_the_same_quality(self):
        sampling = {"colsample_bylevel": 0.5, "colsample_bytree": 0.8}
        with self.job(1, "unbroken", **sampling) as unbroken:
            self.assertTrue(unbroken.wait(), unbroken.log())
        for attempt, rounds in enumerate((15, 40), 1):
            with self.job(1, "broken", attempt, **sampling, num_round=rounds) as broken:
                self.assertTrue(broken.wait(), broken.log())
        self.assertEqual(min(broken.curve()), 15)
        self.assertAlmostEqual(broken.curve()[39], unbroken.curve()[39], delta=0.03)

    def test_an_attempt_without_remaining_work_prints_its_value(self):
        for attempt in (1, 2):
            with self.job(3, attempt=attempt) as job:
                self.assertTrue(job.wait(), job.log())
        self.assertEqual(list(job.curve()), [39])

    def test_a_damaged_checkpoint_is_replaced_by_the_previous_one(self):
        with self.job(1, num_round=5) as job:
            self.assertTrue(job.wait(), job.log())
        (job.folder / "checkpoints/r00005.ubj").write_bytes(b"no model")
        with self.job(1, attempt=2, num_round=6) as job:
            self.assertTrue(job.wait(), job.log())
        self.assertEqual(list(job.curve()), [4, 5])

    def test_sigterm_ends_all_hosts_at_once_with_a_model(self):
        with self.job(3, num_round=2000) as job:
            wait_for_round(job, 5)
            started = time.monotonic()
            job.signal(signal.SIGTERM)
            self.assertTrue(job.wait(), job.exit_codes())
            self.assertLess(time.monotonic() - started, 1.5)
        self.assertTrue((job.roots["algo-1"] / "model/xgboost-model").exists())
        self.assertIsNone(job.failure("algo-1"))

    def test_hosts_end_soon_after_a_killed_peer(self):
        # Several times, because XGBoost alone usually detects a dead tracker.
        for turn, victim in enumerate(("algo-1", "algo-2") * 3):
            with self.subTest(victim=victim), self.job(3, f"job-{turn}", num_round=2000) as job:
                wait_for_round(job, 5)
                job.signal(signal.SIGKILL, [victim])
                self.assertFalse(job.wait(peer_seconds=20))
                others = {host: code for host, code in job.exit_codes().items() if host != victim}
                # SIGABRT comes from XGBoost's threads. Code 0 would mean that the launcher stopped them after 20 s.
                self.assertTrue(all(code in (3, -signal.SIGABRT) for code in others.values()), others)

    def test_hosts_ignore_the_rendezvous_of_an_earlier_attempt(self):
        stale = self.folder / "job/checkpoints/.rendezvous-job-1"
        stale.mkdir(parents=True)
        (stale / "join-0000").touch()
        (stale / "ports-0000").write_text("[1, 1]")
        with self.job(3) as job:
            self.assertTrue(job.wait(), job.log())

    def test_invalid_hyperparameters_are_named(self):
        with self.job(1, colsample_bytree=0, max_depth="deep", depht=3) as job:
            self.assertFalse(job.wait())
        self.assertEqual(job.exit_codes(), {"algo-1": 1})
        for part in ("colsample_bytree=0 must be greater than 0", "max_depth='deep'", "unknown depht: "):
            self.assertIn(part, job.failure("algo-1"))

    def test_a_host_without_data_reports_it(self):
        with self.job(4) as job:
            self.assertFalse(job.wait(peer_seconds=1))
        self.assertIn("no .csv file", job.failure("algo-4"))


class Launching(Example):
    def test_hosts_die_with_a_killed_launcher(self):
        marker = self.folder / "pid"
        command = ["sh", "-c", f'echo $$ >> "{marker}"; exec sleep 60']
        launcher = subprocess.Popen(
            [sys.executable, EXAMPLE / "launch.py", "--instances", "2", "--data", self.data]
            + ["--folder", self.folder / "job", "--", *command]
        )
        deadline = time.monotonic() + 10
        while not (marker.exists() and len(marker.read_text().split()) == 2):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        launcher.kill()
        launcher.wait()
        time.sleep(0.5)
        for pid in marker.read_text().split():
            stat = Path(f"/proc/{pid}/stat")
            with contextlib.suppress(FileNotFoundError):
                self.assertEqual(stat.read_text().rsplit(")", 1)[1].split()[0], "Z", "still running")

    def test_the_launcher_fails_with_its_host(self):
        command = [sys.executable, EXAMPLE / "launch.py", "--instances", "1", "--data", self.data]
        done = subprocess.run([*command, "--folder", self.folder / "job", "--", "false"], capture_output=True)
        self.assertEqual(done.returncode, 1)


class Comparison(unittest.TestCase):
    def setUp(self):
        self.result = json.loads((HERE / "sample_result.json").read_text())
        text, options = io.StringIO(), ["make_request.py", "--data", str(HERE), "--first", "eta=0.3", "max_depth=6"]
        with contextlib.redirect_stdout(text), contextlib.redirect_stderr(io.StringIO()):
            sys.argv, kept = options, sys.argv
            make_request.main()
            sys.argv = kept
        self.request = json.loads(text.getvalue())
        self.untuned = [self.group(n, auc) for n, auc in ((1, 0.930), (2, 0.930), (3, 0.931))]
        self.tuned = [self.group(3, 0.96)]

    @staticmethod
    def group(instances, auc):
        """Returns the jobs of two seeds."""
        job = {"instances": instances, "validation": 0.9, "rounds": 30, "modelled_seconds": 2.5}
        seeds = (("1", -0.01), ("2", 0.01))
        return [{**job, "test": auc + shift, "hyperparameters": {"seed": seed}} for seed, shift in seeds]

    def test_there_is_a_row_for_each_number_of_instances(self):
        lines = list(comparison.render(table.rows(self.untuned, self.tuned), "test AUC"))
        self.assertEqual(len(lines), 5)
        self.assertRegex(lines[2], r"^2 instances, no tuning, 30 rounds +0\.9300 \(0\.9200-0\.9400\) +0\.9000 +2\.50 +5\.00$")
        self.assertRegex(lines[4], r"^3 instances, tuned, 30 rounds +0\.9600 \(0\.9500-0\.9700\) +0\.9000 +2\.50 +7\.50$")
        text = " ".join(table.remarks(self.untuned, self.tuned))
        self.assertIn("cost XGBoost no quality here (2 instances against one: +0.0000 AUC", text)
        self.assertIn("Tuning against no tuning, 3 instances: +0.0290 AUC.", text)

    def test_a_loss_by_distribution_is_reported(self):
        self.untuned[2] = self.group(3, 0.90)
        text = " ".join(table.remarks(self.untuned, self.tuned))
        self.assertIn("Distribution alone cost 0.0300 AUC: 3 instances against one", text)

    def test_a_small_gain_is_named_noise(self):
        text = " ".join(table.remarks(self.untuned, [self.group(3, 0.94)]))
        self.assertIn("3 instances: +0.0090 AUC. This is within noise.", text)

    def test_the_tuned_rows_have_the_rounds_of_the_best_job(self):
        values = table.tuned(self.request, self.result, 2)
        self.assertEqual(values, {"eta": "0.25", "max_depth": "8", "num_round": 30})

    def test_a_tuning_without_a_best_job_says_so(self):
        self.result["TuningJob"].pop("BestTrainingJob")
        self.assertIn("The tuning found no best job.", comparison.of_the_tuning(self.request, self.result, "rounds"))
        self.assertEqual(table.tuned(self.request, self.result, 3), {})

    def test_the_tuning_counts_rounds_up_to_the_maximum(self):
        text = " ".join(comparison.of_the_tuning(self.request, self.result, "rounds"))
        self.assertIn("5 jobs of 4 configurations", text)
        self.assertIn("It trained 34 rounds; all rounds of its configurations are 120.", text)

    def test_the_network_takes_longer_with_more_hosts_and_deeper_trees(self):
        self.assertEqual(modelled.network_seconds(1, 6, 1000), 0)
        # 3 levels of 2 messages, and the histograms of 4 nodes, once in and out of each host.
        self.assertAlmostEqual(modelled.network_seconds(2, 3, 1000), 6 * 0.0001 + 16 * 1000 * 4 / 1.25e9)

    def test_numbers_of_instances_are_one_and_others(self):
        for text in ("1,2,3", "3,1"):
            self.assertEqual(make_request.counts(text)[0], 1)
        for text in ("1", "1,1", "2,3", "1,2,2"):
            with self.assertRaises(argparse.ArgumentTypeError, msg=text):
                make_request.counts(text)

    def test_the_first_trials_have_the_untuned_values_on_each_number_of_instances(self):
        first = [{"eta": "0.3", "max_depth": "6", "InstanceCount": count} for count in ("1", "2", "3")]
        self.assertEqual(self.request["Controller"]["InitialConfigurations"], first)

    def test_the_cap_allows_four_jobs_at_a_time(self):
        self.assertGreaterEqual(self.request["Controller"]["MaxCostUsd"], 4 * make_request.worst_case_usd(3))

    def test_the_sampler_is_the_model(self):
        self.assertEqual(self.request["Controller"]["Sampler"], "Model")


if __name__ == "__main__":
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    unittest.main()
