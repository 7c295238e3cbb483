"""HorovodRunner: functions as jobs here (np < 0) and on a cluster (np > 0). The cluster is the API server of a run whose own job sleeps."""

import base64
import json
import re
import signal
import ssl
import subprocess
import sys
import urllib.request

import pytest
import yaml

import harness
import optional

optional.module("cloudpickle", for_all=True)

PYTHON = "/usr/bin/python3"
PACKAGES = str(harness.BIN.parent / "python")
HEAD = """
import os, sys, time
from horovod.runner import HorovodRunner, log_to_driver
from ringmaster.runner import FunctionError, LaunchError, RankError

place = dict(image="any/image:1", kubeconfig=%r, python="/usr/bin/python3")

def train(scale, **more):
    import ringmaster as rm
    rm.init()
    print("rank", rm.rank(), "prints", flush=True)
    if rm.rank() == 1:
        log_to_driver("loss 0.5")
    return rm.rank() + scale, rm.size(), more
"""


class Cluster:
    """The API server of a run, as an administrator sees it."""

    def __init__(self, run):
        self.kubeconfig = run.dir / "kubeconfig"
        config = yaml.safe_load(self.kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self._server, self._token = cluster["server"], user["token"]
        authority = cluster.get("certificate-authority-data")
        self._context = ssl.create_default_context(cafile=cluster.get("certificate-authority"),
                                                   cadata=authority and base64.b64decode(authority).decode())

    def names(self, path):
        request = urllib.request.Request(self._server + path, headers={"Authorization": "Bearer " + self._token})
        with urllib.request.urlopen(request, context=self._context, timeout=30) as answer:
            return sorted(item["metadata"]["name"] for item in json.load(answer)["items"])

    def jobs(self):
        return [name for name in self.names("/apis/ringmaster.dev/v1alpha1/namespaces/default/horovodjobs") if name != "keeper"]

    def secrets(self, job):
        return [name for name in self.names("/api/v1/namespaces/default/secrets") if name.startswith(job)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    file = tmp_path_factory.mktemp("keeper") / "keeper.yaml"
    file.write_text(harness.manifest("keeper", ["sh", "-c", "echo up; exec sleep 3600"], replicas=1))
    with harness.Run(file) as run:
        # Before the first test looks at what there is: its worker runs, and its launcher is connected.
        harness.wait_for("the keeper", lambda: "up" in run.command("logs", "keeper").stdout, alive=run.alive)
        connected = lambda: sum(name.startswith(str(run.dir)) and name.endswith("/link") for name in harness.snapshot()["sockets"]) == 2
        harness.wait_for("its link", connected, alive=run.alive)
        yield Cluster(run)


@pytest.fixture
def script(tmp_path, cluster):
    """script(code): a script that launches, to be started."""
    def write(code):
        (tmp_path / "launches.py").write_text(HEAD % str(cluster.kubeconfig) + code)
        return {"args": [PYTHON, "-B", "launches.py"], "cwd": tmp_path, "stdin": subprocess.DEVNULL, "text": True,
                "env": harness.environment(PYTHONPATH=PACKAGES)}
    return write


@pytest.fixture
def call(script):
    def do(code):
        done = subprocess.run(**script(code), capture_output=True, timeout=harness.PATIENCE)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout
    return do


def test_below_zero_are_workers_on_this_machine(call):
    said = call("""
assert HorovodRunner(np=-2).run(train, scale=10, x=1) == (10, 2, {"x": 1})
print("----")
assert HorovodRunner(np=-2, driver_log_verbosity="all").run(train, scale=10)[0] == 10
""")
    quiet, loud = said.split("----")
    assert "loss 0.5" in quiet and "prints" not in quiet and "2 workers in 1 pod begin" in quiet
    assert "loss 0.5" in loud and "[1] rank 1 prints" in loud


def test_above_zero_is_a_job_on_a_cluster_and_nothing_of_it_stays(call, cluster):
    said = call("""
assert HorovodRunner(np=2, **place).run(train, scale=10, x=[1]) == (10, 2, {"x": [1]})
print("----")
assert HorovodRunner(np=2, slots=2, driver_log_verbosity="all", **place).run(train, scale=10)[:2] == (10, 2)
""")
    quiet, loud = said.split("----")
    assert "loss 0.5" in quiet and "prints" not in quiet and "Succeeded, 2 workers" in quiet, said
    assert "loss 0.5" in loud and "[0] rank 0 prints" in loud and "[1] rank 1 prints" in loud, said
    assert "ringmaster-runner:" not in said
    harness.wait_for("an empty cluster", lambda: not cluster.jobs() and not cluster.secrets("train"))


def test_a_value_that_the_stream_of_logs_has_lost_is_read_again(call):
    call("""
from ringmaster.runner import cluster
cluster.Job._follow = lambda self, logs: [None for line in logs.lines()]
assert HorovodRunner(np=1, **place).run(train, scale=10)[0] == 10
""")


def test_the_modules_beside_the_function_travel_with_it(call, tmp_path):
    (tmp_path / "package/inner").mkdir(parents=True)
    (tmp_path / "package/__init__.py").write_text("")
    (tmp_path / "package/inner/__init__.py").write_text("NUMBER = 40\n")
    (tmp_path / "helper.py").write_text("import os\nfrom package.inner import NUMBER\n\ndef train(x):\n    return NUMBER + x, __file__\n")
    call("""
def lazily(x):
    import helper
    return helper.train(x)

from helper import train as of_a_module
for function in (lazily, of_a_module):
    value, file = HorovodRunner(np=1, container={"workingDir": "/"}, **place).run(function, x=2)
    assert value == 42 and "modules.zip" in file, file
""")


def test_what_a_rank_raises_there_is_raised_here(call):
    said = call("""
def fails():
    import ringmaster as rm
    rm.init()
    if rm.rank() == 1:
        raise KeyError("no such data set")
    time.sleep(600)

try:
    HorovodRunner(np=2, pod={"terminationGracePeriodSeconds": 1}, **place).run(fails)
except KeyError as error:
    assert isinstance(error.__cause__, RankError) and error.__cause__.rank == 1
    print(error.__cause__)

def dies():
    import ringmaster as rm
    rm.init()
    os._exit(9)

try:
    HorovodRunner(np=1, **place).run(dies)
except LaunchError as error:
    print("said:", error)
""")
    assert re.search(r"rank 1 on \S+( \(\S+\))? raised:\nTraceback", said) and "in fails" in said, said
    assert "exit code 9" in said[said.index("said:"):] or "exited with 9" in said[said.index("said:"):], said


def test_what_is_too_large_is_refused_with_its_size(call, tmp_path, cluster):
    said = call("""
data = os.urandom(2 << 20)
try:
    HorovodRunner(np=1, **place).run(lambda: len(data))
except FunctionError as error:
    print("said:", error)
print(HorovodRunner(np=1, **place).run(lambda: b"x" * (3 << 20)) == b"x" * (3 << 20))
try:
    HorovodRunner(np=1, **place).run(lambda: b"x" * (5 << 20))
except FunctionError as error:
    print("said:", error)
""")
    assert "too much for a Secret (1048576 bytes)" in said and "the function with its arguments (20" in said, said
    assert "\nTrue\n" in said
    assert "has 52428" in said and "allowed are 4194304" in said, said


@pytest.mark.parametrize("when", ["trains", "in namespace"])
def test_ctrl_c_removes_the_job(script, cluster, when):
    started = script("""
def trains():
    import ringmaster as rm
    rm.init()
    log_to_driver("trains")
    time.sleep(600)

try:
    HorovodRunner(np=2, **place).run(trains)
except KeyboardInterrupt:
    print("interrupted in order")
""")
    with subprocess.Popen(**started, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as run:
        assert any(when in line for line in run.stdout)
        assert len(cluster.jobs()) == len(cluster.secrets("trains")) == 1
        run.send_signal(signal.SIGINT)
        rest = run.stdout.read()
    assert run.returncode == 0 and "interrupted in order" in rest, rest
    harness.wait_for("an empty cluster", lambda: not cluster.jobs() and not cluster.secrets("trains"))


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
