"""A death between two buckets of one step: all are reduced again, so that a step has one set of
samples.
"""

import pytest
import torch

from ringmaster import _core
from ringmaster.sampler import ElasticSampler
from ringmaster.torch import optimizer as module


class Peers:
    """Stands for the library: this rank is 0 of 2; what rank 1 adds is the same gradient and its
    flags.

    `alive` is asked at each reduction: whether rank 1's part is in it.
    """

    def __init__(self, monkeypatch, alive, batch):
        self.sent = []
        self._alive = iter(alive)
        self._batch = batch
        monkeypatch.setattr(module, "start_allreduce", self._start)
        monkeypatch.setattr(module, "synchronize", lambda handle: handle)
        monkeypatch.setattr(module.Steps, "optimizer_stepped", lambda: None)
        monkeypatch.setattr(_core, "enter", lambda: None)
        monkeypatch.setattr(_core, "is_joining", lambda: False)
        monkeypatch.setattr(_core, "step_view", lambda: _core.View(0, 2, 1))
        monkeypatch.setattr(_core, "register_state", lambda *_: None)
        monkeypatch.setattr(_core, "unregister_state", lambda *_: None)

    def _start(self, source, target, name, op):
        self.sent.append(name)
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
        own = next(sampler.batches(4))
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


def test_AStepWithoutAnyContributionChangesNothing(monkeypatch, step):
    monkeypatch.setattr(ElasticSampler, "contribution", lambda self: [0.0] * 4)
    _, sampler, (weight, _) = step([False, False])
    assert sampler.last_settled.void and not weight.any()
