"""Rank 1 of three dies while rank 2 has joined. After the join the two that are left mean the same
by their ranks, and their calls without names belong together.
"""

import os
import signal

import torch

import ringmaster.torch as rm

rm.init()
me = rm.rank()
parameter = torch.nn.Parameter(torch.zeros(4))
# Half precision is divided before the sum, so that it doesn't overflow, by the size that this rank
# takes for the world's.
optimizer = rm.DistributedOptimizer(torch.optim.SGD([parameter], lr=1.0),
                                    compression=rm.Compression.fp16)
resizes = []
rm.on_resize(lambda old, new: resizes.append((old, new)))


def step(gradient):
    optimizer.zero_grad()
    (parameter * torch.full((4,), gradient)).sum().backward()
    optimizer.step()


step(1.0)
if me == 1:
    os.kill(os.getpid(), signal.SIGKILL)
if me == 0:
    for _ in range(3):
        rm.allreduce(torch.ones(1))
        step(1.0)
    rm.allreduce(torch.ones(1))
rm.join()

assert rm.step_view() == rm.view(), (rm.step_view(), rm.view())
assert resizes == [(3, 2)], resizes
assert rm.allreduce(torch.ones(1), op=rm.Sum).item() == 2
with torch.no_grad():
    parameter.zero_()
step(3.0)
assert parameter.tolist() == [-3.0] * 4, parameter
sampler = rm.elastic.ElasticSampler(list(range(12)), shuffle=False)
shares = rm.allgather_object(sorted(sampler))
assert sorted(sum(shares, [])) == list(range(12)), shares
rm.shutdown()
