"""Rank 0 lets go of operations in flight in the way named by WAY; memory and job stay whole."""

import gc
import os
import signal
import threading

import torch

import ringmaster.torch as rm

LENGTH = 8 << 20  # large enough that freed memory goes back to the system at once
rm.init()
way, me = os.environ["WAY"], rm.rank()


def ask(name):
    return rm.allreduce_async_(torch.full((LENGTH,), float(me + 1)), name=name, op=rm.Sum)


def group(names):
    """Fails as a whole, because the third's name is in flight already."""
    handle = ask("group.2")
    try:
        rm.grouped_allreduce_([torch.ones(LENGTH) for _ in range(3)], name=names, op=rm.Sum)
        raise AssertionError("a name was in flight twice")
    except ValueError:
        return handle


def interrupted():
    handle = ask("a")
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        rm.synchronize(handle)
    except KeyboardInterrupt:
        return handle


if me == 0:
    if way == "dropped":
        ask("a")
    elif way == "raises":
        try:
            kept = ask("a")
            raise KeyError("a defect of the script")
        except KeyError:
            del kept
    elif way == "group":
        kept = group("group")
    elif way == "interrupted":
        kept = interrupted()
    elif way == "exits":
        ask("a")
        raise SystemExit(3)
    gc.collect()
rm.barrier()
canaries = [torch.full((LENGTH,), 7.0) for _ in range(4)]
if me == 1 and rm.size() == 2:
    last = rm.synchronize(ask("group.2" if way == "group" else "a"))
    assert last[0] == last[-1] == 3, last
elif way in ("group", "interrupted"):
    assert rm.synchronize(kept)[0] == 3
if way == "group":  # on the rank that was refused nothing of it has stayed in flight
    rm.grouped_allreduce_([torch.ones(1) for _ in range(3)], name="group", op=rm.Sum)
rm.barrier()
assert all(bool((canary == 7).all()) for canary in canaries)
