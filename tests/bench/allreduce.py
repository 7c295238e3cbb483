#!/usr/bin/env python3
"""In-place float32 allreduce beside Open MPI, Gloo and the machine's copy bandwidth, in one run.

usage: tests/bench/allreduce.py [--build DIR] [--ranks 2,4,8] [--sizes 1024,...] [--seconds S] [--rounds N]

Prints a table in Markdown: median times in microseconds, and ratios (peer / ours: above 1 we are faster). `limit` is the time
that (3n-1)D bytes take at the copy bandwidth of all cores at the same footprint, measured in the same run.
"""
import argparse
import os
import statistics
import subprocess
import sys

OURS = {"in place": "in-place", "arena": "arena", "tcp": "tcp", "engine": "engine", "engine apart": "engine-apart"}


def run(command, env=None):
    """{bytes: median us} from the `result RANKS BYTES MEDIAN MIN` lines, or {} with the reason on stderr."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=170, env={**os.environ, **(env or {})})
    except (OSError, subprocess.TimeoutExpired) as error:
        print("  %s: %s" % (command[0], error), file=sys.stderr)
        return {}
    if done.returncode != 0:
        print("  %s failed: %s" % (" ".join(command), done.stderr.strip()[-400:]), file=sys.stderr)
        return {}
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith("result ")]
    return {int(r[2]): float(r[3]) for r in rows}


def mpirun(binary, ranks, sizes, seconds, btl):
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return run(["mpirun", "--oversubscribe", "--bind-to", "none", "--mca", "btl", btl, "-np", str(ranks),
                binary, sizes, seconds], root)


def measure(bin_dir, ranks, sizes, seconds):
    """{name: {bytes: us}} of everything, one after the other."""
    path = lambda name: os.path.join(bin_dir, name)
    found = {}
    for name, mode in OURS.items():
        found[name] = run([path("allreduce_ours"), str(ranks), sizes, seconds, mode])
    found["mpi shm"] = mpirun(path("allreduce_mpi"), ranks, sizes, seconds, "self,vader")
    found["mpi tcp"] = mpirun(path("allreduce_mpi"), ranks, sizes, seconds, "self,tcp")
    # Gloo takes 17 ms for the smallest message of 8 ranks: a smaller budget keeps the run short.
    found["gloo"] = run([path("allreduce_gloo"), str(ranks), sizes, str(float(seconds) / 4)])
    copies = run([path("copy_limit"), str(ranks), sizes, seconds])
    # A copy of `bytes` of traffic on each of `ranks` processes takes copies[bytes]; (3n-1)D bytes take (3n-1)/n of that.
    found["limit"] = {size: us * (3 * ranks - 1) / ranks for size, us in copies.items()}
    return found


def merge(runs):
    names = runs[0].keys()
    return {name: {size: statistics.median(r[name][size] for r in runs if size in r[name])
                   for size in set().union(*(r[name] for r in runs))} for name in names}


def human(size):
    return "%d MiB" % (size >> 20) if size >= 1 << 20 else "%d KiB" % (size >> 10)


def table(ranks, found, sizes):
    columns = ["in place", "engine", "engine apart", "arena", "tcp", "mpi shm", "mpi tcp", "gloo", "limit"]
    print("\n%d ranks, median us | %s | engine / in place | engine apart / in place | mpi shm / in place | mpi shm / arena | mpi tcp / tcp | gloo / tcp | limit / in place"
          % (ranks, " | ".join(columns)))
    print("|".join(["---"] * (len(columns) + 8)))
    for size in sizes:
        value = lambda name: found[name].get(size)
        ratio = lambda a, b: "%.2f" % (value(a) / value(b)) if value(a) and value(b) else "-"
        cells = ["%.1f" % value(c) if value(c) else "-" for c in columns]
        print("%s | %s | %s" % (human(size), " | ".join(cells), " | ".join(
            [ratio("engine", "in place"), ratio("engine apart", "in place"), ratio("mpi shm", "in place"), ratio("mpi shm", "arena"), ratio("mpi tcp", "tcp"), ratio("gloo", "tcp"),
             ratio("limit", "in place")])), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--ranks", default="2,4,8")
    parser.add_argument("--sizes", default="1024,65536,1048576,16777216,67108864")
    parser.add_argument("--seconds", default="0.5", help="for each size of each implementation")
    parser.add_argument("--rounds", type=int, default=1, help="repeat everything, take medians")
    args = parser.parse_args()
    sizes = [int(s) for s in args.sizes.split(",")]
    for ranks in [int(r) for r in args.ranks.split(",")]:
        runs = [measure(os.path.join(args.build, "bin"), ranks, args.sizes, args.seconds) for _ in range(args.rounds)]
        table(ranks, merge(runs), sizes)


if __name__ == "__main__":
    main()
