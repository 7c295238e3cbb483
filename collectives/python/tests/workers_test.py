"""Real worker processes with the real library under a fake sidecar: collectives, deaths, joins,
drains.
"""

import re
import signal

import pytest

from conftest import fake_gpu
from fake_sidecar import DEADLINE
from worker_logs import each_sample_once, log_of


@pytest.mark.parametrize("size", [2, 3])
def test_EveryCollectiveOnEveryRank(passes, size):
    passes("operations.py", size)


@pytest.mark.parametrize("size, shared_memory", [(2, "1"), (3, "1"), (2, "0")])
def test_APreparedGroupIsReducedAsItsTensorsWouldBe(passes, size, shared_memory):
    passes("prepared.py", size, RINGMASTER_SHM=shared_memory)


def test_APreparedGroupGoesOnThroughADeathAndAJoin(job):
    one = job("prepared_through_changes.py", 3, STEPS="150", spares=[1])
    one.wait_world([0, 1, 2], step=10)
    one.kill(1)
    one.wait_world([0, 2])
    one.at_step(5)  # else the workers may never train as two
    one.admit(1)
    one.wait_world([0, 2, 1])
    codes = one.wait()
    assert {k: v for k, v in codes.items() if v} == {(1, 1): -9}, one.logs()
    assert "sizes [3, 2, 3]" in log_of(one, 0, 1) and "sizes [3]" in log_of(one, 1, 2), one.logs()


@pytest.mark.parametrize("size", [2, 4])
def test_HorovodsNamesDoWhatHorovodsScriptsExpect(passes, size):
    passes("horovod_names.py", size)


@pytest.mark.parametrize("size", [2, 4])
def test_GradientsFlowThroughEveryCollective(passes, size):
    passes("gradients.py", size)


@pytest.mark.parametrize("size", [1, 3])
def test_WhatOneRankCannotPickleIsAnErrorOnAllAndTheJobGoesOn(passes, size):
    passes("objects_that_cannot_be_sent.py", size)


def test_AStateThatCannotBePickledIsTheErrorOfTheJoinerAlone(job, tmp_path):
    ended = tmp_path / "ended"
    one = job("unpicklable_state.py", 2, str(ended), spares=[1])
    one.wait_world([0, 1], step=3)
    one.kill(1)
    one.wait_world([0])
    one.admit(1)
    one.processes[1, 2].wait(DEADLINE)
    ended.touch()
    assert one.wait() == {(0, 1): 0, (1, 1): -9, (1, 2): 1}, one.logs()
    says = "could not pickle its object['elastic.state']['values']['given'], a function: "
    assert says in log_of(one, 1, 2), one.logs()


def test_SeveralOptimizersHaveTheMeanOverTheSameSamples(passes):
    passes("two_optimizers_of_one_sampler.py", 2)


def test_AnInterruptThatFallsIntoTheSaveForAJoinerIsRaisedAtTheEndOfTheStep(job):
    one = job("interrupted_save.py", 2, spares=[1])
    one.wait_world([0, 1], step=3)
    one.kill(1)
    one.wait_world([0])
    one.admit(1)
    assert one.wait() == {(0, 1): 0, (1, 1): -9, (1, 2): 1}, one.logs()
    assert "interrupted, and the step has ended" in log_of(one, 0, 1), one.logs()


def test_AnOptimizerMadeInATrainingFunctionThatIsEnteredOnceIsRefused(passes):
    passes("optimizer_in_place.py", 1)


def test_ARootThatIsNoRankIsRefusedByEveryBroadcast(passes):
    passes("wrong_roots.py", 2)


@pytest.mark.parametrize("size", [1, 3])
def test_OptimizersStepsEqualThoseOfOneProcess(passes, size):
    passes("optimizers.py", size)


@pytest.mark.parametrize("size", [2, 4])
def test_EachOptionOfAnOptimizerDoesWhatHorovodsDoes(passes, size):
    passes("optimizer_options.py", size)


def test_WithoutSharedMemoryTheResultsAreTheSame(passes):
    passes("optimizers.py", 2, RINGMASTER_SHM="0")


def test_TensorsOnAGpuDoWhatThoseOnTheCpuDo(passes, tmp_path):
    passes("on_gpu.py", 3, **fake_gpu(tmp_path))
    said = [file.read_text() for file in tmp_path.glob("events.*")]
    assert len(said) == 3 and not any("misuse" in text for text in said), said


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
    survivor, joiner = log_of(one, 1 - victim, 1), log_of(one, victim, 2)
    entered = [tuple(map(int, found)) for found in re.findall(r"enter (\d+) (\d)", survivor)]
    assert [size for _, size in entered] == [2, 1, 2]
    assert survivor.count("reset") == 2
    # The newcomer enters with the counters of the commit at which the survivor enters again.
    assert "enter %d 2" % entered[2][0] in joiner and entered[2][0] > 0


def test_AfterAJoinRanksAndNamesMeanTheSameThoughAWorkerHasDiedMeanwhile(job):
    one = job("joined_while_one_died.py", 3)
    assert one.wait() == {(0, 1): 0, (1, 1): -9, (2, 1): 0}, one.logs()


@pytest.mark.parametrize("in_place", ["0", "1"])
def test_WhoHadJoinedWhenAWorkerDiedGoesOnWithThoseThatHaveEnteredAgain(job, in_place):
    one = job("elastic_joins.py", 3, IN_PLACE=in_place)
    assert one.wait() == {(0, 1): 0, (1, 1): -9, (2, 1): 0}, one.logs()


def test_InPlaceAJoinerRunsItsResetCallbacksAsTheOthersDo(job):
    one = job("horovod_elastic.py", 2, BATCHES="150", IN_PLACE="1", spares=[1])
    one.wait_world([0, 1], step=10)
    one.kill(1)
    one.wait_world([0], step=20)
    one.admit(1)
    one.wait_world([0, 1])
    codes = one.wait()  # each compares its weights and learning rate with the others'
    assert {k: v for k, v in codes.items() if v} == {(1, 1): -9}, one.logs()
    assert log_of(one, 0, 1).count("reset") == 2 and log_of(one, 1, 2).count("reset") == 1


def test_AStateThatIsDerivedAsForHorovodSyncsItselfAfterADeathAndAJoin(job):
    one = job("horovod_state.py", 2, BATCHES="150", spares=[1])
    one.wait_world([0, 1], step=10)
    one.kill(1)
    one.wait_world([0], step=20)
    one.admit(1)
    one.wait_world([0, 1])
    codes = one.wait()
    assert {k: v for k, v in codes.items() if v} == {(1, 1): -9}, one.logs()
    assert re.findall(r"sync of (\d)", log_of(one, 0, 1)) == ["2", "1", "2"]
    assert re.findall(r"sync of (\d)", log_of(one, 1, 2)) == ["2"]


def test_ADrainedWorkerEndsWithZeroAndTheOthersGoOn(job):
    one = job("horovod_elastic.py", 3, BATCHES="80")
    one.wait_world([0, 1, 2], step=10)
    one.sidecar.drain(0)
    one.wait_world([1, 2])
    codes = one.wait()
    assert set(codes.values()) == {0}, one.logs()
    assert "sizes" not in log_of(one, 0, 1)
    for log in (log_of(one, 1, 1), log_of(one, 2, 1)):
        assert re.findall(r"enter \d+ (\d)", log) == ["3", "2"] and log.count("reset") == 1, log


def test_AStandbyThatHasDoneItsImportsTakesADeadWorkersPlace(job):
    one = job("horovod_elastic.py", 2, BATCHES="300")
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
    assert log_of(one, 7, 1).count("enter") == 1


def test_APlainScriptGoesOnInPlaceAndHearsOfTheNewSize(job):
    one = job("plain.py", 3)
    one.wait_world([0, 1, 2], step=10)
    one.sidecar.wait(lambda s: s.members[0].values.get("loss", 0) > 1, "a reported value")
    one.kill(2)
    codes = one.wait()
    assert codes[0, 1] == 0 and codes[1, 1] == 0, one.logs()
    assert "resized [(3, 2)]" in log_of(one, 0, 1)
    # Leaving the interpreter is an agreed end.
    assert one.sidecar.finished == {0, 1}


@pytest.mark.parametrize("way, code", [("raise", 1), ("sys.exit", 3), ("exit", 3),
                                       ("SystemExit", 3), ("text", 1)])
def test_AWorkerThatFailsLeavesAtOnceAndHoldsNobodyUp(job, way, code):
    one = job("raises.py", 2, WAY=way)
    assert one.wait() == {(0, 1): 0, (1, 1): code}, one.logs()


@pytest.mark.parametrize("calls", range(4))
def test_ABroadcastWhoseRootDiesFailsOnAllOthersOrGivesTheRootsValue(job, calls):
    one = job("root_dies.py", 3, DIE_AT=str(calls))
    codes = one.wait()
    assert codes == {(0, 1): -9, (1, 1): 0, (2, 1): 0}, one.logs()
    lines = [log_of(one, slot, 1).splitlines() for slot in (1, 2)]
    assert lines[0] == lines[1] and len(lines[0]) == 3, lines
    got = dict(line.split(" ", 1) for line in lines[0])
    assert all(text in ("{'from': 0}", "{'from': 1}", "[0.0]", "[1.0]", "0", "1")
               or re.match("lost: .*worker 0 of pod pod-0", text) for text in got.values()), lines


# What each of the two that are left gets of it where it is no error.
BESIDE = {"alltoall": ["[[11.0, 11.0, 21.0, 21.0], [2, 2]]", "[[12.0, 12.0, 12.0, 22.0, 22.0, 22.0], [3, 3]]"],
          "equal_alltoall": ["[[11.0, 21.0], [1, 1]]", "[[12.0, 22.0], [1, 1]]"],
          "allgather": ["[1.0, 1.0, 2.0, 2.0, 2.0]"] * 2,
          "reducescatter": ["[0.0, 2.0, 4.0]", "[6.0, 8.0, 10.0]"],
          "other_broadcast": ["[1.0]"] * 2}


@pytest.mark.parametrize("way", ["first", "second", "late"])
@pytest.mark.parametrize("kind", BESIDE)
def test_WhatIsInFlightBesideABroadcastWhoseRootDiesEndsAlikeOnAllOthers(job, tmp_path, kind, way):
    one = job("beside_a_lost_broadcast.py", 3, str(tmp_path), KIND=kind, WAY=way)
    assert one.wait() == {(0, 1): -9, (1, 1): 0, (2, 1): 0}, one.logs()
    lines = [log_of(one, slot, 1).splitlines() for slot in (1, 2)]
    assert lines[0][0] == lines[1][0] and lines[0][0].startswith("broadcast: RootLostError"), lines
    got = [line[1].removeprefix("beside: ") for line in lines]
    failed = "Error" in got[0] + got[1]  # ranks may have meant different things: on all or none
    assert got[0] == got[1] if failed else got == BESIDE[kind], lines
    assert lines[0][2] == lines[1][2] == "goes on: 3.0", lines


def test_AnOptimizersStateIsTheRootsOrNobodysThoughRanksMoveMeanwhile(job, tmp_path):
    one = job("optimizer_root_dies.py", 3, str(tmp_path))
    codes = one.wait()
    assert codes == {(0, 1): -9, (1, 1): 0, (2, 1): 0}, one.logs()
    assert [log_of(one, slot, 1).splitlines()[-1] for slot in (1, 2)] == ["lost"] * 2, one.logs()


def test_ASendOrReceiveWhosePartnerDiesFailsAndTheOthersGoOnWithEachOther(job):
    one = job("transfers.py", 3)
    codes = one.wait()
    assert codes == {(0, 1): 0, (1, 1): 0, (2, 1): -9}, one.logs()
    assert all("both go on" in log_of(one, slot, 1) for slot in (0, 1)), one.logs()


def test_RanksOfASendMeanWhomTheyMeantWhenTheStepBegan(job):
    one = job("transfers_by_rank.py", 4)
    codes = one.wait()
    assert codes == {(0, 1): 0, (1, 1): -9, (2, 1): 0, (3, 1): 0}, one.logs()
    assert all("all got theirs" in log_of(one, slot, 1) for slot in (0, 2, 3)), one.logs()


@pytest.mark.parametrize("way", ["calls", "set", "lost"])
def test_RanksOfACollectiveMeanTheSameBeforeAndAfterADeathWithinTheStep(job, tmp_path, way):
    one = job("moved_ranks.py", 3, str(tmp_path), WAY=way)
    codes = one.wait()
    assert codes == {(0, 1): -9, (1, 1): 0, (2, 1): 0}, one.logs()
    assert all("all meant the same" in log_of(one, slot, 1) for slot in (1, 2)), one.logs()


def test_TheGradientOfAGatherIsThatOfTheOwnRowsAlsoIfARankDiesMeanwhile(job, tmp_path):
    one = job("gradients_moved.py", 3, str(tmp_path))
    assert one.wait() == {(0, 1): -9, (1, 1): 0, (2, 1): 0}, one.logs()
    assert all("its own rows" in log_of(one, slot, 1) for slot in (1, 2)), one.logs()


def test_TheGradientOfAReducescatterIsOfThoseThatTookPartAlsoIfARankDiesMeanwhile(job, tmp_path):
    one = job("gradients_moved.py", 3, str(tmp_path), COLLECTIVE="reducescatter")
    assert one.wait() == {(0, 1): 0, (1, 1): 0, (2, 1): -9}, one.logs()
    assert all("three took part" in log_of(one, slot, 1) for slot in (0, 1)), one.logs()


@pytest.mark.parametrize("way", ["dropped", "raises", "group", "interrupted"])
def test_WhatIsInFlightKeepsItsMemoryWhateverBecomesOfItsHandle(passes, way):
    passes("lets_go.py", 2, WAY=way)


def test_AWorkerThatExitsWithOperationsInFlightExitsWithItsOwnCode(job):
    one = job("lets_go.py", 2, WAY="exits")
    assert one.wait() == {(0, 1): 3, (1, 1): 0}, one.logs()


@pytest.mark.parametrize("in_place", [False, True])
def test_ADroppedWorkerWaitsUntilItIsLetInAndEntersAgainWithTheOthersState(job, in_place):
    one = job("horovod_elastic.py", 3, BATCHES="120", **({"IN_PLACE": "1"} if in_place else {}))
    one.wait_world([0, 1, 2], step=10)
    one.sidecar.drop(1)
    one.wait_world([0, 2, 1])
    codes = one.wait()
    assert set(codes.values()) == {0}, one.logs()  # each compares its weights with the others'
    text = log_of(one, 1, 1)
    assert "waiting to be let in again" in text and text.count("enter ") == 2, text


def test_ADroppedWorkerWithoutElasticRunEndsWithACodeThatCountsAsNoFailure(job):
    one = job("plain.py", 3)
    one.wait_world([0, 1, 2], step=10)
    one.sidecar.drop(1)
    codes = one.wait()
    assert codes == {(0, 1): 0, (1, 1): 79, (2, 1): 0}, one.logs()


@pytest.mark.parametrize("size", [2, 4])
def test_InitAfterShutdownBeginsAgainAnyNumberOfTimes(passes, size):
    one = passes("inits_again.py", size)
    assert one.sidecar.finished == set(range(size)) and len(one.sidecar.views) == 1
    kinds = [frame["t"] for _, frame in one.sidecar.log]
    assert kinds.count("resting") == 5 * size and kinds.count("woken") == 4 * size
    # At the end of each process, when nobody begins again.
    assert kinds.count("finished") == size and kinds.index("finished") > kinds.index("resting")


@pytest.mark.parametrize("size", [2, 4])
def test_AWorkerThatDiesBetweenTwoRoundsIsReplacedInALaterOne(job, size):
    one = job("rounds.py", size, str(size), "pod-0 1", spares=[1])
    others = [slot for slot in range(size) if slot != 1]
    one.wait_world(others)  # while all rest
    one.admit(1)
    codes = one.wait()
    assert codes.pop((1, 1)) == -signal.SIGKILL and set(codes.values()) == {0}, one.logs()
    assert one.sidecar.views[-1][1:] == ("WorkerJoined", others + [1]), one.sidecar.views
    assert "round 2 of %d" % size in log_of(one, 1, 1)
    assert all("the end" in log_of(one, *who) for who in codes)


@pytest.mark.parametrize("way", ["each", "state", "one"])
def test_AWorkerThatComesIntoALaterRoundFindsTheOthersOptimizers(job, way):
    one = job("optimizers_of_rounds.py", 2, "2", "pod-0 1", way, spares=[1])
    one.wait_world([0])  # while it rests
    one.admit(1)
    codes = one.wait()
    assert codes.pop((1, 1)) == -signal.SIGKILL and set(codes.values()) == {0}, one.logs()
    assert all("the end" in log_of(one, *who) for who in codes), one.logs()


@pytest.mark.parametrize("way", ["function", "callback", "after"])
def test_AJoinerFindsTheGradientsOfOptimizersThatSurvivorsHaveMadeAnew(job, way):
    one = job("makes_optimizers.py", 2, way, STEPS="150", spares=[0])
    one.replace_slot_0()  # each compares its weights with the others'
    assert "ended with 2" in log_of(one, 0, 2)


def test_WhatAPartOfAStepHasAddedUpIsVoidWhereTheTrainingFunctionIsEnteredAgain(job):
    one = job("adds_up_gradients.py", 3, BATCHES="150", spares=[0])
    one.replace_slot_0(admitted_at=30)  # each compares its weights with the others'
    assert "ended with 3" in log_of(one, 0, 2)
    entered = [int(batch) for batch in re.findall(r"enter (\d+) ", log_of(one, 1, 1))]
    assert len(entered) == 3 and all(batch % 4 for batch in entered[1:]), entered


def test_UnderASidecarOfAnEarlierVersionAShutdownIsTheEnd(job):
    one = job("inits_again.py", 2, rests=False)
    assert set(one.wait().values()) == {1}
    assert "its sidecars are of a version for which that is its end" in one.logs()
    assert one.sidecar.finished == {0, 1}


def test_AForkedChildHasNoConnectionsAndSaysThatItMustNotUseTheLibrary(passes):
    passes("forks.py", 2)


@pytest.mark.parametrize("persistent", [False, True])
def test_ALoaderWithWorkersThatReadAheadCountsEachSampleOnceThroughADeathAndAJoin(job, persistent):
    one = job("data_loader.py", 3, EPOCHS="6", PACE="0.02", spares=[1],
              **({"PERSISTENT": "1"} if persistent else {}))
    one.wait_world([0, 1, 2], step=8)
    one.kill(1)
    one.wait_world([0, 2])
    one.at_step(5)
    one.admit(1)
    one.wait_world([0, 2, 1])
    codes = one.wait()
    assert {k: v for k, v in codes.items() if v} == {(1, 1): -9}, one.logs()
    each_sample_once(one, 203, 6)


def test_ALoaderWithWorkersGivesARankWithoutAShareAnEmptyBatch(job):
    one = job("data_loader.py", 3, EPOCHS="2", BATCH="101")  # of 203 samples: the last has one
    assert set(one.wait().values()) == {0}, one.logs()
    each_sample_once(one, 203, 2)


def test_TwoOptimizersThatTakeTurnsEndOneStepTogetherAndAJoinerFitsIn(job):
    one = job("gan.py", 2, SIZE="3", spares=[2])
    one.wait_world([0, 1], step=5)
    one.admit(2)
    one.wait_world([0, 1, 2])
    assert set(one.wait().values()) == {0}, one.logs()


@pytest.mark.parametrize("state, seeds", [("torch", "own"), ("torch", "same"), ("object", "own")])
def test_RandomStatesStayTheRanksOwnUnlessAllHadTheSame(job, state, seeds):
    one = job("random_states.py", 2, STATE=state, SEEDS=seeds, spares=[2])
    one.wait_world([0, 1], step=5)
    one.admit(2)
    one.wait_world([0, 1, 2])
    assert set(one.wait().values()) == {0}, one.logs()


def test_AScriptWithoutStateIsNotJoinedAndNobodyFails(job):
    one = job("plain.py", 2, spares=[1])
    one.wait_world([0, 1], step=5)
    one.kill(1)
    one.wait_world([0])
    one.admit(1)
    codes = one.wait()
    assert codes == {(0, 1): 0, (1, 1): -9, (1, 2): 0}, one.logs()
    assert one.sidecar.views[-1][2] == [0]
    assert "@elastic.run with a TorchState" in log_of(one, 1, 2)
    assert (1, {"t": "enter", "state": False}) in one.sidecar.log


def test_AJoinerHasTheParametersOfAnAdasumOptimizer(job):
    one = job("adasum_joiner.py", 2, spares=[1])
    one.wait_world([0, 1], step=10)
    one.kill(1)
    one.wait_world([0], step=20)
    one.admit(1)
    one.wait_world([0, 1])
    codes = one.wait()
    assert {k: v for k, v in codes.items() if v} == {(1, 1): -9}, one.logs()
    assert "the same on 2" in log_of(one, 1, 2)
