"""The package with the real library in this process: without a sidecar it is a world of one."""

import os
import subprocess
import sys

import pytest
import torch

import ringmaster
import ringmaster.torch as rm
from ringmaster import _library, errors


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


def test_TheCorePackageDoesNotImportTorch():
    code = "import sys, ringmaster, ringmaster.elastic; assert 'torch' not in sys.modules"
    environ = dict(os.environ, PYTHONPATH=os.path.dirname(os.path.dirname(ringmaster.__file__)))
    assert subprocess.run([sys.executable, "-c", code], env=environ, timeout=60).returncode == 0
