"""Rank 0 dies between two workers' calls: rank 1 of three has made its calls before, rank 2 makes
them when the ranks have moved. The numbers mean the same workers on both. WAY says which calls.
"""

import os
import signal
import sys

import torch

import ringmaster.torch as rm
from meetings import tell, wait_for, wait_until_ranks_have_moved
from ringmaster import _core

folder, way = sys.argv[1], os.environ["WAY"]
rm.init()
rm.end_step()
me = rm.rank()


def calls():
    """(What starts the operation, what its result has to be.)"""
    ten = torch.full((2,), 10.0 * me)
    rows = torch.arange(3.0) + 10 * me
    yield lambda: rm.broadcast_async(ten, 1, "one"), [10.0, 10.0]
    yield lambda: rm.broadcast_async(ten, 2, "two"), [20.0, 20.0]
    yield lambda: rm.alltoall_async(rows, name="even"), [10.0 + me, 20.0 + me]
    yield lambda: rm.alltoall_async(rows, [0, 1, 2], name="split"), \
        [10.0, 20.0] if me == 1 else [11.0, 12.0, 21.0, 22.0]


def dies_when_rank_1_has_asked():
    wait_for(folder, "asked")
    os.kill(os.getpid(), signal.SIGKILL)


def rank_1_has_asked():
    tell(folder, "asked")


def tell_when_it_adds_a_set(real=_core.call):

    def call(function, *args):
        real(function, *args)
        if function == "rm_process_set_add_async":
            rank_1_has_asked()

    _core.call = call


def values(result):
    return (result[0] if isinstance(result, tuple) else result).tolist()


if me == 0:
    dies_when_rank_1_has_asked()
if me == 2:
    wait_until_ranks_have_moved(3)
if way == "calls":
    handles = [(start(), expected) for start, expected in calls()]
    if me == 1:
        rank_1_has_asked()
    for handle, expected in handles:
        got = values(rm.synchronize(handle))
        assert got == expected, (got, expected)
if way == "set":
    if me == 1:
        tell_when_it_adds_a_set()
    both = rm.add_process_set([1, 2])
    assert both.size() == 2 and both.included()
    late = rm.add_process_set([0, 2])
    assert late.size() == 1 and late.included() == (me == 2)
if way == "lost":
    handle = rm.broadcast_async(torch.ones(1), 0, "lost")
    if me == 1:
        rank_1_has_asked()
    try:
        rm.synchronize(handle)
        raise RuntimeError("its root is dead")
    except rm.RootLostError:
        pass
    # Ranks mean those that are left from there on.
    assert rm.broadcast(torch.tensor([me]), 0).item() == 1
    assert rm.broadcast_object(me, 1) == 2
wait_until_ranks_have_moved(3)
assert rm.step_view().size == 3
rm.end_step()
assert rm.step_view().size == 2
assert rm.broadcast(torch.tensor([me]), 1).item() == 2
print("all meant the same", flush=True)
