"""DistributedDataParallel with real worker processes that come and go."""

import os
import re
import tempfile

import pytest

import check
from fake_sidecar import Job

HERE = os.path.dirname(os.path.abspath(__file__))
# A few epochs have not converged, so that the order of the samples still shows in the accuracy.
SHORT_RUN_MARGIN = 0.06


@pytest.fixture
def job():
    """job(script, size, spares, **environ): workers of a script; all are gone at the test's end."""
    started = []
    with tempfile.TemporaryDirectory(prefix="rm-", dir="/tmp") as folder:

        def start(script, size, spares=(), arguments=(), **environ):
            audit = os.path.join(folder, "audit")
            one = Job(folder, [os.path.join(HERE, script), *arguments], size,
                      dict(environ, RINGMASTER_AUDIT_DIR=audit), spares)
            one.verdict = lambda: check.judge(audit, SHORT_RUN_MARGIN)
            started.append(one)
            return one

        yield start
        for one in started:
            one.__exit__()


def log(one, slot, incarnation):
    with open("%s/%d-%d.log" % (one.folder, slot, incarnation)) as file:
        return file.read()


@pytest.mark.parametrize("victim", [0, 2])
def test_ThroughDeathsJoinsAndADrainItLearnsWhatOneProcessLearns(job, victim):
    one = job("audited.py", 3, spares=[victim, 3], EPOCHS="8", PACE="0.01")
    one.wait_world([0, 1, 2], step=10)
    one.kill(victim)
    stay = [slot for slot in (0, 1, 2) if slot != victim]
    one.wait_world(stay)
    one.at_step(5)
    one.admit(victim)
    one.wait_world(stay + [victim])
    one.at_step(5)
    one.sidecar.drain(1)
    stay.remove(1)
    one.wait_world(stay + [victim])
    one.at_step(5)  # else the workers may go from the view before straight into the next one
    one.admit(3)
    one.wait_world(stay + [victim, 3])
    codes = one.wait(120)
    assert {k: v for k, v in codes.items() if v} == {(victim, 1): -9}, one.logs()
    verdict = one.verdict()
    assert verdict["ok"], (verdict, one.logs())
    survivor = log(one, stay[0], 1)
    assert re.findall(r"entered with (\d)", survivor) == ["3", "2", "3", "2", "3"], survivor


def test_AWorkerThatWasDroppedByMistakeComesBack(job):
    one = job("audited.py", 3, EPOCHS="5", PACE="0.01")
    one.wait_world([0, 1, 2], step=10)
    one.sidecar.drop(1)
    one.wait_world([0, 2, 1])
    assert set(one.wait(120).values()) == {0}, one.logs()
    verdict = one.verdict()
    assert verdict["ok"], (verdict, one.logs())


def test_TheExampleLearnsThroughADeathAndAJoin(job):
    one = job("../train.py", 3, spares=[1], arguments=["--epochs", "30"])
    one.wait_world([0, 1, 2], step=20)
    one.kill(1)
    one.wait_world([0, 2])
    one.at_step(5)
    one.admit(1)
    one.wait_world([0, 2, 1])
    codes = one.wait(120)
    assert {k: v for k, v in codes.items() if v} == {(1, 1): -9}, one.logs()
    text = log(one, 0, 1)
    assert float(re.search(r"accuracy (\d\.\d+) with 3 workers", text)[1]) > 0.9, text
    assert len(re.findall(r"epoch \d+: ", text)) == 30, text
