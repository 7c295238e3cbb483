"""Jobs whose pods the scheduler keeps together, on a Kubernetes that serves PodGroups: a real scheduler and a node with GPUs. The pods' images
are nowhere: what counts is which of them get the node."""
import json
import os
import pathlib
import sys
import time

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "cluster"), str(HERE.parent / "support"), str(HERE)]

import scale  # noqa: E402
from handle import Handle, cannot, require_programs  # noqa: E402
from waiting import until  # noqa: E402

OPERATOR = os.environ.get("RINGMASTER_SCALE_OPERATOR", str(HERE.parents[1] / "build/release/bin/ringmaster-operator"))
GPUS = 4


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    require_programs("kubernetes", "coredns", "devices")
    if not os.path.exists(OPERATOR):
        cannot(OPERATOR + " is missing: build the target ringmaster-operator")
    handle = Handle(HERE.parents[1] / "build/pod-groups-cluster")  # not in a tmpfs: a node unpacks images there
    handle.up("--nodes", "1", "--gpus", str(GPUS), "--feature-gates", "GenericWorkload=true")
    handle.kubectl("create", "-f", HERE.parents[1] / "crds/ringmaster.dev_horovodjobs.yaml")
    # kubectl can't wait for a condition of what has no status yet.
    established = ("wait", "--for=condition=Established", "--timeout=60s", "crd/horovodjobs.ringmaster.dev")
    assert until(lambda: handle.kubectl(*established, check=False).returncode == 0, 60, 0.2), "the CRD is not established"
    log = tmp_path_factory.mktemp("operator") / "operator.log"
    operator = scale.Operator(OPERATOR, str(handle.dir / "kubeconfig"), ["--gang-admission=true", "--tls=false"], log)
    try:
        operator.wait_ready()
        yield handle
    finally:
        operator.stop()
        print(log.read_text()[-4000:])
        handle.down()


def job(name, least, replicas, **policy):
    worker = {"name": "worker", "image": "example.com/trainer:1", "command": ["python3", "train.py"],
              "resources": {"limits": {"nvidia.com/gpu": 1}}}
    return {"apiVersion": "ringmaster.dev/v1alpha1", "kind": "HorovodJob", "metadata": {"name": name},
            "spec": {"elasticPolicy": dict({"minReplicas": least}, **policy),
                     "worker": {"replicas": replicas, "template": {"spec": {"containers": [worker], "terminationGracePeriodSeconds": 1}}}}}


def pods(cluster, name):
    return cluster.list("pods", "training.kubeflow.org/job-name=" + name)


def placed(cluster, name):
    return [each for each in pods(cluster, name) if each["spec"].get("nodeName")]


def group_of(cluster, name):
    return name + "-" + cluster.get("hvdjob", name)["metadata"]["uid"][:8]


def min_count(cluster, name):
    group = cluster.get("podgroups.scheduling.k8s.io", group_of(cluster, name))
    return group and group["spec"]["schedulingPolicy"]["gang"]["minCount"]


def test_a_gang_that_fits_starts_and_grows_and_one_that_does_not_waits_as_a_whole(cluster):
    cluster.apply(job("first", 2, 3))
    cluster.wait("first to start", lambda: len(placed(cluster, "first")) == 3)
    assert min_count(cluster, "first") == 2
    for each in pods(cluster, "first"):
        assert each["spec"]["schedulingGroup"] == {"podGroupName": group_of(cluster, "first")}
        assert not each["spec"].get("schedulingGates")
    # One GPU is free: a gang of two does not start with it, though each pod of it would fit alone.
    cluster.apply(job("second", 2, 2))
    cluster.wait("second to be made", lambda: len(pods(cluster, "second")) == 2)

    def unschedulable():
        group = cluster.get("podgroups.scheduling.k8s.io", group_of(cluster, "second"))
        return any(each["type"] == "PodGroupInitiallyScheduled" and each["status"] == "False"
                   for each in group.get("status", {}).get("conditions", []))

    cluster.wait("the scheduler to have tried second", unschedulable)
    time.sleep(1)
    assert not placed(cluster, "second") and all(each["status"]["phase"] == "Pending" for each in pods(cluster, "second"))
    # Above minReplicas a pod starts by itself.
    cluster.kubectl("scale", "hvdjob/first", "--replicas=4")
    cluster.wait("first to grow", lambda: len(placed(cluster, "first")) == 4)
    # Room for all of second appears.
    cluster.kubectl("patch", "hvdjob/first", "--type=merge", "-p", json.dumps({"spec": {"worker": {"replicas": 2}}}))
    cluster.wait("second to start", lambda: len(placed(cluster, "second")) == 2)
    # The count follows the spec.
    cluster.kubectl("patch", "hvdjob/first", "--type=merge", "-p", json.dumps({"spec": {"elasticPolicy": {"minReplicas": 1}}}))
    cluster.wait("the group to follow", lambda: min_count(cluster, "first") == 1)
    cluster.kubectl("delete", "hvdjob", "first", "second", "--timeout=60s")
    cluster.wait("the groups to go", lambda: not cluster.list("podgroups.scheduling.k8s.io"))


def test_a_job_that_rests_on_our_admission_keeps_our_gates(cluster):
    cluster.apply(job("sizes", 2, 2, allowedSizes=[2, 4]))
    cluster.wait("sizes to start", lambda: len(placed(cluster, "sizes")) == 2)
    assert min_count(cluster, "sizes") is None
    assert not any("schedulingGroup" in each["spec"] for each in pods(cluster, "sizes"))
    cluster.kubectl("delete", "hvdjob", "sizes", "--timeout=60s")
