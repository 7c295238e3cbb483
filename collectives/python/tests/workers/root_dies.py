"""Rank 0 dies at its DIE_ATth call of the library, before the others make theirs.

They say what they got.
"""

import os
import signal
import time

import torch

import ringmaster.torch as rm
from ringmaster import _core

rm.init()
me = rm.rank()
calls, real = [], _core.call


def counted(function, *args):
    if function.endswith("_async"):
        if me == 0 and len(calls) == int(os.environ["DIE_AT"]):
            os.kill(os.getpid(), signal.SIGKILL)
        while len(calls) == int(os.environ["DIE_AT"]) and rm.size() == 3:
            time.sleep(0.01)
        calls.append(function)
    real(function, *args)


_core.call = counted


def outcome(what):
    try:
        return what()
    except rm.HorovodInternalError as error:
        return "lost: %s" % error


def parameters():
    model = {"a": torch.full((3,), float(me)), "b": torch.full((2, 2), float(me))}
    rm.broadcast_parameters(model, root_rank=0)
    return sorted({float(v) for tensor in model.values() for v in tensor.flatten()})


print("object", outcome(lambda: rm.broadcast_object({"from": me}, 0)), flush=True)
print("parameters", outcome(parameters), flush=True)
print("tensor", outcome(lambda: rm.broadcast(torch.tensor([me]), 0).item()), flush=True)
if me == 0:
    os.kill(os.getpid(), signal.SIGKILL)
rm.barrier()
