"""Most of a job's pods, or all of them, die at once: it goes on in a new lineage, with nothing lost that somebody still holds."""

import concurrent.futures
import os
import pathlib
import signal
import sys
import time

import pytest

from elastic_test import Job, read_logs
from harness import wait_for

LINEAGE = 1 << 40


def processes(job, pod):
    """All processes of a pod: what its kubelet started has its uid in the environment, what those started too."""
    uid = next(p["uid"] for p in job.run.job("job")["status"]["pods"] if p["name"] == pod).encode()
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and uid in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def kill_at_once(job, pods, survivors=()):
    """No two of the killed and the surviving see another death before all have died. All are killed together: a survivor that is frozen for
    longer than its fence would have to be started again."""
    frozen = {pod: processes(job, pod) for pod in [*pods, *survivors]}
    for pids in frozen.values():
        assert pids
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
    with concurrent.futures.ThreadPoolExecutor() as kills:
        list(kills.map(lambda pod: job.run.do("kill", pod), pods))
    for pod in pods:
        wait_for("the end of " + pod, lambda: not any(pathlib.Path("/proc/%d" % pid).exists() for pid in frozen[pod]),
                 alive=job.run.alive)
    for pod in survivors:
        for pid in frozen[pod]:
            os.kill(pid, signal.SIGCONT)


def names(count):
    return ["job-worker-%d" % index for index in range(count)]


@pytest.mark.parametrize("survivor", [0, 3])
def test_one_of_four_survives_and_goes_on(write, tmp_path, survivor):
    with Job(write, tmp_path, 4) as job:
        epoch = job.world(4)
        dead = [name for index, name in enumerate(names(4)) if index != survivor]
        worker = next(w["pid"] for (pod, _), w in job.run.workers("job").items() if pod == names(4)[survivor])
        kill_at_once(job, dead, [names(4)[survivor]])
        began = time.monotonic()
        # By the survivor's own log: the status may tell late of a step that was done before the others died.
        wait_for("a step of the survivor in a new lineage", lambda: read_logs(tmp_path)[worker][-1].epoch > LINEAGE * 2, alive=job.run.alive)
        print("next step %.2f s after the last death" % (time.monotonic() - began))
        assert job.world(4, epoch + 1) > LINEAGE * 2
        reasons = job.reasons(job.finish())
        assert "QuorumRecovered" in reasons, reasons


def test_two_of_five_survive_and_go_on(write, tmp_path):
    with Job(write, tmp_path, 5) as job:
        epoch = job.world(5)
        kill_at_once(job, names(5)[:3], names(5)[3:])
        assert job.world(5, epoch + 1) > LINEAGE * 2
        job.finish()


def test_when_all_pods_die_the_job_starts_again(write, tmp_path):
    with Job(write, tmp_path, 2) as job:
        job.world(2)
        kill_at_once(job, names(2))
        assert job.run.world("job", 2, LINEAGE * 2) > LINEAGE * 2

        def begun():
            return [lines for lines in read_logs(tmp_path).values() if lines and lines[-1].epoch > LINEAGE * 2]
        wait_for("steps in the new lineage", begun, alive=job.run.alive)
        # One that comes late joins those that have founded the lineage.
        first = min((lines[0] for lines in begun()), key=lambda line: line.epoch)
        assert first.step == 1, "from the beginning: this script has no checkpoint"
        (tmp_path / "stop").touch()
        assert job.run.wait() == 0, job.run.text()


def test_most_die_twice(write, tmp_path):
    with Job(write, tmp_path, 3) as job:
        epoch = job.world(3)
        for lineage in (2, 3):
            *dead, survivor = sorted({pod for pod, _ in job.run.workers("job")})
            kill_at_once(job, dead, [survivor])
            epoch = job.world(3, epoch + 1)
            assert epoch > LINEAGE * lineage
        job.finish()


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
