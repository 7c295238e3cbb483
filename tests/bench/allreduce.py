#!/usr/bin/env python3
"""In-place float32 allreduce beside Open MPI, other MPIs, Gloo and the machine's copy bandwidth, in one run.

usage: tests/bench/allreduce.py [--build DIR] [--mpi NAME=PREFIX ...] [--ranks 2,4,8] [--sizes 1024,...] [--seconds S] [--rounds N]

--mpi: one more MPI, where PREFIX has bin/mpiexec, include/mpi.h and lib/libmpi.so, as a venv has into which MPICH or Intel MPI was installed
from PyPI (`pip install mpich`, `pip install impi-rt impi-devel`). The benchmark is compiled against it.

Prints a table in Markdown: median times in microseconds, and ratios (peer / ours: above 1 we are faster). `best mpi` is the fastest of all MPIs
over shared memory, Open MPI with CMA and without. `limit` is the time that (3n-1)D bytes take at the copy bandwidth of all cores at the same footprint,
measured in the same run. `engine by mpi` and `engine by cpu` are the engine in ranks that Open MPI's mpirun starts, with RINGMASTER_BACKEND=mpi
(whose bytes move as in `open mpi`) and =cpu.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
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


def open_mpi(binary, ranks, sizes, seconds, *parameters, **env):
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", **env}
    options = [word for parameter in parameters for word in ["--mca", *parameter.split("=")]]
    return run(["mpirun", "--oversubscribe", "--bind-to", "none", *options, "-np", str(ranks), binary, sizes, seconds], root)


def other_mpi(prefix, binary, ranks, sizes, seconds):
    # All ranks are on this machine, so they talk over shared memory; what else the library sets up stays on loopback.
    local = {"I_MPI_FABRICS": "shm", "FI_PROVIDER": "tcp", "FI_TCP_IFACE": "lo", "LD_LIBRARY_PATH": str(prefix / "lib")}
    return run([str(prefix / "bin/mpiexec"), "-launcher", "fork", "-np", str(ranks), binary, sizes, seconds], local)


def compiled(prefix, folder):
    """The benchmark, compiled against the MPI of this prefix."""
    binary = os.path.join(folder, "allreduce_" + prefix.name)
    subprocess.run(["g++", "-std=c++20", "-O2", "-I", str(ROOT), "-I", str(prefix / "include"), str(ROOT / "tests/bench/allreduce_mpi.cc"),
                    "-L", str(prefix / "lib"), "-lmpi", "-o", binary], check=True, timeout=170)
    return binary


def measure(bin_dir, others, ranks, sizes, seconds):
    """{name: {bytes: us}} of everything, one after the other. others: {name: (prefix, binary)}."""
    path = lambda name: os.path.join(bin_dir, name)
    found = {}
    for name, mode in OURS.items():
        found[name] = run([path("allreduce_ours"), str(ranks), sizes, seconds, mode])
    found["open mpi"] = open_mpi(path("allreduce_mpi"), ranks, sizes, seconds, "btl=self,vader")
    found["open mpi, no cma"] = open_mpi(path("allreduce_mpi"), ranks, sizes, seconds, "btl=self,vader", "btl_vader_single_copy_mechanism=none")
    for name, (prefix, binary) in others.items():
        found[name] = other_mpi(prefix, binary, ranks, sizes, seconds)
    found["mpi tcp"] = open_mpi(path("allreduce_mpi"), ranks, sizes, seconds, "btl=self,tcp")
    for backend in ("mpi", "cpu"):
        found["engine by " + backend] = open_mpi(path("allreduce_launched"), ranks, sizes, seconds, "btl=self,vader", RINGMASTER_BACKEND=backend)
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


def table(ranks, found, sizes, mpis):
    found["best mpi"] = {size: min(found[name][size] for name in mpis if size in found[name])
                         for size in sizes if any(size in found[name] for name in mpis)}
    columns = ["in place", "engine", "engine apart", "arena", "tcp", *mpis, "mpi tcp", "engine by mpi", "engine by cpu", "gloo", "limit"]
    ratios = [("engine", "in place"), ("engine apart", "in place"), ("best mpi", "in place"), ("best mpi", "arena"), ("mpi tcp", "tcp"), ("gloo", "tcp"),
              ("engine by mpi", "engine by cpu"), ("engine by mpi", "open mpi"), ("limit", "in place")]
    print("\n| %d ranks, median us | %s | %s |" % (ranks, " | ".join(columns), " | ".join("%s / %s" % pair for pair in ratios)))
    print("|" + "---|" * (len(columns) + len(ratios) + 1))
    for size in sizes:
        value = lambda name: found[name].get(size)
        ratio = lambda a, b: "%.2f" % (value(a) / value(b)) if value(a) and value(b) else "-"
        cells = ["%.1f" % value(c) if value(c) else "-" for c in columns] + [ratio(*pair) for pair in ratios]
        print("| %s | %s |" % (human(size), " | ".join(cells)), flush=True)


def named_prefix(text):
    name, _, prefix = text.partition("=")
    path = pathlib.Path(prefix)
    if not name or not (path / "bin/mpiexec").exists():
        raise argparse.ArgumentTypeError("%r: must be NAME=PREFIX, where PREFIX has bin/mpiexec" % text)
    return name, path


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--ranks", default="2,4,8")
    parser.add_argument("--sizes", default="1024,65536,1048576,16777216,67108864")
    parser.add_argument("--seconds", default="0.5", help="for each size of each implementation")
    parser.add_argument("--rounds", type=int, default=1, help="repeat everything, take medians")
    parser.add_argument("--mpi", type=named_prefix, action="append", default=[], metavar="NAME=PREFIX")
    args = parser.parse_args()
    sizes = [int(s) for s in args.sizes.split(",")]
    mpis = ["open mpi", "open mpi, no cma", *(name for name, _ in args.mpi)]
    print("load of the machine at the beginning: %.1f, %d cores" % (os.getloadavg()[0], os.cpu_count()))
    with tempfile.TemporaryDirectory(prefix="allreduce-") as folder:
        others = {name: (prefix, compiled(prefix, folder)) for name, prefix in args.mpi}
        for ranks in [int(r) for r in args.ranks.split(",")]:
            runs = [measure(os.path.join(args.build, "bin"), others, ranks, args.sizes, args.seconds) for _ in range(args.rounds)]
            table(ranks, merge(runs), sizes, mpis)
    print("\nload of the machine at the end: %.1f" % os.getloadavg()[0])


if __name__ == "__main__":
    main()
