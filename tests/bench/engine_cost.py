#!/usr/bin/env python3
"""What the engine costs from Python, in one run, in turns: beside the communicator's own operation, and what a training step pays.

usage: tests/bench/engine_cost.py [--build DIR] [--ranks 2,4,8] [--rounds N] [--seconds S] [--library FILE ...] [--realtime] [PART ...]

Parts (default: all): `forms` (a named allreduce in == out and in != out beside the communicator's operation of the same form), `together` (four buckets of
16 MiB that are ready together), `sets` (an allreduce in process sets of half the ranks, both at once), `group` (100 tensors of 1 KiB), `prepared` (the same,
prepared once, beside one tensor of 100 KiB), `memory` (a DistributedOptimizer's, over the gradients' bytes), `hidden` (how much of the communication backward does not hide). With several --library (other builds'
libringmaster.so) each gives a row, and they take turns. Prints Markdown, and the machine's load: figures of a busy machine are no figures. With --realtime the ranks run before
all other work (SCHED_RR; as root), as on a machine that does nothing else, as long as each has a core: other programs then get next to nothing while something is measured.
"""

import argparse
import contextlib
import json
import os
import pathlib
import select
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "collectives/python/tests"))
import fake_sidecar  # noqa: E402
RANKS_PROGRAM = pathlib.Path(__file__).with_name("engine_ranks.py")
SIZES = [1 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20]
PATIENCE = 300
PARTS = ("forms", "together", "sets", "group", "prepared", "memory", "hidden")


class Ranks:
    """Ranks that measure what they are told, and sleep otherwise."""

    def __init__(self, build, ranks, library, **environ):
        self._folder = tempfile.TemporaryDirectory(prefix="rm-", dir="/tmp")
        names = ["commands.%d" % rank for rank in range(ranks)] + ["results"]
        for name in names:
            os.mkfifo(os.path.join(self._folder.name, name))
        # Open in both directions: neither end waits for the other.
        self._pipes = [os.open(os.path.join(self._folder.name, name), os.O_RDWR) for name in names]
        environ.update(RM_BENCH=self._folder.name, PYTHONPATH=str(build / "python"))
        if library:
            environ["RINGMASTER_LIBRARY"] = str(library)
        self._job = fake_sidecar.Job(self._folder.name, ["-B", str(RANKS_PROGRAM)], ranks, environ).__enter__()

    def measure(self, what, **given):
        self._send(dict(given, what=what))
        while not select.select([self._pipes[-1]], [], [], 1)[0]:
            if any(process.poll() is not None for process in self._job.processes.values()):
                sys.exit("a rank has ended:\n" + self._job.logs())
        return json.loads(os.read(self._pipes[-1], 1 << 16))

    def _send(self, command):
        for pipe in self._pipes[:-1]:
            os.write(pipe, (json.dumps(command) + "\n").encode())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._send({"what": "end"})
        try:
            self._job.wait()
        finally:
            self._job.__exit__()
            for pipe in self._pipes:
                os.close(pipe)
            self._folder.cleanup()


def communicator(build, ranks, size, seconds, mode):
    """The communicator's median, in us."""
    done = subprocess.run([build / "bin/allreduce_ours", str(ranks), str(size), str(seconds), mode], capture_output=True, text=True, timeout=PATIENCE, check=True)
    return float(done.stdout.split()[3])


def human(size):
    return "%d MiB" % (size >> 20) if size >= 1 << 20 else "%d KiB" % (size >> 10)


def in_turns(jobs, rounds, measure):
    """By job the median of `rounds` measurements, which take turns."""
    taken = {name: [] for name in jobs}
    for _ in range(rounds):
        for name, job in jobs.items():
            taken[name].append(measure(job))
    return {name: statistics.median(times) for name, times in taken.items()}


def forms(jobs, ranks, given):
    print("\n| %d ranks | form | communicator us | %s |" % (ranks, " | ".join("%s us | ratio" % name for name in jobs)))
    print("|" + "---|" * (3 + 2 * len(jobs)))
    for size in SIZES:
        for form, mode in (("in == out", "in-place"), ("in != out", "apart")):
            bare, taken = [], {name: [] for name in jobs}
            for _ in range(given.rounds):
                bare.append(communicator(given.build, ranks, size, given.seconds, mode))
                repeats = max(5, min(2000, int(given.seconds * 1e6 / (3 * bare[-1] + 20))))
                for name, job in jobs.items():
                    taken[name].append(job.measure("allreduce", size=size, apart=mode == "apart", repeats=repeats))
            limit = statistics.median(bare)
            cells = "".join(" %.1f | %.2f |" % (statistics.median(times), statistics.median(times) / limit) for times in taken.values())
            print("| %s | %s | %.1f |%s" % (human(size), form, limit, cells), flush=True)


def listed(title, found, unit):
    for name, value in found.items():
        print("| %s | %s | %.2f %s |" % (title, name, value, unit), flush=True)


def together(jobs, ranks, given):
    for size in (256 << 10, 1 << 20, 16 << 20):
        repeats = 40 if size < 16 << 20 else 10
        found = in_turns(jobs, given.rounds, lambda job, size=size, repeats=repeats: job.measure("together", size=size, buckets=4, repeats=repeats) / 1e3)
        listed("%d ranks, 4 buckets of %s ready together" % (ranks, human(size)), found, "ms")


def sets(jobs, ranks, given):
    for size in (1 << 10, 64 << 10, 1 << 20, 16 << 20):
        repeats = 200 if size < 1 << 20 else 20
        found = in_turns(jobs, given.rounds, lambda job, size=size, repeats=repeats: job.measure("sets", size=size, repeats=repeats))
        listed("%d ranks, %s in process sets" % (ranks, human(size)), found, "us")


def group(jobs, ranks, given):
    found = in_turns(jobs, given.rounds, lambda job: job.measure("group", size=1024, tensors=100, repeats=200))
    listed("%d ranks, 100 tensors of 1 KiB as a group" % ranks, found, "us")


def prepared(jobs, ranks, given):
    for name, job in jobs.items():
        taken = [job.measure("prepared", size=1024, tensors=100, repeats=100) for _ in range(given.rounds)]
        least, median, one_least, one_median = (statistics.median(column) for column in zip(*taken))
        print("| %d ranks, 100 tensors of 1 KiB, prepared | %s | %.1f us (least %.1f); one tensor of 100 KiB in the same run: %.1f us (least %.1f), ratio %.2f |"
              % (ranks, name, median, least, one_median, one_least, median / one_median), flush=True)


def memory(jobs, ranks, given):
    for name in jobs:
        # What is freed goes back to the system at once, or it would be there before the next step begins.
        with Ranks(given.build, ranks, given.libraries[name], MALLOC_MMAP_THRESHOLD_=str(1 << 20)) as job:
            without, reduced = job.measure("memory", size=4 << 20, parameters=48)
        print("| %d ranks, memory of a step over 192 MiB of gradients | %s | %.2f reduced, %.2f not |" % (ranks, name, reduced, without), flush=True)


def hidden(jobs, ranks, given):
    for name, job in jobs.items():
        alone, step, reduction, size = job.measure("hidden", width=256, steps=10 * given.rounds)
        share = (step - alone) / reduction
        print("| %d ranks, a transformer with %.0f MB of gradients | %s | step %.1f ms, without reduction %.1f, reduction alone %.1f: %.0f %% not hidden |"
              % (ranks, size / 1e6, name, step, alone, reduction, 100 * share), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--ranks", default="2,4,8")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.3, help="for each cell of a round")
    parser.add_argument("--library", type=pathlib.Path, action="append", default=[])
    parser.add_argument("--realtime", action="store_true")
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []])
    given = parser.parse_args()
    given.build = given.build.resolve()
    if given.realtime:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))  # what it starts inherits it
    given.libraries = {path.resolve().parent.name + "/" + path.name: path.resolve() for path in given.library} or {"engine": None}
    print("load of the machine at the beginning: %.1f, %d cores" % (os.getloadavg()[0], os.cpu_count()))
    for ranks in [int(text) for text in given.ranks.split(",")]:
        with contextlib.ExitStack() as stack:
            jobs = {name: stack.enter_context(Ranks(given.build, ranks, path)) for name, path in given.libraries.items()}
            for part in given.parts or PARTS:
                globals()[part](jobs, ranks, given)
    print("load of the machine at the end: %.1f" % os.getloadavg()[0])


if __name__ == "__main__":
    main()
