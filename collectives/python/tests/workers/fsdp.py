"""Parameters that are divided between the ranks (fully_shard) give what one process gives."""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

import ringmaster.torch as rm
import ringmaster.torch.distributed

torch.set_num_threads(1)
dist.init_process_group("ringmaster")
rank, size = dist.get_rank(), dist.get_world_size()
X = torch.randn(6 * size, 8, generator=torch.Generator().manual_seed(1))


def make():
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))


reference, model = make(), make()
mesh = init_device_mesh("cpu", (size,))
for part in (model[0], model[2], model):
    fully_shard(part, mesh=mesh)
plain, optimizer = (torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9)
                    for m in (reference, model))
for _ in range(5):
    optimizer.zero_grad()
    model(X[rank * 6:rank * 6 + 6]).pow(2).mean().backward()
    optimizer.step()
    plain.zero_grad()
    reference(X).pow(2).mean().backward()
    plain.step()
for mine, theirs in zip(model.parameters(), reference.parameters()):
    assert torch.allclose(mine.full_tensor(), theirs, atol=1e-6)
rm.shutdown()
