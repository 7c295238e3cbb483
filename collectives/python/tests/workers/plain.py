"""A plain Horovod-style script without the elastic API: goes on in place after a death."""

import time

import torch

import ringmaster.torch as rm

rm.init()
torch.manual_seed(rm.rank())
model = torch.nn.Linear(3, 1)
optimizer = rm.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.01))
rm.broadcast_parameters(model.state_dict(), root_rank=0)
rm.broadcast_optimizer_state(optimizer, root_rank=0)
resized = []
rm.on_resize(lambda old, new: resized.append((old, new)))
for batch in range(60):
    time.sleep(0.02)
    optimizer.zero_grad()
    model(torch.ones(2, 3) * batch / 100).sum().backward()
    optimizer.step()
    rm.report(loss=batch)
everyone = rm.allgather_object([p.tolist() for p in model.parameters()])
assert all(other == everyone[0] for other in everyone)
print("resized", resized, flush=True)
