"""DistributedDataParallel on all ranks gives what one process gives."""

import contextlib
import os

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

import ringmaster.torch as rm
import ringmaster.torch.distributed as rmd

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)
dist.init_process_group("ringmaster")
rank, size = dist.get_rank(), dist.get_world_size()
X = torch.randn(60, 16, generator=torch.Generator().manual_seed(1))
Y = X.sum(1, keepdim=True)


def make(seed):
    torch.manual_seed(seed)
    model = torch.nn.Sequential(
        torch.nn.Linear(16, 400), torch.nn.Tanh(), torch.nn.Linear(400, 400), torch.nn.Tanh(),
        torch.nn.Linear(400, 1))
    return model, torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def loss_of(model, indices):
    return (model(X[indices]) - Y[indices]).pow(2).mean()


def same(model, reference):
    for mine, theirs in zip(model.parameters(), reference.parameters()):
        assert torch.allclose(mine, theirs, rtol=0, atol=1e-12), (mine - theirs).abs().max()
    everyone = rm.allgather_object([p.detach() for p in model.parameters()])
    assert all(torch.equal(a, b) for other in everyone for a, b in zip(other, everyone[0]))


def test_equal_shares_give_what_one_process_gives():
    reference, plain = make(5)
    model, optimizer = make(5 + rank)  # DistributedDataParallel makes them rank 0's
    wrapped = DistributedDataParallel(model, bucket_cap_mb=0.5)
    for step in range(6):
        everyones = list(range(step * 10 % 60, step * 10 % 60 + 4 * size))
        everyones = [index % 60 for index in everyones]
        optimizer.zero_grad()
        loss_of(wrapped, everyones[rank::size]).backward()
        optimizer.step()
        plain.zero_grad()
        loss_of(reference, everyones).backward()
        plain.step()
    same(model, reference)


def test_shares_of_any_size_give_what_one_process_gives():
    reference, plain = make(6)
    model, optimizer = make(6)
    sampler = rm.elastic.ElasticSampler(len(X), seed=3)
    wrapped = rmd.exact_mean(DistributedDataParallel(model, bucket_cap_mb=0.5), sampler)
    for own in sampler.batches(59):  # the last batch has one sample: some ranks have none
        optimizer.zero_grad()
        loss_of(wrapped, own).backward()
        optimizer.step()
        plain.zero_grad()
        loss_of(reference, sampler.last_settled.counted).backward()
        plain.step()
        assert sampler.last_settled.own == own
    assert sampler.epoch == 1
    same(model, reference)


def test_several_backward_passes_make_one_step():
    reference, plain = make(7)
    model, optimizer = make(7)
    wrapped = rmd.exact_mean(DistributedDataParallel(model))
    with wrapped.no_sync():
        loss_of(wrapped, [rank, rank + size]).backward()
    loss_of(wrapped, [30 + rank]).backward()
    optimizer.step()
    for r in range(size):
        (loss_of(reference, [r, r + size]) / size).backward()
        (loss_of(reference, [30 + r]) / size).backward()
    plain.step()
    same(model, reference)


class EachSamplesWeight(torch.nn.Module):
    """The gradient of `weight` is each sample's part in the step."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(9))
        self.scale = torch.nn.Parameter(torch.zeros(1))

    def forward(self, own):
        return (torch.eye(9)[own] @ self.weight).mean() * torch.exp(-self.scale) + self.scale


def test_each_pass_of_a_step_counts_by_its_own_shares():
    sampler = rm.elastic.ElasticSampler(9, shuffle=False)
    model = EachSamplesWeight()
    for _ in range(2):  # the second one takes the first one's place
        wrapped = rmd.exact_mean(DistributedDataParallel(model), sampler, 2)
        for number, own in enumerate(sampler.batches(8)):
            with contextlib.nullcontext() if number else wrapped.no_sync():
                wrapped(own).backward()
        expected = torch.tensor([0.125] * 8 + [1.0])
        assert torch.allclose(model.weight.grad, expected), model.weight.grad
        assert torch.allclose(model.scale.grad, torch.tensor([2.0])), model.scale.grad
        model.zero_grad()
        sampler.set_epoch(0)


def test_a_hook_may_wait_for_what_it_begins_in_a_callback():
    torch.manual_seed(9)
    wrapped = DistributedDataParallel(torch.nn.Linear(16, 40))
    wrapped.register_comm_hook(powerSGD_hook.PowerSGDState(None, start_powerSGD_iter=2),
                               powerSGD_hook.powerSGD_hook)
    for step in range(5):
        wrapped.zero_grad()
        wrapped(X[rank * 5 + step:rank * 5 + step + 4]).sum().backward()
    everyone = rm.allgather_object([p.grad for p in wrapped.parameters()])
    assert all(torch.equal(a, b) for other in everyone for a, b in zip(other, everyone[0]))


def test_buffers_are_rank_0s():
    torch.manual_seed(8)
    model = torch.nn.Sequential(torch.nn.Linear(16, 8), torch.nn.BatchNorm1d(8))
    wrapped = DistributedDataParallel(model)
    for step in range(3):
        wrapped(X[rank * 5 + step:rank * 5 + step + 4]).sum().backward()
    with torch.no_grad():
        wrapped(X[:4])  # its beginning makes them equal
    everyone = rm.allgather_object(model[1].num_batches_tracked.item())
    assert set(everyone) == {4}, everyone


for test in [value for name, value in sorted(globals().items()) if name.startswith("test_")]:
    test()
dist.destroy_process_group()
rm.shutdown()
