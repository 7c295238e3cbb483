"""A root that is no rank is refused by every broadcast, before anything is sent."""

import torch

import ringmaster.torch as rm
from expected_errors import expect

rm.init()
rank, size = rm.rank(), rm.size()
tensor = torch.full((2,), float(rank))
optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(2))], lr=0.1)
broadcasts = (lambda root: rm.broadcast(tensor, root), lambda root: rm.broadcast_(tensor, root),
              lambda root: rm.broadcast_async(tensor, root),
              lambda root: rm.broadcast_async_(tensor, root),
              lambda root: rm.broadcast_parameters([tensor], root),
              lambda root: rm.broadcast_object("x", root),
              lambda root: rm.broadcast_optimizer_state(optimizer, root))
for broadcast in broadcasts:
    for wrong in (-1, -2, size, 99, 0.0, "0", None, True):
        expect(ValueError, lambda: broadcast(wrong),
               "root_rank: is %r, must be a rank, 0 to %d" % (wrong, size - 1))
assert tensor.tolist() == [rank] * 2
assert rm.broadcast(tensor, torch.tensor(size - 1)).tolist() == [size - 1] * 2
rm.shutdown()
