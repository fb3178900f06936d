"""Tests `hyperband.tune` and its results with the real program and real training processes, with pandas, and with MLflow."""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from clean import PROGRAM, ROOT
from serve import until

import hyperband

NOTEBOOK = ROOT / "examples" / "python" / "tune.ipynb"
TRAIN = """\
import json, os, pathlib
settings = json.loads(os.environ["SM_HPS"])
for epoch in range(1, settings["epochs"] + 1):
    print(f"epoch {epoch} accuracy={1 - settings['rate'] / epoch}")
    pathlib.Path(os.environ["SM_MODEL_DIR"], "model.txt").write_text(str(epoch))
"""
# Trains only once the file `go` exists. Its end by SIGTERM takes some time.
WAITING = """\
import os, signal, sys, time
def end(*_):
    time.sleep(0.5)
    open(f"ended-{os.getpid()}", "x")
    sys.exit()
signal.signal(signal.SIGTERM, end)
open(f"started-{os.getpid()}", "x")
while not os.path.exists("go"):
    time.sleep(0.05)
print("accuracy=0.5")
"""
CALLER = """\
import signal
import hyperband
# A background process may inherit an ignored signal.
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    print(hyperband.tune("waiting.py", {"rate": (0.1, 0.9)}, "accuracy", jobs=6, parallel=2).best.value)
except KeyboardInterrupt as error:
    print("interrupted:", error)
"""
FUNCTIONS = """\
def curve(rate, depth, kind):
    assert kind in ("a", "b c") and isinstance(depth, int)
    for epoch in range(1, 4):
        yield rate * epoch

def last(rate, flag, size):
    return -rate if flag else size

def silent(rate):
    print(f"accuracy={rate}")
"""
SPACE = {"rate": (1e-4, 0.5, "log"), "depth": (1, 9), "kind": ["a", "b c"], "epochs": 9}
SETTINGS = {
    "jobs": 6, "parallel": 3, "max_resource": 9, "max_cost": 2, "price_per_hour": 0.5, "max_job_time": 60, "max_time": 3600,
    "epoch_pattern": r"epoch (\d+)", "metric_regex": r"accuracy=([-+.\w]*\w)",
    "try_first": [{"rate": 0.25, "depth": 3, "kind": "b c"}],
    "request": {"TrainingJobDefinition": {"CheckpointConfig": {}}, "Controller": {"MaxDivergedEpochs": 2}}, "name": "digits"}


class Folder(unittest.TestCase):
    """Each test works in a folder of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hyperband-tune-")
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        self.folder = Path(folder.name).resolve()
        for name, text in [("train.py", TRAIN), ("waiting.py", WAITING), ("caller.py", CALLER), ("functions.py", FUNCTIONS)]:
            Path(name).write_text(text)
        self.enterContext(mock.patch.object(sys, "path", [str(self.folder), *sys.path]))
        self.addCleanup(sys.modules.pop, "functions", None)
        self.messages = self.enterContext(contextlib.redirect_stderr(io.StringIO()))

    def caller(self):
        environment = os.environ | {"PYTHONPATH": str(ROOT / "python")}
        return subprocess.Popen([sys.executable, "caller.py"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=environment, start_new_session=True)


class Tune(Folder):
    def test_a_script_is_tuned_and_its_result_has_trials_a_frame_and_a_report(self):
        result = hyperband.tune("train.py", SPACE, "accuracy", **SETTINGS)
        self.assertIn("trial 0: job ordered", self.messages.getvalue())
        self.assertEqual((result.name, result.status, result.data_dir), ("digits", "Completed", str(self.folder / ".hyperband")))
        self.assertEqual(len(result.trials), 6)
        self.assertEqual(result.trials[0]["HyperParameters"], {"rate": 0.25, "depth": 3, "kind": "b c"})
        best = result.best
        self.assertEqual((best.epoch, best.epochs), (9, 9))
        self.assertAlmostEqual(best.value, 1 - best.hyperparameters["rate"] / 9, places=6)
        self.assertEqual(best.hyperparameters, result.trials[best.trial]["HyperParameters"])
        self.assertEqual(best.training_job, result.trials[best.trial]["TrainingJobs"][-1])
        self.assertEqual(Path(best.model, "model.txt").read_text(), "9")
        config, controller = result.description["HyperParameterTuningJobConfig"], result.description["Controller"]
        self.assertEqual((config["Strategy"], config["ResourceLimits"]["MaxRuntimeInSeconds"]), ("Hyperband", 3600))
        self.assertEqual((controller["CapUsd"], controller["MaxDivergedEpochs"]), (2, 2))
        # A second object, for example of a later process, has the same content.
        self.assertEqual(hyperband.Result("digits").best, best)

        frame = result.dataframe()
        self.assertEqual(list(frame["rate"]), [trial["HyperParameters"]["rate"] for trial in result.trials])
        self.assertAlmostEqual(frame["BestValue"].max(), best.value, places=6)
        self.assertNotIn("Metrics", frame)
        self.assertEqual(result.report(), str(self.folder / "digits.html"))
        self.assertIn("<html", Path(result.report(Path("other.html"))).read_text())
        for package, call in [("pandas", result.dataframe), ("mlflow", result.log_to_mlflow)]:
            with mock.patch.dict(sys.modules, {package: None}), self.assertRaisesRegex(ModuleNotFoundError, f"pip install {package}"):
                call()

    def test_the_same_call_returns_the_result_and_another_request_is_refused(self):
        call = {"space": {"rate": (0.1, 0.5), "epochs": 1}, "metric": "accuracy", "jobs": 2, "quiet": True}
        first = hyperband.tune([sys.executable, "train.py"], name="again", **call)
        self.assertEqual(hyperband.tune([sys.executable, "train.py"], name="again", **call).best, first.best)
        with self.assertRaisesRegex(ValueError, "'again' already exists with a different request"):
            hyperband.tune([sys.executable, "train.py"], name="again", **{**call, "jobs": 3})
        fresh = hyperband.tune([sys.executable, "train.py"], name="again", fresh=True, **{**call, "jobs": 3})
        self.assertEqual((len(fresh.trials), fresh.name), (3, "again"))
        # The strategy without epochs.
        self.assertEqual(fresh.description["HyperParameterTuningJobConfig"]["Strategy"], "Bayesian")
        self.assertEqual(self.messages.getvalue(), "")

    def test_a_function_yields_returns_or_prints_its_values(self):
        import functions
        space = {"rate": (0.1, 0.9), "depth": (1, 3), "kind": ["a", "b c"]}
        result = hyperband.tune(functions.curve, space, "score", max_resource=3, jobs=3)
        self.assertEqual((result.name, result.best.epoch), ("curve", 3))
        self.assertAlmostEqual(result.best.value, 3 * result.best.hyperparameters["rate"], places=6)
        result = hyperband.tune(functions.last, {"rate": (0.1, 0.9), "flag": [True], "size": 7}, "loss", direction="minimize", jobs=2)
        self.assertAlmostEqual(result.best.value, -max(trial["HyperParameters"]["rate"] for trial in result.trials), places=6)
        self.assertIs(result.best.hyperparameters["flag"], True)
        result = hyperband.tune(functions.silent, {"rate": (0.1, 0.9)}, "accuracy", jobs=1)
        self.assertEqual(result.best.epochs, 1)

    def test_a_function_of_a_package_is_imported(self):
        Path("package").mkdir()
        Path("package/__init__.py").write_text("outer = 5\n")
        Path("package/inner.py").write_text("from . import outer\ndef inner(x):\n    return outer\n")
        with mock.patch.dict(sys.modules):
            from package.inner import inner
            self.assertEqual(hyperband.tune(inner, {"x": (0.1, 0.9)}, "score", jobs=1).best.value, 5)

    def test_a_function_of_the_main_script_needs_a_guarded_call(self):
        for guard, expected in [
                ("if __name__ == '__main__':\n    ", "^1\n"), ("", "failed: .*calls hyperband.tune: put the call below")]:
            call = "print(hyperband.tune(f, {'x': (0.1, 0.9)}, 'score', jobs=1, fresh=True, quiet=True).best.epoch)"
            Path("main.py").write_text(f"import hyperband\ndef f(x):\n    return x\n{guard}{call}\n")
            done = subprocess.run([sys.executable, "main.py"], capture_output=True, text=True, check=False,
                                  env=os.environ | {"PYTHONPATH": str(ROOT / "python")})
            self.assertRegex(done.stdout + done.stderr, expected)

    def test_a_function_without_a_file_is_refused(self):
        names = {"__name__": "__main__"}
        exec("def cell(x):\n    return x", names)  # noqa: S102
        for function in [lambda x: x, names["cell"], type(self).setUp]:
            with self.subTest(function), self.assertRaisesRegex(ValueError, "expected a top-level function of a file, .* %%write"):
                hyperband.tune(function, {"x": (0.1, 0.9)}, "score")

    def test_a_failed_tuning_raises_the_reason_and_keeps_its_trials(self):
        with self.assertRaisesRegex(RuntimeError, "the tuning broken failed: no training job succeeded .*exit code: 3"):
            hyperband.tune("sh -c 'exit 3'", {"x": (0.1, 0.9)}, "score", jobs=2, name="broken")
        result = hyperband.Result("broken")
        self.assertEqual((result.status, result.best, [trial["Status"] for trial in result.trials]), ("Failed", None, ["Failed"] * 2))
        self.assertEqual(len(result.dataframe()), 2)

    def test_an_invalid_request_raises_the_programs_message(self):
        for space, more, expected in [
                ({"x": (2, 1)}, {}, "the minimum is greater than the maximum"), ({"x": (1, 2, "logarithm")}, {}, "ScalingType"),
                ({"x": (0.1, 0.9)}, {"max_cost": 5}, "MaxCostUsd needs a price"),
                ({"x": (0.1, 0.9)}, {"direction": "up"}, "Minimize"),
                ({"x": (0.1, 0.9)}, {"request": {"Refit": "Best"}}, "Unknown field 'Refit'"),
                ({"x": (0.1, 0.9)}, {"options": ["--nope"]}, "unexpected argument '--nope'")]:
            with self.subTest(expected), self.assertRaisesRegex(ValueError, expected):
                hyperband.tune("train.py", space, "score", **more)

    def test_a_missing_program_is_an_error_that_names_the_variable(self):
        with mock.patch.dict(os.environ, HYPERBAND_BIN=str(self.folder / "missing")):
            with self.assertRaisesRegex(FileNotFoundError, "missing program .*missing: install .* set HYPERBAND_BIN"):
                hyperband.tune("train.py", {"rate": (0.1, 0.9)}, "accuracy")

    def test_the_program_beside_python_precedes_that_of_the_path(self):
        for folder, target in [("first", PROGRAM), ("second", "/bin/false")]:
            Path(folder).mkdir()
            Path(folder, "hyperband").symlink_to(target)
        python = mock.patch.object(sys, "executable", f"{self.folder}/first/python")
        with mock.patch.dict(os.environ, PATH=f"{self.folder}/second"), python:
            del os.environ["HYPERBAND_BIN"]
            with self.assertRaisesRegex(ValueError, "no tuning was run in"):
                hyperband.Result("x")

    def test_an_interrupted_tuning_ends_its_processes_and_the_same_call_continues_it(self):
        # A terminal sends SIGINT to the group, and `kill` to one process.
        for count, send in [(2, os.killpg), (4, os.kill)]:
            with self.caller() as process:
                until(lambda: len(list(self.folder.glob("started-*"))), [count])
                send(process.pid, signal.SIGINT)
                process.stderr.read()
                self.assertRegex(process.stdout.read(), "interrupted: stopping the training processes .*\n.*has not ended")
            # A second signal would have ended the program at once.
            self.assertEqual(len(list(self.folder.glob("ended-*"))), count)
        Path("go").touch()
        with self.caller() as process:
            messages = process.stderr.read()
            self.assertEqual(process.stdout.read(), "0.5\n", messages)
        self.assertIn("waiting: continuing", messages)
        self.assertEqual(hyperband.Result("waiting").status, "Completed")


class Mlflow(Folder):
    def test_a_tuning_is_logged_once_with_a_nested_run_for_each_trial(self):
        import mlflow
        uri = f"sqlite:///{self.folder}/mlflow.db"
        result = hyperband.tune("train.py", SPACE, "accuracy", **SETTINGS)
        parent = result.log_to_mlflow(tracking_uri=uri)
        self.assertEqual(result.log_to_mlflow(tracking_uri=uri), parent)
        client = mlflow.MlflowClient(uri)
        experiment = client.get_experiment_by_name("digits").experiment_id
        runs = {run.data.tags["hyperband.trial"]: run for run in client.search_runs([experiment])}
        self.assertEqual(set(runs), {"all", *"012345"})
        self.assertEqual((runs["all"].info.run_id, runs["all"].info.status), (parent, "FINISHED"))
        self.assertAlmostEqual(runs["all"].data.metrics["BestValue"], result.best.value, places=6)
        for trial in result.trials:
            run = runs[str(trial["Trial"])]
            self.assertEqual(run.data.tags["mlflow.parentRunId"], parent)
            self.assertEqual(run.data.tags["hyperband.status"], trial["Status"])
            self.assertEqual(run.info.status, {"Completed": "FINISHED", "Stopped": "KILLED"}[trial["Status"]])
            self.assertEqual(run.data.params, {name: str(value) for name, value in trial["HyperParameters"].items()})
            history = client.get_metric_history(run.info.run_id, "accuracy")
            logged = [[point.step, point.value] for point in history]
            self.assertEqual(sorted(logged), trial["Metrics"]["accuracy"])


class Notebook(Folder):
    def test_every_cell_runs(self):
        cells = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]
        # The notebook is stored without results.
        self.assertEqual([(cell["outputs"], cell["execution_count"]) for cell in cells], [([], None)] * len(cells))
        names = {}
        for cell in cells:
            first, _, rest = (text := "".join(cell["source"])).partition("\n")
            if first.startswith("%%writefile "):
                Path(first.split()[1]).write_text(rest)
            else:
                exec(compile(text, f"{NOTEBOOK.name}:{cell['id']}", "exec"), names)  # noqa: S102
        self.assertEqual(len(names["frame"]), 12)
        self.assertLess(names["result"].best.value, 0.1)
        self.assertTrue(Path(names["result"].name + ".html").exists())


if __name__ == "__main__":
    unittest.main()
