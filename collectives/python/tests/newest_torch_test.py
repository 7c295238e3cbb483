"""The newest PyTorch, where the other tests have Debian's: real worker processes in the virtual
environment that hack/lib/torch makes.

Where it is not there these tests are skipped; with REQUIRE_FRAMEWORKS=1, as in CI, they fail.
"""

import os
import sys

import horovod
import pytest

import ringmaster

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "..", "tests", "support"))
import optional  # noqa: E402


@pytest.fixture
def options():
    """For job() and passes(): the interpreter that has it, and its environment."""
    packages = {os.path.dirname(os.path.dirname(os.path.abspath(package.__file__)))
                for package in (ringmaster, horovod)}
    return {"python": optional.newest_torch_python(), "CUDA_VISIBLE_DEVICES": "",
            "PYTHONPATH": os.pathsep.join(packages)}


@pytest.mark.parametrize("script", ["operations.py", "horovod_names.py", "gradients.py",
                                    "optimizers.py", "optimizer_options.py"])
def test_CollectivesAndOptimizersDoWhatTheyDoWithDebiansPyTorch(passes, options, script):
    passes(script, 2, **options)


def test_EveryCollectiveOfTorchDistributed(passes, options):
    passes("torch_distributed.py", 2, SIZE="2", **options)


def test_ATracebackHasTheRankInFrontOnceAlsoWhereGroupsWereMadeAgain(passes, options):
    passes("hooks_of_torch_distributed.py", 2, **options)


def test_DistributedDataParallelGivesWhatOneProcessGives(passes, options):
    passes("ddp.py", 3, **options)


def test_WhatNoSyncHasAddedUpIsVoidWhereTheTrainingFunctionIsEnteredAgain(passes, options):
    passes("ddp_entered_again.py", 2, WRAPPED="inside", **options)


def test_ADeathBetweenTwoBucketsLeavesTheMeanOverOneSetOfSamples(job, options):
    one = job("ddp_between.py", 3, **options)
    assert one.wait() == {(0, 1): 0, (1, 1): -9, (2, 1): 0}, one.logs()


def test_AJoinerFindsTheGradientsOfOptimizersThatSurvivorsHaveMadeAnew(job, options):
    one = job("makes_optimizers.py", 2, "function", STEPS="150", spares=[0], **options)
    one.replace_slot_0()  # each compares its weights with the others'


def test_DividedParametersGiveWhatOneProcessGives(passes, options):
    passes("fsdp.py", 2, **options)
