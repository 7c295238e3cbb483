"""recovery_worker.cc as a PyTorch script: the same step and log, and a process that takes as long to start as users' do."""
import hashlib
import json
import os
import sys
import time

import torch

import ringmaster.torch as rm

torch.set_num_threads(1)
COUNT = (1 << 20) // 4


class Model:
    def __init__(self):
        self.hash, self.steps = "", 0


def main():
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 10**6
    rm.init()
    state = rm.elastic.ObjectState(hash="", steps=0)

    @rm.elastic.run(in_place=True)
    def train(state):
        path = os.path.join(os.environ.get("RINGMASTER_AUDIT_DIR", "/tmp"), "%d.jsonl" % os.getpid())
        with open(path, "a", buffering=1) as log:
            while state.steps < steps:
                data = (torch.arange(COUNT, dtype=torch.float32) + state.steps) % 13 + rm.rank()
                result = rm.allreduce(data, name="gradient", op=rm.Sum)
                state.hash = hashlib.sha256(state.hash.encode() + result.numpy()[::64].tobytes()).hexdigest()
                state.steps += 1
                state.commit()
                view = rm.view()
                log.write(json.dumps({"t": time.monotonic_ns(), "step": state.steps, "epoch": view.number,
                                      "rank": view.rank, "size": view.size, "hash": state.hash}) + "\n")
                time.sleep(0.05)

    train(state)
    rm.shutdown()


main()
