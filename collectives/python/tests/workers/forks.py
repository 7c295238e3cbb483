"""A forked child has none of its parent's sockets and gets a clear error from the library."""

import os
import stat
import sys

import torch

import ringmaster.torch as rm


def sockets():
    found = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            if stat.S_ISSOCK(os.stat("/proc/self/fd/" + name).st_mode):
                found.add(int(name))
        except OSError:
            pass  # listdir's own
    return found


def refused(call):
    try:
        call()
    except rm.HorovodInternalError as error:
        return "forked" in str(error)
    return False


def child():
    if sockets() - before:
        return 1
    for call in (rm.rank, rm.init, rm.view, lambda: rm.allreduce(torch.ones(1)), rm.barrier):
        if not refused(call):
            return 2
    rm.shutdown()  # of nothing
    return 0 if rm.poll(handle) else 3


before = sockets()
rm.init()
rm.barrier()
assert sockets() - before
handle = rm.allreduce_async(torch.ones(4), name="over the fork", op=rm.Sum)
pid = os.fork()
if pid == 0:
    try:
        code = child()
    except BaseException as error:
        print(repr(error), flush=True)
        code = 4
    os._exit(code)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
if os.fork() == 0:
    sys.exit(0)  # is no end of the job
os.wait()
assert rm.synchronize(handle).tolist() == [2, 2, 2, 2]
