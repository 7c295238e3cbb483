"""Rank 0 of three dies while a broadcast from it and another collective are in flight. Rank 1 has asked
for both before; rank 2 asks when the ranks have moved: for the other collective first (WAY=first), for the broadcast first
and for the other one when that has ended without its knowledge (second), or when it has seen the
error (late). They say how each operation ended.
"""

import os
import signal
import sys
import time

import torch

import ringmaster.torch as rm
from meetings import tell, wait_for, wait_until_ranks_have_moved

folder, way, kind = sys.argv[1], os.environ["WAY"], os.environ["KIND"]
rm.init()
me = rm.rank()
rm.barrier()  # the ring stands


def broadcast():
    return rm.broadcast_async(torch.tensor([float(me)]), 0, name="from 0")


def alltoall():
    rows = torch.tensor([10.0 * me + part for part in (0, 1, 1, 2, 2, 2)])
    return rm.alltoall_async(rows, torch.tensor([1, 2, 3]), name="beside")


def equal_alltoall():
    return rm.alltoall_async(torch.tensor([10.0 * me + part for part in range(3)]), name="beside")


def allgather():
    return rm.allgather_async(torch.full((me + 1,), float(me)), name="beside")


def reducescatter():
    return rm.reducescatter_async(torch.arange(6.0), op=rm.Sum, name="beside")


def other_broadcast():
    return rm.broadcast_async(torch.tensor([float(me)]), 1, name="beside")


def ended(start):
    try:
        handle = start if isinstance(start, int) else start()
        result = rm.synchronize(handle)
        return [part.tolist() for part in result] if isinstance(result, tuple) else result.tolist()
    except Exception as error:  # whatever it is: the test compares the ranks'
        return "%s: %s" % (type(error).__name__, error)


other = globals()[kind]
if me == 0:
    wait_for(folder, "called")
    os.kill(os.getpid(), signal.SIGKILL)
if me == 1:
    handles = [broadcast(), other()]
    tell(folder, "called")
    results = [ended(handle) for handle in handles]
else:
    wait_until_ranks_have_moved(3)
    if way == "first":
        handle = other()
        results = [ended(broadcast), ended(handle)]
    elif way == "second":
        handle = broadcast()
        while not rm.poll(handle):  # as it happens to a script that does something in between
            time.sleep(0.01)
        beside = ended(other)
        results = [ended(handle), beside]
    else:
        results = [ended(broadcast), ended(other)]
print("broadcast:", results[0], flush=True)
print("beside:", results[1], flush=True)
total = rm.allreduce(torch.tensor([float(me)]), op=rm.Sum, name="after")
rm.barrier()
print("goes on:", total.item(), flush=True)
