#!/usr/bin/env python3
"""Predicted beside measured scaling, in one run: the cost model of `ringmaster bench`, fitted at the fewest ranks, and what more ranks then take.

usage: tests/bench/scaling.py [--build DIR] [--ranks 2,4,8] [--rounds N] [--model-bytes 25M] [--step-ms 200] [--tcp]

Each round measures every number of ranks once, so they take turns; figures are medians of the rounds. Prints Markdown, and the machine's load.
"""

import argparse
import os
import pathlib
import re
import statistics
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "collectives/python/tests"))
import fake_sidecar  # noqa: E402


def bench(given, ranks):
    """Of one run: (share of the step that is computing, {ranks: that share as its model predicts it}), in percent."""
    arguments = ["--op", "allreduce", "--max-bytes", "4M", "--model-bytes", given.model_bytes, "--step-ms", str(given.step_ms)]
    with tempfile.TemporaryDirectory(prefix="rm-", dir="/tmp") as folder:
        environ = {"RINGMASTER_SHM": "0"} if given.tcp else {}
        with fake_sidecar.Job(folder, arguments, ranks, environ, python=str(given.build / "bin/ringmaster-bench")) as job:
            codes, said = job.wait(), job.logs()
    if any(codes.values()):
        sys.exit(said)
    predicted = {int(number): float(share) for number, share in re.findall(r"^ +(\d+) +([\d.]+)% +[\d.]+%$", said, re.M)}
    return float(re.search(r"Measured here with \d+ ranks: ([\d.]+)%", said)[1]), predicted


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--ranks", default="2,4,8")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--model-bytes", default="25M")
    parser.add_argument("--step-ms", type=float, default=200)
    parser.add_argument("--tcp", action="store_true")
    given = parser.parse_args()
    given.build = given.build.resolve()
    counts = [int(text) for text in given.ranks.split(",")]
    print("load of the machine at the beginning: %.1f, %d cores" % (os.getloadavg()[0], os.cpu_count()))
    runs = [{ranks: bench(given, ranks) for ranks in counts} for _ in range(given.rounds)]
    print("\n| ranks | predicted from %d ranks | measured |\n|---|---|---|" % counts[0])
    for ranks in counts:
        predicted = statistics.median(run[counts[0]][1][ranks] for run in runs)
        print("| %d | %.1f %% | %.1f %% |" % (ranks, predicted, statistics.median(run[ranks][0] for run in runs)))
    print("\nload of the machine at the end: %.1f" % os.getloadavg()[0])


if __name__ == "__main__":
    main()
