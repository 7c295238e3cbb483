"""Newer versions of torch.distributed write the rank in front of each line of a traceback: once,
also where the groups were made several times, as after changes of the world.
"""

import contextlib
import io
import sys

import torch.distributed as dist

import ringmaster.torch as rm
import ringmaster.torch.distributed  # noqa: F401

before = sys.excepthook


def said():
    with contextlib.redirect_stderr(io.StringIO()) as text:
        sys.excepthook(RuntimeError, RuntimeError("boom"), None)
    return text.getvalue()


for _ in range(3):
    dist.init_process_group("ringmaster")
    assert sys.excepthook is not before and said() == "[rank%d]: RuntimeError: boom\n" % \
        dist.get_rank(), said()
    dist.destroy_process_group()


def of_the_script(*given):
    print("the script's own", file=sys.stderr)


sys.excepthook = of_the_script
dist.init_process_group("ringmaster")
dist.destroy_process_group()
dist.init_process_group("ringmaster")
assert said() == "[rank%d]: the script's own\n" % dist.get_rank(), said()
rm.shutdown()
