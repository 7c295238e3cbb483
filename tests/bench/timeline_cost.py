#!/usr/bin/env python3
"""What the timeline in memory costs: nanoseconds an event, and the step time of workers that keep it and that don't.

usage: tests/bench/timeline_cost.py [--build DIR] [--rounds N]

Two ranks that do nothing but steps of 50 named allreduces, 10 MB together: the most events for the time that there can be. Runs with
RINGMASTER_LIVE_TIMELINE=1 and =0 take turns, because the machine has other work. `share` is computed: events of a step by their cost with cold caches.
"""

import argparse
import os
import pathlib
import re
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TENSORS, LENGTH, STEPS = 50, 50_000, 300
# A tensor: waits, runs. An operation (some are fused): waits, runs, and the round before it. The step's end: the same, and the step.
EVENTS = 2 * TENSORS + 3 * TENSORS + 6


def work():
    import time

    import ringmaster.torch as rm
    import torch
    torch.set_num_threads(1)
    rm.init()
    tensors = [torch.ones(LENGTH) for _ in range(TENSORS)]
    taken = []
    for _ in range(STEPS):
        begin = time.perf_counter()
        for handle in [rm.allreduce_async_(tensor, name="t%d" % i) for i, tensor in enumerate(tensors)]:
            rm.synchronize(handle)
        rm.end_step()
        taken.append(time.perf_counter() - begin)
    if rm.rank() == 0:
        print("step_ms=%.4f" % (1e3 * sorted(taken)[STEPS // 10]), flush=True)
    rm.shutdown()


def step_ms(binary, keeps):
    env = dict(os.environ, RINGMASTER_LIVE_TIMELINE="1" if keeps else "0")
    done = subprocess.run([binary / "ringmaster", "run", "--plain", "-np", "2", sys.executable, "-B", __file__, "--work"], env=env, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300, check=False)
    found = re.search(r"step_ms=([\d.]+)", done.stdout)
    if not found:
        sys.exit(done.stdout)
    return float(found[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        return work()
    said = subprocess.run([given.build / "bin/timeline_events"], text=True, stdout=subprocess.PIPE, check=True).stdout
    print(said, end="")
    nanoseconds = float(re.search(r"caches cold\s+(\d+)", said)[1])
    taken = {True: [], False: []}
    for turn in range(2 * given.rounds):
        keeps = turn % 2 == 0
        taken[keeps].append(step_ms(given.build / "bin", keeps))
    kept, not_kept = (statistics.median(taken[keeps]) for keeps in (True, False))
    print("a step          %.3f ms with it, %.3f ms without (the fastest tenth of a run's steps; medians of %d runs)" % (kept, not_kept, given.rounds))
    print("share           %.2f %% of a step, at most %d events" % (100 * EVENTS * nanoseconds / 1e6 / kept, EVENTS))
    return None


if __name__ == "__main__":
    main()
