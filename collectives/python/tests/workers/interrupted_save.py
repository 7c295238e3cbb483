"""Ctrl-C while the state is saved for a worker that joins."""

import os
import signal
import time

import ringmaster as rm

steps = 0


def save():
    os.kill(os.getpid(), signal.SIGINT)
    return steps


signal.signal(signal.SIGINT, signal.default_int_handler)
rm.init()
rm.register_state("steps", save, lambda saved: None)
rm.enter()
try:
    while True:
        time.sleep(0.01)
        steps += 1
        rm.end_step()
except KeyboardInterrupt:
    assert rm.last_step().step == steps and rm.size() == 2, (rm.last_step().step, steps, rm.size())
    print("interrupted, and the step has ended", flush=True)
