#!/usr/bin/env python3
"""Judges a digits run by its audit log alone; it knows nothing of Ringmaster but these lines.

    check.py AUDIT_DIR [--json]

Found are: steps lost, workers whose parameters differ after a step (a joiner's first included),
samples skipped or used twice in an epoch, losses that a replay of the run in one process does not
give, and an accuracy more than a point off that of one process. Exit status: 0 all well, 1
something found, 2 bad usage.
"""

import argparse
import glob
import json
import os
import sys
from collections import Counter, defaultdict

ACCURACY_MARGIN = 0.01
# In double precision the replay differs by rounding only, which training amplifies a little.
LOSS_TOLERANCE = 1e-6
SHOWN = 12  # findings of a kind that are printed

FIELDS = {"step": int, "view": int, "rank": int, "size": int, "epoch": int, "samples": list,
          "counted": list, "loss": (int, float), "params": str}


class Step:
    """All lines of one step, one for each worker that completed it: (worker, line)."""

    def __init__(self, number):
        self.number = number
        self.lines = []

    @property
    def counted(self):
        return self.lines[0][1]["counted"]

    @property
    def epoch(self):
        return self.lines[0][1]["epoch"]


class Run:
    """The audit log, read: lines by worker, by step, the ends of epochs; and what was found wrong.
    """

    def __init__(self):
        self.workers = {}  # file name: its lines
        self.steps = {}  # number: Step
        self.epoch_ends = {}  # epoch: line
        self.findings = defaultdict(list)

    def find(self, kind, text):
        self.findings[kind].append(text)

    def in_order(self):
        return [self.steps[number] for number in sorted(self.steps)]


def read(directory):
    run = Run()
    for path in sorted(glob.glob(os.path.join(glob.escape(directory), "*.jsonl"))):
        worker = os.path.basename(path)[:-len(".jsonl")]
        run.workers[worker] = []
        with open(path) as file:
            content = file.read()
        # A worker that is killed while it writes leaves a last line without its end: no step.
        for number, text in enumerate(content.split("\n")[:-1], 1):
            _read_line(run, worker, number, text)
    if not run.steps:
        run.find("log", "%s: no step was logged" % directory)
    return run


def _read_line(run, worker, number, text):
    where = "%s line %d" % (worker, number)
    try:
        line = json.loads(text)
    except ValueError:
        run.find("log", "%s: is not JSON" % where)
        return
    if "epoch_end" in line:
        known = run.epoch_ends.setdefault(line["epoch_end"], line)
        if known["accuracy"] != line["accuracy"]:
            run.find("diverged", "%s: after epoch %d the accuracy is %s, elsewhere %s"
                     % (where, line["epoch_end"], line["accuracy"], known["accuracy"]))
        return
    wrong = [name for name, kind in FIELDS.items() if not isinstance(line.get(name), kind)]
    if wrong:
        run.find("log", "%s: %s missing or of a wrong type" % (where, ", ".join(wrong)))
        return
    run.workers[worker].append(line)
    run.steps.setdefault(line["step"], Step(line["step"])).lines.append((worker, line))


def check_steps(run):
    """No step is missing, neither for all nor in one worker's life, nor a worker in a step."""
    numbers = sorted(run.steps)
    for number in sorted(set(range(1, numbers[-1] + 1)) - set(numbers)):
        run.find("lost step", "step %d: no worker completed it, yet later ones were" % number)
    left_after = {}  # worker: the last steps of its stays, of which all but one ended by mistake
    for worker, lines in run.workers.items():
        ends = {line["step"] for line in lines[-1:]}
        for before, after in zip(lines, lines[1:]):
            if after["step"] == before["step"] + 1:
                continue
            if _came_back(before, after):
                ends.add(before["step"])
            else:
                run.find("lost step", "%s: step %d follows step %d"
                         % (worker, after["step"], before["step"]))
        if ends:
            left_after[worker] = ends
    may_return = {worker: lines[-1] for worker, lines in run.workers.items() if lines}
    for step in run.in_order():
        _check_attendance(run, step, left_after, may_return)


def _came_back(before, after):
    """A worker that was out of a view by mistake returns with the others' state: between its lines
    lie at least two views, one without it and one with it again. The steps that it slept through
    are in the others' logs, or in none, which is found as a step that no worker completed.
    """
    return after["step"] > before["step"] and after["view"] >= before["view"] + 2


def _came_late(run, step):
    """How many may have been out of a view by mistake in the run's first step, as _came_back() says
    it: they have no line before their return. Of later steps a joiner's log tells the same.
    """
    if step.number > 1:
        return 0
    back = step.lines[0][1]["view"] + 2
    return sum(1 for lines in run.workers.values() if lines and lines[0]["view"] >= back)


def _check_attendance(run, step, left_after, may_return):
    """Every worker of the step's view has a line, or left before it could write one. `may_return`
    has the last line of each worker that can have come back once more and died in its first step.
    """
    ranks = Counter((line["view"], line["rank"]) for _, line in step.lines)
    for (_, rank), count in ranks.items():
        if count > 1:
            run.find("lost step", "step %d: %d workers were rank %d" % (step.number, count, rank))
    size = max(line["size"] for _, line in step.lines)
    # A worker can be killed between the end of a step and its line for it; the others then begin
    # the next step, too, in a view that has it.
    left = sum(1 for ends in left_after.values() if ends & {step.number - 1, step.number - 2})
    silent = sum(1 for lines in run.workers.values() if not lines)  # died in their first step
    absent = size - len(step.lines) - left - silent - _came_late(run, step)
    for worker in [w for w, last in may_return.items() if _came_back(last, step.lines[0][1])]:
        if absent > 0:
            absent -= 1
            del may_return[worker]  # a second step without a line has no such excuse
    if absent > 0:
        run.find("lost step", "step %d: %d of %d workers logged it and %d left before"
                 % (step.number, len(step.lines), size, left + silent))


def check_agreement(run):
    """All workers of a step have the same parameters after it and the same idea of what counted."""
    for step in run.in_order():
        for field, kind in (("params", "diverged"), ("counted", "samples"), ("epoch", "samples")):
            by_value = defaultdict(list)
            for worker, line in step.lines:
                by_value[json.dumps(line[field])].append(worker)
            if len(by_value) > 1:
                groups = sorted(by_value.values(), key=len)
                run.find(kind, "step %d: %s of %s differ from those of %s"
                         % (step.number, field, ", ".join(groups[0]), ", ".join(groups[-1])))


def check_samples(run, total):
    """In each epoch every sample is in the gradient of exactly one step."""
    used = defaultdict(Counter)
    for step in run.in_order():
        _check_own_samples(run, step)
        used[step.epoch].update(step.counted)
    previous = -1
    for step in run.in_order():
        if step.epoch not in (previous, previous + 1):
            run.find("samples", "step %d: epoch %d follows epoch %d"
                     % (step.number, step.epoch, previous))
        previous = step.epoch
    for number in sorted(used):
        counts = used[number]
        unknown = sorted(s for s in counts if not (isinstance(s, int) and 0 <= s < total))
        twice = sorted(s for s, count in counts.items() if count > 1)
        skipped = sorted(set(range(total)) - set(counts))
        for what, which in (("unknown", unknown), ("used twice", twice), ("skipped", skipped)):
            if which:
                run.find("samples", "epoch %d: %d sample(s) %s, such as %s"
                         % (number, len(which), what, which[:5]))


def _check_own_samples(run, step):
    """Workers' own samples are parts of what counted; the rest must be of workers that left."""
    own = Counter(sample for _, line in step.lines for sample in line["samples"])
    counted = set(step.counted)
    for worker, line in step.lines:
        stray = [sample for sample in line["samples"] if sample not in counted]
        if stray:
            run.find("samples", "step %d: %s worked on %s, which did not count"
                     % (step.number, worker, stray[:5]))
    twice = [sample for sample, count in own.items() if count > 1]
    if twice:
        run.find("samples", "step %d: several workers worked on %s" % (step.number, twice[:5]))
    missing = [sample for sample in step.counted if sample not in own]
    size = max(line["size"] for _, line in step.lines)
    if missing and len(step.lines) >= size:
        run.find("samples", "step %d: %s counted, but no worker worked on them and none had left"
                 % (step.number, missing[:5]))


def check_replay(run, data):
    """The run again in one process from the lists of samples: every logged loss must come out."""
    import digits
    model = digits.make_model()
    optimizer = digits.make_optimizer(model)
    for step in run.in_order():
        for worker, line in step.lines:
            if not line["samples"]:
                continue
            expected = digits.loss_of(model, data, line["samples"]).item()
            if not abs(expected - line["loss"]) <= LOSS_TOLERANCE * max(1.0, abs(expected)):
                run.find("replay", "step %d: the loss of %s was %.9f, the replay gives %.9f"
                         % (step.number, worker, line["loss"], expected))
                return None  # everything after it differs too
        if step.counted:
            optimizer.zero_grad()
            digits.loss_of(model, data, step.counted).backward()
            optimizer.step()
    return digits.accuracy_of(model, data)


def check_accuracy(run, replayed, reference, margin):
    """The last epoch's accuracy is that of the replay, and within `margin` of the reference."""
    if not run.epoch_ends:
        run.find("accuracy", "no worker logged the end of an epoch")
        return None
    number = max(run.epoch_ends)
    reached = run.epoch_ends[number]["accuracy"]
    if number != run.in_order()[-1].epoch:
        run.find("accuracy", "epoch %d is the last that ended, but epoch %d was begun"
                 % (number, run.in_order()[-1].epoch))
    if abs(reached - reference) > margin:
        run.find("accuracy", "%.4f, while one process reaches %.4f" % (reached, reference))
    if replayed is not None and abs(reached - replayed) > 1e-9:
        run.find("accuracy", "%.4f was logged, the replay reaches %.4f" % (reached, replayed))
    return reached


def judge(directory, margin=ACCURACY_MARGIN):
    """Reads, checks, and returns the verdict as a dictionary."""
    import torch

    import digits
    torch.set_num_threads(1)
    run = read(directory)
    reached = reference = None
    if run.steps:
        data = digits.Digits()
        check_steps(run)
        check_agreement(run)
        check_samples(run, len(data))
        reference = digits.reference_accuracy(max(s.epoch for s in run.in_order()) + 1, data)
        replayable = not run.findings.get("samples")
        replayed = check_replay(run, data) if replayable else None
        reached = check_accuracy(run, replayed, reference, margin)
    lines = [line for lines in run.workers.values() for line in lines]
    return {
        "ok": not run.findings,
        "steps": len(run.steps),
        "stepsLost": len(run.findings.get("lost step", [])),
        "epochs": len({line["epoch"] for line in lines}),
        "workers": len(run.workers),
        "worldSizes": sizes(run),
        "accuracy": reached,
        "referenceAccuracy": reference,
        "findings": {kind: texts for kind, texts in sorted(run.findings.items())},
    }


def sizes(run):
    """The world's sizes in the order they came."""
    result = []
    for step in run.in_order():
        size = len(step.lines)
        if not result or result[-1] != size:
            result.append(size)
    return result


def show(verdict):
    print("%(steps)d steps in %(epochs)d epochs by %(workers)d worker processes" % verdict)
    print("world: " + " ".join(str(size) for size in verdict["worldSizes"]))
    if verdict["accuracy"] is not None:
        print("accuracy: %(accuracy).4f; one process on the same data: %(referenceAccuracy).4f"
              % verdict)
    for kind, texts in verdict["findings"].items():
        for text in texts[:SHOWN]:
            print("FOUND %s: %s" % (kind, text))
        if len(texts) > SHOWN:
            print("FOUND %s: and %d more" % (kind, len(texts) - SHOWN))
    if verdict["ok"]:
        print("OK: no step lost, no worker diverged, no sample skipped or used twice, every loss "
              "replayed")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("directory", help="folder with the audit log (*.jsonl)")
    parser.add_argument("--json", action="store_true", help="print the verdict as JSON")
    arguments = parser.parse_args()
    if not os.path.isdir(arguments.directory):
        parser.error("%s is not a folder" % arguments.directory)
    verdict = judge(arguments.directory)
    if arguments.json:
        json.dump(verdict, sys.stdout, indent=1)
        print()
    else:
        show(verdict)
    return 0 if verdict["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
