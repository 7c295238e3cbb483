"""A training function is entered again in the middle of a step of two backward passes: the step that
follows has the samples of its own two passes alone, wherever the model was wrapped.
"""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import ringmaster.torch as rm
import ringmaster.torch.distributed as rmd

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)
dist.init_process_group("ringmaster")
size = dist.get_world_size()
BATCH = 4 * size
X = torch.randn(3 * BATCH, 16, generator=torch.Generator().manual_seed(1))


def make():
    torch.manual_seed(5)
    model = torch.nn.Linear(16, 1)
    return model, torch.optim.SGD(model.parameters(), lr=0.05)


def loss_of(model, indices):
    return model(X[indices]).pow(2).mean()


def wrap(model, sampler):
    return rmd.exact_mean(DistributedDataParallel(model), sampler, backward_passes_per_step=2)


model, optimizer = make()
sampler = rm.elastic.ElasticSampler(len(X), seed=3)
outside = wrap(model, sampler) if os.environ["WRAPPED"] == "outside" else None


@rm.elastic.run
def train(state):
    wrapped = outside or wrap(state.model, state.sampler)
    state.entries += 1
    batches = iter(state.sampler.batches(BATCH))
    with wrapped.no_sync():
        loss_of(wrapped, next(batches)).backward()
    if state.entries == 1:
        raise rm.elastic.HostsUpdatedInterrupt(skip_sync=True)
    loss_of(wrapped, next(batches)).backward()
    state.optimizer.step()


train(rm.elastic.TorchState(model=model, optimizer=optimizer, sampler=sampler, entries=0))
counted = sampler.last_settled.counted
assert len(counted) == 2 * BATCH and sampler.remaining == BATCH, sampler.last_settled
reference, plain = make()
loss_of(reference, counted[:BATCH]).backward()
loss_of(reference, counted[BATCH:]).backward()
plain.step()
for mine, theirs in zip(model.parameters(), reference.parameters()):
    assert torch.allclose(mine, theirs, rtol=0, atol=1e-12), (mine - theirs).abs().max()
dist.destroy_process_group()
rm.shutdown()
