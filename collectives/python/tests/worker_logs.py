"""What the workers of a job() have printed, and what it says about their samples."""

import collections
import json


def log_of(one, slot, incarnation):
    with open("%s/%d-%d.log" % (one.folder, slot, incarnation)) as file:
        return file.read()


def each_sample_once(one, samples, epochs):
    """By what the steps of all ranks say that they counted, which must be the same."""
    steps = {}
    for slot, incarnation in one.processes:
        for line in log_of(one, slot, incarnation).splitlines():
            if line.startswith("{"):
                step = json.loads(line)
                assert steps.setdefault(step["step"], step) == step, "ranks disagree"
    counted = collections.Counter((step["epoch"], sample) for step in steps.values()
                                  for sample in step["counted"])
    assert sorted(steps) == list(range(1, len(steps) + 1))
    assert counted == {(epoch, sample): 1 for epoch in range(epochs) for sample in range(samples)}
