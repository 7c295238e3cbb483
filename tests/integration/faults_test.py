"""Faults that come together or at a bad moment: in a transfer of the state, at a drain, at the end. Whatever happens, no step
is lost while a worker that has the state lives, and nothing hangs."""

import os
import pathlib
import random
import resource
import signal
import sys
import time

import pytest

import elastic_test
import harness
import memory_limit
from elastic_test import Job, rank
from harness import wait_for

HOLD_SAVING, HOLD_LOADING = ("--hold", 1), ("--hold", 2)
ALL_KILLED = "the last time: all workers that had the job's state were killed"


def by_rank(job):
    return [w["pid"] for w in sorted(job.run.workers("job").values(), key=lambda w: w["rank"])]


def holding(job, what, besides=()):
    """The process that is in the middle of `saving` or `loading` the state."""
    def found():
        pids = {int(path.suffix[1:]) for path in job.out.glob(what + ".*")} - set(besides)
        return pids.pop() if pids else None
    return wait_for("a worker that is " + what, found, alive=job.run.alive)


def go(job):
    (job.out / "go").touch()


def starts_again(job, size):
    """From its checkpoint, of which these workers have none: with the first step."""
    job.world(size, 1 << 41)
    (job.out / "stop").touch()
    assert job.run.wait() == 0, job.run.text()
    elastic_test.check(job.out, lineage=2)
    assert "begin again from the checkpoint" in job.run.text()


def fails_with(job, message):
    assert job.run.wait() == 1, job.run.text()
    assert message in job.run.text()


def test_two_workers_of_different_pods_die_at_once(write, tmp_path):
    with Job(write, tmp_path, 4) as job:
        epoch = job.world(4)
        pids = by_rank(job)
        for victim in pids[1:3]:
            job.kill(victim)
        job.world(4, epoch + 1)
        job.finish()


def test_all_but_one_die_at_once(write, tmp_path):
    with Job(write, tmp_path, 3) as job:
        epoch = job.world(3)
        for victim in by_rank(job)[:2]:
            job.kill(victim)
        job.world(3, epoch + 1)
        job.finish()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_workers_die_in_the_middle_of_rebuilds(write, tmp_path, seed):
    dice = random.Random(seed)
    with Job(write, tmp_path, 3, runPolicy__backoffLimit=1000) as job:
        epoch = job.world(3)
        for _ in range(4):
            # The second one somewhere between the stop of the old view and the first step of the new one.
            first, second = dice.sample(by_rank(job), 2)
            job.kill(first)
            time.sleep(dice.random() * 0.03)
            job.kill(second)
            epoch = job.world(3, epoch + 1)
        job.finish()


def test_a_pod_drains_while_a_worker_of_another_dies(write, tmp_path):
    with Job(write, tmp_path, 3) as job:
        epoch = job.world(3)
        victim = rank(job, 0)[1]["pid"]
        pod = rank(job, 2)[0][0]
        job.run.do("drain", pod)
        job.kill(victim)
        wait_for("the pod to be replaced", lambda: job.world(3, epoch) and pod not in {
            key[0] for key in job.run.workers("job")}, alive=job.run.alive)
        job.finish()


@pytest.mark.parametrize("what, options", [("loading", HOLD_LOADING), ("saving", HOLD_SAVING)],
                         ids=["the joiner that gets it", "rank 0 that gives it"])
def test_a_worker_dies_while_the_state_is_handed_over(write, tmp_path, what, options):
    with Job(write, tmp_path, 2, options=options) as job:
        epoch = job.world(2)
        job.run.do("scale", "job", "--replicas", 3)
        job.kill(holding(job, what))
        go(job)
        job.world(3, epoch + 1)
        job.finish()


def test_the_only_one_with_the_state_dies_while_it_gives_it(write, tmp_path):
    with Job(write, tmp_path, 1, options=HOLD_SAVING) as job:
        job.world(1)
        job.run.do("scale", "job", "--replicas", 2)
        job.kill(holding(job, "saving"))
        go(job)
        starts_again(job, 2)


def test_scaled_down_below_the_world_while_a_joiner_enters(write, tmp_path):
    with Job(write, tmp_path, 3, options=HOLD_LOADING) as job:
        epoch = job.world(3)
        job.run.do("scale", "job", "--replicas", 4)
        holding(job, "loading")
        job.run.do("scale", "job", "--replicas", 2)
        go(job)
        job.world(2, epoch)
        job.finish()


@pytest.mark.parametrize("pods, slots", [(1, 1), (1, 2), (3, 1)])
def test_all_workers_die_at_once(write, tmp_path, pods, slots):
    with Job(write, tmp_path, pods, slots=slots) as job:
        job.world(pods * slots)
        for victim in by_rank(job):
            job.kill(victim)
        starts_again(job, pods * slots)


def test_all_workers_die_at_once_too_often(write, tmp_path):
    with Job(write, tmp_path, 2, runPolicy__backoffLimit=0) as job:
        job.world(2)
        for victim in by_rank(job):
            job.kill(victim)
        fails_with(job, ALL_KILLED)


def test_below_the_minimum_all_wait_and_go_on_when_there_are_enough(write, tmp_path):
    with Job(write, tmp_path, 3, elasticPolicy__minReplicas=3) as job:
        epoch = job.world(3)
        job.run.do("kill", rank(job, 1)[0][0])
        job.world(3, epoch + 1)
        job.finish()
        alone = {line.step for lines in elastic_test.read_logs(tmp_path).values() for line in lines if line.size < 3}
        assert not {step + 1 for step in alone} & alone, "more than the step that was interrupted: %s" % sorted(alone)


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_a_worker_dies_while_the_job_ends(write, tmp_path, seed):
    with Job(write, tmp_path, 3) as job:
        job.world(3)
        victim = by_rank(job)[seed % 3]
        (tmp_path / "stop").touch()
        time.sleep(random.Random(seed).random() * 0.03)
        try:
            os.kill(victim, signal.SIGKILL)
        except ProcessLookupError:
            pass
        job.run.wait()
        elastic_test.check(tmp_path)


def test_a_worker_that_may_be_stopped_for_a_while_only_delays_the_others(write, tmp_path):
    with Job(write, tmp_path, 3, elasticPolicy__stoppedWorkerSeconds=3600) as job:
        epoch = job.world(3)
        victim = by_rank(job)[1]
        os.kill(victim, signal.SIGSTOP)
        time.sleep(3)  # the fault itself: shorter than the fence
        os.kill(victim, signal.SIGCONT)
        job.steps_on(10)
        assert job.run.job("job")["status"]["epoch"] == epoch
        job.finish()


def test_a_worker_that_is_stopped_for_longer_than_the_fence_is_replaced(write, tmp_path):
    with Job(write, tmp_path, 3) as job:
        epoch = job.world(3)
        victim = by_rank(job)[0]
        os.kill(victim, signal.SIGSTOP)
        job.world(3, epoch + 1)
        assert victim not in by_rank(job)
        job.finish()


def eats(job, victim):
    """The worker takes memory until somebody ends it; another one has its place then."""
    epoch = job.run.job("job")["status"]["epoch"]
    (job.out / ("eats.%d" % next(w["rank"] for w in job.run.workers("job").values() if w["pid"] == victim))).touch()
    job.world(3, epoch + 1)
    assert victim not in by_rank(job)
    return wait_for("the restart in the status", lambda: (status := job.run.job("job")["status"])["workerRestarts"] and status)


def test_a_worker_that_the_kernel_kills_for_its_memory_is_replaced(write, tmp_path):
    if memory_limit.missing():  # in many containers nobody may make a cgroup
        pytest.skip(memory_limit.missing())
    with memory_limit.MemoryLimit(64 << 20) as limit, Job(write, tmp_path, 3) as job:
        job.world(3)
        victim = by_rank(job)[1]
        limit.take(victim)
        status = eats(job, victim)
        assert limit.kills() == 1, "it ended in another way"
        assert (status["workerRestarts"], status["faults"]) == (1, 0), "a kill may be anybody's: it is not counted as the script's fault"
        job.finish()


def test_a_worker_that_gets_no_more_memory_crashes_and_is_replaced_and_that_counts(write, tmp_path):
    with Job(write, tmp_path, 3) as job:
        job.world(3)
        victim = by_rank(job)[1]
        pages = int(pathlib.Path("/proc/%d/statm" % victim).read_text().split()[0])
        resource.prlimit(victim, resource.RLIMIT_AS, (pages * resource.getpagesize() + (64 << 20), resource.RLIM_INFINITY))
        status = eats(job, victim)
        assert (status["workerRestarts"], status["faults"]) == (1, 1)
        pod = next(pod for (pod, _), w in job.run.workers("job").items() if w["rank"] == 2)
        assert "std::bad_alloc" in (job.run.dir / "logs" / pod / "worker.log").read_text()
        job.finish()


BALLAST_MIB = 2100


def test_a_joiner_gets_a_state_of_more_than_two_gibibytes(write, tmp_path):
    """One pod has it, another one comes: both processes hold it, and the one that gives it may need it once more."""
    available = next(int(line.split()[1]) >> 10 for line in open("/proc/meminfo") if line.startswith("MemAvailable:"))
    if available < 4 * BALLAST_MIB:
        pytest.skip("SKIPPED: needs %d MiB of free memory, this machine has %d" % (4 * BALLAST_MIB, available))
    with Job(write, tmp_path, 1, options=("--ballast-mib", BALLAST_MIB)) as job:
        epoch = job.world(1)
        job.run.do("scale", "job", "--replicas", 2)
        job.world(2, epoch)
        said = wait_for("the joiner's word", lambda: list(job.out.glob("ballast.*[0-9]")), alive=job.run.alive)
        assert [path.read_text() for path in said] == ["right"]
        job.finish()


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
