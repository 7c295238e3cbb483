"""What a disruption looked like from the outside: measured in the audit logs of the workers, told as a row of a table.

All nodes are this machine, so the times in the logs are of one clock.
"""
import dataclasses
import datetime
import json
import statistics
import time


@dataclasses.dataclass
class Step:
    first: float  # when the first worker completed it
    size: int
    view: int
    workers: set


def read_steps(audit):
    """{number: Step} of all complete lines that are there."""
    steps = {}
    for path in audit.glob("*.jsonl"):
        for text in path.read_text().split("\n")[:-1]:
            line = json.loads(text)
            if "epoch_end" in line:
                continue
            step = steps.setdefault(line["step"], Step(line["t"], line["size"], line["view"], set()))
            step.first = min(step.first, line["t"])
            if line["view"] >= step.view:
                step.size, step.view = line["size"], line["view"]
            step.workers.add(path.stem)
    return steps


def newest_step(audit):
    return max(read_steps(audit), default=0)


def newest_epoch(audit):
    """The epoch of the newest complete line."""
    lines = [text for path in audit.glob("*.jsonl") for text in path.read_text().split("\n")[-2:-1]]
    return max((json.loads(text).get("epoch", 0) for text in lines), default=0)


class Story:
    """Begins when it is made: right before something is done to the job."""

    def __init__(self, job, audit, what):
        self.job, self.audit, self.what = job, audit, what
        self.steps_before = newest_step(audit)
        self.pods_before = {pod["metadata"]["uid"] for pod in job.pods().values()}
        self.lost_before = job.status.get("stepsLost", 0)
        self.start = time.time()

    def over(self):
        """What belongs to the story has happened."""
        self.end = time.time()
        self.events = list(dict.fromkeys(self.told()))  # each once, in their order
        self.pods_after = {pod["metadata"]["uid"] for pod in self.job.pods().values()
                           if "deletionTimestamp" not in pod["metadata"]}

    def told(self):
        """Reasons of the operator's events about the job and its pods since the start, oldest first."""
        since = datetime.datetime.fromtimestamp(self.start, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        events = [event for event in self.job.cluster.list("events.events.k8s.io", namespace=self.job.namespace)
                  if event.get("reportingController") == "ringmaster.dev/operator" and (event.get("eventTime") or "") >= since]
        return [event["reason"] for event in sorted(events, key=lambda event: event["eventTime"])]

    def gaps(self):
        """[(seconds, end, kind)] between the completions of successive steps.

        An interrupted step is the last that the workers count to the old view: so a kind, "leave" or "join", is that of the
        gap in which the new view began and of the one before it. All others are "other".
        """
        steps = read_steps(self.audit)
        numbers = sorted(steps)
        pairs = [(steps[a], steps[b]) for a, b in zip(numbers, numbers[1:])]
        kinds = ["other"] * len(pairs)
        for i, (before, after) in enumerate(pairs):
            if after.view != before.view:
                kinds[max(0, i - 1):i + 1] = ["join" if after.size > before.size else "leave"] * min(2, i + 1)
        return [(b.first - a.first, b.first, kind) for (a, b), kind in zip(pairs, kinds)]

    def pauses(self):
        """How much longer than a usual step before the story the longest of each kind took, in seconds; None if there was none."""
        gaps = self.gaps()
        usual = statistics.median(seconds for seconds, end, _ in gaps if end < self.start)
        longest = {}
        for seconds, end, kind in gaps:
            if self.start <= end <= self.end:
                longest[kind] = max(longest.get(kind, 0), seconds - usual)
        return [longest.get(kind) for kind in ("leave", "join", "other")]

    def whole_again(self, size):
        """Seconds until the first step of `size` workers, of which some were not in the last one before; None if there was none."""
        steps = read_steps(self.audit)
        before = steps[self.steps_before].workers
        for number in sorted(steps):
            step = steps[number]
            if step.first >= self.start and step.size == size and len(step.workers) == size and step.workers - before:
                return step.first - self.start
        return None

    def row(self, size):
        whole = self.whole_again(size)
        return "| %s | %s | %d | %s | %s | %d |" % (
            self.what, ", ".join("`%s`" % event for event in self.events) or "none", len(self.pods_after - self.pods_before),
            " | ".join(map(duration, self.pauses())), "-" if whole is None else "%.1f s" % whole,
            self.job.status.get("stepsLost", 0) - self.lost_before)


def duration(pause):
    if pause is None:
        return "-"
    return "%.0f ms" % (max(0, pause) * 1e3) if pause < 2 else "%.1f s" % pause


HEAD = ("| what was done | events | pods made | pause as they left | as others joined | longest other | whole again | steps lost |\n"
        "|---|---|---|---|---|---|---|---|")
