"""A plain script that reduces a prepared group in each step; workers die, leave and join."""

import os
import time

import torch

import ringmaster
import ringmaster.torch as rm

STEPS = int(os.environ.get("STEPS", "60"))


step = 0


def save():
    return step


def load(saved):
    global step
    step = saved


rm.init()
tensors = [torch.zeros(size) for size in (3, 1, 0, 70000)]
group = rm.prepare_grouped_allreduce(tensors, "group", op=rm.Sum)
ringmaster.register_state("step", save, load)
rm.enter()
sizes = []
while step < STEPS:
    time.sleep(0.02)
    for index, tensor in enumerate(tensors):
        tensor.fill_(index + 1)
    before = rm.size()
    group.run()
    values = {(tensor / (index + 1)).flatten()[at].item()
              for index, tensor in enumerate(tensors) for at in (0, -1) if tensor.numel()}
    took_part, = values  # the same in all tensors of the group: it completes as one
    assert took_part in (before, rm.size()), (took_part, before, rm.size())
    if not sizes or sizes[-1] != int(took_part):
        sizes.append(int(took_part))
    step += 1
    rm.end_step()
    rm.report(loss=step)
everyone = rm.allgather_object(step)
assert set(everyone) == {STEPS}, everyone
print("sizes", sizes, flush=True)
