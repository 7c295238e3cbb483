"""What a worker's state keeps, restores and gives to joiners, in a world of one."""

import copy
import ctypes
import gc
import mmap
import pickle

import pytest
import torch

import ringmaster.torch as rm
from ringmaster import _core
from ringmaster.errors import EXIT_DROPPED


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


def test_AWorkerThatNobodyLetsInAgainEndsItsProcess(world, monkeypatch):
    asked = []

    def refuse():
        asked.append(1)
        raise rm.WorkerDroppedError("fenced, and not let in again since")

    monkeypatch.setattr("ringmaster.elastic._enter_again", refuse)

    @rm.elastic.run
    def train(state):
        assert not asked, "it was entered again"
        raise rm.WorkerDroppedError("the others go on without this worker")

    with pytest.raises(SystemExit) as ended:
        train(rm.elastic.ObjectState(batch=0))
    assert ended.value.code == EXIT_DROPPED and len(asked) == 1


def test_OfWhatWasSavedForAJoinerNothingIsKeptAfterTheStep(world):
    beside = []
    _core.register_state("of this test", lambda: beside.append(_core._saved), lambda saved: None)
    data, size = ctypes.c_void_p(), ctypes.c_size_t()
    try:
        for _ in range(2):  # as the library does it, twice in a step where a joiner dies
            assert _core._c_callbacks[0](None, ctypes.byref(data), ctypes.byref(size)) == 0
            assert size.value == len(_core._saved)
        _core.end_step()
        assert _core._saved is None
        assert beside == [None, None]
    finally:
        _core.unregister_state("of this test")


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


@pytest.mark.parametrize("name, wrong, says", [
    ("model", 5, "is a int, must be a torch.nn.Module"),
    ("model", [torch.nn.Linear(1, 1)], "is a list, must be a torch.nn.Module"),
    ("model", torch.nn.Linear, "is the class Linear, must be a torch.nn.Module"),
    ("optimizer", 0.1, "is a float, must be an optimizer"),
])
def test_AStateRefusesWhatIsNoModelAndNoOptimizer(world, name, wrong, says):
    with pytest.raises(ValueError, match="%s: %s, with state_dict" % (name, says)):
        rm.elastic.TorchState(**{name: wrong})


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


def test_AnotherSamplerOfAStateIsTheOptimizersToo(world):
    model = torch.nn.Linear(1, 1, bias=False)
    optimizer = rm.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1.0))
    state = rm.elastic.TorchState(model=model, optimizer=optimizer,
                                  sampler=rm.elastic.ElasticSampler(4, shuffle=False))
    first = state.sampler
    for sampler in (first, rm.elastic.ElasticSampler(6, shuffle=False)):
        state.sampler = sampler
        for own in state.sampler.batches(2):
            model(torch.tensor([[float(index)] for index in own])).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    assert (first.done, state.sampler.done) == (4, 6)


def test_ASamplerThatWasGivenToTheOptimizerIsTheStatesTooAndAnotherStateTakesItNotAway(world):
    model = torch.nn.Linear(1, 1, bias=False)
    first, other = [rm.elastic.ElasticSampler(4, shuffle=False) for _ in range(2)]
    optimizer = rm.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1.0), sampler=first)
    state = rm.elastic.TorchState(model=model, optimizer=optimizer, sampler=first)
    rm.elastic.TorchState(optimizer=optimizer, sampler=rm.elastic.ElasticSampler(8))
    for sampler in (first, other):
        state.sampler = sampler
        for own in state.sampler.batches(2):
            model(torch.tensor([[float(index)] for index in own])).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    assert (first.done, other.done) == (4, 4)


@pytest.mark.parametrize("name", ["save", "capture", "check_host_updates"])
def test_AValueWithTheNameOfAMethodIsRefused(world, name):
    with pytest.raises(ValueError, match="^%s: is the name of a method" % name):
        rm.elastic.ObjectState(**{name: 1})
    assert rm.elastic.ObjectState(values=[1, 2]).values == [1, 2]


def test_AClassOfTheScriptsOwnMaySayWhatItsValuesAre(world):
    class Mine(rm.elastic.ObjectState):

        def values(self):
            return dict(super().values(), more=3)

    assert Mine(batch=1).capture()["values"] == {"batch": 1, "more": 3}


def test_TheScriptEndsNoStepWhereCommitDoes(world):
    @rm.elastic.run
    def train(state):
        with pytest.raises(RuntimeError, match="the step ends in state.commit"):
            rm.end_step()
        state.commit()

    train(rm.elastic.ObjectState(batch=0))
    rm.end_step()


def test_AStepThatTheScriptEndsInPlaceTellsTheStateOfAChange(world, monkeypatch):
    resets = []

    @rm.elastic.run(in_place=True)
    def train(state):
        rm.end_step()
        assert not resets
        monkeypatch.setattr(_core._library.StepInfo, "view_changed", 1)
        rm.end_step()

    state = rm.elastic.ObjectState(batch=0)
    state.register_reset_callbacks([lambda: resets.append(1)])
    train(state)
    assert resets == [1]


def test_ASamplerThatIsIteratedAsForHorovodIsRefusedInPlace(world):
    @rm.elastic.run(in_place=True)
    def train(state):
        next(iter(state.sampler))
        state.sampler.record_batch(0, 1)
        state.commit()

    @rm.elastic.run(in_place=True)
    def validate(state):
        list(state.sampler)
        state.commit()

    validate(rm.elastic.ObjectState(sampler=rm.elastic.ElasticSampler(4)))
    with pytest.raises(RuntimeError, match="leave out in_place=True, or loop over"):
        train(rm.elastic.ObjectState(sampler=rm.elastic.ElasticSampler(4)))


def test_AnOptimizerThatWasReplacedMakesNoStepAtAnEpochsEnd(world):
    model = torch.nn.Linear(1, 1, bias=False)
    sampler = rm.elastic.ElasticSampler(6, shuffle=False)
    made = [rm.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=lr), sampler=sampler,
                                    backward_passes_per_step=2) for lr in (100.0, 1.0)]
    begun = model.weight.item()
    for number, own in enumerate(sampler.batches(2)):
        model(torch.tensor([[float(index)] for index in own])).mean().backward()
        if number % 2:
            made[1].step()
            made[1].zero_grad()
    assert begun - model.weight.item() == pytest.approx(0.5 + 2.5 + 4.5)


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


@pytest.mark.parametrize("make", [rm.elastic.ObjectState, rm.elastic.TorchState])
def test_WhatAStateHasKeptOfASamplerIsACopy(world, make):
    sampler = rm.elastic.ElasticSampler(20, seed=1)
    state = make(sampler=sampler)
    sampler.record_indices(range(5, 20))
    state.commit()
    left = sampler.remaining_indices
    assert sampler.state_dict()["returned"]
    for _ in range(2):
        sampler.record_indices([0])
        sampler.merge([sampler.recorded()])
        assert sampler.remaining == 4
        state.restore()
        assert sampler.remaining_indices == left


def test_AFunctionThatIsEnteredAgainGoesOnInItsEpoch(world):
    state = rm.elastic.ObjectState(sampler=rm.elastic.ElasticSampler(20, seed=1))
    seen = []

    @rm.elastic.run
    def train(state):
        state.sampler.set_epoch(0)
        seen.append(list(state.sampler))
        if len(seen) == 1:
            state.sampler.record_batch(0, 4)
            state.commit()
            raise rm.HostsUpdatedInterrupt(skip_sync=True)

    train(state)
    assert len(seen[0]) == 20 and sorted(seen[1]) == sorted(seen[0][4:])


def entered(times, function):
    """Calls function(state) in a training function that is entered so many times."""

    @rm.elastic.run
    def train(state):
        function(state)
        state.entries += 1
        if state.entries < times:
            raise rm.elastic.HostsUpdatedInterrupt(skip_sync=True)

    train(rm.elastic.ObjectState(entries=0))


def sgd(model):
    return rm.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1))


@pytest.mark.parametrize("times", [1, 3])
def test_OptimizersOfAnEnteredFunctionAndThoseMadeAfterItHaveAJoinersNumbers(world, times):
    """A joiner has entered once where the others have entered three times."""
    kept = torch.nn.Linear(2, 1)
    made = []
    entered(times, lambda _: made.append([sgd(kept), sgd(torch.nn.Linear(2, 1))]))
    made[-1].append(sgd(torch.nn.Linear(2, 1)))
    numbers = [int(optimizer._options.prefix.rsplit(".", 1)[1]) for optimizer in made[-1]]
    assert numbers == [0, 1, 2]


def test_AnOptimizerThatWasKeptFromAnEarlierEntryIsRefused(world):
    model = torch.nn.Linear(2, 1)
    made = []

    def train(state):
        if not made:
            made.append(sgd(model))
        made[0].zero_grad()

    with pytest.raises(RuntimeError, match="make it each time that the function is entered"):
        entered(2, train)


def test_AnOptimizerOfTheLastEntryMayBeUsedAfterTheFunction(world):
    model = torch.nn.Linear(2, 1)
    made = []
    entered(3, lambda _: made.append(sgd(model)))
    before = model.weight.detach().clone()
    made[-1].zero_grad()
    model(torch.ones(1, 2)).sum().backward()
    made[-1].step()
    assert not torch.equal(model.weight, before)


def test_WhatATorchStateWasNotGivenIsNone(world):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    state = rm.elastic.TorchState(optimizer=optimizer)
    assert state.model is None and rm.elastic.TorchState(n=1).optimizer is None
    state.commit()
    state.restore()
    state.install(state.capture())
    assert state.model is None and state.optimizer is optimizer


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
