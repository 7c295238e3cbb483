"""However a run ends, nothing of it stays but logs that are named: conftest.py compares processes, sockets, /dev/shm and /tmp around each test."""

import json
import os
import pathlib
import signal
import subprocess
import tempfile
import sys

import pytest

import harness
from harness import Run, manifest, wait_for

PYTHON = "/usr/bin/python3"

# A worker with children that outlive a careless end: one as a data loader has it, one that has made itself a daemon.
WITH_CHILDREN = """
import os, subprocess, sys
out = sys.argv[1]
children = [subprocess.Popen(["sleep", "1000"]), subprocess.Popen(["setsid", "sleep", "1000"])]
open(os.path.join(out, "children-%d" % os.getpid()), "w").write(" ".join(str(c.pid) for c in children))
mode = sys.argv[3]
if mode == "fail":
    sys.exit(7)
if mode == "ignore-term":
    import signal
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
sys.exit(subprocess.call([sys.argv[2], out]))
"""


def start(write, tmp_path, mode="run", replicas=2):
    write(WITH_CHILDREN, "train.py")
    return Run(write(manifest(command=[PYTHON, "train.py", tmp_path, harness.WORKER, mode], replicas=replicas)))


def training(run, size=2):
    run.world("job", size)
    run.line("view 1.1")


def test_a_job_that_finishes(write, tmp_path):
    with start(write, tmp_path) as run:
        training(run)
        (tmp_path / "stop").touch()
        assert run.wait() == 0, run.text()
        assert run.summary()["exitReason"] == "Succeeded"


def test_a_job_that_fails(write, tmp_path):
    with start(write, tmp_path, "fail") as run:
        assert run.wait() == 1
        assert "code 7" in run.text()


NO_MEMORY = """
import resource, time, torch, ringmaster.torch as rm
rm.init()
rm.allreduce(torch.ones(3), name="a")
if rm.rank() == 1:
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), resource.RLIM_INFINITY))
    batch = bytearray(1 << 30)
for step in range(500):  # the others have more to do than it takes to hear of it
    rm.allreduce(torch.ones(3), name="b")
    time.sleep(0.02)
rm.shutdown()
"""


def test_a_script_that_gets_no_memory_ends_the_job_and_says_so(write):
    write(NO_MEMORY, "train.py")
    with Run(write(manifest(command=[PYTHON, "train.py"], replicas=2, elasticPolicy__minReplicas=2))) as run:
        assert run.wait() == 1, run.text()
        assert "exited with 1" in run.text()
        assert "MemoryError" in run.text()


ONE_FAILS = """
import sys, torch, ringmaster.torch as rm
rm.init()
rm.allreduce(torch.ones(3), name="a")
if rm.rank() == 1:
    sys.exit(3)
rm.allreduce(torch.ones(3), name="b")  # by the others, in a view of their own
rm.shutdown()
"""


def test_a_worker_that_fails_just_before_the_others_end(write):
    write(ONE_FAILS, "train.py")
    with Run(write(manifest(command=[PYTHON, "train.py"], replicas=3, elasticPolicy__minReplicas=2))) as run:
        assert run.wait() == 1, run.text()
        assert "exited with 3" in run.text()


ROUNDS = harness.REPOSITORY / "collectives/python/tests/workers/rounds.py"


@pytest.mark.parametrize("replicas, slots", [(2, 1), (2, 2)])
def test_a_job_that_begins_again_after_each_shutdown_loses_a_worker_in_between(write, replicas, slots):
    """All ranks of both sizes rest as it dies, and its successor comes into a later round."""
    size = replicas * slots
    job = manifest(command=[PYTHON, ROUNDS, size, "job-worker-1 0"], replicas=replicas, slotsPerWorker=slots, env={"OMP_NUM_THREADS": "1"})
    with Run(write(job)) as run:
        assert run.wait() == 0, run.text()
        for line in "round 2 of %d" % size, "round 3 of %d" % (size - 1), "the end":  # what rank 0 says is shown
            assert line in run.text(), run.text()
        assert run.summary()["exitReason"] == "Succeeded", run.text()


SOME_BEGIN_AGAIN = """
import os, time
import torch, ringmaster.torch as rm
rm.init()
rank = rm.rank()
rm.allreduce(torch.ones(3), name="a")
rm.shutdown()
if rank == 0:
    rm.init()
"""


def test_ranks_that_begin_again_while_others_end_hear_why_they_can_not(write):
    write(SOME_BEGIN_AGAIN, "train.py")
    with Run(write(manifest(command=[PYTHON, "train.py"], replicas=3, elasticPolicy__minReplicas=3))) as run:
        assert run.wait() == 1, run.text()
        assert "others have ended their processes instead of beginning again" in run.text()


ENDS_SOMEHOW = """
import os, sys, time
import torch, ringmaster.torch as rm
for again in range(2):
    rm.init()
    rank = rm.rank()
    rm.allreduce(torch.ones(3), name="a")
    rm.shutdown()
if rank == 1:
    os._exit(0)  # nothing of Python or of the library runs any more
time.sleep(2 * (rank == 0))  # saves what was learned
open("words-%d" % rank, "w").close()
"""


def test_after_a_shutdown_a_process_may_end_when_and_how_it_likes(write, tmp_path):
    write(ENDS_SOMEHOW, "train.py")
    with Run(write(manifest(command=[PYTHON, "train.py"], replicas=3, elasticPolicy__minReplicas=3))) as run:
        assert run.wait() == 0, run.text()
        assert sorted(file.name for file in tmp_path.glob("words-*")) == ["words-0", "words-2"]
        assert run.summary()["exitReason"] == "Succeeded"


TESTS = """
import pytest, torch
import horovod.torch as hvd

@pytest.fixture(autouse=True)
def world():
    hvd.init()
    yield
    hvd.shutdown()

@pytest.mark.parametrize("again", range(3))
def test_sum(again):
    assert hvd.allreduce(torch.ones(2), op=hvd.Sum).tolist() == [hvd.size()] * 2

def test_a_set():
    even = hvd.add_process_set([0])
    assert even.included() == (hvd.rank() == 0)
"""


def test_tests_that_init_and_shut_down_each(write):
    path = write(TESTS, "sums_test.py")
    again = "import sys, pytest; sys.exit(pytest.main(sys.argv[1:]) or pytest.main(sys.argv[1:]))"
    with Run("-np", "2", PYTHON, "-c", again, "-q", "-p", "no:cacheprovider", path) as run:
        assert run.wait() == 0, run.text()
        assert run.text().count("4 passed") == 4, run.text()


def assert_logs_stay(run):
    assert run.lines[-1] == "All logs: %s/logs" % run.dir, run.text()
    assert (run.dir / "logs/job-worker-1/worker.log").is_file()
    assert not list(run.dir.glob("pods")) and not (run.dir / "kubeconfig").exists()


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_run_in_order(write, tmp_path, sig):
    with start(write, tmp_path) as run:
        training(run)
        harness.send(run, sig)
        assert run.wait() == 130, run.text()
        assert run.summary()["exitReason"] == "Interrupted"
        assert_logs_stay(run)


def test_a_signal_before_anything_runs(write, tmp_path):
    with start(write, tmp_path) as run:
        run.line("run directory")
        harness.send(run)
        assert run.wait() == 130


def test_a_terminal_that_closes_tells_twice_and_the_run_ends_in_order(write, tmp_path):
    with start(write, tmp_path) as run:
        training(run)
        harness.send(run, signal.SIGHUP)
        run.line("interrupted")
        harness.send(run, signal.SIGHUP)  # the kernel's and the shell's
        assert run.wait() == 130, run.text()
        assert run.summary()["exitReason"] == "Interrupted"


def test_under_nohup_a_run_goes_on_when_its_terminal_closes(write, tmp_path):
    write(WITH_CHILDREN, "train.py")
    job = write(manifest(command=[PYTHON, "train.py", tmp_path, harness.WORKER, "run"]))
    with Run(job, program=("nohup", str(harness.BIN / "ringmaster"))) as run:
        training(run)
        harness.send(run, signal.SIGHUP)
        (tmp_path / "stop").touch()
        assert run.wait() == 0, run.text()


def test_a_job_that_fails_says_so_though_its_summary_can_not_be_written():
    with tempfile.TemporaryDirectory(prefix="r", dir="/tmp") as runs:
        done = harness.ringmaster("run", "--summary", "/dev/full", "-np", 1, "sh", "-c", "exit 7", RINGMASTER_RUNS=runs)
    assert done.returncode == 1 and "code 7" in done.stderr and "--summary /dev/full: can't be written" in done.stderr, done


def test_a_run_that_does_not_begin_leaves_the_output_of_one_that_is_alive(tmp_path):
    kept = tmp_path / "kept"
    with Run("--output-filename", kept, "-np", 1, "sh", "-c", "echo mine; sleep 1000") as run:
        wait_for("its output", lambda: (kept / "rank.0/stdout").is_file() and (kept / "rank.0/stdout").read_text(), alive=run.alive)
        again = harness.ringmaster("run", "--run-dir", run.dir, "--output-filename", kept, "-np", 1, "true")
        assert again.returncode == 2 and "another run is alive" in again.stderr, again
        assert (kept / "rank.0/stdout").read_text() == "mine\n"


def test_a_job_in_a_namespace_of_its_own(write, tmp_path):
    (tmp_path / "stop").touch()
    job = json.loads(manifest(command=[harness.WORKER, tmp_path]))
    job["metadata"]["namespace"] = "team"
    with tempfile.TemporaryDirectory(prefix="r", dir="/tmp") as runs:
        done = harness.ringmaster("run", write(json.dumps(job)), RINGMASTER_RUNS=runs)
    assert done.returncode == 0, done


def put_files_of_the_user(run):
    (run.dir / "data").mkdir()
    (run.dir / "data/mnist.csv").write_text("mine")
    (run.dir / "weights.pt").write_text("mine")


def assert_files_of_the_user_stay(run):
    wait_for("the rest of the run to go", lambda: sorted(os.listdir(run.dir)) == ["data", "logs", "weights.pt"], 20)
    assert (run.dir / "data/mnist.csv").read_text() == (run.dir / "weights.pt").read_text() == "mine"


def test_a_second_signal_ends_at_once_though_the_workers_ignore_the_first(write, tmp_path):
    with start(write, tmp_path, "ignore-term") as run:
        training(run)
        put_files_of_the_user(run)
        harness.send(run)
        run.line("once more ends at once")
        harness.send(run)
        assert run.wait(20) == 130
        assert_files_of_the_user_stay(run)
        assert_logs_stay(run)


def test_sigkill_of_the_command(write, tmp_path):
    with start(write, tmp_path) as run:
        training(run)
        put_files_of_the_user(run)
        run.process.kill()
        run.process.wait()
        assert_files_of_the_user_stay(run)


def test_sigkill_before_the_workers_have_begun(write, tmp_path):
    with start(write, tmp_path) as run:
        run.line("run directory")
        run.process.kill()
        run.process.wait()


def test_sigkill_leaves_only_the_logs_of_a_run_that_was_not_named(write):
    with tempfile.TemporaryDirectory(prefix="r", dir="/tmp") as runs:
        process = subprocess.Popen(
            [str(harness.BIN / "ringmaster"), "run", str(write(manifest(command=["sleep", "1000"])))],
            env=harness.environment() | {"RINGMASTER_RUNS": runs}, stdout=subprocess.PIPE, text=True)
        folder = pathlib.Path(process.stdout.readline().split()[-1])
        process.kill()
        process.wait()
        process.stdout.close()
        assert folder.parent == pathlib.Path(runs) / ("ringmaster-%d" % os.getuid())
        wait_for("the rest of the run to go", lambda: os.listdir(folder) == ["logs"], 20)


def test_delete_ends_the_job(write, tmp_path):
    with start(write, tmp_path) as run:
        training(run)
        run.do("delete", "job")
        assert run.wait() == 1
        assert "deleted" in run.text()


@pytest.mark.parametrize("replicas", [1, 3])
@pytest.mark.parametrize("told", ["ringmaster-launcher", "ringmaster-sidecar"])
def test_a_pod_that_is_told_to_end_though_nobody_deletes_it_is_replaced(write, tmp_path, told, replicas):
    """As where its machine shuts down, or a liveness probe fails: it ends in good order, and the job is neither done nor failed."""
    with Run(write(manifest(command=[harness.WORKER, tmp_path], replicas=replicas))) as run:
        first = run.world("job", replicas)
        os.kill(harness.pids("RINGMASTER_POD_NAME=job-worker-0", told)[0], signal.SIGTERM)
        run.world("job", replicas, first)
        assert ("job-worker-0", 0) not in run.workers("job")
        (tmp_path / "stop").touch()
        assert run.wait() == 0, run.text()


def test_a_suspension_does_not_count_as_too_few_pods(write, tmp_path):
    """All its pods leave, one after the other, and the last views of them don't train."""
    job = manifest(command=[harness.WORKER, tmp_path], replicas=3, elasticPolicy__minReplicas=3, elasticPolicy__onBelowMin="FailJob")
    with Run(write(job)) as run:
        first = run.world("job", 3)
        run.do("scale", "job", "--replicas", "0")
        wait_for("the end of its pods", lambda: not run.job("job")["status"]["pods"], alive=run.alive)
        run.do("scale", "job", "--replicas", "3")
        run.world("job", 3, first)
        (tmp_path / "stop").touch()
        assert run.wait() == 0, run.text()


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
