#!/usr/bin/env python3
"""The tables of docs/reliability.md from what storm.py --figures or soak.py --figures has written.

usage: tests/chaos/table.py FILE ...
"""
import collections
import json
import sys

NAMES = {
    "worker": "worker killed", "two": "two workers killed at once", "rank0": "rank 0 killed", "sidecar": "sidecar killed",
    "pod": "pod killed", "drain": "pod drained", "scale": "job scaled", "stop": "worker stopped for 0.05 to 0.8 s",
    "freeze": "worker stopped for good", "pause_sidecar": "sidecar stopped for up to 14 s",
    "pause_launcher": "launcher stopped for up to 4 s",
    "worker_kill": "worker killed", "worker_stop": "worker stopped for 0.05 to 0.8 s", "worker_freeze": "worker stopped for good",
    "launcher_kill": "launcher killed", "launcher_stop": "launcher stopped for up to 3 s", "sidecar_kill": "sidecar killed",
    "sidecar_stop": "sidecar stopped for up to 2 s or 9 to 13 s", "pod_kill": "pod killed",
    "operator_stop": "operator, API server and kubelet stopped for 0.5 to 5 s", "cut": "pod cut off for 0.2 to 4 s",
    "long_cut": "pod cut off for 10 to 15 s", "deaf": "pod hears nobody for 0.2 to 4 s", "mute": "nobody hears pod for 0.2 to 4 s",
    "one_link": "link between two pods cut for 0.2 to 4 s", "one_way": "link between two pods cut in one direction for 0.2 to 4 s",
    "link_reset": "connections between the workers of two pods reset",
    "slow": "pod's link slow for 0.5 to 4 s", "shm_full": "/dev/shm full, and a worker killed",
    "disk_full": "disk of the run directory full, and a worker killed", "record_deleted": "quorum record deleted",
    "state_deleted": "sidecar killed and its state file deleted", "clock": "wall clock of a pod stepped by 5 s to a day",
    2: "two of these at once", 3: "three of these at once"}
OUTCOMES = ("lost", "divergence", "hang")


def at(values, part):
    return sorted(values)[min(len(values) - 1, int(part * len(values)))]


class Figures:
    def __init__(self):
        self.pauses, self.wrong = collections.defaultdict(list), collections.defaultdict(collections.Counter)
        self.faults, self.runs, self.steps, self.failed = 0, 0, 0, []

    def read(self, path):
        last = None
        with open(path) as file:
            for line in map(json.loads, file):
                kinds = line.get("kinds") or ([line["kind"]] if "kind" in line else None)
                if kinds:
                    last = len(kinds) if len(kinds) > 1 else kinds[0]
                    self.faults += len(kinds)
                    self.pauses[last].append(line["pause"])
                else:
                    self.end(line, last)

    def end(self, line, last):
        self.runs += 1
        self.steps += line.get("steps", 0)
        if not line["found"]:
            return
        self.failed.append((line["seed"], line["found"]))
        # A hang is of the round that the run ended with; a wrong state may be older, and counts there as well.
        for kind, _ in [found for found in line["found"] if len(found) == 2 and found[0] in OUTCOMES]:
            self.wrong[last][kind] += 1

    def print(self):
        print("| faults of a round | rounds | steps lost | divergences | hangs | pause, median | p99 | max |\n|---|---|---|---|---|---|---|---|")
        for kind, name in NAMES.items():
            # The round that hung has no end, so its pause is no figure.
            known = [pause for pause in self.pauses.get(kind, []) if pause is not None]
            if not known:
                continue
            wrong = self.wrong[kind]
            print("| %s | %d | %d | %d | %d | %.2f s | %.2f s | %.2f s |"
                  % (name, len(self.pauses[kind]), wrong["lost"], wrong["divergence"], wrong["hang"], at(known, 0.5), at(known, 0.99),
                     max(known)))
        print("\n%d faults in %d runs with %d steps; runs in which something was found: %d"
              % (self.faults, self.runs, self.steps, len(self.failed)))
        for seed, found in self.failed:
            print("seed %d: %s" % (seed, "; ".join(map(str, found))))


def main():
    figures = Figures()
    for path in sys.argv[1:]:
        figures.read(path)
    figures.print()
    return 1 if figures.failed else 0


if __name__ == "__main__":
    sys.exit(main())
