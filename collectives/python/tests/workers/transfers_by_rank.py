"""Rank 0 of four sends to the three others, one after the other. Rank 1 dies after the first: the numbers that are left mean
whom they meant when the step began, and nobody gets what is another one's. Then transfers over the end of a step.
"""

import os
import signal

import torch
import torch.distributed as dist

import ringmaster.torch as rm
import ringmaster.torch.distributed  # noqa: F401

dist.init_process_group("ringmaster")
group = dist.new_group([0, 2, 3])
me = rm.rank()
value = torch.empty(1)


def through(rank, sent):
    """From rank 0, in each way in which one can send."""
    for send, receive, more in ((rm.send, rm.recv, ()), (dist.send, dist.recv, ()),
                                (dist.send, dist.recv, (group,))):
        if me == 0:
            send(torch.tensor([float(sent)]), rank, *more)
        elif me == rank:
            receive(value, 0, *more)
            assert value.item() == sent, (value, sent)


rm.end_step()
if me in (0, 3):
    through(3, 3)
if me == 0:
    victim = torch.empty(1, dtype=torch.int64)
    rm.recv(victim, 1)
    os.kill(victim.item(), signal.SIGKILL)
    try:
        rm.recv(victim, 1)
        raise RuntimeError("it is dead")
    except rm.RootLostError:
        pass
    assert rm.size() == 3 and rm.step_view().size == 4
if me == 1:
    rm.send(torch.tensor([os.getpid()]), 0)
    signal.pause()
for rank in (2, 3):
    through(rank, 10 + rank)
if me == 0:
    try:
        rm.send(value, 1)
        raise RuntimeError("it is dead")
    except rm.RootLostError:
        pass
rm.end_step()

# Ranks are those of the new view now: 0, 2, 3 have become 0, 1, 2. What rank 0 has begun before the end of the step and rank 1
# asks for after it is not taken for what comes later.
me = rm.rank()
if me == 0:
    works = [rm.send_async(torch.tensor([1.0]), 1), dist.isend(torch.tensor([2.0]), 1)]
rm.end_step()
if me == 0:
    works += [rm.send_async(torch.tensor([3.0]), 1), dist.isend(torch.tensor([4.0]), 1)]
    for work in works:
        rm.synchronize(work) if isinstance(work, int) else work.wait()
if me == 1:
    got = [rm.recv(torch.empty(1), 0).item() for _ in range(2)]
    for _ in range(2):
        dist.recv(value, 0)
        got.append(value.item())
    assert got == [1.0, 3.0, 2.0, 4.0], got
# More than there are names, of which nobody waits for one.
if me == 0:
    for number in range(300):
        dist.isend(torch.tensor([float(number)]), 2)
        for _ in range(2):
            rm.rank()
if me == 2:
    for number in range(300):
        dist.recv(value, 0)
        assert value.item() == number, (value, number)
assert rm.allreduce(torch.ones(1), op=rm.Sum).item() == 3
print("all got theirs", flush=True)
