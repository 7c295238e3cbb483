#!/usr/bin/env python3
"""Breaks a running digits job at random, lets it finish, and has it judged by examples/digits/check.py.

    soak.py [--seed S] [--seconds N] [--only kind,kind] [--most PODS] [--keep DIR] [--figures FILE]

In a run of five minutes or more the memory, descriptors and threads of all processes are watched, and growth is a finding (watch.py).

The schedule is drawn from the seed and printed as it goes: the same seed draws the same kinds, victims and pauses. What the
machine does meanwhile is its own, so a failure is replayed by running its seed some times, not once.

Never are fewer than a majority of the newest view alive at one moment (for an even number the record is the voter that makes
half a majority): a job that has lost more needs recovery from quorum loss, which this test doesn't ask for. Before an act that would break
this it waits for the pods to be back; that they come back at all is a part of what is tested.

Exit status: 0 all well, 1 something found, 2 bad usage.
"""

import argparse
import collections
import contextlib
import json
import math
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
import harness  # noqa: E402
from processes import alive  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import watch  # noqa: E402

DIGITS = harness.REPOSITORY / "examples/digits"
JOB = "digits"
STEPS_OF_AN_EPOCH = 23
# The last steps are left alone: a rank that is killed while the job finishes fails it, and rightly so.
QUIET_STEPS = 2 * STEPS_OF_AN_EPOCH
BACK_SECONDS = 90.0  # until the pods that were broken are in a view again; generous, the machine is shared
FINISH_SECONDS = 300.0
WATCHED_SECONDS = 300.0  # a shorter run says nothing about growth
# Of its time a job under these faults completes steps in so much, more or less: for how many it is given.
SHARE_OF_STEPS = 0.7
# A sidecar that has come back may yet be dropped from the view by sidecars that missed it, and rejoin then.
UNSURE_SECONDS = 2.0


# So often an act may find nothing to break, as when the pod of rank 0 is broken already.
DRAWN_IN_VAIN = 8


class Over(Exception):
    """The job is near its end, or has ended: no more acts."""


def last_view(audit, pid):
    """The view of the last step that this worker process has completed; 0 for none."""
    for path in audit.glob("*-%d.jsonl" % pid):
        lines = [line for line in path.read_text().split("\n")[:-1] if '"view"' in line]
        return json.loads(lines[-1])["view"] if lines else 0
    return 0


class Pod:
    """A pod as `ringmaster get` shows it: in the newest view or not, with its worker of the lowest rank."""

    def __init__(self, status, epoch, audit):
        self.name, self.uid = status["name"], status["uid"]
        ranked = [w for w in status.get("workers", []) if w["rank"] >= 0 and w["state"] == "training"]
        self.worker = min(ranked, key=lambda w: w["rank"], default=None)
        # Only a worker that has completed a step in the newest view holds the state for sure: a joiner that has not may have been
        # given nothing yet, and when all others die then, so does the state.
        self.trains = (bool(self.worker) and status.get("epoch") == epoch and status.get("state") == "Training"
                       and last_view(audit, self.worker["pid"]) == epoch)

    def sidecar(self):
        found = harness.pids("RINGMASTER_POD_UID=" + self.uid, "ringmaster-sidecar")
        return found[0] if found else None


class Soak:
    def __init__(self, run, audit, options):
        self.run = run
        self.audit = audit
        self.options = options
        self.random = random.Random(options.seed)
        self.began = time.monotonic()
        self.hurt = {}  # pod name: (uid, worker pid, sidecar pid) of what was broken
        self.unsure = {}  # pod name: when its place in the view is certain again
        self.acts = 0
        self.drawn, self.done = collections.Counter(), collections.Counter()  # by kind; of those drawn some find nothing to break
        self.history = []  # (when it began, kind)
        self.struck = 0  # what was killed, stopped or commanded

    def do(self, kind):
        before = self.struck
        self.drawn[kind] += 1
        getattr(self, kind)()
        self.done[kind] += self.struck > before
        self.acts += 1

    def idle(self):
        """Kinds that were drawn again and again and have broken nothing: the test does not find what it is to break."""
        return [kind for kind in self.drawn if self.drawn[kind] >= DRAWN_IN_VAIN and not self.done[kind]]

    def say(self, text):
        print("%7.2f  %s" % (time.monotonic() - self.began, text), flush=True)

    # ---- what is there

    def look(self):
        """(pods that train in the newest view, its size). Raises Over when the job is about to end."""
        status = self.run.job(JOB).get("status", {})
        if not self.run.alive() or status.get("step", 0) >= self.options.steps - QUIET_STEPS:
            raise Over
        shown = status.get("pods", [])
        steps = [w.get("step", 0) for pod in shown for w in pod.get("workers", [])]
        if max(steps, default=0) >= self.options.steps - QUIET_STEPS:
            raise Over
        epoch = max((pod.get("epoch", 0) for pod in shown), default=0)
        size = len({place["pod"] for place in status.get("ring", [])})
        in_newest = [pod for pod in (Pod(s, epoch, self.audit) for s in shown if s.get("epoch") == epoch) if pod.worker]
        return [pod for pod in in_newest if pod.trains and not self.is_hurt(pod)], max(size, len(in_newest))

    def is_hurt(self, pod):
        """A broken pod counts again when it trains with a new process in place of the broken one."""
        if time.monotonic() < self.unsure.get(pod.name, 0):
            return True
        if pod.name not in self.hurt:
            return False
        uid, worker, sidecar = self.hurt[pod.name]
        now = pod.sidecar()
        if pod.uid == uid and (pod.worker["pid"] == worker or now is None or now == sidecar):
            return True
        del self.hurt[pod.name]
        return False

    def victims(self, count):
        """`count` random pods that a majority can do without; waits until there are. Fewer where all pods of a small job are well and it
        still can't do without so many. Draws always the same numbers."""
        draw = self.random.random()
        deadline = time.monotonic() + BACK_SECONDS
        while True:
            pods, size = self.look()
            left = 2 * (len(pods) - count) + (1 if size % 2 == 0 else 0)
            if len(pods) > count and left > size:
                return random.Random(draw).sample(sorted(pods, key=lambda pod: pod.name), count)
            if len(pods) == size and count > 1:
                count -= 1
                continue
            if time.monotonic() > deadline:
                raise AssertionError("the broken pods did not come back: %d of a view of %d train, %s are broken"
                                     % (len(pods), size, sorted(self.hurt)))
            time.sleep(0.05)

    # ---- what is done to it

    def strike(self, pod, worker=False, sidecar=False):
        """SIGKILL, said before it is done. A pod whose view has moved on meanwhile is still the same pod."""
        pid = pod.sidecar() if sidecar else None
        self.hurt[pod.name] = (pod.uid, pod.worker["pid"] if worker else None, pid)
        self.unsure[pod.name] = time.monotonic() + UNSURE_SECONDS if sidecar else 0
        for target, what in ((pod.worker["pid"] if worker else None, "worker"), (pid, "sidecar")):
            if target and alive(target):
                self.say("SIGKILL %s %d of %s (rank %d)" % (what, target, pod.name, pod.worker["rank"]))
                os.kill(target, signal.SIGKILL)
                self.struck += 1

    def command(self, *words):
        self.say("ringmaster " + " ".join(map(str, words)))
        done = self.run.command(*words)
        if done.returncode == 0:
            self.struck += 1
        else:
            self.say("  exit status %d: %s" % (done.returncode, (done.stderr or done.stdout).strip()))

    def worker(self):
        self.strike(self.victims(1)[0], worker=True)

    def two(self):
        for pod in self.victims(2):
            self.strike(pod, worker=True)

    def rank0(self):
        self.victims(1)
        first = [pod for pod in self.look()[0] if pod.worker["rank"] == 0]
        if first:
            self.strike(first[0], worker=True)

    def sidecar(self):
        self.strike(self.victims(1)[0], sidecar=True)

    def pod(self):
        pod = self.victims(1)[0]
        self.hurt[pod.name] = (pod.uid, pod.worker["pid"], pod.sidecar())
        self.command("kill", pod.name)

    def drain(self):
        pod = self.victims(1)[0]
        self.hurt[pod.name] = (pod.uid, pod.worker["pid"], pod.sidecar())
        self.command("drain", pod.name)

    def scale(self):
        replicas = self.random.randint(self.options.least, self.options.most)
        self.victims(0)
        self.command("scale", JOB, "--replicas", replicas)

    def stand_still(self, pod, pid, what, seconds):
        if not pid or not alive(pid):
            return
        self.say("SIGSTOP %s %d of %s (rank %d) for %.2f s" % (what, pid, pod.name, pod.worker["rank"], seconds))
        os.kill(pid, signal.SIGSTOP)
        self.struck += 1
        try:
            time.sleep(seconds)
        finally:
            if alive(pid):
                os.kill(pid, signal.SIGCONT)
        self.unsure[pod.name] = time.monotonic() + UNSURE_SECONDS

    def stop(self):
        seconds = self.random.uniform(0.05, 0.8)
        pod = self.victims(1)[0]
        self.stand_still(pod, pod.worker["pid"], "worker", seconds)

    def freeze(self):
        """For good: its pod notices, and starts another process."""
        pod = self.victims(1)[0]
        pid = pod.worker["pid"]
        if not alive(pid):
            return
        self.hurt[pod.name] = (pod.uid, pid, None)
        self.say("SIGSTOP worker %d of %s (rank %d)" % (pid, pod.name, pod.worker["rank"]))
        os.kill(pid, signal.SIGSTOP)
        self.struck += 1

    def pause_sidecar(self):
        seconds = self.random.choice((self.random.uniform(0.05, 2.0), self.random.uniform(9.0, 14.0)))
        pod = self.victims(1)[0]
        self.hurt[pod.name] = (pod.uid, None, None)
        self.stand_still(pod, pod.sidecar(), "sidecar", seconds)

    def pause_launcher(self):
        seconds = self.random.uniform(0.05, 4.0)
        pod = self.victims(1)[0]
        launchers = harness.pids("RINGMASTER_POD_UID=" + pod.uid, "ringmaster-launcher") if pod.uid else []
        self.stand_still(pod, launchers[0] if launchers else None, "launcher", seconds)

    KINDS = ("worker", "two", "rank0", "sidecar", "pod", "drain", "scale", "stop", "freeze", "pause_sidecar", "pause_launcher")

    def play(self):
        self.run.world(JOB, self.options.replicas)
        self.say("training")
        end = time.monotonic() + self.options.seconds
        try:
            while time.monotonic() < end:
                kind = self.random.choice(self.options.only)
                pause = self.random.choice((0.0, self.random.uniform(0, 1), self.random.uniform(0, 3)))
                self.history.append((time.time(), kind))
                self.do(kind)
                time.sleep(pause)
        except Over:
            pass
        self.say("%d acts; the job may finish" % self.acts)


def copy_of_job(folder, options):
    """The example with this run's length; faults are not counted against it, for they are what it is here for."""
    shutil.copytree(DIGITS, folder, ignore=shutil.ignore_patterns("tests", "__pycache__"))
    text = (folder / "job.yaml").read_text()
    for pattern, value in ((r"(DIGITS_EPOCHS, value: )\"\d+\"", r'\1"%d"' % options.epochs),
                           (r"(DIGITS_PACE_MS, value: )\"\d+\"", r'\1"%d"' % options.pace_ms),
                           (r"\n( *)slotsPerWorker:", r"\n\1runPolicy: {backoffLimit: 1000}\n\1slotsPerWorker:"),
                           (r"( replicas: )\d+", r"\g<1>%d" % options.replicas)):
        text, count = re.subn(pattern, value, text)
        assert count == 1, "%s is not once in job.yaml" % pattern
    (folder / "job.yaml").write_text(text)
    return folder / "job.yaml"


def pauses(audit, history):
    """[(kind, seconds)]: the longest time after an act, and until the next, in which nobody completed a new step."""
    first = {}
    for path in audit.glob("*.jsonl"):
        for text in path.read_text().split("\n")[:-1]:
            line = json.loads(text)
            if "step" in line and "rank" in line:
                first[line["step"]] = min(first.get(line["step"], line["t"]), line["t"])
    times = sorted(first.values())
    found = []
    for (began, kind), (end, _) in zip(history, history[1:] + [(float("inf"), "")]):
        gaps = [b - a for a, b in zip(times, times[1:]) if b > began and a < end]
        if gaps:
            found.append((kind, max(gaps)))
    return found


def keep(run, audit, text, folder):
    """The logs of a failed run, to find the cause in."""
    folder = pathlib.Path(folder)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if (run.dir / "logs").exists():
        shutil.copytree(run.dir / "logs", folder / "logs")
    shutil.copytree(audit, folder / "audit")
    (folder / "run.txt").write_text(text)


def judge(audit):
    done = subprocess.run(["/usr/bin/python3", "-B", str(DIGITS / "check.py"), str(audit)], capture_output=True, text=True)
    print(done.stdout + done.stderr, end="", flush=True)
    return [] if done.returncode == 0 else ["the checker found something"]


def soak(options, folder):
    """What was found wrong, as a list of sentences."""
    audit = folder / "audit"
    audit.mkdir()
    found = []
    with harness.Run(copy_of_job(folder / "job", options), RINGMASTER_AUDIT_DIR=str(audit)) as run:
        chaos = Soak(run, audit, options)
        seen = watch.Watch(lambda: watch.descendants(run.process.pid), max(1.0, options.seconds / 400))
        long = options.seconds >= WATCHED_SECONDS
        try:
            with seen if long else contextlib.nullcontext():
                chaos.play()
            if long:
                print(watch.table(seen.samples), flush=True)
                found += watch.judge(seen.samples, time.monotonic() - seen.began)
            code = run.wait(FINISH_SECONDS + options.seconds)
            if code != 0:
                found.append("`ringmaster run` ended with %d: %s" % (code, " | ".join(run.lines[-3:])))
        except (AssertionError, subprocess.TimeoutExpired) as error:
            found.append(str(error))
        if run.alive():
            found.append("the job had to be stopped; its status was: %s" % run.job(JOB).get("status", {}))
        if not found:
            chaos.say("ended: " + run.lines[-1])
        if not sum(chaos.done.values()):
            found.append("nothing was broken")
        found += ["%s was drawn %d times and broke nothing" % (kind, chaos.drawn[kind]) for kind in chaos.idle()]
        found += judge(audit)
        if options.figures:
            with open(options.figures, "a") as file:
                for kind, seconds in pauses(audit, chaos.history):
                    file.write(json.dumps({"seed": options.seed, "kind": kind, "pause": round(seconds, 3)}) + "\n")
                file.write(json.dumps({"seed": options.seed, "found": found}) + "\n")
        if found and options.keep:
            keep(run, audit, run.text(), options.keep)
        if found:
            print(run.text())
    return found


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=int(time.time()) % 1000000, help="of the schedule (default: the clock)")
    parser.add_argument("--seconds", type=float, default=20, help="of chaos (default 20)")
    parser.add_argument("--only", default=",".join(Soak.KINDS), help="kinds of acts, of: %(default)s")
    parser.add_argument("--replicas", type=int, default=4, help="pods at the start (default 4)")
    parser.add_argument("--least", type=int, default=2, help="scale to no fewer (default 2, the example's minReplicas)")
    parser.add_argument("--most", type=int, default=8, help="scale to no more (default 8, the example's maxReplicas)")
    parser.add_argument("--epochs", type=int,
                        help="epochs of 23 steps (default: for about --seconds, 30 at least; with fewer the accuracy is a matter of luck)")
    parser.add_argument("--pace-ms", type=int, default=40, help="sleep in each step (default 40)")
    parser.add_argument("--figures", help="append a line of JSON for each act to this file (tests/chaos/table.py reads it)")
    parser.add_argument("--keep", help="where the logs of a failed run go")
    options = parser.parse_args(arguments)
    options.only = options.only.split(",")
    unknown = sorted(set(options.only) - set(Soak.KINDS))
    if unknown:
        parser.error("--only %s: the kinds are %s" % (",".join(unknown), ", ".join(Soak.KINDS)))
    of_an_epoch = STEPS_OF_AN_EPOCH * options.pace_ms / 1000
    options.epochs = options.epochs or max(30, math.ceil(SHARE_OF_STEPS * options.seconds / max(of_an_epoch, 0.1)))
    options.steps = options.epochs * STEPS_OF_AN_EPOCH
    return options


def main():
    options = parse(sys.argv[1:])
    print("seed %d: %s" % (options.seed, " ".join(sys.argv)), flush=True)
    before = harness.snapshot()
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        found = soak(options, pathlib.Path(folder))
    left = harness.left_behind(before)
    if left:
        found.append("left behind: " + left)
    for sentence in found:
        print("FOUND seed %d: %s" % (options.seed, sentence))
    if not found:
        print("OK seed %d" % options.seed)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
