"""Scripts for Horovod's TensorFlow and Keras run as they are: examples/horovod."""

import os
import re
import signal
import tempfile

import pytest

import harness
import tensorflow_environments

EXAMPLE = harness.REPOSITORY / "examples/horovod"
OLDEST, *_, NEWEST = tensorflow_environments.versions()
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}


def accuracy_of(text):
    return float(re.search(r"test: accuracy (\d\.\d+)", text)[1])


def with_version(version):
    """The environment in which `python3` has this version of TensorFlow, as the image of a job has."""
    folder = os.path.dirname(tensorflow_environments.python_of(version))
    return dict(QUIET, PATH="%s:%s" % (folder, harness.environment()["PATH"]))


def test_the_manifest_trains_a_loop_of_tensorflow_2_on_four_workers():
    done = harness.ringmaster("run", "tensorflow2-job.yaml", cwd=EXAMPLE, timeout=300, **with_version(OLDEST))  # four imports of TensorFlow
    assert done.returncode == 0, done.stdout + done.stderr
    assert accuracy_of(done.stdout) > 0.8, done.stdout
    assert "4 workers in 2 pods" in done.stdout + done.stderr


@pytest.mark.parametrize("version, job, script", [(NEWEST, "keras-elastic", None), (OLDEST, "tensorflow2", "tensorflow2_elastic.py")])
def test_the_elastic_forms_lose_a_worker_and_get_it_back(tmp_path, version, job, script):
    path = EXAMPLE / (job + "-job.yaml")
    if script:  # fewer than two workers wait: so the newcomer comes in time, however long its imports take
        path = tmp_path / "job.yaml"
        path.write_text(harness.manifest(job, command=["python3", EXAMPLE / script], replicas=2,
                                         elasticPolicy={"minReplicas": 2, "maxReplicas": 2}))
    # A worker that is killed leaves what TensorFlow has made of its functions.
    with tempfile.TemporaryDirectory(prefix="rm-") as scratch, \
            harness.Run(path, cwd=EXAMPLE, TMPDIR=scratch, **with_version(version)) as run:
        run.line(r"(?i)epoch 1\b.*2 workers")
        before = run.world(job, 2)
        workers = run.workers(job)
        os.kill(next(worker["pid"] for worker in workers.values() if worker["rank"] == 1), signal.SIGKILL)
        run.world(job, 2, after=before + 1)  # without it, and with it again
        assert run.wait() == 0, run.text()
        assert accuracy_of(run.text()) > 0.9, run.text()
        assert "with 2 workers" in run.text()
