"""Jobs that lose, drain and gain workers while they run, judged by what the workers themselves have written."""

import base64
import collections
import os
import pathlib
import signal
import socket
import struct
import sys

import pytest

import harness
from harness import Run, manifest, wait_for

Line = collections.namedtuple("Line", "step epoch rank size ns hash")


def read_logs(out):
    """{pid: [Line]} of the worker processes; a line that a kill has cut is no line."""
    logs = {}
    for path in pathlib.Path(out).glob("*.log"):
        lines = []
        for text in path.read_text().splitlines():
            words = text.split()
            if len(words) == 6 and len(words[5]) == 16:
                lines.append(Line(*map(int, words[:5]), words[5]))
        logs[int(path.stem)] = lines
    return logs


def check(out, lineage=None):
    """No step lost or done twice, and all copies of the state the same at every step. Returns the number of steps.
    With `lineage` of what was done in it: the job has started again."""
    hashes = collections.defaultdict(set)
    for pid, lines in read_logs(out).items():
        lines = [line for line in lines if lineage in (None, line.epoch >> 40)]
        for before, after in zip(lines, lines[1:]):
            # A worker that a wrong suspicion has put out comes back with the others' state, in a newer view.
            rejoined = after.step > before.step + 1 and after.epoch > before.epoch + 1
            assert after.step == before.step + 1 or rejoined, "process %d went from %s to %s" % (pid, before, after)
        for line in lines:
            hashes[line.step].add(line.hash)
    assert hashes, "no step was done"
    assert sorted(hashes) == list(range(1, max(hashes) + 1)), "steps are missing"
    different = [step for step, values in hashes.items() if len(values) > 1]
    assert not different, "states differ after steps %s" % different
    return max(hashes)


class Training:
    """A `run` of elastic_worker, which logs to `out`."""

    def __init__(self, run, out):
        self.run, self.out = run, out

    def __enter__(self):
        self.run.__enter__()
        return self

    def __exit__(self, *error):
        return self.run.__exit__(*error)

    def step(self):
        return max((lines[-1].step for lines in read_logs(self.out).values() if lines), default=0)

    def steps_on(self, alive, count=3):
        goal = self.step() + count
        wait_for("%d more steps" % count, lambda: self.step() >= goal, alive=alive)


class Job(Training):
    """On this machine."""

    def __init__(self, write, out, replicas, slots=1, standby=0, options=(), network=None, front=(), **spec):
        front = [*([network.in_pod] if network else []), *front]
        text = manifest(command=[*front, harness.WORKER, out, *options], replicas=replicas, slotsPerWorker=slots,
                        elasticPolicy__standbyPerPod=standby, **spec)
        super().__init__(Run(write(text), program=network.program if network else ()), out)

    def steps_on(self, count=3):
        super().steps_on(self.run.alive, count)

    def world(self, size, after=0):
        epoch = self.run.world("job", size, after)
        self.steps_on()
        return epoch

    def kill(self, pid):
        os.kill(pid, signal.SIGKILL)

    def finish(self):
        (pathlib.Path(self.out) / "stop").touch()
        assert self.run.wait() == 0, self.run.text()
        steps = check(self.out)
        summary = self.run.summary()
        assert summary["stepsLost"] == 0
        assert summary["exitReason"] == "Succeeded"
        assert abs(summary["steps"] - steps) <= 5, "the summary's %d steps, the workers' %d" % (summary["steps"], steps)
        return summary

    def reasons(self, summary):
        return [view["reason"] for view in summary["views"]]


def rank(job, wanted):
    return next((key, w) for key, w in job.run.workers("job").items() if w["rank"] == wanted)


def condition(job, kind):
    conditions = job.run.job("job").get("status", {}).get("conditions", [])
    return next((found for found in conditions if found["type"] == kind), {})


def test_whole_story_4_3_4_3_4_6(write, tmp_path):
    with Job(write, tmp_path, 4) as job:
        epoch = job.world(4)
        job.run.do("kill", "job-worker-2", "--worker", 0)
        epoch = job.world(4, epoch + 1)
        job.run.do("drain", "job-worker-1")
        epoch = job.world(4, epoch)  # the next pod may come in the view in which it leaves
        job.run.do("scale", "job", "--replicas", 6)
        job.world(6, epoch)
        summary = job.finish()
        reasons = job.reasons(summary)
        assert reasons[0] == "Bootstrap"
        assert "WorkerLost" in reasons and "WorkerJoined" in reasons
        assert "PodDrained" in reasons and "PodJoined" in reasons
        assert summary["worldSize"] == 6
        for view in summary["views"][1:]:
            assert view["seconds"], "no phases for %s" % view


def test_a_job_trains_in_allowed_sizes_alone(write, tmp_path):
    with Job(write, tmp_path, 4, elasticPolicy__allowedSizes=[2, 4]) as job:
        epoch = job.world(4)
        closed = tmp_path / "closed"
        closed.touch()  # else the lost one may be replaced before the others have done a step
        job.run.do("kill", "job-worker-1")
        wait_for("steps of two of the three that are left", lambda: any(
            line.size == 2 for lines in read_logs(tmp_path).values() for line in lines), alive=job.run.alive)
        closed.unlink()
        epoch = job.world(4, epoch)
        job.run.do("scale", "job", "--replicas", 3)
        job.world(2, epoch)
        job.finish()
        steps = collections.defaultdict(set)
        for lines in read_logs(tmp_path).values():
            for line in lines:
                steps[line.size].add(line.step)
        assert steps[2] and steps[4]
        assert len(steps[3]) <= 1, "more than the step that was interrupted: %s" % sorted(steps[3])


def listening_port(pid):
    """The port of the worker's ring: the only one that it listens on."""
    sockets = {os.readlink(fd) for fd in pathlib.Path("/proc/%d/fd" % pid).iterdir() if fd.is_symlink()}
    rows = [row.split() for row in pathlib.Path("/proc/%d/net/tcp" % pid).read_text().splitlines()[1:]]
    (port,) = [int(row[1].split(":")[1], 16) for row in rows if row[3] == "0A" and "socket:[%s]" % row[9] in sockets]
    return port


def hear(port, said):
    """What the process behind that port answers, until it closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=harness.PATIENCE) as stranger:
        stranger.sendall(said)
        return b"".join(iter(lambda: stranger.recv(4096), b""))


def test_the_ring_asks_a_stranger_for_proof(write, tmp_path):
    with Job(write, tmp_path, 2) as job:
        epoch = job.world(2)
        uid = job.run.job("job")["metadata"]["uid"].encode()
        # The Hello of a worker without a key (collectives/transport/wire.h): of the right job and epoch, and one that ends every view.
        for announced in (epoch, 2 ** 64 - 1):
            hello = struct.pack("<4sIIIQQQ64s", b"RMG1", 1, 1, 1, announced, 0, 0, uid)
            for worker in job.run.workers("job").values():
                magic, kind = struct.unpack("<4sI", hear(listening_port(worker["pid"]), hello)[:8])
                assert (magic, kind) == (b"RMG1", 7)  # kNoProof
        job.steps_on()
        assert job.world(2) == epoch
        job.finish()


def test_the_rings_key_is_for_its_owner_alone_and_in_no_log_or_environment(write, tmp_path):
    with Job(write, tmp_path, 2) as job:
        epoch = job.world(2)
        file = job.run.dir / "ring.key"
        assert file.stat().st_mode & 0o777 == 0o600
        key = file.read_bytes()
        assert len(key) == 32
        workers = job.run.workers("job")
        forms = [key, base64.b64encode(key), key.hex().encode()]
        spoken = {str(log): log.read_bytes() for log in job.run.dir.glob("logs/**/*.log")}
        for worker in workers.values():
            process = pathlib.Path("/proc/%d" % worker["pid"])
            spoken.update({str(process / name): (process / name).read_bytes() for name in ("environ", "cmdline")})
        spoken["get"] = harness.ringmaster("get", "job", "-o", "json", "--run-dir", job.run.dir).stdout.encode()
        assert len(spoken) > 6
        assert not [name for name, text in spoken.items() if any(form in text for form in forms)]
        # A worker that comes later has the same key: else it could not join.
        job.kill(rank(job, 1)[1]["pid"])
        job.world(2, epoch + 1)
        job.finish()


def test_scale_down_ends_the_pods_that_leave(write, tmp_path):
    with Job(write, tmp_path, 4) as job:
        epoch = job.world(4)
        job.run.do("scale", "job", "--replicas", 2)
        job.world(2, epoch)
        assert len(job.run.workers("job")) == 2
        job.finish()


def test_rank_0_is_killed(write, tmp_path):
    with Job(write, tmp_path, 3) as job:
        epoch = job.world(3)
        job.kill(rank(job, 0)[1]["pid"])
        job.world(3, epoch + 1)
        job.finish()


def test_the_job_trains_on_in_its_view_while_the_coordinators_sidecar_is_restarted(write, tmp_path):
    with Job(write, tmp_path, 3) as job:
        epoch = job.world(3)
        coordinator = job.run.coordinator("job")
        mark = "RINGMASTER_POD_UID=" + coordinator["uid"]
        sidecars = harness.pids(mark, "ringmaster-sidecar")
        assert len(sidecars) == 1
        job.kill(sidecars[0])
        job.steps_on(20)
        wait_for("a new sidecar", lambda: set(harness.pids(mark, "ringmaster-sidecar")) - set(sidecars), alive=job.run.alive)
        assert job.run.world("job", 3) == epoch
        assert job.run.coordinator("job")["uid"] == coordinator["uid"]
        job.kill(rank(job, 2)[1]["pid"])
        job.world(3, epoch + 1)
        assert "PodLost" not in job.reasons(job.finish())


@pytest.mark.parametrize("pods", [2, 3, 4])
def test_whole_pod_is_killed_without_a_word(write, tmp_path, pods):
    with Job(write, tmp_path, pods) as job:
        epoch = job.world(pods)
        pod = rank(job, pods - 1)[0][0]
        job.run.do("kill", pod)
        job.world(pods, epoch + 1)
        job.finish()


def test_pod_of_rank_0_is_killed_without_a_word(write, tmp_path):
    with Job(write, tmp_path, 3) as job:
        epoch = job.world(3)
        job.run.do("kill", rank(job, 0)[0][0])
        job.world(3, epoch + 1)
        job.finish()


def test_a_worker_of_one_pod_with_four_slots_is_killed(write, tmp_path):
    with Job(write, tmp_path, 1, slots=4) as job:
        epoch = job.world(4)
        job.run.do("kill", "job-worker-0", "--worker", 2)
        job.world(4, epoch + 1)
        job.finish()


def test_standby_takes_the_place_of_a_killed_worker(write, tmp_path):
    with Job(write, tmp_path, 2, standby=1) as job:
        epoch = job.world(2)
        standby = wait_for("a standby", lambda: {
            w["pid"] for pod in job.run.job("job")["status"]["pods"] for w in pod["workers"] if w["standby"]} or None)
        victim = rank(job, 1)
        job.kill(victim[1]["pid"])
        job.world(2, epoch + 1)
        assert job.run.workers("job")[victim[0]]["pid"] in standby
        job.finish()


def fake_gpu(folder, **more):
    """The environment of workers whose NCCL and CUDA are the fake (collectives/nccl/fake/library). `folder`: of its files."""
    folder.mkdir()
    return dict(more, LD_LIBRARY_PATH=harness.BIN.parent / "fake_gpu", RINGMASTER_FAKE_GPU_FOLDER=folder)


def gpu_events(folder):
    """What the fake libraries of all workers have noted: communicators that were made, wrong use."""
    return [line for file in folder.glob("events.*") for line in file.read_text().splitlines()]


@pytest.mark.parametrize("nccl, shrinks", [(22005, False), (23203, True)])
def test_a_worker_with_tensors_on_a_gpu_is_killed(write, tmp_path, nccl, shrinks):
    fake = tmp_path / "gpu"
    with Job(write, tmp_path, 4, options=["--gpu", 1, "--floats", 1024], collectives__backend="Nccl",
             env=fake_gpu(fake, RINGMASTER_FAKE_NCCL=nccl, HOROVOD_STALL_CHECK_TIME_SECONDS=1)) as job:
        epoch = job.world(4)
        before = gpu_events(fake)
        assert before.count("made: init") >= 4 and "made: shrink" not in before, "NCCL is not what carries the tensors"
        closed, absent = tmp_path / "closed", tmp_path / "absent.2"
        closed.touch()  # else the successor may be there before the three have begun a step without it
        if shrinks:  # not in the middle of a launch: a communicator on which one hangs is given up
            absent.touch()
            wait_for("the others to wait for rank 2", lambda: condition(job, "RanksMissing").get("status") == "True", alive=job.run.alive)
        job.kill(rank(job, 2)[1]["pid"])
        absent.unlink(missing_ok=True)
        epoch = job.world(3, epoch)
        closed.unlink()
        job.world(4, epoch)
        job.finish()
    events = gpu_events(fake)
    assert (events.count("made: shrink") >= 3) == shrinks, "three survivors had a communicator of their own"
    assert events.count("made: init") >= len(before) + (4 if shrinks else 7), "and then one with the newcomer"
    assert not [event for event in events if event.startswith("misuse")]


def test_a_job_for_nccl_fails_with_the_reason_where_there_is_no_gpu(write, tmp_path):
    with Job(write, tmp_path, 1, collectives__backend="Nccl", runPolicy__backoffLimit=0,
             env=fake_gpu(tmp_path / "gpu", RINGMASTER_FAKE_GPUS=0)) as job:
        assert job.run.wait() == 1, job.run.text()
        assert "rm_init: the job's collectives.backend is Nccl: no GPU can be used: no CUDA-capable device is detected" in job.run.text()


def test_np_runs_a_command_and_shows_what_it_prints(tmp_path):
    with Run("-np", 2, harness.WORKER, tmp_path, cwd=tmp_path) as run:
        run.world("elastic-worker", 2)
        (tmp_path / "stop").touch()
        assert run.wait() == 0, run.text()
        check(tmp_path)


def test_two_jobs_run_side_by_side(write, tmp_path):
    outs = {}
    for name in ("one", "two"):
        outs[name] = tmp_path / name
        outs[name].mkdir()
    folder = tmp_path / "jobs"
    folder.mkdir()
    for name, out in outs.items():
        (folder / (name + ".yaml")).write_text(manifest(name, command=[harness.WORKER, out]))
    with Run(folder) as run:
        for name, out in outs.items():
            run.world(name, 2)
            (out / "stop").touch()
        assert run.wait() == 0, run.text()
        assert {job["job"] for job in run.summary()["jobs"]} == {"one", "two"}
        for out in outs.values():
            check(out)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
