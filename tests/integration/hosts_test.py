"""Jobs on several machines by ssh: network namespaces with a real sshd each (tests/support/ssh_hosts.py)."""
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

import pytest

import harness
import optional
from elastic_test import Training, check, read_logs
from harness import Run, wait_for

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
import ssh_hosts  # noqa: E402

PYTHON = "/usr/bin/python3"
TRAIN = """
import os, socket
import torch
import horovod.torch as hvd
hvd.init()
total = hvd.allreduce(torch.arange(1000.) * (hvd.rank() + 1), op=hvd.Sum, name="total")
assert torch.equal(total, torch.arange(1000.) * sum(range(1, hvd.size() + 1))), total
print("rank %d of %d, %d of %d here, host %d of %d, %s at %s" % (hvd.rank(), hvd.size(), hvd.local_rank(), hvd.local_size(), hvd.cross_rank(),
      hvd.cross_size(), os.environ["TOLD"], os.environ["RINGMASTER_BIND_WORKER"]), flush=True)
hvd.shutdown()
"""


@pytest.fixture
def hosts():
    why = ssh_hosts.missing()
    if why and os.environ.get("REQUIRE_CLUSTER") == "1":
        pytest.fail("REQUIRE_CLUSTER=1, and " + why, pytrace=False)
    if why:
        print("SKIPPED: " + why, file=sys.stderr)
        pytest.skip(why)
    with ssh_hosts.SshHosts(harness.BIN, 2) as hosts:
        yield hosts


def test_a_command_runs_on_two_machines(hosts, tmp_path):
    (tmp_path / "train.py").write_text(TRAIN)
    with Run("-H", "a:2,b:2", "--", PYTHON, "train.py", program=hosts.program, cwd=tmp_path, TOLD="told", OMP_NUM_THREADS="1") as run:
        assert run.wait() == 0, run.text()
        said = sorted(re.findall(r"\[\d\] (rank .*)", run.text()))
        places = [(0, "a"), (0, "a"), (1, "b"), (1, "b")]
        if "host 0 of 2, told at " + hosts.address(hosts.index("b")) in run.text():
            places = [(0, "b"), (0, "b"), (1, "a"), (1, "a")]
        assert said == ["rank %d of 4, %d of 2 here, host %d of 2, told at %s" % (rank, rank % 2, host, hosts.address(hosts.index(name)))
                        for rank, (host, name) in enumerate(places)], run.text()
        assert "bringing the programs to a, b" in run.text()


def test_horovodrun_takes_other_machines(hosts, tmp_path):
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "hosts").write_text("a slots=2\nb slots=1\n")
    env = harness.environment(**hosts.environment, PYTHONPATH=str(harness.BIN.parent / "python"), RINGMASTER_BIN=str(harness.BIN), TOLD="told",
                              OMP_NUM_THREADS="1")
    command = [PYTHON, "-m", "ringmaster.runner", "-np", "3", "--hostfile", "hosts", PYTHON, "train.py"]
    done = subprocess.run(hosts.words(ssh_hosts.LAUNCHER, command), capture_output=True, text=True, timeout=harness.PATIENCE, cwd=tmp_path,
                          env=dict(env, PATH=env["PATH"] + ":/usr/sbin:/sbin"), stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(re.findall(r"rank (\d) of 3", done.stdout)) == ["0", "1", "2"], done.stdout


# What it defines is of __main__, as in a notebook, so it travels by value.
CALLS = """
import horovod
from ringmaster.runner import FunctionError, RankError, run

def where(scale, plus=0):
    import os
    import ringmaster as rm
    rm.init()
    print("rank", rm.rank(), "calls", flush=True)
    if scale < 0 and rm.rank() == 3:
        raise KeyError("no scale")
    return rm.rank() * scale + plus, os.environ["RINGMASTER_POD_IP"]

if __name__ == "__main__":
    values = horovod.run(where, (10,), {"plus": 1}, np=4, hosts="a:2,b:2")
    assert [value for value, _ in values] == [1, 11, 21, 31], values
    print("places", [place for _, place in values])
    try:
        run(where, (-1,), np=4, hosts="a:2,b:2", show_output=False)
    except KeyError as error:
        told = error.__cause__
        assert isinstance(told, RankError) and told.rank == 3 and "no scale" in told.traceback, told
        print("raised on", told.host)
    try:
        run(where, (bytes(6 << 20),), np=2, hosts="a:1,b:1")
    except FunctionError as error:
        print("refused:", error)
"""


def test_a_function_runs_on_two_machines(hosts, tmp_path):
    optional.module("cloudpickle")
    (tmp_path / "calls.py").write_text(CALLS)
    # The run that fails keeps its logs. Short: unix sockets lie below it.
    with tempfile.TemporaryDirectory(prefix="rm-", dir="/tmp") as runs:
        env = harness.environment(**hosts.environment, PYTHONPATH=str(harness.BIN.parent / "python"), RINGMASTER_BIN=str(harness.BIN),
                                  RINGMASTER_RUNS=runs)
        done = subprocess.run(hosts.words(ssh_hosts.LAUNCHER, [PYTHON, "-B", "calls.py"]), capture_output=True, text=True, timeout=harness.PATIENCE,
                              cwd=tmp_path, env=dict(env, PATH=env["PATH"] + ":/usr/sbin:/sbin"), stdin=subprocess.DEVNULL)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    a, b = (hosts.address(hosts.index(name)) for name in "ab")
    assert "places %s" % [a, a, b, b] in said or "places %s" % [b, b, a, a] in said, said
    assert sorted(re.findall(r"\[\d\] rank (\d) calls", said)) == ["0", "1", "2", "3"], said
    assert re.search(r"raised on \S+ \((%s|%s)\)" % (re.escape(a), re.escape(b)), said), said
    assert re.search(r"refused: where with its arguments has \d+ bytes", said), said


class TrainingOnHosts(Training):
    """Two pods on each of two machines."""

    def __init__(self, hosts, write, out, *words, **spec):
        self.hosts = hosts
        text = harness.manifest(command=[harness.WORKER, out], replicas=4, **spec)
        super().__init__(Run("-H", "a:2,b:2", *words, str(write(text)), program=hosts.program), out)

    def finish(self):
        (pathlib.Path(self.out) / "stop").touch()


ELASTIC = harness.resizing_script('print("%s: sizes %s" % (os.environ["RINGMASTER_BIND_WORKER"], sizes), flush=True)')


def test_hosts_come_and_go_as_a_script_says(hosts, tmp_path):
    def name(text):
        (tmp_path / "new").write_text(text)
        os.replace(tmp_path / "new", tmp_path / "slots")

    (tmp_path / "train.py").write_text(ELASTIC)
    (tmp_path / "hosts.sh").write_text("#!/bin/sh\ncat slots\n")
    (tmp_path / "hosts.sh").chmod(0o755)
    a, b = (re.escape(hosts.address(hosts.index(host))) for host in "ab")
    name("a\nnowhere.invalid:2\n")
    with Run("-np", "2", "--min-np", "1", "--host-discovery-script", "./hosts.sh", PYTHON, "train.py", program=hosts.program, cwd=tmp_path,
             PYTHONPATH=str(harness.BIN.parent / "python")) as run:
        run.line(r"host nowhere\.invalid: ssh can't run a command there: .*[Rr]esolve")
        run.line("host a has joined, slots: 1")
        run.line(r"host nowhere\.invalid has failed 3 times: it is left out")
        assert "sizes" not in run.text()
        name("a\nb:2\n")
        run.line(b + r": sizes \[.*3\]")
        name("b:2\n")
        run.line("host a is let go")
        wait_for("the end of all on a", lambda: not hosts.pids("a", "RINGMASTER_JOB_NAME=train"))
        run.line(b + r": sizes \[.*3, 2\]")
        name("a:1\nb:2\n")
        run.line(b + r": sizes \[.*3, 2, 3\]")
        name("a:1\nb:1\n")  # of the three pods not the one with the highest index leaves, but one of b
        run.line(b + r": sizes \[.*3, 2, 3, 2\]")
        assert hosts.pids("a", "RINGMASTER_JOB_NAME=train")
        name("b:1\n")
        assert run.wait() == 0, run.text()
        assert re.search(b + r": sizes \[.*3, 2, 3, 2, 1\]", run.text()), run.text()
        assert run.text().count("host nowhere.invalid: ") == 1 and "has not said that it ended" not in run.text(), run.text()
        assert run.summary()["stepsLost"] == 0


def test_a_worker_that_dies_is_replaced_and_nothing_is_lost(hosts, write, tmp_path):
    with TrainingOnHosts(hosts, write, tmp_path) as job:
        epoch = job.run.world("job", 4)
        job.steps_on(job.run.alive)
        job.run.do("kill", "job-worker-1", "--worker", 0)
        epoch = job.run.world("job", 4, epoch + 1)
        job.run.do("kill", "job-worker-2")
        epoch = job.run.world("job", 4, epoch + 1)
        job.run.do("drain", "job-worker-0")
        job.run.world("job", 4, epoch)
        job.steps_on(job.run.alive)
        job.finish()
        assert job.run.wait() == 0, job.run.text()
        check(tmp_path)
        assert job.run.summary()["stepsLost"] == 0


def test_a_machine_that_is_cut_off_comes_back(hosts, write, tmp_path):
    with TrainingOnHosts(hosts, write, tmp_path) as job:
        epoch = job.run.world("job", 4)
        job.steps_on(job.run.alive)
        hosts.cut(hosts.index("b"))
        job.run.world("job", 2, epoch)
        job.steps_on(job.run.alive, 10)
        hosts.heal()
        job.run.world("job", 4, epoch)
        job.steps_on(job.run.alive)
        job.finish()
        assert job.run.wait() == 0, job.run.text()
        check(tmp_path)


def node_process(host):
    """The pid of the newest node process of that machine."""
    files = pathlib.Path("/tmp/ring-nodes-%d" % os.getuid()).glob("*/node.id")
    pids = [int(pid) for pid, node, *_ in map(lambda file: file.read_text().split("\n"), files) if re.search(r" %s-\d+$" % host, node)]
    alive = [pid for pid in pids if ssh_hosts.processes.alive(pid)]
    assert len(alive) == 1, (host, pids)
    return alive[0]


def test_a_node_process_that_dies_is_started_again(hosts, write, tmp_path):
    with TrainingOnHosts(hosts, write, tmp_path) as job:
        epoch = job.run.world("job", 4)
        job.steps_on(job.run.alive)
        dead = node_process("b")
        os.kill(dead, signal.SIGKILL)
        job.run.world("job", 2, epoch)
        job.steps_on(job.run.alive)
        job.run.line("host b: nothing is heard of its node process; it is looked for by ssh in 1 s")
        job.run.line("host b: its node process was started again")
        epoch = job.run.world("job", 4, epoch)
        assert node_process("b") != dead
        os.kill(node_process("a"), signal.SIGTERM)  # it ends its pods, and says so
        job.run.line("host a: its node process has ended; it is started again in 1 s")
        job.run.line("host a: its node process was started again")
        job.run.world("job", 4, epoch)
        job.steps_on(job.run.alive)
        job.finish()
        assert job.run.wait() == 0, job.run.text()
        check(tmp_path)
        assert "has not said that it ended" not in job.run.text(), job.run.text()
    # The node process that was killed has left its logs, and nothing else.
    nodes = pathlib.Path("/tmp/ring-nodes-0")
    assert [[file.name for file in node.iterdir()] for node in nodes.iterdir()] == [["logs"]]
    ssh_hosts.shutil.rmtree(nodes)


def test_an_interrupt_ends_it_on_every_machine(hosts, write, tmp_path):
    with TrainingOnHosts(hosts, write, tmp_path) as job:
        job.run.world("job", 4)
        harness.send(job.run)
        assert job.run.wait() == 130, job.run.text()
        assert "has not said that it ended" not in job.run.text()
    for name in hosts.names:
        assert hosts.pids(name, "RINGMASTER_JOB_NAME=job") == []


def test_an_interrupt_does_not_wait_for_what_ssh_does(tmp_path):
    ssh = tmp_path / "bin" / "ssh"
    ssh.parent.mkdir()
    ssh.write_text("#!/bin/sh\ntouch %s/asked\nexec sleep 600\n" % tmp_path)
    ssh.chmod(0o755)
    with Run("-H", "b.invalid:2", "--", "true", PATH="%s:%s" % (ssh.parent, os.environ["PATH"])) as run:
        wait_for("ssh", (tmp_path / "asked").exists, alive=run.alive)
        harness.send(run)
        assert run.wait() == 130, run.text()  # the patience with ssh would end with another one
        assert "interrupted: nothing was started" in run.text()


def test_training_and_recovery_go_on_without_the_launching_machine(hosts, write, tmp_path):
    with TrainingOnHosts(hosts, write, tmp_path, "--abandon-after", "30") as job:
        job.run.world("job", 4)
        job.steps_on(job.run.alive)
        workers = [w["pid"] for w in job.run.workers("job").values()]
        harness.send(job.run, signal.SIGKILL)
        job.run.wait()
        job.steps_on(None, 10)
        os.kill(workers[0], signal.SIGKILL)
        wait_for("a new process in its place", lambda: set(read_logs(tmp_path)) - set(workers))
        job.steps_on(None, 10)
        job.finish()
        wait_for("the nodes' end", lambda: not any(hosts.pids(name, "RINGMASTER_JOB_NAME=job") for name in hosts.names))
        check(tmp_path)
        # The nodes wait for their launching machine until they give it up; then they go, and leave the logs.
        nodes = [pid for pid, name in ssh_hosts.processes.with_environment(None) if name == "ringmaster"]
        wait_for("the end of the node processes", lambda: not any(map(ssh_hosts.processes.alive, nodes)))
    logs = list(pathlib.Path("/tmp/ring-nodes-0").glob("*/logs/job-worker-*/worker.log"))
    assert len(logs) >= 4, logs
    ssh_hosts.shutil.rmtree("/tmp/ring-nodes-0")


def test_what_is_wrong_with_a_host_is_said_before_anything_runs(hosts, tmp_path):
    (tmp_path / "train.py").write_text(TRAIN)
    with Run("-H", "a:1,nowhere.invalid:1", "--", PYTHON, "train.py", program=hosts.program, cwd=tmp_path) as run:
        assert run.wait() == 3, run.text()
        assert re.search(r"host nowhere\.invalid: ssh can't run a command there: .*[Rr]esolve", run.text()), run.text()
    with Run("-H", "a:1", "--ssh-port", "9", "--", PYTHON, "train.py", program=hosts.program, cwd=tmp_path) as run:
        assert run.wait() == 3, run.text()
        assert re.search(r"host a: ssh can't run a command there: .*refused", run.text()), run.text()
    with Run("-H", "a:1", "-np", "2", "--", PYTHON, "train.py", program=hosts.program, cwd=tmp_path) as run:
        assert run.wait() == 2, run.text()
        assert "-np 2: the hosts have 1 slots" in run.text(), run.text()
