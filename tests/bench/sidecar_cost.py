#!/usr/bin/env python3
"""What a sidecar costs: its CPU time and memory beside workers that start, train, sit in a long step, die and are drained.

usage: tests/bench/sidecar_cost.py [--build DIR] [--seconds N]

Jobs in local mode, so without TLS: the digits example with four workers and with eight, four workers in a step of 30 s, and sixteen
that do little. For each stretch of time, over all sidecars of the job: CPU in thousandths of a core (the mean, that of the
busiest sidecar, and that of its busiest quarter of a second, to 40), and the largest resident memory so far, all of it and what
is its own (the rest are pages of the program and its libraries).
"""
import argparse
import json
import os
import pathlib
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TICKS = os.sysconf("SC_CLK_TCK")
RECOVERY = 5.0  # seconds


def sidecars(run):
    """Process ids of the run's sidecars. `ringmaster-sidecar install` of the init containers is none."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            command = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
            if command.endswith(b"ringmaster-sidecar\0") and str(run.dir).encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def cpu_seconds(pid):
    fields = pathlib.Path("/proc/%d/stat" % pid).read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory(pid):
    """MiB: (the most that was ever resident, own pages now)"""
    fields = dict(line.split(":", 1) for line in pathlib.Path("/proc/%d/status" % pid).read_text().splitlines())
    return tuple(int(fields[name].split()[0]) / 1024 for name in ("VmHWM", "RssAnon"))


def watch(run, what, seconds):
    began = last = time.monotonic()
    first = {pid: cpu_seconds(pid) for pid in sidecars(run)}
    used, busiest = dict(first), 0.0
    while last - began < seconds:
        time.sleep(0.25)
        now = time.monotonic()
        for pid in list(used):
            try:
                spent = cpu_seconds(pid)
            except OSError:  # its pod has gone
                del used[pid]
                continue
            busiest = max(busiest, (spent - used[pid]) / (now - last))
            used[pid] = spent
        last = now
    cpu = [1000 * (used[pid] - first[pid]) / (last - began) for pid in used]
    peak, own = (max(column) for column in zip(*[memory(pid) for pid in used]))
    print("%-32s %2d sidecars  cpu %5.1f  busiest %5.1f  at once %4.0f  memory %5.1f MiB, own %4.1f MiB"
          % (what, len(used), sum(cpu) / len(cpu), max(cpu), 1000 * busiest, peak, own), flush=True)


def digits(run, seconds):
    watch(run, "digits, starting", 10)
    epoch = run.world("digits", 4)
    watch(run, "digits, training", seconds)
    for words in (("kill", "digits-worker-1", "--worker", 0), ("kill", "digits-worker-2"), ("drain", "digits-worker-3")):
        run.do(*words)
        watch(run, "digits, after %s%s" % (words[0], " of a worker" if "--worker" in words else " of a pod"), RECOVERY)
        epoch = run.world("digits", 4, epoch + 1)
    run.do("scale", "digits", "--replicas", 8)
    run.world("digits", 8, epoch)
    watch(run, "digits of 8, training", seconds)


def plain(run, size, what, seconds):
    run.world("job", size)
    watch(run, what, seconds)
    run.do("kill", "job-worker-1", "--worker", 0)
    watch(run, what + ", after kill", RECOVERY)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=str(ROOT / "build/release"))
    parser.add_argument("--seconds", type=float, default=20.0)
    options = parser.parse_args()
    os.environ["RINGMASTER_BIN"] = options.build + "/bin"
    sys.path.insert(0, str(ROOT / "tests/integration"))
    import harness
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        example = (ROOT / "examples/digits/job.yaml").read_text()
        text = example.replace('value: "30"', 'value: "3000"').replace("train.py", str(ROOT / "examples/digits/train.py"))
        (folder / "digits.yaml").write_text(text)
        with harness.Run(folder / "digits.yaml") as run:
            harness.wait_for("four sidecars", lambda: len(sidecars(run)) == 4)
            digits(run, options.seconds)
        for size, pause, what in ((4, 30000, "4, a step of 30 s"), (16, 200, "16, training")):
            out = folder / str(size)
            out.mkdir()
            job = json.loads(harness.manifest(command=[harness.WORKER, out, "--sleep-ms", pause], replicas=size))
            job["spec"]["elasticPolicy"]["maxReplicas"] = 16
            (folder / "job.yaml").write_text(json.dumps(job))
            with harness.Run(folder / "job.yaml") as run:
                plain(run, size, what, options.seconds)


if __name__ == "__main__":
    main()
