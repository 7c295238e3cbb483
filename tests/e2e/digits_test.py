"""The digits example on a real cluster: the manifest of local mode, the image named, nothing else."""
import os
import pathlib
import shutil
import subprocess

import pytest
import yaml

from harness import REPOSITORY, Job

DIGITS = REPOSITORY / "examples/digits"


@pytest.fixture
def audit(cluster, request):
    """A folder that is the same on all nodes, as their file systems are this machine's."""
    folder = pathlib.Path(cluster.dir, "shared", request.node.name)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    return folder


@pytest.fixture
def digits(operator, audit):
    """digits() applies the example's manifest and returns the job; it is deleted afterwards."""
    jobs = []

    def start(name="digits", passes=30, pace_ms=10, replicas=4):
        manifest = yaml.safe_load((DIGITS / "job.yaml").read_text())
        manifest["metadata"]["name"] = name
        manifest["spec"]["worker"]["replicas"] = replicas
        spec = manifest["spec"]["worker"]["template"]["spec"]
        container = spec["containers"][0]
        container["image"] = trainer_image()
        settings = {"DIGITS_PASSES": str(passes), "DIGITS_PACE_MS": str(pace_ms), "RINGMASTER_AUDIT_DIR": "/audit"}
        container["env"] = [each for each in container["env"] if each["name"] not in settings]
        container["env"] += [{"name": key, "value": value} for key, value in settings.items()]
        container["volumeMounts"] = [{"name": "audit", "mountPath": "/audit"}]
        spec["volumes"] = [{"name": "audit", "hostPath": {"path": str(audit)}}]
        operator.apply(manifest)
        jobs.append(Job(operator, name))
        return jobs[-1]

    yield start
    for job in jobs:
        job.delete()


def wait_steps(cluster, audit, count):
    """Until a worker has done so many steps: the audit log has a line for each. The status doesn't tell."""
    cluster.wait("%d steps" % count, lambda: any(len(log.read_text().splitlines()) >= count for log in audit.glob("*.jsonl")))


def trainer_image():
    version = [line for line in (REPOSITORY / "CMakeLists.txt").read_text().splitlines() if line.startswith("project(")][0]
    return "ringmaster.dev/examples-digits:" + version.split("VERSION ")[1].split()[0]


def judge(audit):
    """The example's checker, which knows nothing of the product: steps lost, parameters, samples, accuracy."""
    done = subprocess.run(["/usr/bin/python3", "-B", str(DIGITS / "check.py"), str(audit)], capture_output=True, text=True,
                          timeout=300, env=dict(os.environ, OMP_NUM_THREADS="1"))
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_digits_trains_to_the_end_on_a_cluster(digits, audit):
    job = digits()
    job.wait_world(4)
    nodes = {pod["spec"]["nodeName"] for pod in job.pods().values()}
    assert nodes == {"n1", "n2"}, "four workers on two nodes of the same size all went to %s" % nodes
    job.wait_succeeded()
    judge(audit)


def test_a_killed_worker_costs_no_step_and_comes_back(digits, audit):
    job = digits()
    epoch = job.wait_world(4)
    wait_steps(job.cluster, audit, 5)
    job.kill_worker("digits-worker-2")
    job.wait_world(4, after_epoch=epoch + 1)  # one view without it, one with it again
    job.wait_succeeded()
    judge(audit)


def test_kubectl_scale_lets_workers_join_while_the_job_trains(digits, audit):
    job = digits(replicas=2)
    epoch = job.wait_world(2)
    wait_steps(job.cluster, audit, 5)
    job.scale(4)
    epoch = job.wait_world(4, after_epoch=epoch)
    job.scale(3)
    job.wait_world(3, after_epoch=epoch)
    job.wait_succeeded()
    judge(audit)


def test_a_drained_pod_finishes_its_step_and_is_replaced(digits, audit):
    job = digits()
    epoch = job.wait_world(4)
    before = job.pods()["digits-worker-1"]["metadata"]["uid"]
    wait_steps(job.cluster, audit, 5)
    job.cluster.kubectl("delete", "pod", "digits-worker-1", "--wait=false")
    job.wait_world(4, after_epoch=epoch + 1)
    assert job.pods()["digits-worker-1"]["metadata"]["uid"] != before
    job.wait_succeeded()
    judge(audit)
