"""The package with the real library in this process: without a sidecar it is a world of one."""

import ctypes
import gc
import itertools
import json
import os
import threading
import weakref

import pytest
import torch

import ringmaster
import ringmaster.torch as rm
from ringmaster import _core, _in_flight, _library, errors
from ringmaster.runner import worker


def test_BeforeInitEveryRankFunctionSaysSo():
    assert not rm.is_initialized()
    for function in (rm.rank, rm.size, rm.local_rank, rm.cross_size, rm.view):
        with pytest.raises(ValueError, match="init"):
            function()


def test_AProcessSetIsMadeOfRanks():
    for wrong in (3, None, ["1"], [0, 1.0], "01"):
        with pytest.raises(ValueError, match="ranks: is"):
            rm.ProcessSet(wrong)
    assert rm.ProcessSet(range(2, 0, -1)).ranks == [1, 2]


def test_BeforeInitTheSetOfAllRanksHasNone():
    assert rm.global_process_set.ranks == []
    with pytest.raises(ValueError, match="init"):
        rm.global_process_set.size()


def test_InitAndShutdownCanBeRepeated():
    for _ in range(3):
        rm.init()
        rm.init()
        assert (rm.rank(), rm.size(), rm.local_rank(), rm.cross_size()) == (0, 1, 0, 1)
        assert rm.allreduce(torch.ones(2)).tolist() == [1, 1]
        rm.shutdown()
        assert not rm.is_initialized()


def test_AFunctionThatShutsDownReturnsItsValueAsTheRankThatItHadAtItsEnd(monkeypatch):
    monkeypatch.setenv("HOROVOD_RANK", "7")  # as of the start, before the world has changed
    rm.init()
    assert worker.place() == 0
    rm.shutdown()
    assert worker.place() == 0


def test_AShutdownThatFailsEndsWhatPythonKeepsWhereTheLibraryIsDown(monkeypatch):
    rm.init()
    one = rm.add_process_set([0])

    def fail(name, *args):
        raise rm.HorovodInternalError("the others have not come")

    monkeypatch.setattr(_core, "call", fail)
    with pytest.raises(rm.HorovodInternalError):
        rm.shutdown()
    assert rm.is_initialized() and one.process_set_id == 1 and rm.step_view().size == 1

    def end_and_fail(name, *args):
        errors.check(getattr(_core.library(), name)(*args), _core.library())
        fail(name)

    monkeypatch.setattr(_core, "call", end_and_fail)
    with pytest.raises(rm.HorovodInternalError):
        rm.shutdown()
    assert not rm.is_initialized() and one.process_set_id is None
    with pytest.raises(ValueError, match="init"):
        rm.step_view()


def test_AViewIsShownAsStatusAndLogsShowIt(world):
    assert rm.view() == rm.step_view() == (0, 1, rm.view().number)
    assert str(ringmaster._core.View(0, 4, (3 << 40) + 17)) == "3.17"


def test_CollectivesOfOneGiveBackWhatWasGiven(world):
    mine = torch.arange(6.0).reshape(2, 3)
    assert torch.equal(rm.allgather(mine), mine)
    assert torch.equal(rm.broadcast(mine, 0), mine)
    assert rm.broadcast_object([1, "a"]) == [1, "a"]
    assert rm.allgather_object(None) == [None]
    rm.barrier()


def test_TheOtherCollectivesOfOneGiveBackWhatWasGivenToo(world):
    mine = torch.arange(6.0).reshape(3, 2)
    assert torch.equal(rm.reducescatter(mine), mine)
    assert torch.equal(rm.alltoall(mine), mine)
    assert rm.alltoall(mine, splits=[3])[1].tolist() == [3]
    assert [t.tolist() for t in rm.grouped_allreduce([mine, mine + 1])] == \
        [mine.tolist(), (mine + 1).tolist()]
    assert rm.join() == 0


def test_InitAddsProcessSetsInTheirOrderAndShutdownEndsThem():
    for _ in range(2):
        sets = [rm.ProcessSet([0]), rm.ProcessSet([0])]
        with pytest.raises(ValueError, match="added"):
            sets[0].number()
        rm.init(process_sets=sets)
        rm.init(process_sets=sets)  # again is a no-op
        assert [one.process_set_id for one in sets] == [1, 2]
        assert rm.allreduce(torch.ones(1), process_set=sets[1]).item() == 1
        with pytest.raises(ValueError, match="added already"):
            rm.add_process_set(sets[0])
        rm.shutdown()


def test_InitTakesWhatHorovodsTakesAndNamesWhatThereIsNot():
    with pytest.raises(ValueError, match="process_sets: is 'static'"):
        rm.init(process_sets="static")
    rm.init(process_sets="dynamic")
    rm.shutdown()


def test_WhereAWorkerStandsInASetIsOfOneMoment(monkeypatch):
    """Workers 1 and 2 of three are the set; worker 0 dies as worker 2 asks."""
    moved = []

    def ranks(_):
        moved.append(True)
        return [1, 2] if len(moved) == 1 else [0, 1]

    monkeypatch.setattr(_core, "rank", lambda: 1 if moved else 2)
    views = {False: _core.View(2, 3, 1), True: _core.View(1, 2, 2)}
    monkeypatch.setattr(_core, "view", lambda: views[bool(moved)])
    monkeypatch.setattr(rm.ProcessSet, "ranks", property(ranks))
    one = rm.ProcessSet([1, 2])
    one.process_set_id = 1
    assert one.rank() == 1
    moved.clear()
    monkeypatch.setattr(_core, "rank", lambda: 0 if moved else 1)  # worker 1
    assert one.included() and one.rank() == 0


class Communicator:
    """As mpi4py has them."""

    def __init__(self, rank, size):
        self.rank, self.size = rank, size

    def Get_rank(self):
        return self.rank

    def Get_size(self):
        if self.size is None:
            raise RuntimeError("MPI_ERR_COMM: invalid communicator")
        return self.size

    def __repr__(self):
        return "Intracomm"


@pytest.mark.parametrize("comm", [None, [], [0], (0,), range(1), Communicator(0, 1)], ids=repr)
def test_InitTakesACommunicatorOfAllRanks(comm):
    rm.init(comm)
    assert (rm.rank(), rm.size()) == (0, 1)
    rm.init(comm)  # again is a no-op
    rm.shutdown()


@pytest.mark.parametrize("comm,says", [
    ([0, 1], r"comm: is \[0, 1\], not the list of all ranks of the job, 0 to 0"),
    ([1], r"comm: is \[1\], not the list"), ([0, 0], r"comm: is \[0, 0\], not the list"),
    (Communicator(1, 2), "comm: is Intracomm, .*rank 1 of 2, and in the job it is rank 0 of 1"),
    (Communicator(0, None), "comm: is Intracomm, .*MPI_ERR_COMM"),
    ([Communicator(0, 1)], r"comm: is \[Intracomm\], neither a list of ranks nor"),
    (3, "comm: is 3, neither"), ("all", "comm: is 'all', neither")], ids=repr)
def test_InitRefusesACommunicatorOfOtherRanks(comm, says):
    with pytest.raises(ValueError, match=says + ".*Allowed are None, .*process_sets="):
        rm.init(comm)
    rm.shutdown()


def test_ATimelineCanBeAskedForByTheEnvironment(monkeypatch, tmp_path):
    path = tmp_path / "timeline.json"
    monkeypatch.setenv("HOROVOD_TIMELINE", "DYNAMIC")
    rm.init()
    rm.allreduce(torch.ones(1))
    rm.shutdown()
    monkeypatch.setenv("HOROVOD_TIMELINE", str(path))
    for _ in range(2):  # the second init() is another timeline
        rm.init()
        rm.init()
        rm.allreduce(torch.ones(1), name="one")
        rm.shutdown()
        events = json.loads(path.read_text())
        assert [event["name"] for event in events if event["name"].endswith("ALLREDUCE")] == [
            "NEGOTIATE_ALLREDUCE", "ALLREDUCE"] * 2  # of the tensor; in the rows of waits and operations


def test_AForkedChildWritesNothingToTheTimeline(world, tmp_path):
    path = tmp_path / "timeline.json"
    rm.start_timeline(path)
    child = os.fork()
    if child == 0:
        try:
            rm.stop_timeline()  # it isn't the child's
        except Exception:
            ctypes.CDLL(None).exit(0)  # with what C programs do at their end
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    rm.allreduce(torch.ones(1), name="one")
    rm.stop_timeline()
    events = json.loads(path.read_text())
    assert [event["name"] for event in events].count("process_name") == 1
    assert any(event["name"] == "ALLREDUCE" for event in events)


def test_AGroupThatWasInterruptedIsWaitedForOnceMore():
    class Interrupted:
        def __init__(self, result, times):
            self.result, self.times = result, times

        def wait(self):
            self.times -= 1
            if self.times == 0:
                raise KeyboardInterrupt
            if self.times < -1:
                raise ValueError("has been synchronized already")
            return self.result

    group = _in_flight.GroupHandle([Interrupted(1, 0), Interrupted(2, 1), Interrupted(3, 0)])
    with pytest.raises(KeyboardInterrupt):
        group.wait()
    assert group.wait() == [1, 2, 3]
    with pytest.raises(ValueError, match="already"):
        group.wait()


def test_AGroupThatIsInterruptedWhileItIsInFlightKeepsItsBuffersAndIsWaitedForOnceMore(
        world, monkeypatch):
    handle = rm.grouped_allreduce_async([torch.ones(2), torch.ones(3)], name="group")
    group, = [one for one in _in_flight._in_flight if isinstance(one, _in_flight.Group)]
    library = _core.library()

    class Interrupted:
        rm_poll = staticmethod(lambda number: 0)

        @staticmethod
        def rm_wait_all(*_):
            raise KeyboardInterrupt

    monkeypatch.setattr(_core, "library", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        rm.synchronize(handle)
    assert group in _in_flight._in_flight and group.buffers
    monkeypatch.setattr(_core, "library", lambda: library)
    assert [tensor.tolist() for tensor in rm.synchronize(handle)] == [[1, 1], [1, 1, 1]]
    assert group not in _in_flight._in_flight and group.done()
    del handle
    for _ in range(3):  # nobody waits for these
        rm.grouped_allreduce_async([torch.ones(2), torch.ones(3)])
    rm.grouped_allreduce([torch.ones(2), torch.ones(3)], name="last")
    rm.barrier()
    rm.allreduce(torch.ones(1))
    assert not _in_flight._abandoned


def test_AGroupIsReleasedOnceThoughTwoAskForIt(world):
    group = _in_flight.Group(None, 1)
    group.numbers[0] = 1 << 40  # the library knows of none, so it is done
    group.release()
    group.release()


def test_SeveralHandlesAreWaitedForAndReleasedInOneCall(world):
    numbers = (ctypes.c_uint64 * 3)()
    names = [b"a", b"b", b"c"]
    data = (ctypes.c_float * 3)(1, 2, 3)
    requests = (_library.Request * 3)()
    for index, name in enumerate(names):
        requests[index] = _library.Request(_library.ALLREDUCE, name, dtype=6)
        requests[index].input = requests[index].output = ctypes.addressof(data) + 4 * index
    _core.call("rm_submit", requests, 3, numbers)
    _core.call("rm_wait_all", numbers, 3, 10)
    _core.call("rm_wait_all", None, 0, 10)
    assert list(data) == [1, 2, 3]
    with pytest.raises(ValueError, match="handles is null"):
        _core.call("rm_wait_all", None, 3, 10)
    _core.library().rm_release_all(numbers, 2)
    assert [_core.library().rm_poll(number) for number in numbers] == [-1, -1, 1]
    with pytest.raises(ValueError, match="handle %d is unknown" % numbers[1]):
        _core.call("rm_wait_all", numbers, 3, 10)
    _core.library().rm_release(numbers[2])


def test_APreparedGroupIsKnownByItsNumberUntilItIsFreed(world):
    data, group, handle = (ctypes.c_float * 3)(1, 2, 3), ctypes.c_uint64(7), ctypes.c_uint64(7)
    requests = (_library.Request * 2)()
    for index in range(2):  # without names
        requests[index] = _library.Request(_library.ALLREDUCE, None, dtype=6, postscale=2)
        requests[index].input = requests[index].output = ctypes.addressof(data) + 4 * index
    with pytest.raises(ValueError, match="group is null"):
        _core.call("rm_prepare", b"x", requests, 2, None)
    with pytest.raises(ValueError, match="name is empty"):
        _core.call("rm_prepare", None, requests, 2, ctypes.byref(group))
    assert group.value == 0
    _core.call("rm_prepare", b"x", requests, 2, ctypes.byref(group))
    with pytest.raises(ValueError, match="'x': ready_event must be NULL"):
        _core.call("rm_submit_group", group, 1, ctypes.byref(handle))
    with pytest.raises(ValueError, match="handle is null"):
        _core.call("rm_submit_group", group, None, None)
    assert handle.value == 0
    for wanted in ([2, 4, 3], [4, 8, 3]):
        _core.call("rm_submit_group", group, None, ctypes.byref(handle))
        _core.call("rm_wait", handle, 10)
        assert list(data) == wanted
        _core.library().rm_release(handle)
    _core.library().rm_free_group(group)
    _core.library().rm_free_group(group)
    with pytest.raises(ValueError, match="group %d is unknown" % group.value):
        _core.call("rm_submit_group", group, None, ctypes.byref(handle))


def test_WhatAPreparedGroupKeepsGoesWithIt(world):
    tensors = [torch.ones(3), torch.ones(4)]
    group = rm.prepare_grouped_allreduce(tensors, "kept", op=rm.Sum)
    memory = weakref.ref(tensors[0])
    assert group.tensors[0] is tensors[0]
    del tensors[0]
    group.run()
    gc.collect()
    assert memory() is not None
    del group
    gc.collect()
    assert memory() is None


def test_AnEmptyTensorIsFine(world):
    assert rm.allreduce(torch.empty(0)).numel() == 0
    assert rm.allgather(torch.empty(0, 3)).shape == (0, 3)


def test_AnUnknownRootIsNamed(world):
    with pytest.raises((ValueError, rm.HorovodInternalError), match="root"):
        rm.broadcast(torch.ones(1), 7)


def test_ATensorOfWhichElementsAreOneInMemoryGetsNoResult(world):
    expanded = torch.ones(1).expand(3)
    assert rm.allreduce(expanded, name="read").tolist() == [1.0] * 3
    for call in (lambda: rm.broadcast_(expanded, 0), lambda: rm.allreduce_(expanded),
                 lambda: rm.grouped_allreduce_([torch.ones(1), expanded])):
        with pytest.raises(ValueError, match="tensor: is expanded"):
            call()


def test_AnOptimizerThatIsDroppedKeepsNothing(world):
    def trial():
        model = torch.nn.Linear(10, 10)
        optimizer = rm.DistributedOptimizer(torch.optim.Adam(model.parameters()))
        optimizer.zero_grad()
        model(torch.ones(1, 10)).sum().backward()
        optimizer.step()
        return [weakref.ref(optimizer), weakref.ref(model.weight)]

    references = [reference for _ in range(3) for reference in trial()]
    gc.collect()
    assert [reference() for reference in references] == [None] * 6
    _core.load_state(_core.save_state())


def test_ACellThatWasInterruptedAfterItsBackwardPassCanBeRunAgain(world):
    model = torch.nn.Linear(1, 1, bias=False)
    optimizer = rm.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1.0))
    for value in (1.0, 2.0):
        optimizer.zero_grad()
        model(torch.full((1, 1), value)).sum().backward()
    optimizer.step()
    assert model.weight.grad.item() == 2.0


def test_AStateThatIsLoadedAfterABackwardPassGivesTheBatchBack(world):
    model = torch.nn.Linear(1, 1, bias=False)
    sampler = rm.elastic.ElasticSampler(4, shuffle=False)
    optimizer = rm.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1.0),
                                        sampler=sampler)
    saved, seen = optimizer.state_dict(), []
    for indices in sampler.batches(2):
        seen.append(indices)
        optimizer.zero_grad()
        model(torch.ones(len(indices), 1)).mean().backward()
        if len(seen) == 1:
            optimizer.load_state_dict(saved)
        else:
            optimizer.step()
    assert seen == [[0, 1], [0, 1], [2, 3]]


def test_HandlesThatAreDroppedKeepNothing(world):
    from ringmaster.torch import handles
    for _ in range(3):
        kept = int(rm.allreduce_async(torch.ones(2)))
        "%d %s" % (rm.allreduce_async(torch.ones(2)), rm.allreduce_async(torch.ones(2)))
        gc.collect()
        assert list(handles._pending) == list(handles._taken) == [kept]
        rm.synchronize(kept)
        assert not handles._taken and not handles._pending
    int(rm.allreduce_async(torch.ones(2)))
    rm.shutdown()
    assert not handles._taken and not handles._pending
    rm.init()


@pytest.mark.parametrize("op", [rm.Average, rm.Adasum])
def test_ASchedulerOfNewerPyTorchsThatWasMadeBeforeHidesNoStep(world, op):
    """They replace step() by one that notes its call, and warn unless there was one."""
    plain = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    own = plain.step

    def noted():
        plain._opt_called = True
        own()

    plain.step = noted
    optimizer = rm.DistributedOptimizer(plain, op=op)
    assert optimizer.step.__func__ is type(optimizer).step and plain.step is noted
    steps = rm.last_step().step if rm.last_step() else 0
    optimizer.step()
    assert plain._opt_called and rm.last_step().step == steps + 1


def test_ReportTakesNumbers(world):
    rm.report(loss=0.5, samples=3)
    with pytest.raises((TypeError, ValueError)):
        rm.report(loss="high")
    rm.report(**{"x" * 64: 1})
    with pytest.raises(ValueError, match="name has 65 bytes: at most 64 are allowed"):
        rm.report(**{"x" * 65: 1})


def test_AReportedValueThatIsNoFiniteNumberIsLeftOutAndSaidOnceForEachName(world):
    with pytest.warns(RuntimeWarning) as said:
        for _ in range(2):
            rm.report(loss_of_none=float("nan"), accuracy=0.5, far=float("-inf"))
            rm.report(loss_of_none=torch.tensor(float("nan")))
    assert [str(warning.message) for warning in said] == [
        "report: loss_of_none is nan, must be a finite number: it is left out each time",
        "report: far is -inf, must be a finite number: it is left out each time"]
    assert {warning.filename for warning in said} == {__file__}


def test_LeavingTheJobIsAnExitWithCodeZero():
    with pytest.raises(SystemExit) as left:
        raise rm.Left("drained")
    assert left.value.code == 0


def test_TensorsThatAreOnNoGpuOfCudaAreRefused():
    with pytest.raises(ValueError, match="is on meta, must be on the CPU or on a GPU of CUDA"):
        rm.allreduce(torch.empty(1, device="meta"))


def test_AnOptimizersParametersLieInOneMemoryThatIsKnown():

    def parameter(device):
        class Placed(torch.nn.Parameter):
            pass
        Placed.device = property(lambda self: torch.device(device))
        one = torch.nn.Parameter(torch.ones(1))
        one.__class__ = Placed
        return one

    for devices, refused in ((["cuda:0", "cuda:1"], "are on cuda:0 and cuda:1, must be on one GPU"),
                             (["cpu", "xpu:0"], "one is on xpu:0, must be on the CPU or on a GPU")):
        optimizer = torch.optim.SGD([parameter(device) for device in devices], lr=0.1)
        with pytest.raises(ValueError, match=refused):
            rm.DistributedOptimizer(optimizer)


def test_ThreadsThatCallWhileAnotherShutsDownHearItAndNobodyHangs():
    rm.init()
    begun, ended = threading.Barrier(4), []

    def call(number):
        for step in itertools.count():
            try:
                rm.allreduce(torch.ones(100), name="thread%d.%d" % (number, step % 2))
            except (ValueError, rm.HorovodInternalError) as error:
                ended.append(str(error))
                return
            if step == 0:
                begun.wait(30)

    threads = [threading.Thread(target=call, args=(number,), daemon=True) for number in range(3)]
    for thread in threads:
        thread.start()
    begun.wait(30)
    rm.shutdown()
    for thread in threads:
        thread.join(30)
    assert len(ended) == 3 and all("init" in error or "shut" in error for error in ended), ended
