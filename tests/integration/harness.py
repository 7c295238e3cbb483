"""Drives `ringmaster` as a person would: starts runs, reads what they print, types commands, looks for what is left behind."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "tests/support"))
import processes  # noqa: E402
from waiting import until  # noqa: E402

BIN = pathlib.Path(os.environ.get("RINGMASTER_BIN", REPOSITORY / "build/release/bin"))
SANDBOXED = os.environ.get("RINGMASTER_SANDBOX") == "1"
WORKER = BIN / "elastic_worker"
# Far above what anything takes on a quiet machine: five other tests run beside it, and machines differ. Nothing is asserted about time.
PATIENCE = 240.0
LINEAGE = 1 << 40  # of an epoch


def environment(**more):
    env = dict(os.environ, PATH="%s:/usr/bin:/bin:%s" % (BIN, os.environ.get("PATH", "")))
    for name in ("RINGMASTER_RUN", "RINGMASTER_RUN_DIR", "RINGMASTER_RUNS", "XDG_RUNTIME_DIR", "KUBECONFIG"):
        env.pop(name, None)
    return dict(env, **more)


def wait_for(what, condition, seconds=PATIENCE, alive=None):
    """The first true value of condition(); fails with `what` after `seconds`, or when alive() is not."""
    value = until(condition, seconds, 0.02, over=alive and (lambda: not alive()))
    if value:
        return value
    if alive and not alive():
        raise AssertionError("the run ended while waiting for " + what)
    raise AssertionError("%s did not come within %.0f s" % (what, seconds))


def ringmaster(*words, timeout=PATIENCE, cwd=None, program=(), **env):
    """One command, to its end. `program`: what to start instead of `ringmaster`."""
    return subprocess.run([*(program or [str(BIN / "ringmaster")]), *map(str, words)], capture_output=True, text=True, timeout=timeout,
                          cwd=cwd, env=environment(**env), stdin=subprocess.DEVNULL)


class Run:
    """A `ringmaster run` in the background. Use it as a context: it never outlives the block."""

    def __init__(self, *words, cwd=None, program=(), folder=None, **env):
        self.program = list(program) or [str(BIN / "ringmaster")]
        # Short: unix sockets lie below it.
        self.home = tempfile.TemporaryDirectory(prefix="rm-", dir=folder)
        self.dir = pathlib.Path(self.home.name) / "r"
        if words and words[0] == "--run-dir":
            self.dir, words = pathlib.Path(words[1]), words[2:]
        self.summary_file = pathlib.Path(self.home.name) / "summary.json"
        self.lines = []
        self.process = subprocess.Popen(
            [*self.program, "run", "--plain", "--run-dir", str(self.dir), "--summary", str(self.summary_file), *map(str, words)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment(**env), cwd=cwd,
            stdin=subprocess.DEVNULL)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if kind is not None:
            print(self.text())
            for log in sorted(self.dir.glob("logs/*/*.log")):
                print("---- %s\n%s" % (log.relative_to(self.dir), log.read_text(errors="replace")[-3000:]))
        self.home.cleanup()

    def text(self):
        return "\n".join(self.lines)

    def alive(self):
        return self.process.poll() is None

    def wait(self, seconds=PATIENCE):
        """The exit status."""
        code = self.process.wait(seconds)
        self.reader.join(5)
        return code

    def summary(self):
        return json.loads(self.summary_file.read_text())

    def line(self, pattern, seconds=PATIENCE):
        """Waits for a line that matches; the match."""
        def found():
            for line in list(self.lines):
                match = re.search(pattern, line)
                if match:
                    return match
        return wait_for("a line like %r" % pattern, found, seconds, self.alive)

    def command(self, *words):
        return ringmaster(*words, "--run-dir", self.dir, program=self.program)

    def do(self, *words):
        done = self.command(*words)
        assert done.returncode == 0, "ringmaster %s: %s%s" % (" ".join(map(str, words)), done.stdout, done.stderr)
        return done.stdout

    def job(self, name):
        """The job as `get -o json` prints it; {} while there is none."""
        done = self.command("get", name, "-o", "json")
        return json.loads(done.stdout) if done.returncode == 0 else {}

    def world(self, name, size, after=0):
        """Waits until a view of `size` workers newer than epoch `after` trains; its epoch."""
        def there():
            status = self.job(name).get("status", {})
            workers = [w for pod in status.get("pods", []) for w in pod["workers"] if w["rank"] >= 0]
            epochs = {pod["epoch"] for pod in status.get("pods", []) if pod.get("workers")}
            epoch = status.get("epoch", 0)
            recovers = epoch % LINEAGE == 0  # a lineage that has no view yet: the rest is of the view before
            if status.get("worldSize") == size and epoch > after and not recovers and len(workers) == size and len(epochs) == 1:
                return epoch
        return wait_for("a world of %d after epoch %d" % (size, after), there, alive=self.alive)

    def workers(self, name):
        """{(pod, slot): worker} of the workers that have a rank."""
        return {(pod["name"], w["slot"]): w for pod in self.job(name)["status"]["pods"]
                for w in pod["workers"] if w["rank"] >= 0}

    def coordinator(self, name):
        return next(pod for pod in self.job(name)["status"]["pods"] if pod.get("coordinator"))


def manifest(name="job", command=(), replicas=2, env=(), **spec):
    """The text of a HorovodJob (JSON is YAML)."""
    job = {"apiVersion": "ringmaster.dev/v1alpha1", "kind": "HorovodJob", "metadata": {"name": name},
           "spec": {"elasticPolicy": {"minReplicas": 1, "maxReplicas": 8},
                    "worker": {"replicas": replicas, "template": {"spec": {"containers": [
                        {"name": "worker", "image": "example.com/any:1", "command": list(map(str, command)),
                         "env": [{"name": k, "value": str(v)} for k, v in dict(env).items()]}]}}}}}
    for path, value in spec.items():
        at = job["spec"]
        *folders, last = path.split("__")
        for folder in folders:
            at = at.setdefault(folder, {})
        at[last] = value
    return json.dumps(job)


def resizing_script(says):
    """The text of a script that trains until it has seen three workers and is alone. `says`: Python that tells `sizes`, which it has
    had so far, whenever there is another one."""
    return """
import os, time
import ringmaster as rm
state, sizes = {"step": 0}, []
rm.register_state("state", lambda: state, state.update)
rm.init()
rm.enter()
while not (3 in sizes and rm.size() == 1):
    state["step"] += 1
    rm.end_step()
    if sizes[-1:] != [rm.size()]:
        sizes.append(rm.size())
        %s
    time.sleep(0.02)
print("steps", state["step"], flush=True)
""" % says


# ---- What is left behind


def _processes():
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            stat = (entry / "stat").read_text()
            if stat.rsplit(")", 1)[1].split()[0] == "Z":
                continue
            environ = (entry / "environ").read_bytes()
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if SANDBOXED or b"\0RINGMASTER_RUN=" in b"\0" + environ:
            found[int(entry.name)] = command.strip()
    return found


def _sockets():
    lines = pathlib.Path("/proc/net/unix").read_text().splitlines()[1:]
    names = [line.split(None, 7)[7] for line in lines if len(line.split(None, 7)) == 8]
    return sorted(name for name in names if SANDBOXED or "ringmaster" in name or name.startswith("@rm-"))


def _files():
    shm = ["/dev/shm/" + name for name in os.listdir("/dev/shm")]
    tmp = ["/tmp/" + name for name in os.listdir("/tmp") if not name.startswith("pytest-of-")]
    return sorted(name for name in shm + tmp if SANDBOXED or "ringmaster" in name)


def snapshot():
    return {"processes": _processes(), "sockets": _sockets(), "files": _files()}


def left_behind(before):
    """What is there now and was not `before`, as text; empty when all is clean. The cleaner of a killed run gets time."""
    def now():
        after = snapshot()
        new = ["process %d: %s" % item for item in after["processes"].items() if item[0] not in before["processes"]]
        for kind in ("sockets", "files"):
            rest = list(before[kind])
            for name in after[kind]:
                if name in rest:
                    rest.remove(name)
                else:
                    new.append("%s: %s" % (kind, name))
        return new
    until(lambda: not now(), 20, 0.05)
    return "\n".join(now())


def send(run, sig=signal.SIGINT):
    run.process.send_signal(sig)


def pids(entry, program=""):
    """Processes with `entry` (NAME=value) in their environment; of this program, if one is named."""
    return [pid for pid, name in processes.with_environment(entry) if program in ("", name)]
