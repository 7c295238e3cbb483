"""A worker dies between two others' calls of torch.distributed: rank 1 of three has called before,
the other one calls when the ranks have moved. Ranks mean the same workers on both, and what can't
be finished is a WorldChangedError on both or on none. WAY says which call.
"""

import os
import signal
import sys

import torch
import torch.distributed as dist

import ringmaster.torch as rm
import ringmaster.torch.distributed as rmd
from meetings import tell, wait_for, wait_until_ranks_have_moved
from ringmaster.torch.distributed.process_group import ProcessGroup

folder, way = sys.argv[1], os.environ["WAY"]
dist.init_process_group("ringmaster")
some = dist.new_group([0, 1, 2])
rm.end_step()
me = dist.get_rank()
ten = torch.full((2,), 10.0 * me)
threes = [torch.full((2,), 10.0 * me + r) for r in range(3)]


def room():
    return [torch.zeros(2) for _ in range(dist.get_world_size())]


def reduced(group):
    dist.reduce(ten, 1, group=group)
    both = sum(10.0 * r for r in range(3) if r != victim)
    assert ten.tolist() == [both if me == 1 else 10.0 * me] * 2, ten


def scattered(group):
    out = torch.zeros(2)
    dist.scatter(out, threes if dist.get_rank() == 1 else None, 1, group=group)
    assert out.tolist() == [10.0 + me, 10.0 + me], out


def gathered(group):
    into = room() if dist.get_rank() == 1 else None
    assert (into is None) == (me != 1)
    dist.gather(ten, into, 1, group=group)


def gathered_from_all(group):
    dist.all_gather(room(), ten, group=group)


def exchanged(group):
    dist.all_to_all(room(), room(), group=group)


def reduced_and_scattered(group):
    dist.reduce_scatter(torch.zeros(2), room(), group=group)


def reduced_and_scattered_in_one(group):
    dist.reduce_scatter_tensor(torch.zeros(2), torch.zeros(2 * dist.get_world_size()), group=group)


def dies_when_rank_1_has_called():
    wait_for(folder, "called")
    os.kill(os.getpid(), signal.SIGKILL)


def tell_when_it_has_called(real=ProcessGroup._work):

    def work(*options):
        tell(folder, "called")
        return real(*options)

    ProcessGroup._work = work


victim, call = int(os.environ["VICTIM"]), globals()[way]
group = some if os.environ["GROUP"] == "some" else dist.group.WORLD
if me == 1:
    tell_when_it_has_called()
if me == victim:
    dies_when_rank_1_has_called()
if me != 1:
    wait_until_ranks_have_moved(3)
if way in ("reduced", "scattered"):
    call(group)
else:
    try:
        call(group)
        raise RuntimeError("there was no room for what two ranks have given")
    except rmd.WorldChangedError as error:
        assert "there is room for" in str(error), error
assert (dist.get_rank(group), dist.get_world_size(group)) == (me, 3)
rm.barrier()
rm.end_step()
assert dist.get_world_size() == 2
total = torch.tensor([float(me)])
dist.all_reduce(total)
assert total.item() == sum({0, 1, 2} - {victim}), total
print("all meant the same", flush=True)
