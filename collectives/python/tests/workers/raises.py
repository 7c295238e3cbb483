"""One worker ends in the way named by WAY; the others must not be held up by its leaving."""

import os
import sys
import time

import torch

import ringmaster.torch as rm

rm.init()
if rm.rank() == 1:
    way = os.environ["WAY"]
    if way == "raise":
        raise KeyError("a defect of the script")
    if way == "sys.exit":
        sys.exit(3)
    if way == "exit":
        exit(3)
    raise SystemExit(3 if way == "SystemExit" else "a reason in words")
while rm.size() > 1:
    time.sleep(0.01)
assert rm.allreduce(torch.ones(1), op=rm.Sum).item() == 1
