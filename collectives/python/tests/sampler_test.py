"""The sampler alone: several ranks are several samplers, the reduction is a sum over those that
took part.
"""

import collections
import itertools
import random

import numpy
import pytest

from ringmaster import _core
from ringmaster.sampler import ElasticSampler, share
from ringmaster.sampler_batches import AheadBatches


class World:
    """Ranks that each have a sampler; a step reduces contributions as the library would."""

    def __init__(self, monkeypatch, samples, size, batch, stream=None):
        """`stream`: of a sampler's batches, what a rank gets its shares from."""
        self._view = None
        self.batch = batch
        self._stream = stream or iter
        monkeypatch.setattr(_core, "step_view", lambda: self._view)
        monkeypatch.setattr(_core, "enter", lambda: None)
        self.samplers = [ElasticSampler(samples, seed=3) for _ in range(size)]
        self.begin_streams()
        self.counted = []

    def hand_out(self, views=None):
        """Each rank takes its share; `views`: what (rank, size) each believes in."""
        shares = []
        for rank, stream in enumerate(self.streams):
            self._view = _core.View(*(views[rank] if views else (rank, len(self.streams))), 1)
            shares.append(next(stream, None))
        return shares

    def reduce(self, took_part=None):
        """The sum over the ranks in `took_part`; the others are dead from now on."""
        took_part = range(len(self.samplers)) if took_part is None else took_part
        contributions = [self.samplers[rank].contribution() for rank in took_part]
        return [sum(column) for column in zip(*contributions)]

    def settle(self, sums):
        results = [sampler.settle(sums) for sampler in self.samplers]
        assert all(r.counted == results[0].counted for r in results)
        self.counted.extend(results[0].counted)
        return results

    def drop(self, rank):
        del self.samplers[rank], self.streams[rank]

    def join(self):
        newcomer = ElasticSampler(len(self.samplers[0]._order), seed=99)
        newcomer.load_state_dict(self.samplers[0].state_dict())
        self.samplers.append(newcomer)
        self.streams.append(self._stream(newcomer.batches(self.batch)))

    def begin_streams(self):
        self.streams = [self._stream(s.batches(self.batch)) for s in self.samplers]

    def finish_epoch(self):
        while True:
            shares = self.hand_out()
            if shares[0] is None:
                assert all(s is None for s in shares)
                return
            self.settle(self.reduce())


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7])
def test_AnEpochHandsOutEverySampleOnceWhateverTheSize(monkeypatch, size):
    world = World(monkeypatch, samples=103, size=size, batch=10)
    world.finish_epoch()
    assert sorted(world.counted) == list(range(103))
    assert all(s.epoch == 1 for s in world.samplers)


def test_SharesAreDisjointAndCoverTheWindow():
    window = list(range(17))
    parts = [share(window, rank, 5) for rank in range(5)]
    assert sum(parts, []) == window
    assert {len(part) for part in parts} == {3, 4}


def test_TheBatchOfAWorkerThatDiedBeforeTheReductionComesAgainInTheSameEpoch(monkeypatch):
    world = World(monkeypatch, samples=50, size=4, batch=12)
    shares = world.hand_out()
    sums = world.reduce(took_part=[0, 1, 3])
    world.drop(2)
    world.settle(sums)
    assert not set(shares[2]) & set(world.counted)
    world.finish_epoch()
    assert sorted(world.counted) == list(range(50))


@pytest.mark.parametrize("victim", range(4))
def test_AnEpochEndsWithinOneStepThoughTheShareOfADeadWorkerComesBackAgainAndAgain(monkeypatch, victim):
    """Where no step ends meanwhile the division goes on counting the dead worker in."""
    views = [(rank, 4) for rank in range(4) if rank != victim]
    world = World(monkeypatch, samples=100, size=4, batch=16)
    world.drop(victim)
    for _ in range(30):
        if world.hand_out(views)[0] is None:
            break
        world.settle(world.reduce())
    assert sorted(world.counted) == list(range(100))


def test_TheBatchOfAWorkerThatDiedAfterTheReductionDoesNotComeAgain(monkeypatch):
    world = World(monkeypatch, samples=50, size=4, batch=12)
    shares = world.hand_out()
    sums = world.reduce()
    world.drop(2)
    world.settle(sums)
    assert set(shares[2]) <= set(world.counted)
    world.finish_epoch()
    assert sorted(world.counted) == list(range(50))


def test_AJoinerInTheMiddleOfAnEpochTakesItsPartOfTheRest(monkeypatch):
    world = World(monkeypatch, samples=50, size=2, batch=12)
    for _ in range(2):
        world.hand_out()
        world.settle(world.reduce())
    world.join()
    shares = world.hand_out()
    assert [len(s) for s in shares] == [4, 4, 4]
    world.settle(world.reduce())
    world.finish_epoch()
    assert sorted(world.counted) == list(range(50))


def test_AJoinerAtTheEndOfAnEpochBeginsTheNextEpochWithTheOthers(monkeypatch):
    world = World(monkeypatch, samples=24, size=2, batch=12)
    for _ in range(2):
        world.hand_out()
        world.settle(world.reduce())
    world.join()
    world.finish_epoch()
    assert [s.epoch for s in world.samplers] == [1, 1, 1]


def test_AStepInWhichTwoRanksTookOneSampleIsVoidAndLosesNothing(monkeypatch):
    world = World(monkeypatch, samples=50, size=3, batch=12)
    # Ranks 0 and 1 looked before the fourth rank died, rank 2 after it.
    world.hand_out(views=[(0, 4), (1, 4), (1, 3)])
    results = world.settle(world.reduce())
    assert all(r.void for r in results) and not world.counted
    world.finish_epoch()
    assert sorted(world.counted) == list(range(50))


def test_ManyRandomDeathsAndJoinsNeverSkipOrRepeatASample(monkeypatch):
    for seed in range(60):
        dice = random.Random(seed)
        world = World(monkeypatch, samples=97, size=dice.randint(1, 6), batch=dice.randint(1, 20))
        while world.hand_out()[0] is not None:
            alive = list(range(len(world.samplers)))
            dies = dice.choice(alive) if len(alive) > 1 and dice.random() < 0.4 else None
            part = alive if dies is None or dice.random() < 0.5 else \
                [rank for rank in alive if rank != dies]
            sums = world.reduce(part)
            if dies is not None:
                world.drop(dies)
            world.settle(sums)
            if dice.random() < 0.3:
                world.join()
        assert sorted(world.counted) == list(range(97)), "seed %d" % seed


def reading_ahead(dice):
    """Streams of shares like those of a DataLoader with workers, which asks for so many batches
    before it gives the first one, and for one more before each further one.
    """

    def load(ahead, depth):
        source, loading = iter(ahead), collections.deque()
        loading.extend(itertools.islice(source, depth))
        while loading:
            batch = loading.popleft()
            loading.extend(itertools.islice(source, 1))
            yield batch

    def stream(batches):
        ahead, depth = AheadBatches(batches), dice.randint(1, 5)
        return ahead.follow(lambda: load(ahead, depth), without_rows=lambda _: [])

    return stream


@pytest.mark.parametrize("seed", range(60))
def test_WhateverIsReadAheadEachSampleCountsOnceAnEpochThroughDeathsAndJoins(monkeypatch, seed):
    dice = random.Random(seed)
    world = World(monkeypatch, samples=dice.randint(1, 97), size=dice.randint(1, 6),
                  batch=dice.randint(1, 20), stream=reading_ahead(dice))
    samples = len(world.samplers[0]._order)
    for epoch in range(3):
        while True:
            shares = world.hand_out()
            if shares[0] is None:
                break
            handed_out = [s.indices(s._handed_out[0]) for s in world.samplers]
            assert shares == handed_out, "a rank has loaded what is not its share"
            alive = list(range(len(world.samplers)))
            dies = dice.choice(alive) if len(alive) > 1 and dice.random() < 0.3 else None
            took_part = [rank for rank in alive if rank != dies or dice.random() < 0.5]
            sums = world.reduce(took_part)
            if dies is not None:
                world.drop(dies)
            world.settle(sums)
            for _ in range(dice.choice([0, 0, 0, 1, 2])):
                if len(world.samplers) < 8:
                    world.join()
        assert shares == [None] * len(shares)
        assert sorted(world.counted) == list(range(samples))
        assert {sampler.epoch for sampler in world.samplers} == {epoch + 1}
        world.counted.clear()
        world.begin_streams()


def test_WhatWasReadAheadIsKeptWhileTheWorldStays(monkeypatch):
    loads = []

    def stream(batches):
        ahead = AheadBatches(batches)

        def load():
            loads.append(len(ahead))
            return iter(list(ahead))  # the whole epoch at once

        return ahead.follow(load, without_rows=lambda _: [])

    world = World(monkeypatch, samples=50, size=2, batch=12, stream=stream)
    world.hand_out()
    world.settle(world.reduce())
    assert loads == [5, 5]
    world.join()
    world.hand_out()
    assert loads == [5, 5, 4, 4, 4]  # cut anew by both, and by the newcomer
    world.settle(world.reduce())
    world.finish_epoch()
    assert sorted(world.counted) == list(range(50)) and len(loads) == 5


def test_EachEpochHasItsOwnOrderAndTheSeedDecidesIt():
    first, second = ElasticSampler(20, seed=1), ElasticSampler(20, seed=1)
    assert first._order == second._order
    second.set_epoch(1)
    assert first._order != second._order
    assert ElasticSampler(20, shuffle=False)._order == list(range(20))


def test_ABatchAskedForBeforeTheStepWasSettledIsAnErrorThatSaysHow(monkeypatch):
    world = World(monkeypatch, samples=50, size=1, batch=12)
    world.hand_out()
    with pytest.raises(RuntimeError, match="DistributedOptimizer"):
        world.hand_out()


def test_SeveralBatchesInAStepFollowEachOther(monkeypatch):
    world = World(monkeypatch, samples=50, size=2, batch=10)
    for sampler in world.samplers:
        sampler.batches_per_step = 2
    first, second = world.hand_out(), world.hand_out()
    assert len(set(sum(first + second, []))) == 20
    world.settle(world.reduce())
    assert len(world.counted) == 20 and world.samplers[0].remaining == 30


class Optimizer:
    """Makes the step that is left at an epoch's end."""

    def __init__(self, sampler, took_part=True):
        self.sampler = sampler
        self.steps = []
        self._took_part = took_part
        sampler.batches_per_step = 2
        sampler.on_epoch_end(self.step_with_the_rest)

    def step_with_the_rest(self, newest):
        if newest:
            self.step()

    def step(self):
        sums = self.sampler.contribution()
        if not self._took_part and not self.steps:
            sums = [float(index < 3) for index in range(len(sums))]
        self.steps.append(self.sampler.settle(sums).counted)


@pytest.mark.parametrize("stream", [iter, reading_ahead(random.Random(1))])
def test_ABatchThatIsLeftAtAnEpochsEndIsAStepOfItsOwn(monkeypatch, stream):
    monkeypatch.setattr(_core, "step_view", lambda: _core.View(0, 1, 1))
    monkeypatch.setattr(_core, "enter", lambda: None)
    sampler = ElasticSampler(50, seed=3)
    optimizer = Optimizer(sampler)
    for number, _ in enumerate(stream(sampler.batches(10))):
        if number % 2:
            optimizer.step()
    assert [len(counted) for counted in optimizer.steps] == [20, 20, 10]
    assert sorted(sum(optimizer.steps, [])) == list(range(50))
    assert (sampler.epoch, sampler.done) == (1, 50)


def test_SeveralOptimizersReduceTheSameSamplesWhichCountOnce(monkeypatch):
    monkeypatch.setattr(_core, "step_view", lambda: _core.View(0, 2, 1))
    monkeypatch.setattr(_core, "enter", lambda: None)
    steps = [object()]
    monkeypatch.setattr(_core, "last_step", lambda: steps[-1])
    sampler = ElasticSampler(10, shuffle=False)
    batches = iter(sampler.batches(4))
    for number in range(2):
        next(batches)
        flags, parts = sampler.contribution(), sampler.parts()
        assert (flags, parts) == ([1.0, 1.0, 0.0, 0.0], [0.5])
        assert sampler.settle([1.0] * 4).own == [4 * number, 4 * number + 1]
        assert (sampler.contribution(), sampler.parts()) == (flags, parts)
        again = sampler.settle([1.0, 1.0, 0.0, 0.0])  # the other rank has died meanwhile
        assert (again.own, again.void, sampler.done) == ([], False, 2 * number + 2)
        assert sampler.settle([1.0, 2.0, 1.0, 1.0]).void
        assert sampler.remaining == 10 - 4 * (number + 1)
    steps.append(object())
    assert sampler.contribution() == [], "a joiner knows nothing of them"
    assert not sampler.settle([1.0, 1.0]).void, "what was on its way when the step ended"


def test_WhatWasHandedOutComesAgainWhereTheFunctionIsEnteredAgain(monkeypatch):
    monkeypatch.setattr(_core, "step_view", lambda: _core.View(0, 1, 1))
    monkeypatch.setattr(_core, "enter", lambda: None)
    sampler = ElasticSampler(10, shuffle=False)
    assert next(iter(sampler.batches(4))) == [0, 1, 2, 3]
    sampler.forget_iteration()
    assert next(iter(sampler.batches(4))) == [0, 1, 2, 3]


def test_OnlyTheNewestOptimizerMakesTheStepAtAnEpochsEnd(monkeypatch):
    monkeypatch.setattr(_core, "step_view", lambda: _core.View(0, 1, 1))
    monkeypatch.setattr(_core, "enter", lambda: None)
    sampler = ElasticSampler(10, seed=3)
    older, newer = Optimizer(sampler), Optimizer(sampler)
    assert len(list(sampler.batches(10))) == 1
    assert (len(older.steps), len(newer.steps)) == (0, 1)


def test_WhatADeadWorkerHadOfAnEpochsLastStepComesAgainInTheSameEpoch(monkeypatch):
    monkeypatch.setattr(_core, "step_view", lambda: _core.View(0, 1, 1))
    monkeypatch.setattr(_core, "enter", lambda: None)
    sampler = ElasticSampler(10, seed=3)
    optimizer = Optimizer(sampler, took_part=False)
    shares = list(sampler.batches(10))
    assert [len(share) for share in shares] == [10, 7]
    assert sorted(sum(optimizer.steps, [])) == list(range(10)) and sampler.epoch == 1


def test_ABatchThatNobodySettlesAtAnEpochsEndIsAnErrorAndNoLoss(monkeypatch):
    world = World(monkeypatch, samples=10, size=1, batch=10)
    world.samplers[0].batches_per_step = 2
    world.hand_out()
    with pytest.raises(RuntimeError, match=r"ended with 1 batch\(es\) .* of the 2 of a step"):
        world.hand_out()


@pytest.mark.parametrize("make, says", [
    (lambda: ElasticSampler([]), "dataset"),
    (lambda: ElasticSampler(5).batches(0), "global_batch: is 0, must be a whole number, 1 or more"),
    (lambda: ElasticSampler(5).batches(-2), "global_batch: is -2, must be"),
    (lambda: ElasticSampler(5).batches(1.5), r"global_batch: is 1\.5, must be a whole number"),
    (lambda: ElasticSampler(5).batches("x"), "global_batch: is 'x', must be"),
    (lambda: ElasticSampler(5).batches(None), "global_batch: is None, must be"),
    (lambda: ElasticSampler(5).batches(True), "global_batch: is True, must be"),
    (lambda: ElasticSampler(5).load_state_dict(ElasticSampler(6).state_dict()), "dataset: has 5"),
])
def test_BadArgumentsAreNamed(make, says):
    with pytest.raises(ValueError, match=says):
        make()


def test_AGlobalBatchMayBeAWholeNumberOfNumpy():
    batches = ElasticSampler(10).batches(numpy.int64(4))
    assert type(batches.global_batch) is int and len(batches) == 3


def of_a_state(samples):
    """A sampler whose state.commit() is the test's."""
    sampler = ElasticSampler(samples, seed=1)
    sampler.in_state = True
    return sampler


def test_HorovodsWayRecordsBatchesAndTheRestIsDividedAgain(monkeypatch):
    samplers = [of_a_state(20) for _ in range(2)]
    streams = []
    for rank, sampler in enumerate(samplers):
        monkeypatch.setattr(_core, "step_view", lambda: _core.View(rank, 2, 1))
        streams.append(list(sampler))
        sampler.record_batch(0, 4)
    assert sorted(sum(streams, [])) == list(range(20))
    recorded = [sampler.recorded() for sampler in samplers]
    for sampler in samplers:
        sampler.merge(recorded)
    monkeypatch.setattr(_core, "step_view", lambda: _core.View(0, 1, 2))
    rest = list(samplers[0])
    assert sorted(rest + streams[0][:4] + streams[1][:4]) == list(range(20))


def test_InNoStateTheBatchesOfAllRanksCountAtOnceAsForHorovod(monkeypatch):
    samplers = [ElasticSampler(20, seed=1) for _ in range(2)]
    streams = []
    for rank, sampler in enumerate(samplers):
        monkeypatch.setattr(_core, "step_view", lambda: _core.View(rank, 2, 1))
        streams.append(list(sampler))
        sampler.record_batch(0, 4)
    for sampler in samplers:
        assert sampler.processed_num == 8
        assert sampler.processed_indices == {*streams[0][:4], *streams[1][:4]}
    resumed = ElasticSampler(20, seed=1)
    resumed.load_state_dict(samplers[0].state_dict())
    monkeypatch.setattr(_core, "step_view", lambda: _core.View(0, 1, 2))
    assert sorted([*resumed, *streams[0][:4], *streams[1][:4]]) == list(range(20))


def worked_through(sampler):
    """An epoch in Horovod's way, without the batch that is too short (drop_last)."""
    seen = list(sampler)
    for batch in range(len(seen) // 3):
        sampler.record_batch(batch, 3)
    sampler.merge([sampler.recorded()])
    return sorted(seen)


def test_TheSameEpochSetAtItsEndBeginsAgainWithAllSamples(monkeypatch):
    monkeypatch.setattr(_core, "step_view", lambda: _core.View(0, 1, 1))
    sampler = ElasticSampler(10, seed=1)
    for epoch in range(3):
        assert worked_through(sampler) == list(range(10))
        sampler.set_epoch(epoch)  # at its end, as scripts of Horovod's do
        assert sampler.epoch == epoch and sampler.processed_indices == set()


def test_TheSameEpochSetAtItsBeginningGoesOnWithWhatARestoredStateSays(monkeypatch):
    monkeypatch.setattr(_core, "step_view", lambda: _core.View(0, 1, 1))
    before, after = ElasticSampler(10, seed=1), ElasticSampler(10, seed=1)
    stream = list(before)
    before.record_batch(0, 4)
    before.merge([before.recorded()])
    after.load_state_dict(before.state_dict())
    after.set_epoch(0)
    assert after.processed_indices == set(stream[:4]) and sorted(after) == sorted(stream[4:])


def test_HorovodsAttributesTellWhatIsDoneAndWhatRemains(monkeypatch):
    monkeypatch.setattr(_core, "step_view", lambda: _core.View(1, 2, 1))
    data = list(range(100, 111))
    sampler = of_a_state(data)
    assert (sampler.dataset, sampler.shuffle, sampler.seed) == (data, True, 1)
    assert (sampler.num_replicas, sampler.rank, sampler.epoch) == (2, 1, 0)
    assert (sampler.num_samples, sampler.total_size, len(sampler)) == (6, 12, 6)
    with pytest.raises(RuntimeError, match="no iteration has begun"):
        sampler.get_indices(0, 4)
    stream = list(sampler)
    assert sampler.get_indices(1, 4) == stream[4:6]
    assert sampler.processed_indices == set() and sampler.remaining_indices == sampler._order
    sampler.record_batch(0, 3)
    sampler.merge([sampler.recorded()])
    assert sampler.processed_indices == set(stream[:3])
    assert sampler.remaining_indices == [i for i in sampler._order if i not in stream[:3]]
    sampler.reset()
    assert sampler.num_samples == 4
    other = ElasticSampler(data, seed=1)
    other.load_state_dict({"epoch": 0, "processed_indices": stream[:3]})  # as Horovod's is
    assert other.remaining_indices == sampler.remaining_indices


def test_TheLengthOfAnIterationStaysWhatItWasWhateverIsCommittedMeanwhile(monkeypatch):
    monkeypatch.setattr(_core, "step_view", lambda: _core.View(0, 2, 1))
    sampler = of_a_state(40)
    lengths = []
    for number, _ in enumerate(sampler):
        sampler.record_batch(number, 1)
        sampler.merge([sampler.recorded(), []])  # as state.commit() does
        lengths.append((len(sampler), sampler.num_samples, sampler.total_size))
    assert lengths == [(20, 20, 40)] * 20
    sampler.forget_iteration()  # the training function is entered again
    assert (len(sampler), sampler.remaining) == (10, 20)
    assert len(list(sampler)) == len(sampler) == 10
    sampler.set_epoch(1)
    assert len(sampler) == 20


def test_WhatIsLeftAfterACommitIsKeptAsTwoNumbersAndWhatCameBefore(monkeypatch):
    samplers = [of_a_state(1000) for _ in range(2)]
    streams = []
    for rank, sampler in enumerate(samplers):
        monkeypatch.setattr(_core, "step_view", lambda: _core.View(rank, 2, 1))
        streams.append(list(sampler))
    done = []
    for batches in ((0, 0), (1, 1), (3, 2)):  # of each rank; each has left one out
        for sampler, stream, batch in zip(samplers, streams, batches):
            sampler.record_batch(batch, 8)
            done += stream[batch * 8:batch * 8 + 8]
        recorded = [sampler.recorded() for sampler in samplers]
        for sampler in samplers:
            sampler.merge(recorded)
            assert sampler.processed_indices == set(done) and sampler.remaining == 1000 - len(done)
            assert len(sampler.state_dict()["returned"]) == (0 if batches[0] < 3 else 15)
            assert sorted(sampler.remaining_indices + done) == list(range(1000))
    samplers[0].record_batch(2, 8)
    samplers[0].merge([samplers[0].recorded(), []])
    assert len(samplers[0].state_dict()["returned"]) == 7


@pytest.mark.parametrize("shuffle", [True, False])
def test_AStateOfHorovodsSamplerSaysHowManySamplesOfItsOrderAreDone(monkeypatch, shuffle):
    monkeypatch.setattr(_core, "step_view", lambda: _core.View(0, 1, 1))
    order = list(range(30))
    if shuffle:
        random.Random(7 + 2).shuffle(order)  # as Horovod 0.28.1 does: of seed + epoch
    sampler = ElasticSampler(30, shuffle=shuffle, seed=7)
    sampler.load_state_dict({"epoch": 2, "processed_num": 12})
    assert sampler.epoch == 2 and sampler.processed_indices == set(order[:12])
    sampler.set_epoch(epoch=2)  # the epoch goes on
    assert sorted(sampler) == sorted(order[12:])
    sampler.load_state_dict({"epoch": 2, "processed_num": 32})  # some twice, for the last batch
    assert sampler.remaining == 0


@pytest.mark.parametrize("state, says", [
    ({"seed": 0, "epoch": 1, "cursor": 2, "returned": []}, r"state: lacks 'count', must be what"),
    ({"processed_num": 3}, "state: lacks 'epoch', must be what state_dict"),
    ({}, "state: lacks 'count', 'cursor', 'epoch', 'returned', 'seed', must be"),
    ([1], r"state: is a list, must be what state_dict\(\) of this sampler, or of Horovod's, has"),
])
def test_AStateThatIsNoSamplersIsNamed(state, says):
    with pytest.raises(ValueError, match=says):
        ElasticSampler(5).load_state_dict(state)


def test_SamplesCanBeRecordedByTheirIndices(monkeypatch):
    monkeypatch.setattr(_core, "step_view", lambda: _core.View(0, 1, 1))
    sampler = ElasticSampler(6, seed=2)
    sampler.record_indices([5, 0])
    assert sampler.streams
    sampler.merge([sampler.recorded()])
    assert sampler.processed_indices == {0, 5} and sorted(sampler) == [1, 2, 3, 4]
    with pytest.raises(ValueError, match="indices: 6 is no sample, allowed is 0 to 5"):
        sampler.record_indices([6])


@pytest.mark.parametrize("dataset", [2.5, None, True])
def test_WhatHasNoLengthAndIsNoNumberIsNamed(dataset):
    with pytest.raises(ValueError, match="dataset: is %r, must be something with a length" % dataset):
        ElasticSampler(dataset)


@pytest.mark.parametrize("dataset", ["abcd", numpy.zeros(4), numpy.int64(4), 4])
def test_ALengthOrANumberOfSamplesIsTaken(dataset):
    assert sorted(ElasticSampler(dataset)._order) == [0, 1, 2, 3]
