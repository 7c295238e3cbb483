"""torch.distributed's backend ringmaster, with real worker processes under a fake sidecar."""

import os
import re
import subprocess
import sys

import pytest


@pytest.mark.parametrize("size", [2, 4])
def test_EveryCollectiveOfTorchDistributed(passes, size):
    passes("torch_distributed.py", size, SIZE=str(size))


def test_UnderAnotherLauncherItIsSaidWhichOneIsNeeded():
    script = "import torch.distributed as dist, ringmaster.torch.distributed\n" \
             "dist.init_process_group('ringmaster')"
    environ = {k: v for k, v in os.environ.items() if not k.startswith("RINGMASTER_S")}
    environ.update(RANK="1", WORLD_SIZE="4", MASTER_ADDR="localhost", MASTER_PORT="1",
                   PYTHONPATH=os.pathsep.join(path for path in sys.path if path))
    done = subprocess.run([sys.executable, "-c", script], env=environ, timeout=120,
                          capture_output=True, text=True)
    assert done.returncode == 1 and "WORLD_SIZE: is 4" in done.stderr, done.stderr
    assert "ringmaster run" in done.stderr


@pytest.mark.parametrize("size", [1, 3])
def test_DistributedDataParallelGivesWhatOneProcessGives(passes, size):
    passes("ddp.py", size)


@pytest.mark.parametrize("wrapped", ["inside", "outside"])
def test_WhatNoSyncHasAddedUpIsVoidWhereTheTrainingFunctionIsEnteredAgain(passes, wrapped):
    passes("ddp_entered_again.py", 2, WRAPPED=wrapped)


@pytest.mark.parametrize("victim", [0, 2])
def test_APlainScriptForDistributedDataParallelGoesOnInPlaceAfterADeath(job, victim):
    one = job("ddp_plain.py", 3)
    one.sidecar.wait(lambda s: s.members and s.members[0].values.get("batch", 0) > 5, "a few steps")
    one.kill(victim)
    stay = [slot for slot in range(3) if slot != victim]
    codes = one.wait()
    assert {k: v for k, v in codes.items() if v} == {(victim, 1): -9}, one.logs()
    for rank, slot in enumerate(stay):
        assert "sizes [2, 3] rank %d" % rank in _log(one, slot), one.logs()


@pytest.mark.parametrize("victim,group", [(0, "world"), (2, "some")])
@pytest.mark.parametrize("way", ["reduced", "scattered", "gathered", "gathered_from_all",
                                 "exchanged", "reduced_and_scattered",
                                 "reduced_and_scattered_in_one"])
def test_RanksMeanTheSameBeforeAndAfterADeathWithinTheStep(job, tmp_path, way, victim, group):
    one = job("torch_moved_ranks.py", 3, str(tmp_path), WAY=way, GROUP=group, VICTIM=str(victim))
    stay = [slot for slot in range(3) if slot != victim]
    assert one.wait() == {(victim, 1): -9, (stay[0], 1): 0, (stay[1], 1): 0}, one.logs()
    assert all("all meant the same" in _log(one, slot) for slot in stay), one.logs()


def test_RanksMeanTheSameInTheFirstStepOfAJoinerThatEntersByItself(job):
    one = job("torch_joiner_in_its_first_step.py", 2, spares=[2])
    one.wait_world([0, 1], step=5)
    one.admit(2)
    assert one.wait() == {(0, 1): -9, (1, 1): 0, (2, 1): 0}, one.logs()
    assert all("the same worker" in _log(one, slot) for slot in (1, 2)), one.logs()


def test_IfRank0DiesAsItSendsItsBuffersTheTrainingFunctionIsEnteredAgain(job):
    one = job("ddp_buffers.py", 3)
    assert one.wait() == {(0, 1): -9, (1, 1): 0, (2, 1): 0}, one.logs()
    assert all("entered [3, 2" in _log(one, slot) for slot in (1, 2)), one.logs()


def test_IfAnotherRankDiesTheTrainingFunctionIsEnteredAgainWithRoomForThoseThatAreLeft(job):
    one = job("torch_gathers.py", 3)
    assert one.wait() == {(0, 1): 0, (1, 1): -9, (2, 1): 0}, one.logs()
    for rank, slot in enumerate((0, 2)):
        assert re.search(r"entered \[3(, 2)+\] rank %d" % rank, _log(one, slot)), one.logs()


def test_ADeathBetweenTwoBucketsLeavesTheMeanOverOneSetOfSamples(job):
    one = job("ddp_between.py", 3)
    assert one.wait() == {(0, 1): 0, (1, 1): -9, (2, 1): 0}, one.logs()


def _log(one, slot, incarnation=1):
    with open("%s/%d-%d.log" % (one.folder, slot, incarnation)) as file:
        return file.read()
