#!/usr/bin/env python3
"""Breaks a job whose pods lie in networks of their own, one, two or three faults at once, and judges it by its workers' logs.

    storm.py [--seed S] [--faults N] [--seconds T] [--only kind,kind] [--pods N] [--slots N] [--figures FILE] [--keep DIR]

Kinds, victims, moments and lengths of the faults are drawn from the seed: the same seed draws the same ones in the same order.
What the machine does meanwhile is its own, so a failure is replayed by running its seed some times. After each round of faults all
pods that are wished for have to train together again; how long that may take is bounded, and passing the bound counts as a hang.
Rounds go on until N faults have been made or T seconds are over.

It needs root or user namespaces, and runs itself again in a sandbox (tests/integration/sandbox.sh), with a small /dev/shm and a small
disk for the run directory. Without libfaketime no clocks are stepped, which it says, and with REQUIRE_FRAMEWORKS=1 it doesn't begin.

Exit status: 0 all well, 1 something found, 2 bad usage, 3 the machine lacks something.
"""
import argparse
import collections
import contextlib
import glob
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "integration"))
import harness  # noqa: E402
import netns  # noqa: E402
from faults import Faults, pods  # noqa: E402
from pod_network import PodNetwork  # noqa: E402
from waiting import until  # noqa: E402

sys.path.insert(0, str(HERE))
import judge  # noqa: E402

HANG_SECONDS = 120.0
PLACES = 16  # namespaces: the numbers of pods that come and go
AT_ONCE = (1, 1, 1, 2, 2, 3)
SHM_MEGABYTES, DISK_MEGABYTES = 64, 96
FAKETIME = "/usr/lib/*/faketime/libfaketimeMT.so.1"


class Hang(Exception):
    pass


class Tail:
    """What the workers have written so far: the newest line of each."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.read = collections.Counter()  # bytes
        self.newest = {}  # pid: Line

    def look(self):
        for path in self.folder.glob("*.log"):
            with open(path, "rb") as file:
                file.seek(self.read[path.name])
                text = file.read()
            text = text[:text.rfind(b"\n") + 1]
            self.read[path.name] += len(text)
            parsed = [line for line in map(judge.parse, text.decode(errors="replace").split("\n")) if line]
            if parsed:
                self.newest[int(path.stem)] = parsed[-1]
        return self.newest

    def world(self):
        """(epoch, {pid: Line}) of the newest view in which all of its ranks have completed a step; (0, {}) where not all have yet."""
        lines = self.look()
        epoch = max((line.epoch for line in lines.values()), default=0)
        members = {pid: line for pid, line in lines.items() if line.epoch == epoch}
        size = next(iter(members.values())).size if members else 0
        complete = {line.rank for line in members.values()} == set(range(size))
        return (epoch, members) if size and complete else (0, {})


class Storm:
    def __init__(self, run, network, faults, out, options):
        self.run, self.network, self.faults, self.options = run, network, faults, options
        self.tail = Tail(out)
        self.began = time.monotonic()
        self.count = 0
        self.rounds = []  # (ns at which it began, kinds)

    def say(self, text):
        print("%7.2f  %s" % (time.monotonic() - self.began, text), flush=True)

    def together(self):
        """{name: Pod} of the pods when all that are wished for train in one view and have stepped on since; Hang after a while."""
        before = dict(self.tail.look())

        def whole():
            _, members = self.tail.world()
            if len(members) != self.faults.size * self.options.slots:
                return None
            if any(pid in before and line.step <= before[pid].step for pid, line in members.items()):
                return None
            found = {name: pod for name, pod in pods().items() if set(pod.workers) & set(members)}
            return found if len(found) == self.faults.size and all(pod.sidecars and pod.launchers for pod in found.values()) else None
        found = until(whole, HANG_SECONDS, 0.02, over=lambda: not self.run.alive())
        if found:
            return found
        if not self.run.alive():
            raise Hang("the run has ended: " + " | ".join(self.run.lines[-4:]))
        raise Hang("%d pods were not together again within %.0f s" % (self.faults.size, HANG_SECONDS))

    def round(self, dice):
        kinds = self.draw(dice)
        victims = list(self.together().values())
        victims.sort(key=lambda pod: pod.name)
        dice.shuffle(victims)
        self.rounds.append((time.monotonic_ns(), kinds))
        ends = []
        for kind in kinds:
            pod = None if kind in Faults.PLACELESS else victims.pop()
            fault = getattr(self.faults, kind)(dice, pod)
            seconds = next(fault)
            self.count += 1
            self.say("%s %s%s" % (kind, pod.name if pod else "", " for %.2f s" % seconds if seconds else ""))
            ends.append((time.monotonic() + seconds, fault))
            time.sleep(dice.choice((0.0, dice.uniform(0, 0.05), dice.uniform(0, 0.5))))
        for when, fault in sorted(ends, key=lambda end: end[0]):
            time.sleep(max(0.0, when - time.monotonic()))
            next(fault, None)

    def draw(self, dice):
        """Different kinds, and never so many pods at once that no majority is left."""
        count = min(dice.choice(AT_ONCE), (self.faults.size - 1) // 2, len(self.options.only))
        kinds = []
        while len(kinds) < count:
            kind = dice.choices(self.options.only, [Faults.KINDS[kind] for kind in self.options.only])[0]
            if kind not in kinds:
                kinds.append(kind)
        # Last: what people ask for needs an API server that answers.
        return sorted(kinds, key=lambda kind: kind == "operator_stop")

    def play(self):
        self.together()
        end = time.monotonic() + self.options.seconds
        while self.count < self.options.faults and time.monotonic() < end:
            self.round(random.Random("%d/%d" % (self.options.seed, len(self.rounds))))
        self.together()
        made = collections.Counter(kind for _, kinds in self.rounds for kind in kinds)
        self.say("%d faults in %d rounds; the job may finish" % (self.count, len(self.rounds)))
        self.say("of each kind: " + ", ".join("%s %d" % (kind, made[kind]) for kind in self.options.only))


def manifest(network, out, options):
    return harness.manifest(command=[network.in_pod, harness.WORKER, out, "--sleep-ms", options.sleep_ms, "--floats", options.floats],
                            replicas=options.pods, slotsPerWorker=options.slots, runPolicy__backoffLimit=100000,
                            elasticPolicy__maxReplicas=options.pods + 1)


def storm(options, folder, clock_library):
    """What was found wrong: [(kind, sentence)]."""
    out, clocks, disk = folder / "out", folder / "clocks", folder / "disk"
    for path in (out, clocks, disk):
        path.mkdir()
    for place in range(PLACES):
        (clocks / str(place)).write_text("+0\n")
    more = "LD_PRELOAD=%s FAKETIME_TIMESTAMP_FILE=%s/$place FAKETIME_CACHE_DURATION=1 FAKETIME_DONT_FAKE_MONOTONIC=1 " \
        "FAKETIME_DISABLE_SHM=1" % (clock_library, clocks) if clock_library else ""
    found = []
    with disk_of(disk, DISK_MEGABYTES), PodNetwork(harness.BIN, PLACES, more) as network:
        (folder / "job.yaml").write_text(manifest(network, out, options))
        with harness.Run(folder / "job.yaml", program=network.program, folder=disk) as run:
            faults = Faults(run, network, {"shm": "/dev/shm", "run": str(disk)}, clocks, options.pods,
                            (max(2, options.pods - 1), options.pods + 1))
            chaos = Storm(run, network, faults, out, options)
            try:
                chaos.play()
                (out / "stop").touch()
                code = run.wait(HANG_SECONDS)
                if code != 0:
                    found.append(("failed", "`ringmaster run` ended with %d: %s" % (code, " | ".join(run.lines[-4:]))))
            except Hang as hang:
                found.append(("hang" if run.alive() else "failed", str(hang)))
            except subprocess.TimeoutExpired:
                found.append(("hang", "the job did not end"))
            logs = judge.read(out)
            found += judge.judge(logs)
            if found:
                print(run.text())
            if options.keep:
                keep(run, out, options.keep)
            figures(chaos, logs, found, options)
    return found


def keep(run, out, folder):
    shutil.rmtree(folder, ignore_errors=True)
    if (run.dir / "logs").exists():
        shutil.copytree(run.dir / "logs", pathlib.Path(folder) / "logs")
    shutil.copytree(out, pathlib.Path(folder) / "out")
    (pathlib.Path(folder) / "run.txt").write_text(run.text())


def figures(chaos, logs, found, options):
    if not options.figures:
        return
    times = judge.completions(logs)
    with open(options.figures, "a") as file:
        for (began, kinds), (end, _) in zip(chaos.rounds, chaos.rounds[1:] + [(float("inf"), ())]):
            file.write(json.dumps({"seed": options.seed, "kinds": kinds, "pause": judge.longest_pause(times, began, end)}) + "\n")
        file.write(json.dumps({"seed": options.seed, "found": found, "steps": len(times)}) + "\n")


@contextlib.contextmanager
def disk_of(path, megabytes):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=1777,size=%dm" % megabytes, "tmpfs", str(path)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=int(time.time()) % 1000000, help="of the schedule (default: the clock)")
    parser.add_argument("--faults", type=int, default=40, help="at most so many (default 40)")
    parser.add_argument("--seconds", type=float, default=600, help="no new round after so long (default 600)")
    parser.add_argument("--only", default=",".join(Faults.KINDS), help="kinds of faults, of: %(default)s")
    parser.add_argument("--pods", type=int, default=5, help="at the start (default 5, from 3 to 8)")
    parser.add_argument("--slots", type=int, default=1, help="workers of each pod (default 1)")
    parser.add_argument("--sleep-ms", type=int, default=20, help="of a worker in each step (default 20)")
    parser.add_argument("--floats", type=int, default=16384, help="of an allreduce (default 16384)")
    parser.add_argument("--figures", help="append a line of JSON for each round to this file (tests/chaos/table.py reads it)")
    parser.add_argument("--keep", help="where the logs go")
    options = parser.parse_args(arguments)
    options.only = options.only.split(",")
    unknown = sorted(set(options.only) - set(Faults.KINDS))
    if unknown:
        parser.error("--only %s: the kinds are %s" % (",".join(unknown), ", ".join(Faults.KINDS)))
    if not 3 <= options.pods <= 8:
        parser.error("--pods %d: allowed are 3 to 8" % options.pods)
    return options


def main():
    options = parse(sys.argv[1:])
    if not harness.SANDBOXED:
        sandbox = str(HERE.parent / "integration/sandbox.sh")
        os.execv(sandbox, [sandbox, str(harness.REPOSITORY), sys.executable, "-B", __file__, *sys.argv[1:]])
    why = netns.missing()
    if why:
        print("storm.py: " + why, file=sys.stderr)
        return 3
    library = next(iter(glob.glob(FAKETIME)), None)
    if "clock" in options.only and library is None:
        print("no clocks are stepped: libfaketime is not installed", file=sys.stderr)
        if os.environ.get("REQUIRE_FRAMEWORKS") == "1":  # hack/test installs it
            return 3
        options.only = [kind for kind in options.only if kind != "clock"]
    print("seed %d: %s" % (options.seed, " ".join(sys.argv)), flush=True)
    with disk_of("/dev/shm", SHM_MEGABYTES):
        found = play(options, library if "clock" in options.only else None)
    for kind, sentence in found:
        print("FOUND seed %d: %s: %s" % (options.seed, kind, sentence))
    if not found:
        print("OK seed %d" % options.seed)
    return 1 if found else 0


def play(options, clock_library):
    before = harness.snapshot()
    with tempfile.TemporaryDirectory(prefix="storm-") as folder:
        found = storm(options, pathlib.Path(folder), clock_library)
    for file in glob.glob("/dev/shm/faketime_*") + glob.glob("/dev/shm/sem.faketime_*"):
        os.unlink(file)  # libfaketime's own, of processes that were killed
    left = harness.left_behind(before)
    if left:
        found.append(("left behind", left))
    return found


if __name__ == "__main__":
    sys.exit(main())
