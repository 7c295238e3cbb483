"""TensorFlow and Keras: real worker processes with the versions of hack/lib/tensorflow-versions.

Each version is in a virtual environment of its own, which hack/lib/tensorflow makes. Where one is
not there its tests are skipped; with REQUIRE_FRAMEWORKS=1, as in CI, they fail.
"""

import os
import re
import subprocess
import sys

import horovod
import pytest

import ringmaster
from worker_logs import each_sample_once, log_of

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "..", "tests", "support"))
import tensorflow_environments  # noqa: E402


EXAMPLE = os.path.join(HERE, "..", "..", "..", "examples", "horovod", "keras_train.py")
VERSIONS = tensorflow_environments.versions()


@pytest.fixture(params=VERSIONS)
def options(request):
    """For job() and passes(): the interpreter of a version, and its environment."""
    python = tensorflow_environments.python_of(request.param)
    packages = {os.path.dirname(os.path.dirname(os.path.abspath(package.__file__)))
                for package in (ringmaster, horovod)}
    return {"python": python, "TF_CPP_MIN_LOG_LEVEL": "3",
            "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": os.pathsep.join(packages)}


# Two ranks with each version; four, which need no other TensorFlow, with the newest.
of_two_and_four = pytest.mark.parametrize(
    "size, options", [(2, version) for version in VERSIONS] + [(4, VERSIONS[-1])], indirect=["options"])


@of_two_and_four
def test_EveryCollectiveWithItsGradientInEagerModeAndInAGraph(passes, options, size):
    passes("tensorflow_operations.py", size, **options)


@of_two_and_four
def test_TapesOptimizersAndCallbacksDoWhatOneProcessWouldDo(passes, options, size, tmp_path):
    passes("tensorflow_training.py", size, str(tmp_path), **options)


@of_two_and_four
def test_WhereOneRanksGradientsOverflowAllLeaveTheStepOut(passes, options, size):
    passes("keras_mixed_precision.py", size, **options)


def test_StubsSayWhatThereIs(options):
    worker = os.path.join(HERE, "workers", "tensorflow_stubs.py")
    done = subprocess.run([options["python"], worker], env=dict(os.environ, **options),
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_AScriptForTensorFlow1RunsWhereNothingSaysTheOrder(passes, options):
    passes("tensorflow_v1.py", 2, **options)


@pytest.mark.parametrize("options", VERSIONS[:1], indirect=True)  # Keras 3 has no such mode
def test_FitInTheGraphModeOfTensorFlow1DoesWhatOneProcessWouldDo(passes, options, tmp_path):
    passes("keras_v1.py", 2, str(tmp_path), **options)


def test_WhatAFunctionThatIsEnteredAgainFindsOfItsStateItsSamplerAndWhatWasAddedUp(passes, options):
    passes("tensorflow_state.py", 1, **options)


@pytest.mark.parametrize("options, more", [(VERSIONS[0], ()), (VERSIONS[-1], ("--mixed-precision",))], indirect=["options"])
def test_TheExampleWithFitLearnsAndOneWorkerSavesIt(passes, options, more, tmp_path):
    checkpoint = tmp_path / "model.keras"
    one = passes(EXAMPLE, 2, "--checkpoint", str(checkpoint), *more, **options)
    accuracy, size = re.search(r"test: accuracy (\d\.\d+) with (\d)", log_of(one, 0, 1)).groups()
    assert float(accuracy) > 0.9 and size == "2" and checkpoint.exists()


def test_FitIsEnteredAgainAfterADeathAndAJoin(job, options):
    one = job("keras_elastic.py", 2, EPOCHS="6", spares=[0], **options)
    one.replace_slot_0()  # each compares weights, learning rate and iterations with the others'
    survivor, joiner = log_of(one, 1, 1), log_of(one, 0, 2)
    entered = re.findall(r"enter (\d+) (\d)", survivor)
    assert [size for _, size in entered] == ["2", "1", "2"] and survivor.count("reset") == 2
    assert "enter %s 2" % entered[2][0] in joiner and "ended at 6 with 2" in joiner


@pytest.mark.parametrize("options", VERSIONS[-1:], indirect=True)
def test_FitInPlaceGoesOnWithAJoinerInTheMiddleOfWhatIsAddedUp(job, options):
    one = job("keras_in_place.py", 2, BATCHES="150", spares=[0], **options)
    one.replace_slot_0(admitted_at=60)  # each compares its weights with the others'
    for who in (1, 1), (0, 2):
        assert "ended at 150 with 2" in log_of(one, *who)


@pytest.mark.parametrize("options, more", [(VERSIONS[-1], {}), (VERSIONS[-1], {"IN_GRAPH": "1"}), (VERSIONS[0], {"IN_GRAPH": "1"})],
                         indirect=["options"])
def test_AJoinerNormalisesWithSurvivorsThatHaveMadeMoreLayers(job, options, more):
    one = job("keras_sync_batch_norm.py", 2, STEPS="150", spares=[0], **options, **more)
    one.replace_slot_0()  # each compares its weights with the others'
    names = [re.findall(r"enter \d (\S+)", log_of(one, *who))[-1] for who in ((1, 1), (0, 2))]
    assert names[0] != names[1], names


@pytest.mark.parametrize("options", VERSIONS[-1:], indirect=True)
def test_AWarmUpThatWasEnteredAgainEndsWithTheRateThatWasAskedFor(passes, options):
    passes("keras_warmup.py", 2, **options)


# In place a loop goes on with what it has read ahead; elsewhere the function is entered again, and reads it again.
@pytest.mark.parametrize("form, more, options",
                         [("LOOP", {}, VERSIONS[-1]), ("LOOP", {"AHEAD": "2", "IN_PLACE": "1"}, VERSIONS[-1])] +
                         [("FIT", {}, version) for version in VERSIONS] + [("FIT", {"AHEAD": "3"}, VERSIONS[-1])],
                         indirect=["options"], ids=lambda value: "-".join(value) or "one_by_one" if isinstance(value, dict) else None)
def test_InputByRankCountsEachSampleOnceThroughADeathAndAJoin(job, options, form, more):
    one = job("tensorflow_samples.py", 3, EPOCHS="6", PACE="0.02", spares=[1], **options, **more, **{form: "1"})
    one.wait_world([0, 1, 2], step=8)
    one.kill(1)
    one.wait_world([0, 2])
    one.at_step(5)
    one.admit(1)
    one.wait_world([0, 2, 1])
    codes = one.wait()
    assert {k: v for k, v in codes.items() if v} == {(1, 1): -9}, one.logs()
    each_sample_once(one, 203, 6)


def test_AWorkerThatIsDroppedInsideAGraphComesBackWithTheOthersState(job, options):
    one = job("tensorflow_elastic.py", 3, BATCHES="400", **options)
    one.wait_world([0, 1, 2], step=10)
    one.sidecar.drop(1)
    one.wait_world([0, 2, 1])
    codes = one.wait()
    assert set(codes.values()) == {0}, one.logs()
    text = log_of(one, 1, 1)
    assert "waiting to be let in again" in text and text.count("enter ") == 2, text
    assert "ended at 400 with 3" in text


@pytest.mark.parametrize("options", VERSIONS[-1:], indirect=True)
def test_WithoutElasticRunAWorkerThatIsDroppedEndsWithACodeThatCountsAsNoFailure(job, options):
    one = job("tensorflow_elastic.py", 3, BATCHES="120", PLAIN="1", **options)
    one.wait_world([0, 1, 2], step=10)
    one.sidecar.drop(1)
    codes = one.wait()
    assert codes == {(0, 1): 0, (1, 1): 79, (2, 1): 0}, one.logs()


@pytest.mark.parametrize("options", VERSIONS, indirect=True)
def test_AWorkerThatWaitsInAGraphUntilTheJobEndsWithoutItHasNotFailed(job, options):
    one = job("tensorflow_elastic.py", 2, BATCHES="120", PLAIN="1", spares=[1], **options)
    one.wait_world([0, 1], step=10)
    one.kill(1)
    codes = one.wait()
    assert codes == {(0, 1): 0, (1, 1): -9, (1, 2): 0}, one.logs()
    assert "Traceback" not in log_of(one, 1, 2), log_of(one, 1, 2)
