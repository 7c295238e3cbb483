"""examples/horovod/keras_elastic.py, whose training is entered again in the midst of the warm-up."""

import os
import runpy
import sys

import tensorflow as tf

from ringmaster import elastic

EXAMPLE = os.path.join(os.path.dirname(os.path.realpath(__file__)),
                       "../../../../examples/horovod/keras_elastic.py")
RATE, COMMITS = 0.004, 38  # of the 63 of an epoch

commits = 0
check_host_updates = elastic.State.check_host_updates


def says_a_change(state):
    global commits
    commits += 1
    if commits == COMMITS:
        raise elastic.HostsUpdatedInterrupt(skip_sync=True)
    check_host_updates(state)


elastic.State.check_host_updates = says_a_change
sys.path.insert(0, os.path.dirname(EXAMPLE))
sys.argv = [EXAMPLE, "--epochs", "2", "--lr", str(RATE)]
made = runpy.run_path(EXAMPLE, run_name="__main__")
rate = float(tf.convert_to_tensor(made["model"].optimizer.learning_rate))
assert abs(rate - RATE) < 1e-6, rate
assert commits > COMMITS
