"""A script with registered state and without elastic.run. In the first step of a joiner rank 0 dies: the
ranks of torch.distributed mean the same workers on the joiner, which has ended no step yet, as on the
survivor. Before the end of that step they don't move on either.
"""

import os
import signal
import time

import torch
import torch.distributed as dist

import ringmaster
import ringmaster.torch as rm
import ringmaster.torch.distributed  # noqa: F401
from meetings import wait_until_ranks_have_moved

at = {"step": 0}
rm.init()
ringmaster.register_state("at", lambda: dict(at), at.update)
joins = rm.is_joining()
if joins:  # what is said of its rank so far is a forecast, here by the size of the beginning
    assert (rm.rank(), rm.size()) == (2, 2) == rm.step_view()[:2]
rm.enter()
assert not joins or (rm.rank(), rm.size()) == (2, 3) == rm.step_view()[:2]
dist.init_process_group("ringmaster")
slot = int(os.environ["RINGMASTER_SLOT"])
died = False
while at["step"] < 2000 and not died:
    dist.init_process_group("ringmaster")  # for the world as it is
    me, size = dist.get_rank(), dist.get_world_size()
    if size == 3:
        if me == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        wait_until_ranks_have_moved(3)
        assert (dist.get_rank(), dist.get_world_size()) == (me, size), (dist.get_rank(), me)
        died = True
    given = torch.tensor([10 + slot])
    dist.broadcast(given, 1)
    assert given.item() == 11, given
    at["step"] += 1
    rm.end_step()
    time.sleep(0.02)
assert died and (rm.rank(), rm.size()) == (slot - 1, 2)
print("the same worker", flush=True)
