"""Rank 2 of three dies while the two others send to it and receive from it. Both hear it, and go on between themselves.
"""

import os
import signal

import torch
import torch.distributed as dist

import ringmaster.torch as rm
import ringmaster.torch.distributed  # noqa: F401
dist.init_process_group("ringmaster")
me = rm.rank()
values = torch.full((4,), float(me))
for wrong in (me, 3, -5):
    try:
        rm.send(values, wrong)
        raise RuntimeError("a wrong rank went through")
    except ValueError as error:
        assert str(error) == "rank: is %d, must be 0 to 2, and not %d, which is this rank itself" % (wrong, me)
if me == 2:
    rm.recv(values, 0, tag=1)
    assert values.tolist() == [0.0] * 4, values
    rm.send(values + 7, 1, tag=1)
    rm.recv(values, 1, tag=3)  # only then it is known to have arrived
    os.kill(os.getpid(), signal.SIGKILL)

if me == 0:
    rm.send(values, 2, tag=1)
    started = rm.send_async(values, 2, tag=2)
    work = dist.isend(values, 2)
else:
    received = torch.empty(2, 2)
    assert rm.recv(received, 2, tag=1).tolist() == [[7.0, 7.0]] * 2
    rm.send(received, 2, tag=3)
    started = rm.recv_async(received, 2, tag=2)
    work = dist.irecv(received, 2)
# This one is between survivors: the fault is not seen.
if me == 0:
    rm.send(values + 1, 1)
else:
    assert rm.recv(torch.empty(4), 0).tolist() == [1.0] * 4
for wait in (lambda: rm.synchronize(started), work.wait):
    try:
        wait()
        raise RuntimeError("nobody is there, and nothing was raised")
    except rm.RootLostError as lost:
        assert "has died or left" in str(lost) and "worker 2 of pod" in str(lost), lost
assert rm.allreduce(torch.ones(1), op=rm.Sum).item() == 2
print("both go on", flush=True)
