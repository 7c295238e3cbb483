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
    epoch: int
    workers: set


def read_steps(audit):
    """{number: Step} of all complete lines that are there."""
    steps = {}
    for path in audit.glob("*.jsonl"):
        for text in path.read_text().split("\n")[:-1]:
            line = json.loads(text)
            if "pass_end" in line:
                continue
            step = steps.setdefault(line["step"], Step(line["t"], line["size"], line["epoch"], set()))
            step.first = min(step.first, line["t"])
            if line["epoch"] >= step.epoch:
                step.size, step.epoch = line["size"], line["epoch"]
            step.workers.add(path.stem)
    return steps


def newest_step(audit):
    return max(read_steps(audit), default=0)


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
        """[(seconds, end, step)] between the completions of successive steps."""
        steps = read_steps(self.audit)
        numbers = sorted(steps)
        return [(steps[b].first - steps[a].first, steps[b].first, b) for a, b in zip(numbers, numbers[1:])]

    def pause(self):
        """Seconds that the longest step of the story took longer than one before it."""
        usual = statistics.median(gap for gap, end, _ in self.gaps() if end < self.start)
        return max(gap for gap, end, _ in self.gaps() if self.start <= end <= self.end) - usual

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
        return "| %s | %s | %d | %.0f ms | %s | %d |" % (
            self.what, ", ".join("`%s`" % event for event in self.events) or "none", len(self.pods_after - self.pods_before),
            max(0, self.pause()) * 1e3, "-" if whole is None else "%.1f s" % whole, self.job.status.get("stepsLost", 0) - self.lost_before)


HEAD = ("| what was done | events | pods made | pause | whole again | steps lost |\n"
        "|---|---|---|---|---|---|")
