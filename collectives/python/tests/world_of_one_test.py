"""The package with the real library in this process: without a sidecar it is a world of one."""

import copy
import ctypes
import gc
import itertools
import json
import mmap
import os
import pickle
import subprocess
import sys
import threading

import pytest
import torch

import ringmaster
import ringmaster.torch as rm
from conftest import fake_gpu
from ringmaster import _core, _in_flight, _library, errors


@pytest.fixture
def world():
    rm.init()
    yield
    rm.shutdown()


def test_BeforeInitEveryRankFunctionSaysSo():
    assert not rm.is_initialized()
    for function in (rm.rank, rm.size, rm.local_rank, rm.cross_size, rm.view):
        with pytest.raises(ValueError, match="init"):
            function()


def test_InitAndShutdownCanBeRepeated():
    for _ in range(3):
        rm.init()
        rm.init()
        assert (rm.rank(), rm.size(), rm.local_rank(), rm.cross_size()) == (0, 1, 0, 1)
        assert rm.allreduce(torch.ones(2)).tolist() == [1, 1]
        rm.shutdown()
        assert not rm.is_initialized()


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
    with pytest.raises(ValueError, match=r"comm: is \[0, 1\]"):
        rm.init([0, 1])
    with pytest.raises(ValueError, match="process_sets: is 'static'"):
        rm.init(process_sets="static")
    rm.init(process_sets="dynamic")
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


def test_AnEmptyTensorIsFine(world):
    assert rm.allreduce(torch.empty(0)).numel() == 0
    assert rm.allgather(torch.empty(0, 3)).shape == (0, 3)


def test_AnUnknownRootIsNamed(world):
    with pytest.raises((ValueError, rm.HorovodInternalError), match="root"):
        rm.broadcast(torch.ones(1), 7)


def test_StepsAreCountedAndEndedOnce(world):
    model = torch.nn.Linear(2, 1)
    optimizer = rm.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1))
    state = rm.elastic.TorchState(model=model, optimizer=optimizer, batch=0)
    counts = []

    @rm.elastic.run(in_place=True)
    def in_place(state):
        for _ in range(3):
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()
            counts.append(rm.last_step().step)
            state.commit()
            assert rm.last_step().step == counts[-1]

    @rm.elastic.run
    def horovod(state):
        for _ in range(3):
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()
            assert rm.last_step().step == counts[-1]  # only commit() ends a step here
            state.commit()
            counts.append(rm.last_step().step)

    in_place(state)
    horovod(state)
    first = counts[0]
    assert counts == list(range(first, first + 6))


def test_CommitAndRestoreGoBackToTheLastCommit(world):
    model = torch.nn.Linear(2, 1)
    state = rm.elastic.TorchState(model=model, batch=1)
    kept = model.weight.detach().clone()
    state.commit()
    state.batch = 2
    model.weight.data.zero_()
    state.restore()
    assert state.batch == 1 and torch.equal(model.weight, kept)


def test_CommitCopiesIntoTheMemoryOfTheLastCopy(world):
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    state = rm.elastic.TorchState(model=model, optimizer=optimizer, last=torch.zeros(1))
    kept = state._kept_parts["model"]
    places = {name: tensor.data_ptr() for name, tensor in kept.items()}
    metadata = dict(kept._metadata)

    def step():
        optimizer.zero_grad()
        # Cubed: the sum of what BatchNorm1d returns is the same whatever the weights are.
        model(torch.randn(3, 2)).pow(3).sum().backward()
        optimizer.step()
        state.last += 1

    for _ in range(2):  # the optimizer has momentum since the first step
        step()
        state.commit()
        committed = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
        step()
        assert not torch.equal(model[0].weight, committed[0]["0.weight"])
        optimizer.param_groups[0]["lr"] = 0.2
        state.restore()
        assert state.last.item() == int(committed[0]["1.num_batches_tracked"])
        assert all(torch.equal(now, committed[0][name]) for name, now in model.state_dict().items())
        now = optimizer.state_dict()
        assert now["param_groups"] == committed[1]["param_groups"]
        assert all(torch.equal(part["momentum_buffer"], now["state"][key]["momentum_buffer"])
                   for key, part in committed[1]["state"].items())
    kept = state._kept_parts["model"]
    assert {name: tensor.data_ptr() for name, tensor in kept.items()} == places
    assert dict(kept._metadata) == metadata
    state.model = torch.nn.Linear(3, 1)  # nothing fits any more
    state.commit()
    state.restore()


def test_ASparseTensorOfAStateMayChangeItsNumberOfEntries(world):
    class Part:
        def state_dict(self):
            return {"table": self.table}

        def load_state_dict(self, state):
            self.table = state["table"]

    part = Part()
    part.table = torch.eye(2).to_sparse_csr()
    state = rm.elastic.TorchState(part=part)
    for table in (torch.ones(2, 2).to_sparse_csr(), torch.ones(2, 2), torch.eye(2).to_sparse()):
        part.table = table
        state.commit()
        part.table = None
        state.restore()
        assert part.table.layout == table.layout
        assert torch.equal(part.table.to_dense(), table.to_dense())


def test_JoinersLearnTheVersionsOfAModelsParts(world):
    model = torch.nn.BatchNorm1d(2)
    state = rm.elastic.TorchState(model=model)
    captured = pickle.loads(pickle.dumps(state.capture()))["parts"]["model"]
    assert captured._metadata == model.state_dict()._metadata
    assert captured._metadata[""]["version"] == 2


def test_AStateThatKeepsNoCopySaysSoWhenItIsToGoBack(world):
    state = rm.elastic.TorchState(model=torch.nn.Linear(2, 1), batch=1)
    state.keeps_copy = False
    state.commit()
    assert state._kept_parts is None
    with pytest.raises(RuntimeError, match="keeps_copy is False"):
        state.restore()


def test_APartOfAStateCanBeReplaced(world):
    state = rm.elastic.TorchState(model=torch.nn.Linear(2, 1), batch=0)
    state.model = torch.nn.Linear(2, 1)
    state.commit()
    kept = state.model.weight.detach().clone()
    state.model.weight.data.zero_()
    state.restore()
    assert torch.equal(state.model.weight, kept)


def test_AnInterruptOfTheScriptsOwnSyncsUnlessItSaysNotTo(world):
    synced = []

    class Mine(rm.elastic.ObjectState):

        def sync(self):
            synced.append(self.batch)
            super().sync()

    @rm.elastic.run
    def train(state):
        state.batch += 1
        if state.batch < 3:
            raise rm.HostsUpdatedInterrupt()
        return state.batch

    assert train(Mine(batch=0)) == 3
    assert synced == [0, 1, 2]
    assert rm.HostsUpdatedInterrupt(True).skip_sync and not rm.HostsUpdatedInterrupt().skip_sync


def test_TheLastPassOfAnEpochIsAStepThoughTheScriptStepsAfterTwo(world):
    model = torch.nn.Linear(1, 1, bias=False)
    sampler = rm.elastic.ElasticSampler(6, shuffle=False)
    optimizer = rm.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1.0),
                                        backward_passes_per_step=2, sampler=sampler)
    begun = model.weight.item()
    for number, own in enumerate(sampler.batches(2)):
        model(torch.tensor([[float(index)] for index in own])).mean().backward()
        if number % 2:
            optimizer.step()
            optimizer.zero_grad()
    assert (sampler.epoch, sampler.done) == (1, 6) and rm.last_step().step == 2
    assert begun - model.weight.item() == pytest.approx(0.5 + 2.5 + 4.5)
    model(torch.ones(1, 1)).mean().backward()  # the next epoch's first of two begins clean
    assert model.weight.grad.item() == 1.0


def test_ASamplerInAnObjectStateIsHandledAsInATorchState(world):
    donor, joiner = [rm.elastic.ObjectState(sampler=rm.elastic.ElasticSampler(20, seed=seed), n=seed)
                     for seed in (1, 2)]
    stream, sampler = list(donor.sampler), joiner.sampler
    donor.sampler.record_batch(0, 4)
    donor.commit()
    assert donor.sampler.processed_indices == set(stream[:4])
    joiner.install(pickle.loads(pickle.dumps(donor.capture())))
    assert joiner.sampler is sampler and joiner.n == 1
    assert sampler.processed_indices == set(stream[:4])


def test_TheStateOfAWorkerMakesAnotherEqual(world):
    def make(seed):
        torch.manual_seed(seed)
        model = torch.nn.Linear(2, 1)
        optimizer = rm.DistributedOptimizer(torch.optim.Adam(model.parameters(), lr=seed / 10))
        sampler = rm.elastic.ElasticSampler(10, seed=seed)
        for own in sampler.batches(4):
            optimizer.adopt(None, sampler)
            optimizer.zero_grad()
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()
            if sampler.remaining <= 6 * seed:
                break
        return rm.elastic.TorchState(model=model, optimizer=optimizer, sampler=sampler, n=seed)

    donor, joiner = make(1), make(2)
    joiner.install(donor.capture())
    assert torch.equal(donor.model.weight, joiner.model.weight) and joiner.n == 1
    assert str(joiner.optimizer.state_dict()) == str(donor.optimizer.state_dict())
    assert joiner.sampler.state_dict() == donor.sampler.state_dict()


def test_RunWantsAState(world):
    with pytest.raises(ValueError, match="state: is a int"):
        rm.elastic.run(lambda state: None)(3)


def test_ReportTakesNumbers(world):
    rm.report(loss=0.5, samples=3)
    with pytest.raises((TypeError, ValueError)):
        rm.report(loss="high")


def test_LeavingTheJobIsAnExitWithCodeZero():
    with pytest.raises(SystemExit) as left:
        raise rm.Left("drained")
    assert left.value.code == 0


@pytest.mark.parametrize("status, kind", [
    (errors.INVALID, ValueError), (errors.MISMATCH, rm.HorovodInternalError),
    (errors.LEFT, rm.Left), (errors.UNAVAILABLE, rm.HorovodInternalError),
    (errors.SHUTDOWN, RuntimeError), (errors.NO_STATE, RuntimeError)])
def test_EachStatusHasItsException(status, kind):
    class Words:
        @staticmethod
        def rm_last_error():
            return b"the reason"

    with pytest.raises(kind, match="the reason"):
        errors.check(status, Words)


def test_AMissingLibraryIsNamedWithAllPlacesThatWereTried(tmp_path):
    places = _library.candidates({}, str(tmp_path / "python" / "ringmaster"))
    assert str(tmp_path / "lib" / _library.FILE) in places
    with pytest.raises(ImportError, match="no such file"):
        _library.load([str(tmp_path / "none.so")])
    assert _library.candidates({"RINGMASTER_LIBRARY": "/x/y.so"}) == ["/x/y.so"]


def test_AnotherLibraryThanOursIsRefused():
    with pytest.raises(ImportError, match="not the Ringmaster library"):
        _library.load(["libm.so.6"])


def test_AnotherAbiVersionIsRefused(monkeypatch):
    monkeypatch.setattr(_library, "ABI_VERSION", 999)
    with pytest.raises(ImportError, match="needs 999"):
        _library.load()


def test_ALibraryThatLacksAFunctionIsSaidToBeOfAnotherVersion(monkeypatch):
    functions = dict(_library._FUNCTIONS, rm_of_a_later_version=(None, []))
    monkeypatch.setattr(_library, "_FUNCTIONS", functions)
    with pytest.raises(ImportError, match="has no function rm_of_a_later_version"):
        _library.load()


def test_TheCorePackageDoesNotImportTorch():
    code = "import sys, ringmaster, ringmaster.elastic; assert 'torch' not in sys.modules"
    environ = dict(os.environ, PYTHONPATH=os.path.dirname(os.path.dirname(ringmaster.__file__)))
    assert subprocess.run([sys.executable, "-c", code], env=environ, timeout=60).returncode == 0


class SlowLibrary:
    """rm_wait's slice ends just before the operation completes."""

    def __init__(self, result):
        self.results = [errors.TIMEOUT, result]

    def rm_wait(self, _number, _seconds):
        return self.results.pop(0)

    def rm_poll(self, _number):
        return 1

    def rm_last_error(self):
        return b"the reason"


def test_AnOperationThatCompletesBetweenTwoLooksHasItsOwnResult(monkeypatch):
    monkeypatch.setattr(_core, "library", lambda: SlowLibrary(errors.OK))
    _in_flight.wait(1)
    monkeypatch.setattr(_core, "library", lambda: SlowLibrary(errors.MISMATCH))
    with pytest.raises(rm.HorovodInternalError, match="the reason.*MISMATCH"):
        _in_flight.wait(1)


def _run(code, environ=(), **options):
    environ = dict(os.environ, PYTHONPATH=os.path.dirname(os.path.dirname(ringmaster.__file__)),
                   **dict(environ))
    return subprocess.run([sys.executable, "-c", code], env=environ, timeout=120, text=True,
                          capture_output=True, **options)


def test_NoMemoryInTheLibraryIsAnErrorAndNoEndOfTheProcess():
    ended = _run("""
import ctypes, resource
from ringmaster import _core, _library, errors
_core.init()
name, handle = b"n" * (256 << 20), ctypes.c_uint64()
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), resource.RLIM_INFINITY))
status = _library.get().rm_barrier_async(name, ctypes.byref(handle))
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert status == errors.OUT_OF_MEMORY, status
assert _library.get().rm_last_error() == b"out of memory"
""")
    assert ended.returncode == 0, ended.stderr


def test_StateOfMoreThanTwoGibibytesIsLoaded(world, monkeypatch):
    """The callback gets an address and a size; here only the first page of it has any memory."""
    loaded = []
    monkeypatch.setattr(_core, "_providers", {})
    monkeypatch.setattr(_core, "_sufficient", False)
    _core.register_state("large", lambda: None, loaded.append)
    try:
        saved = pickle.dumps({name: "the state" for name in _core.registered_states()})
        with mmap.mmap(-1, (2 << 30) + 4096) as large:
            large[:len(saved)] = saved
            address = ctypes.addressof(ctypes.c_char.from_buffer(large))
            status = _core._c_callbacks[1](None, address, len(large))
            assert status == 0, _core._callback_error._kept
            del address
            gc.collect()
    finally:
        _core.unregister_state("large")
    assert loaded == ["the state"]


def test_NcclIsWhatThisProcessCanLoad(tmp_path):
    asks = "import ringmaster; print(ringmaster.nccl_built(), ringmaster.cuda_built())"
    assert _run(asks, fake_gpu(tmp_path, RINGMASTER_FAKE_NCCL="22703")).stdout == "22703 True\n"
    assert _run(asks, fake_gpu(tmp_path, RINGMASTER_FAKE_GPUS="0")).stdout == "0 False\n"


@pytest.mark.parametrize("environ, reason", [
    ({"RINGMASTER_FAKE_GPUS": "0"}, "no GPU can be used: no CUDA-capable device is detected"),
    ({"RINGMASTER_FAKE_NCCL": "21200"}, "libnccl.so.2 is version 21200; 2.14 is the first")])
def test_AJobForNcclIsRefusedWithTheReasonWhereThereIsNone(tmp_path, environ, reason):
    environ = fake_gpu(tmp_path, RINGMASTER_COLLECTIVES='{"backend": "Nccl"}', **environ)
    ended = _run("import ringmaster; ringmaster.init()", environ)
    assert ended.returncode != 0
    assert "rm_init: the job's collectives.backend is Nccl: " + reason in ended.stderr


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
