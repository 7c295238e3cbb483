"""A script for DistributedDataParallel as it stands everywhere: only the backend's name is another.
It goes on in place after a death, also if rank 0 died.
"""

import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import ringmaster.torch.distributed

torch.set_num_threads(1)
dist.init_process_group("ringmaster")
torch.manual_seed(dist.get_rank())
model = torch.nn.Linear(3, 1)
wrapped = DistributedDataParallel(model)
optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.01)
sizes = set()
for batch in range(100):
    time.sleep(0.01)
    optimizer.zero_grad()
    wrapped(torch.ones(2, 3) * batch / 100).sum().backward()
    optimizer.step()
    sizes.add(dist.get_world_size())
    ringmaster.report(batch=batch)
everyone = [None] * dist.get_world_size()
dist.all_gather_object(everyone, [p.tolist() for p in model.parameters()])
assert all(other == everyone[0] for other in everyone), everyone
print("sizes", sorted(sizes), "rank", dist.get_rank(), flush=True)
