#!/usr/bin/env python3
"""From SIGKILL to the next completed step, and to full size, measured from outside.

usage: tests/bench/recovery.py [--build DIR] [--workers 2,4,8] [--victims other,rank0,coordinator,pod] [--kills N]
                               [--standby] [--python] [--json FILE]

One job for each size of world, in local mode with default settings: N pods of one worker; a step is a 1 MiB allreduce and a
50 ms sleep. Kills come at moments spread over the whole step. For each kill:
  next step   from the kill() call to the moment when the LAST survivor completed a step in a newer view
  full size   from the kill() call to the moment when the last worker completed a step in a world of N again
Victims: `other` a worker that is neither of rank 0 nor the coordinator's; `rank0`; `coordinator`: the coordinator's sidecar
process (its worker lives, the kubelet starts it again at once and no view changes: the next step is any); `pod`: all processes of a pod. --python: the workers import PyTorch, as users' do (it matters for full size);
--standby: standbyPerPod 1.
Every history is checked: ranks equal bit by bit after every step, no step lost or done twice. Exit 1 if not.
"""
import argparse
import glob
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "support"))
from processes import alive, with_environment  # noqa: E402
from waiting import until  # noqa: E402

SETTLED = 5.5  # seconds
SIDECAR_SETTLED = 30.5  # after 30 s the kubelet of the local mode forgets that a container has crashed
HERE = os.path.dirname(os.path.abspath(__file__))


class Log:
    """Reads what the workers have appended, by worker process."""

    def __init__(self, directory):
        self.directory, self.offsets, self.rows = directory, {}, {}

    def read(self):
        for path in glob.glob(os.path.join(self.directory, "*.jsonl")):
            with open(path, "rb") as file:
                file.seek(self.offsets.get(path, 0))
                data = file.read()
            whole = data[:data.rfind(b"\n") + 1]
            self.offsets[path] = self.offsets.get(path, 0) + len(whole)
            pid = int(os.path.basename(path)[:-6])
            self.rows.setdefault(pid, []).extend(json.loads(line) for line in whole.splitlines())
        return self.rows

    def problems(self):
        """Sentences about what is wrong with the history; empty: nothing lost, all equal."""
        found, by_step = [], {}
        for pid, rows in self.rows.items():
            for before, after in zip(rows, rows[1:]):
                # A worker that was out of a view for a while (its sidecar was killed) gets the others' state and goes on there.
                came_back = after["epoch"] > before["epoch"] + 1 and after["step"] > before["step"]
                if after["step"] != before["step"] + 1 and not came_back:
                    found.append("worker %d went from step %d to step %d" % (pid, before["step"], after["step"]))
                if after["epoch"] < before["epoch"]:
                    found.append("worker %d went back from view %d to %d" % (pid, before["epoch"], after["epoch"]))
            for row in rows:
                by_step.setdefault(row["step"], set()).add(row["hash"])
        found += ["step %d has %d different histories" % (s, len(h)) for s, h in sorted(by_step.items()) if len(h) > 1]
        missing = set(range(1, max(by_step, default=0) + 1)) - set(by_step)
        found += ["steps that no worker completed: %s" % sorted(missing)] if missing else []
        return found


class Job:
    def __init__(self, build, workers, standby, python):
        self.workers = workers
        self.directory = tempfile.TemporaryDirectory(prefix="ringmaster-recovery-")
        self.audit = os.path.join(self.directory.name, "audit")
        self.run_dir = os.path.join(self.directory.name, "run")
        os.mkdir(self.audit)
        os.mkdir(self.run_dir, 0o700)
        self.bin = os.path.join(os.path.abspath(build), "bin")
        self.log = Log(self.audit)
        command = ["python3", os.path.join(HERE, "recovery_worker.py")] if python else [
            os.path.join(self.bin, "recovery_worker")]
        manifest = os.path.join(self.directory.name, "job.json")
        with open(manifest, "w") as file:
            json.dump(job_manifest(workers, command, standby), file)
        self.output = open(os.path.join(self.directory.name, "output"), "w+")
        self.process = subprocess.Popen(
            [os.path.join(self.bin, "ringmaster"), "run", manifest, "--run-dir", self.run_dir, "--plain"],
            env={**os.environ, "RINGMASTER_AUDIT_DIR": self.audit}, stdout=self.output, stderr=subprocess.STDOUT)

    def wait(self, what, condition, seconds):
        found = until(condition, seconds, 0.01, over=lambda: self.process.poll() is not None)
        if found:
            return found
        self.output.seek(0)
        sys.exit("recovery: %s did not come; the job's last words:\n%s" % (what, self.output.read()[-3000:]))

    def full(self, after=0):
        """Time at which the last of `workers` processes completed its first step in a full world after `after`; None: not yet."""
        firsts = [next((r["t"] for r in rows if r["t"] > after and r["size"] == self.workers), None)
                  for rows in self.log.read().values() if rows and rows[-1]["t"] > after]
        firsts = [t for t in firsts if t is not None]
        return max(firsts) if len(firsts) == self.workers else None

    def age(self, pid):
        """Seconds since this worker's first step."""
        rows = self.log.read().get(pid)
        return (time.monotonic_ns() - rows[0]["t"]) / 1e9 if rows else 0.0

    def pods(self):
        """status.pods as the operator and the sidecars give it, once every worker is in the view."""
        def whole():
            done = subprocess.run([os.path.join(self.bin, "ringmaster"), "get", "-o", "json", "bench", "--run-dir", self.run_dir],
                                  capture_output=True, text=True, timeout=30)
            if done.returncode != 0:
                return None
            pods = json.loads(done.stdout)["status"].get("pods", [])
            ranks = sorted(w["rank"] for pod in pods for w in pod["workers"] if w["rank"] >= 0 and alive(w["pid"]))
            return pods if ranks == list(range(self.workers)) and any(p["coordinator"] for p in pods) else None

        return self.wait("a status with %d ranks" % self.workers, whole, 60)

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.output.close()
        self.directory.cleanup()


def job_manifest(workers, command, standby):
    return {
        "apiVersion": "ringmaster.dev/v1alpha1", "kind": "HorovodJob", "metadata": {"name": "bench"},
        "spec": {"slotsPerWorker": 1,
                 "elasticPolicy": {"minReplicas": 1, "maxReplicas": workers, "standbyPerPod": 1 if standby else 0},
                 "worker": {"replicas": workers, "template": {"spec": {"containers": [
                     {"name": "worker", "image": "ringmaster.dev/bench:latest", "command": command}]}}}}}


def choose(job, kind):
    """(process ids to kill, worker process ids that are no survivors)."""
    pods = job.pods()
    worker = {pod["name"]: next(w["pid"] for w in pod["workers"] if w["rank"] >= 0) for pod in pods}
    first = next(pod for pod in pods for w in pod["workers"] if w["rank"] == 0)
    coordinator = next(pod for pod in pods if pod["coordinator"])
    others = [p for p in pods if p is not first and p is not coordinator] or [p for p in pods if p is not first]
    victim = {"rank0": first, "coordinator": coordinator}.get(kind) or max(others, key=lambda p: job.age(worker[p["name"]]))
    # The launcher backs off when a process dies again within seconds of its start; that is not what is measured.
    job.wait("a victim old enough", lambda: job.age(worker[victim["name"]]) > SETTLED, 30)
    if kind == "coordinator":
        return [settled_sidecar(job, victim["uid"])], set()
    if kind == "pod":
        return [p for p, _ in with_environment("RINGMASTER_POD_UID=" + victim["uid"])], {worker[victim["name"]]}
    return [worker[victim["name"]]], {worker[victim["name"]]}


def settled_sidecar(job, pod_uid):
    """Process id of a pod's sidecar. The kubelet backs off too when a container ends again soon after its start, and a pod whose
    sidecar is away for seconds is lost to the others."""
    def old_enough():
        pids = [p for p, name in with_environment("RINGMASTER_POD_UID=" + pod_uid) if name == "ringmaster-sidecar"]
        return pids[0] if pids and time.time() - os.stat("/proc/%d" % pids[0]).st_mtime > SIDECAR_SETTLED else None

    return job.wait("a sidecar old enough", old_enough, 2 * SIDECAR_SETTLED + 30)


def one_kill(job, kind, moment):
    """(next step, full size) in milliseconds."""
    last = max(rows[-1]["t"] for rows in job.log.read().values() if rows)
    victims, lost = choose(job, kind)
    survivors = {pid for pid in job.log.read() if alive(pid)} - lost
    # Without its sidecar a worker trains on in its view.
    newer = max(rows[-1]["epoch"] for rows in job.log.rows.values()) + (kind != "coordinator")
    newest = job.wait("a step", lambda: max((r[-1]["t"] for r in job.log.read().values() if r[-1]["t"] > last), default=0), 30)
    time.sleep(max(0.0, moment * 0.055 - (time.monotonic_ns() - newest) / 1e9))
    began = time.monotonic_ns()
    for pid in victims:
        os.kill(pid, signal.SIGKILL)

    def stepped():
        firsts = [next((r["t"] for r in job.log.read()[pid] if r["t"] > began and r["epoch"] >= newer), None)
                  for pid in survivors]
        return None if None in firsts else max(firsts)

    next_step = job.wait("the next step of %s after a kill of %s (%s)" % (sorted(survivors), kind, victims), stepped, 60)
    full = job.wait("full size", lambda: job.full(after=next_step), 120)
    return (next_step - began) / 1e6, (full - began) / 1e6


def describe(values):
    return "%.0f / %.0f / %.0f" % (statistics.median(values), statistics.quantiles(values, n=10, method="inclusive")[-1] if len(values) > 1 else
                                   values[0], max(values))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--workers", default="2,4,8")
    parser.add_argument("--victims", default="other,rank0,coordinator,pod")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--standby", action="store_true")
    parser.add_argument("--python", action="store_true")
    parser.add_argument("--json")
    args = parser.parse_args()
    results, wrong = [], []
    print("workers | victim | kills | next step ms: median / p90 / max | full size ms: median / p90 / max")
    print("---|---|---|---|---")
    for workers in [int(w) for w in args.workers.split(",")]:
        job = Job(args.build, workers, args.standby, args.python)
        try:
            job.wait("a world of %d" % workers, job.full, 180)
            for kind in args.victims.split(","):
                times = [one_kill(job, kind, (i + random.random()) / args.kills) for i in range(args.kills)]
                print("%d | %s | %d | %s | %s" % (workers, kind, len(times), describe([t[0] for t in times]),
                                                describe([t[1] for t in times])), flush=True)
                results.append({"workers": workers, "victim": kind, "milliseconds": times})
            job.log.read()
            wrong += job.log.problems()
        finally:
            job.stop()
    if args.json:
        with open(args.json, "w") as file:
            json.dump(results, file)
    print("\nhistories: %s" % ("; ".join(wrong) if wrong else "equal on all ranks, no step lost"))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
