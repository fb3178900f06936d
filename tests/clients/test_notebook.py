"""Executes the notebook of examples/sagemaker-sdk with `hyperband serve` or a stack: every cell, in one namespace, like a kernel."""

import json
import logging
import os
import unittest
from unittest import mock

from serve import ROOT, nightly_on_a_stack, serve

NOTEBOOK = ROOT / "examples" / "sagemaker-sdk" / "tuning.ipynb"
logging.disable(logging.WARNING)


class Notebook(unittest.TestCase):
    @nightly_on_a_stack
    def test_every_cell_runs_and_finds_the_best_training_job(self):
        notebook = json.loads(NOTEBOOK.read_text())
        cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        # The notebook is stored without results.
        self.assertEqual([(cell["outputs"], cell["execution_count"]) for cell in cells], [([], None)] * len(cells))
        server = serve()
        self.addCleanup(server.end)
        names = {}
        with mock.patch.dict(os.environ, HYPERBAND_ENDPOINT=server.endpoint):
            for cell in cells:
                exec(compile("".join(cell["source"]), f"{NOTEBOOK.name}:{cell['id']}", "exec"), names)  # noqa: S102
        frame, best = names["frame"], names["best"]
        self.assertEqual(len(frame), 12)
        top = frame.sort_values("FinalObjectiveValue").iloc[-1]
        self.assertAlmostEqual(top["FinalObjectiveValue"], best["FinalHyperParameterTuningJobObjectiveMetric"]["Value"], places=6)
        self.assertIn(best["TrainingJobName"], names["best_estimator"].model_data)
        controller = server.controller(names["name"])
        self.assertEqual((controller["CapUsd"], controller["EpochPattern"]), (0.5, r"epoch (\d+)"))
        self.assertLessEqual(controller["SpentUsd"], 0.5)


if __name__ == "__main__":
    unittest.main()
