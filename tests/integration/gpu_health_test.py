"""Jobs with a GPU that fails, or that hides what it has: NVIDIA's management library is a fake (collectives/nccl/fake/nvml)."""

import pathlib
import re

import harness
from elastic_test import Job, Training, fake_gpu, rank
from harness import Run, manifest, wait_for
from metrics_test import DOCUMENTED, names, texts

FAILS = "GPU 0000:10:00.0 of worker 0 fails: Xid 79, it has fallen off the bus"


class GpuJob(Job):
    """Workers whose tensors are on the first GPU of their pod."""

    def __init__(self, write, out, replicas, env=None, **spec):
        text = manifest(command=[harness.WORKER, out, "--gpu", 1, "--floats", 1024], replicas=replicas,
                        env=env or fake_gpu(out / "gpu"), collectives__backend="Nccl", **spec)
        Training.__init__(self, Run("--metrics-listen", "127.0.0.1:0", write(text)), out)

    def metrics_with(self, pod, *lines):
        """The metrics of the pod's sidecar, once they have these lines about its GPU."""
        (text,) = [text for text in texts(self.run)[1] if 'pod="%s"' % pod in text]
        return text if all(re.search("^ringmaster_gpu_%s$" % line, text, re.M) for line in lines) else None


def tell(tmp_path, worker, *lines):
    """From now on this is what the library tells of the GPU of that worker."""
    new = tmp_path / "nvml.new"
    new.write_text("".join(line + "\n" for line in lines))
    new.rename(tmp_path / "gpu" / ("nvml.%d" % worker["pid"]))


def watched(job):
    """Those of the job's workers that have loaded the library, as a worker does when it first uses a GPU."""
    return [worker for worker in job.run.workers("job").values() if "nvml" in pathlib.Path("/proc/%d/maps" % worker["pid"]).read_text()]


def pods(job):
    return sorted(pod["name"] for pod in job.run.job("job")["status"]["pods"])


def test_a_pod_whose_gpu_falls_off_the_bus_is_drained_and_replaced(write, tmp_path):
    with GpuJob(write, tmp_path, 3) as job:
        epoch = job.world(3)
        before = pods(job)
        (pod, _), worker = rank(job, 1)
        tell(tmp_path, worker, "xid 79")
        epoch = job.world(3, epoch)
        wait_for("the pod's end", lambda: pod not in pods(job), alive=job.run.alive)
        assert len(set(pods(job)) - set(before)) == 1
        described = job.run.do("describe", "job")
        assert re.search(r"! .*GpuUnhealthy, pod %s: pod %s on node \S+ leaves at the end of a step: %s" % (pod, pod, FAILS), described), described
        assert "GpuUnhealthy" in job.run.do("why", "job")
        (node,) = job.run.job("job")["status"]["troubledNodes"]
        assert node["reason"] == "GpuUnhealthy" and node["failures"] == 1 and node["avoidUntil"]
        summary = job.finish()
        assert "PodDrained" in job.reasons(summary) and "WorkerLost" not in job.reasons(summary)


def test_a_worker_that_ends_of_its_gpu_does_not_begin_again_on_it(write, tmp_path):
    with GpuJob(write, tmp_path, 3) as job:
        epoch = job.world(3)
        (pod, _), worker = rank(job, 1)
        tell(tmp_path, worker, "xid 79", "dies 100")
        wait_for("the pod's end", lambda: pod not in pods(job), alive=job.run.alive)
        job.world(3, epoch)
        assert FAILS in job.run.do("describe", "job")
        job.finish()


def test_where_all_pods_are_needed_the_replacement_of_one_with_a_bad_gpu_trains_first(write, tmp_path):
    with GpuJob(write, tmp_path, 2, elasticPolicy__minReplicas=2) as job:
        epoch = job.world(2)
        tell(tmp_path, rank(job, 0)[1], "xid 94")
        job.world(2, epoch)
        summary = job.finish()
        assert "PodDrained" in job.reasons(summary)
        assert min(view["worldSize"] for view in summary["views"]) >= 2, summary["views"]


def test_what_is_not_the_gpus_fault_is_only_counted_and_shown(write, tmp_path):
    with GpuJob(write, tmp_path, 2) as job:
        epoch = job.world(2)
        before = pods(job)
        assert len(watched(job)) == 2
        (pod, _), worker = rank(job, 1)
        tell(tmp_path, worker, "xid 31", "xid 31", "xid 63", "throttle 0x40", "celsius 91")
        wait_for("the warnings", lambda: re.search(
            r"%s  Running; GPU 0000:10:00.0 of worker 0: Xid 63.*too hot" % pod, job.run.do("describe", "job")), alive=job.run.alive)
        metrics = wait_for("the metrics", lambda: job.metrics_with(
            pod, r'xids_total{.*slot="0",xid="31"} 2', r'xids_total{.*slot="0",xid="63"} 1', "healthy{.*} 1", "throttled{.*} 1",
            "temperature_celsius{.*} 91"), alive=job.run.alive)
        assert {name for name in names(metrics) if "_gpu_" in name} == {name for name in DOCUMENTED if "_gpu_" in name}
        job.steps_on(20)
        assert job.run.job("job")["status"]["epoch"] == epoch and pods(job) == before
        assert "troubledNodes" not in job.run.job("job")["status"]
        assert "GpuUnhealthy" not in job.run.do("describe", "job")
        job.finish()


def test_a_library_that_hangs_holds_up_nothing(write, tmp_path):
    with GpuJob(write, tmp_path, 2) as job:
        job.world(2)
        tell(tmp_path, rank(job, 1)[1], "hang")
        job.steps_on(20)
        job.finish()


def test_who_does_not_want_it_is_left_alone(write, tmp_path):
    with GpuJob(write, tmp_path, 2, env=fake_gpu(tmp_path / "gpu", RINGMASTER_GPU_HEALTH=0)) as job:
        epoch = job.world(2)
        assert not watched(job)
        tell(tmp_path, rank(job, 1)[1], "xid 79")
        job.steps_on(20)
        assert job.run.job("job")["status"]["epoch"] == epoch
        job.finish()
