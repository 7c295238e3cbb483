"""A worker dies between two buckets of a step: the first one has its part, the second has not. The
step's gradient is still the mean over one set of samples, as one process computes it.
"""

import os
import signal

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import ringmaster.torch as rm
import ringmaster.torch.distributed as rmd
from ringmaster.torch.distributed.exact_mean import _Mean
from ringmaster.torch.handles import synchronize

STEP = 3  # in which the worker dies

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)
X = torch.randn(40, 8, generator=torch.Generator().manual_seed(1))


def make():
    torch.manual_seed(5)
    model = torch.nn.Sequential(torch.nn.Linear(8, 400), torch.nn.Tanh(), torch.nn.Linear(400, 400),
                                torch.nn.Tanh(), torch.nn.Linear(400, 1))
    return model, torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def die_after_the_first_bucket(mean, bucket, add=_Mean.add):
    future = add(mean, bucket)
    if not bucket.is_last() and rm.last_step() and rm.last_step().step == STEP:
        synchronize(mean._parts[0].handle)
        os.kill(os.getpid(), signal.SIGKILL)
    return future


@rm.elastic.run
def train(state):
    model = rmd.exact_mean(DistributedDataParallel(state.model, bucket_cap_mb=0.5), state.sampler)
    while state.sampler.epoch < 2:
        for own in state.sampler.batches(9):
            state.optimizer.zero_grad()
            model(X[own]).pow(2).mean().backward()
            state.optimizer.step()
            plain.zero_grad()
            reference(X[state.sampler.last_settled.counted]).pow(2).mean().backward()
            plain.step()
            counted.append(len(state.sampler.last_settled.counted))
            state.commit()


dist.init_process_group("ringmaster")
counted = []
if dist.get_rank() == 1:
    _Mean.add = die_after_the_first_bucket
(model, optimizer), (reference, plain) = make(), make()
sampler = rm.elastic.ElasticSampler(len(X), seed=3)
train(rm.elastic.TorchState(model=model, optimizer=optimizer, sampler=sampler))
for mine, theirs in zip(model.parameters(), reference.parameters()):
    assert torch.allclose(mine, theirs, rtol=0, atol=1e-12), (mine - theirs).abs().max()
assert counted[STEP] == 6 and sum(counted) == 80, counted  # without the three of the dead worker
rm.shutdown()
