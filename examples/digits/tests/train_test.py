"""train.py with real worker processes that come and go; the checker judges."""

import os
import random
import subprocess
import sys
import tempfile
import time

import pytest

import check
from fake_sidecar import Job

EXAMPLE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# A few epochs have not converged, so that the order of the samples still shows in the accuracy.
SHORT_RUN_MARGIN = 0.06
TRAIN = os.path.join(EXAMPLE, "train.py")


@pytest.fixture
def digits_job():
    """job(size, epochs): the example's workers; verdict() waits for them and judges their log."""
    started = []
    with tempfile.TemporaryDirectory(prefix="rm-", dir="/tmp") as folder:
        audit = os.path.join(folder, "audit")

        def start(size, epochs, spares, pace_ms=10):
            job = Job(folder, [TRAIN, "--epochs", str(epochs), "--pace-ms", str(pace_ms)], size,
                      {"RINGMASTER_AUDIT_DIR": audit}, spares)
            job.verdict = lambda: (job.wait(120), check.judge(audit, SHORT_RUN_MARGIN))
            started.append(job)
            return job

        yield start
        for job in started:
            job.__exit__()


def test_OneProcessWithoutAnySidecarTrainsAndPasses(tmp_path):
    environ = {k: v for k, v in os.environ.items() if not k.startswith("RINGMASTER_S")}
    environ.update(RINGMASTER_AUDIT_DIR=str(tmp_path), PYTHONPATH=os.pathsep.join(sys.path))
    done = subprocess.run([sys.executable, TRAIN, "--epochs", "5"], env=environ, timeout=120,
                          capture_output=True, text=True)
    assert done.returncode == 0 and "accuracy after 5 epochs" in done.stdout, done.stderr
    verdict = check.judge(str(tmp_path), SHORT_RUN_MARGIN)
    assert verdict["ok"] and verdict["worldSizes"] == [1], verdict


def test_FourWorkersThroughADeathARestartADrainAndTwoNewcomers(digits_job):
    job = digits_job(4, epochs=12, spares=[2, 4, 5])
    job.wait_world([0, 1, 2, 3], step=20)
    job.kill(2)
    job.wait_world([0, 1, 3])
    job.admit(2)
    job.wait_world([0, 1, 3, 2])
    job.at_step(5)
    job.sidecar.drain(1)
    job.wait_world([0, 3, 2])
    job.admit(4)
    job.admit(5)
    job.sidecar.wait(lambda s: len(s.views[-1][2]) == 5, "a world of five")
    codes, verdict = job.verdict()
    assert {k: v for k, v in codes.items() if v} == {(2, 1): -9}, job.logs()
    assert verdict["ok"], (verdict, job.logs())
    assert verdict["steps"] >= 12 * 23 and verdict["worldSizes"][-1] == 5


@pytest.mark.parametrize("victim", [0, 3])
def test_DeathsAtAnyMomentOfAStepLoseNothing(digits_job, victim):
    """Three times a worker is killed at a moment of chance and comes back as the last rank."""
    dice = random.Random(victim)
    job = digits_job(4, epochs=25, spares=[victim] * 3, pace_ms=4)
    slots = [0, 1, 2, 3]
    job.wait_world(slots, step=5)
    for _ in range(3):
        time.sleep(dice.random() * 0.02)  # the moment within the step is what is tried
        job.kill(victim)
        slots.remove(victim)
        job.wait_world(slots)
        job.admit(victim)
        slots.append(victim)
        job.wait_world(slots)
        job.at_step(2)
    codes, verdict = job.verdict()
    assert sorted(v for v in codes.values() if v) == [-9, -9, -9], job.logs()
    assert verdict["ok"], (verdict, job.logs())


def test_BadArgumentsAreNamed():
    done = subprocess.run([sys.executable, TRAIN, "--epochs", "-2"], capture_output=True, text=True,
                          timeout=120, env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)))
    assert done.returncode == 2 and "--epochs: is -2, must be 0 or more" in done.stderr
