"""Scripts that were written for Horovod run as they are: examples/horovod, by its manifest and elastically."""

import os
import re
import signal

import harness

EXAMPLE = harness.REPOSITORY / "examples/horovod"


def accuracy_of(text):
    return float(re.search(r"test: (?:loss \S+, )?accuracy (\d\.\d+)", text)[1])


def test_the_manifest_trains_on_two_pods_of_two_workers():
    done = harness.ringmaster("run", "job.yaml", cwd=EXAMPLE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert accuracy_of(done.stdout) > 0.9, done.stdout
    assert "4 workers in 2 pods" in done.stdout + done.stderr


def test_its_options_are_horovods():
    done = harness.ringmaster("run", "-np", 2, "/usr/bin/python3", "train.py", "--epochs", 1, "--fp16-allreduce",
                              "--gradient-predivide-factor", 2, cwd=EXAMPLE, OMP_NUM_THREADS="1")
    assert done.returncode == 0 and "epoch 0" in done.stdout, done.stdout + done.stderr
    done = harness.ringmaster("run", "-np", 2, "/usr/bin/python3", "train.py", "--use-adasum", cwd=EXAMPLE, OMP_NUM_THREADS="1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert accuracy_of(done.stdout) > 0.9, done.stdout


def test_the_elastic_form_loses_a_worker_and_gets_it_back():
    with harness.Run("elastic-job.yaml", cwd=EXAMPLE) as run:
        run.line(r"epoch 0: .*4 workers")
        before = run.world("horovod-elastic", 4)
        workers = run.workers("horovod-elastic")
        os.kill(next(worker["pid"] for worker in workers.values() if worker["rank"] == 1), signal.SIGKILL)
        run.world("horovod-elastic", 4, after=before + 1)  # without it, and with it again
        assert run.wait() == 0
        assert accuracy_of(run.text()) > 0.9, run.text()
        assert "accuracy" in run.text() and "with 4 workers" in run.text()
