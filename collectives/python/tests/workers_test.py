"""Real worker processes with the real library under a fake sidecar: collectives, deaths, joins,
drains.
"""

import re

import pytest


@pytest.mark.parametrize("size", [2, 3])
def test_EveryCollectiveOnEveryRank(passes, size):
    passes("operations.py", size)


@pytest.mark.parametrize("size", [1, 3])
def test_OptimizersStepsEqualThoseOfOneProcess(passes, size):
    passes("optimizers.py", size)


def test_WithoutSharedMemoryTheResultsAreTheSame(passes):
    passes("optimizers.py", 2, RINGMASTER_SHM="0")


@pytest.mark.parametrize("victim", [0, 1])
def test_HorovodsElasticScriptIsEnteredAgainAfterADeathAndAJoin(job, victim):
    one = job("horovod_elastic.py", 2, BATCHES="150", spares=[victim])
    one.wait_world([0, 1], step=10)
    one.kill(victim)
    one.wait_world([1 - victim], step=20)
    one.admit(victim)
    one.wait_world([1 - victim, victim])
    codes = one.wait()
    assert {k: v for k, v in codes.items() if v} == {(victim, 1): -9}, one.logs()
    survivor, joiner = _log(one, 1 - victim, 1), _log(one, victim, 2)
    entered = [tuple(map(int, found)) for found in re.findall(r"enter (\d+) (\d)", survivor)]
    assert [size for _, size in entered] == [2, 1, 2]
    assert survivor.count("reset") == 2
    # The newcomer enters with the counters of the commit at which the survivor enters again.
    assert "enter %d 2" % entered[2][0] in joiner and entered[2][0] > 0


def test_ADrainedWorkerEndsWithZeroAndTheOthersGoOn(job):
    one = job("horovod_elastic.py", 3, BATCHES="80")
    one.wait_world([0, 1, 2], step=10)
    one.sidecar.drain(0)
    one.wait_world([1, 2])
    codes = one.wait()
    assert set(codes.values()) == {0}, one.logs()
    assert "enter" in _log(one, 1, 1) and "sizes" not in _log(one, 0, 1)


def test_AStandbyThatHasDoneItsImportsTakesADeadWorkersPlace(job):
    one = job("horovod_elastic.py", 2, BATCHES="120")
    # No worker has this slot: the first view waits until the standby is there.
    one.sidecar.held.add((-1, 0))
    one.start(7, RINGMASTER_STANDBY="1")
    one.sidecar.wait(lambda s: any(f.get("standby") for _, f in s.log), "the standby")
    one.sidecar.admit(-1, 0)
    one.wait_world([0, 1], step=10)
    one.kill(1)
    one.wait_world([0])
    one.sidecar.promote(slot=1, incarnation=2)
    one.wait_world([0, 1])
    codes = one.wait()
    assert {k: v for k, v in codes.items() if v} == {(1, 1): -9}, one.logs()
    assert _log(one, 7, 1).count("enter") == 1


def test_APlainScriptGoesOnInPlaceAndHearsOfTheNewSize(job):
    one = job("plain.py", 3)
    one.wait_world([0, 1, 2], step=10)
    one.sidecar.wait(lambda s: s.members[0].values.get("loss", 0) > 1, "a reported value")
    one.kill(2)
    codes = one.wait()
    assert codes[0, 1] == 0 and codes[1, 1] == 0, one.logs()
    assert "resized [(3, 2)]" in _log(one, 0, 1)
    # Leaving the interpreter is an agreed end.
    assert one.sidecar.finished == {0, 1}


@pytest.mark.parametrize("way, code", [("raise", 1), ("3", 3)])
def test_AWorkerThatFailsLeavesAtOnceAndHoldsNobodyUp(job, way, code):
    one = job("raises.py", 2, WAY=way)
    assert one.wait() == {(0, 1): 0, (1, 1): code}, one.logs()


def _log(one, slot, incarnation):
    with open("%s/%d-%d.log" % (one.folder, slot, incarnation)) as file:
        return file.read()
