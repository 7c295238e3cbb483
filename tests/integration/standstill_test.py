"""Processes that stand still: a worker or a sidecar that a signal has stopped, for a while or for good. The others go on, the
job doesn't fail, and who wakes is let in again."""

import os
import signal
import time

from elastic_test import Job, condition, rank, read_logs
import harness
from harness import manifest, wait_for


def log_of(job, pod):
    return (job.run.dir / "logs" / pod / "worker.log").read_text()


def longest_pause(job, since_ns):
    """Of the workers that stepped on, in seconds."""
    pauses = []
    for lines in read_logs(job.out).values():
        times = [line.ns for line in lines]
        pauses += [(b - a) / 1e9 for a, b in zip(times, times[1:]) if b > since_ns]
    return max(pauses)


def test_a_worker_that_a_signal_stopped_is_replaced_at_its_launchers_word(write, tmp_path):
    """Not because it said nothing for three pings: that takes longer the busier a machine is."""
    with Job(write, tmp_path, 8) as job:
        epoch = job.world(8)
        (pod, _), worker = rank(job, 3)
        began = time.monotonic_ns()
        os.kill(worker["pid"], signal.SIGSTOP)
        job.world(8, epoch + 1)
        wait_for("the stopped process to be gone", lambda: not os.path.exists("/proc/%d" % worker["pid"]))
        print("longest pause: %.2f s" % longest_pause(job, began))
        assert "stopped by a signal, as its launcher heard " in log_of(job, pod)
        job.finish()


# The launcher's child is this script, which a signal to the worker does not stop.
A_SCRIPT = """
import subprocess, sys
sys.exit(subprocess.call(sys.argv[1:]))
"""


def test_a_worker_below_a_script_that_a_signal_stopped_is_replaced_too(write, tmp_path):
    with Job(write, tmp_path, 2, front=["/usr/bin/python3", write(A_SCRIPT, "wrapper.py")]) as job:
        epoch = job.world(2)
        pod = rank(job, 1)[0][0]
        os.kill(next(pid for pid, lines in read_logs(job.out).items() if lines[-1].rank == 1), signal.SIGSTOP)
        job.world(2, epoch + 1)
        assert "stopped by a signal, and silent for " in log_of(job, pod)
        job.finish()


COMPUTES = """
import sys, time, torch, ringmaster.torch as rm
rm.init()
rm.allreduce(torch.ones(3), name="a")
if rm.rank() == 1:
    end = time.monotonic() + 4  # longer than stoppedWorkerSeconds, and with Python's lock held
    while time.monotonic() < end:
        sum(range(10000000))
rm.allreduce(torch.ones(3), name="b")
rm.shutdown()
"""


def test_a_worker_that_computes_for_long_is_never_punished(write, tmp_path):
    write(COMPUTES, "train.py")
    with harness.Run(write(manifest(command=["/usr/bin/python3", "train.py"], replicas=2, elasticPolicy__minReplicas=2))) as run:
        assert run.wait() == 0, run.text()
        summary = run.summary()
        assert [view["reason"] for view in summary["views"]] == ["Bootstrap"], summary
        assert "killing a worker" not in run.text()


def test_a_rank_that_never_asks_is_named_and_when_it_comes_the_stall_is_over(write, tmp_path):
    with Job(write, tmp_path, 3, env={"HOROVOD_STALL_CHECK_TIME_SECONDS": 1}) as job:
        job.world(3)
        missing = rank(job, 1)[0][0]
        teller = rank(job, 0)[0][0]
        (tmp_path / "absent.1").touch()
        said = "'gradient': asked for by ranks 0, 2, not by rank 1"
        found = wait_for("the job's condition", lambda: condition(job, "RanksMissing").get("status") == "True" and
                         condition(job, "RanksMissing"), alive=job.run.alive)
        assert "%s (%s), since 20" % (said, missing) in found["message"]
        assert "ringmaster: waits for" in log_of(job, teller) and said in log_of(job, teller)
        stalls = next(pod for pod in job.run.job("job")["status"]["pods"] if pod["name"] == teller)["stalls"]
        assert "\njob: " + said in job.run.do("get", "job")
        assert [(stall["tensor"], stall["missing"], stall["pods"]) for stall in stalls] == [("gradient", [1], [missing])]
        (tmp_path / "absent.1").unlink()
        wait_for("the end of it", lambda: condition(job, "RanksMissing").get("status") == "False", alive=job.run.alive)
        assert "the wait for 'gradient' is over" in log_of(job, teller)
        job.finish()


def test_where_asked_to_a_job_that_stalls_ends(write, tmp_path):
    env = {"HOROVOD_STALL_CHECK_TIME_SECONDS": 1, "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": 2}
    with Job(write, tmp_path, 2, env=env) as job:
        job.world(2)
        teller = rank(job, 0)[0][0]
        (tmp_path / "absent.1").touch()
        assert job.run.wait() == 1
        assert "(HOROVOD_STALL_SHUTDOWN_TIME_SECONDS): 'gradient': asked for by rank 0, not by rank 1" in job.run.text()


def test_a_sidecar_that_stands_still_fails_no_job(write, tmp_path):
    with Job(write, tmp_path, 3) as job:
        epoch = job.world(3)
        uid = next(pod["uid"] for pod in job.run.job("job")["status"]["pods"] if not pod.get("coordinator"))
        sidecars = harness.pids("RINGMASTER_POD_UID=" + uid, "ringmaster-sidecar")
        for pid in sidecars:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(13)
        for pid in sidecars:
            os.kill(pid, signal.SIGCONT)
        job.world(3, epoch + 1)
        job.finish()


def test_the_drain_of_the_only_pod_waits_for_another_that_has_the_state(write, tmp_path):
    with Job(write, tmp_path, 1, slots=2) as job:
        epoch = job.world(2)
        job.run.do("drain", "job-worker-0")
        wait_for("another pod", lambda: job.world(2, epoch + 1) and
                 {key[0] for key in job.run.workers("job")} != {"job-worker-0"}, alive=job.run.alive)
        job.finish()
