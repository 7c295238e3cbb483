"""Scripts for Horovod's TensorFlow and Keras run as they are: examples/horovod."""

import os
import re
import signal

import harness
import tensorflow_environments

EXAMPLE = harness.REPOSITORY / "examples/horovod"
OLDEST, *_, NEWEST = tensorflow_environments.versions()
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}


def accuracy_of(text):
    return float(re.search(r"test: accuracy (\d\.\d+)", text)[1])


def test_a_training_loop_of_tensorflow_2(tmp_path):
    done = harness.ringmaster("run", "-np", 2, tensorflow_environments.python_of(OLDEST), "tensorflow2_train.py", "--checkpoints", tmp_path,
                              cwd=EXAMPLE, **QUIET)
    assert done.returncode == 0, done.stdout + done.stderr
    assert accuracy_of(done.stdout) > 0.9, done.stdout
    assert list(tmp_path.glob("checkpoint*.index")), os.listdir(tmp_path)


def test_fit_loses_a_worker_and_gets_it_back(tmp_path):
    # Fewer than two workers wait: so the newcomer comes in time, however long its imports take.
    job = tmp_path / "job.yaml"
    job.write_text(harness.manifest("keras", command=[tensorflow_environments.python_of(NEWEST), EXAMPLE / "keras_elastic.py"], replicas=2,
                                    env=QUIET, elasticPolicy={"minReplicas": 2, "maxReplicas": 2}))
    with harness.Run(job) as run:
        run.line(r"Epoch 2/")
        before = run.world("keras", 2)
        workers = run.workers("keras")
        os.kill(next(worker["pid"] for worker in workers.values() if worker["rank"] == 1), signal.SIGKILL)
        run.world("keras", 2, after=before + 1)  # without it, and with it again
        assert run.wait() == 0, run.text()
        assert accuracy_of(run.text()) > 0.9, run.text()
        assert "with 2 workers" in run.text()
