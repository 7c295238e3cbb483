"""The job with which hack/wheel tries an installation: it needs Python and `ringmaster` alone. Four workers; the one of rank 1 kills itself once.

A worker that comes to the end among four prints `steps N of 4`. The folder that it runs in gets the file `killed`.
"""
import os
import signal
import time

import ringmaster as rm
from ringmaster.barriers import barrier

steps = 0


def load(value):
    global steps
    steps = value


rm.init()
rm.register_state("steps", lambda: steps, load)
rm.enter()
deadline = time.monotonic() + 120
# All ranks are in the same view at a step's end, so all stop at the same step: the first from 100 on at which the world is whole again.
while steps < 100 or rm.size() < 4:
    barrier()
    if steps == 20 and rm.rank() == 1 and not os.path.exists("killed"):
        open("killed", "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    if time.monotonic() > deadline:
        raise SystemExit("the lost worker did not come back in time")
    time.sleep(0.01)  # the work of a step
    steps += 1
    rm.end_step()
print("steps %d of %d" % (steps, rm.size()))
rm.shutdown()
