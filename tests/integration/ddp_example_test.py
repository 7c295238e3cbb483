"""DistributedDataParallel on the backend ringmaster: examples/ddp by its manifest, through a death and a return."""

import os
import re
import signal

import harness

EXAMPLE = harness.REPOSITORY / "examples/ddp"


def test_the_example_loses_a_worker_and_gets_it_back(tmp_path):
    # TMPDIR: Python's multiprocessing leaves a folder behind where a process that loads data is killed.
    with harness.Run("job.yaml", cwd=EXAMPLE, TMPDIR=str(tmp_path)) as run:
        run.line(r"epoch 0: .*4 workers")
        before = run.world("ddp", 4)
        workers = run.workers("ddp")
        os.kill(next(worker["pid"] for worker in workers.values() if worker["rank"] == 1), signal.SIGKILL)
        run.world("ddp", 4, after=before + 1)  # without it, and with it again
        assert run.wait() == 0
        accuracy = re.search(r"accuracy (\d\.\d+) with 4 workers", run.text())
        assert accuracy and float(accuracy[1]) > 0.9, run.text()
