"""A death between two buckets of one step: all are reduced again, so that a step has one set of
samples.
"""

import pytest
import torch

from ringmaster import _core, presence
from ringmaster.sampler import ElasticSampler
from ringmaster.torch import buckets, optimizer as module


class Peers:
    """Stands for the library: this rank is 0 of 2; what rank 1 adds is the same gradient and its
    flags.

    `alive` is asked at each reduction: whether rank 1's part is in it.
    """

    def __init__(self, monkeypatch, alive, batch):
        self.sent = []
        self.copies = 0
        self._alive = iter(alive)
        self._batch = batch
        monkeypatch.setattr(buckets, "start_allreduce", self._start)
        monkeypatch.setattr(buckets, "synchronize", lambda handle: handle)
        monkeypatch.setattr(module.Steps, "optimizer_stepped", lambda _: None)
        monkeypatch.setattr(_core, "enter", lambda: None)
        monkeypatch.setattr(_core, "is_joining", lambda: False)
        monkeypatch.setattr(_core, "step_view", lambda: _core.View(0, 2, 1))
        monkeypatch.setattr(_core, "register_state", lambda *_, **__: None)
        monkeypatch.setattr(_core, "unregister_state", lambda *_: None)

    def _start(self, source, target, name, op, process_set, priority):
        self.sent.append((name, priority))
        self.copies += source is not target
        target.copy_(source)
        if next(self._alive):
            target[:-self._batch] += 3 * source[:-self._batch]  # its gradient is three times ours
            target[-self._batch:] = 1.0
        return target


@pytest.fixture
def step(monkeypatch):

    def run(alive):
        peers = Peers(monkeypatch, alive, batch=4)
        model = torch.nn.Linear(3, 1, bias=True).double()
        sampler = ElasticSampler(8, shuffle=False)
        optimizer = module.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1.0),
                                                sampler=sampler, bucket_bytes=1)
        before = [p.detach().clone() for p in model.parameters()]
        own = next(iter(sampler.batches(4)))
        model(torch.ones(len(own), 3).double()).mean().backward()
        optimizer.step()
        change = [b - p.detach() for b, p in zip(before, model.parameters())]
        return peers, sampler, change

    return run


def test_WithoutADeathEachBucketIsSentOnceAndTheMeanIsOverBoth(step):
    peers, sampler, (weight, bias) = step([True, True])
    assert len(peers.sent) == 2
    assert sampler.last_settled.counted == [0, 1, 2, 3]
    assert torch.allclose(weight, torch.full((1, 3), 2.0).double())  # (1 + 3) / 2
    assert torch.allclose(bias, torch.tensor([2.0]).double())


@pytest.mark.parametrize("first", [[True, False], [False, True]])
def test_ADeathBetweenTwoBucketsReducesBothAgainAmongTheSurvivors(step, first):
    peers, sampler, (weight, bias) = step(first + [False, False])
    assert len(peers.sent) == 4 and len(set(peers.sent)) == 2
    assert sampler.last_settled.counted == [0, 1]
    assert torch.allclose(weight, torch.ones(1, 3).double())
    assert torch.allclose(bias, torch.ones(1).double())


def test_FirstLayersAreTheMostUrgentAndBucketsAreReducedInPlace(monkeypatch, step):
    peers, _, _ = step([True, True])
    (bias, later), (weight, sooner) = peers.sent  # the last parameters' gradients are ready first
    assert sooner < later and bias != weight
    assert peers.copies == 0


def test_AStepWithoutAnyContributionChangesNothing(monkeypatch, step):
    monkeypatch.setattr(ElasticSampler, "contribution", lambda self: [0.0] * 4)
    _, sampler, (weight, _) = step([False, False])
    assert sampler.last_settled.void and not weight.any()


def gathered_from(alive, mine):
    """What an allgather returns of this rank's bytes and, if it is alive, of rank 1's: the same."""
    return torch.cat([mine, mine]) if alive else mine


@pytest.mark.parametrize("alive, divisor", [([True], 2), ([True, False], 1)])
def test_ASparseGradientIsSentAgainWithTheOthersAndDividedByThoseThatAreInIt(
        monkeypatch, alive, divisor):
    monkeypatch.setattr(buckets, "synchronize", lambda handle: handle)
    alive_at = iter(alive)

    class Sent:

        def __init__(self, tensors, names, process_set, rows_by_rank):
            self.result = gathered_from(next(alive_at), tensors[0])
            rows_by_rank[0].extend([len(tensors[0])] * (len(self.result) // len(tensors[0])))

        def single(self):
            return self.result

    monkeypatch.setattr(buckets, "start_allgathers", Sent)
    embedding = torch.nn.Embedding(5, 2, sparse=True)
    embedding(torch.tensor([1, 3])).sum().backward()
    bucket = buckets.SparseBucket("s", 0, embedding.weight, 1, None)
    bucket.fill(0.5, [1.0], None)
    for count in alive:
        bucket.send()
        assert bucket.receive(None) == [2.0 if count else 1.0]
    bucket.scatter(divisor)
    expected = torch.zeros(5, 2)
    expected[[1, 3]] = 0.5
    assert torch.equal(embedding.weight.grad.to_dense(), expected)


@pytest.mark.parametrize("dtype, ranks", [(torch.bfloat16, 257), (torch.bfloat16, 16001),
                                          (torch.float16, 3001), (torch.float32, 70001)])
def test_TheNumberOfRanksIsExactInEveryTypeOfGradients(dtype, ranks):
    total = torch.zeros(len(presence.flags(0)), dtype=dtype)
    for rank in range(ranks):
        total += torch.tensor(presence.flags(rank), dtype=dtype)
    assert presence.count(total.tolist()) == ranks


@pytest.mark.parametrize("dtype, ranks", [(torch.bfloat16, 300), (torch.float32, 2500)])
def test_TheMeanIsDividedByExactlyTheRanksThatTookPart(monkeypatch, dtype, ranks):
    peers = Peers(monkeypatch, alive=[], batch=0)
    divided_by = []

    def start(source, target, name, op, process_set, priority):
        elements = source.numel() - len(presence.flags(0))
        target.copy_(source)
        for rank in range(1, ranks):
            target[elements:] += torch.tensor(presence.flags(rank), dtype=target.dtype)
        return target

    monkeypatch.setattr(buckets, "start_allreduce", start)
    monkeypatch.setattr(buckets.DenseBucket, "scatter",
                        lambda self, divisor, but: divided_by.append(divisor) or self.reset())
    model = torch.nn.Linear(3, 1).to(dtype)
    compression = module.Compression.fp16 if dtype == torch.float32 else module.Compression.none
    optimizer = module.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1.0),
                                            compression=compression)
    for parameter in model.parameters():
        parameter.sum().backward()
    optimizer.step()
    # What travels as float16 was divided by the step's 2 ranks before.
    assert divided_by == [ranks / 2 if dtype == torch.float32 else ranks] and not peers.sent


@pytest.mark.parametrize("dtype, compression", [(torch.float16, "none"), (torch.float32, "fp16")])
@pytest.mark.parametrize("alive", [True, False])
def test_AMeanThatFloat16CanHoldComesBackThoughTheSumWouldNotFit(monkeypatch, dtype, compression,
                                                                alive):
    Peers(monkeypatch, alive=[], batch=0)

    def start(source, target, name, op, process_set, priority):
        assert source.dtype == torch.float16
        target.copy_(source)
        if alive:  # rank 1 gives the same
            elements = source.numel() - len(presence.flags(0))
            target[:elements] += source[:elements]
            target[elements:] += torch.tensor(presence.flags(1), dtype=target.dtype)
        return target

    monkeypatch.setattr(buckets, "start_allreduce", start)
    parameter = torch.nn.Parameter(torch.zeros(3, dtype=dtype))
    optimizer = module.DistributedOptimizer(torch.optim.SGD([parameter], lr=1.0),
                                            compression=getattr(module.Compression, compression))
    (parameter * 40000).sum().backward()
    optimizer.step()
    assert parameter.tolist() == [-40000.0] * 3
