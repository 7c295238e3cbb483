"""A state that can't be pickled any more when a worker joins: it is the joiner's error alone.

argv[1]: a file that is there once the joiner has ended.
"""

import os
import sys

import torch

import ringmaster.torch as rm
from expected_errors import expect

rm.init()
state = rm.elastic.ObjectState(given=None)


@rm.elastic.run(in_place=True)
def train(state):
    state.given = lambda: 1
    ended = torch.tensor([0])
    while not ended.item():
        ended = rm.allreduce(torch.tensor([int(os.path.exists(sys.argv[1]))]), op=rm.Max)
        state.commit()


train(state)
# What goes wrong later has its own error.
expect(ValueError, lambda: rm.add_process_set([rm.size()]), "rank %d is not in" % rm.size())
rm.shutdown()
