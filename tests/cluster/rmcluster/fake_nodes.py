"""Nodes without machines, for tests of scale: kwok plays their kubelets on the control machine."""
import os

from . import layout
from .common import wait_until
from .api import is_ready

ANNOTATION = "kwok.x-k8s.io/node"
LABEL = {"ringmaster.dev/fake-node": "true"}
LEASE_SECONDS = 40
GRACE = 50  # fake nodes renew their leases more slowly than real ones
KUBELET_PORT = 10247
NODES_PER_RACK = 16


def start(control, pki):
    control.start(
        "kwok", os.path.join(layout.programs(), "kwok"), "--config=" + os.path.join(layout.cache(), "kwok-stages.yaml"),
        "--kubeconfig=" + pki.file("admin.kubeconfig"), "--manage-all-nodes=false",
        "--manage-nodes-with-annotation-selector=%s=fake" % ANNOTATION, "--cidr=" + layout.FAKE_PODS,
        "--node-ip=" + layout.CONTROL_ADDRESS, "--node-port=%d" % KUBELET_PORT,
        "--server-address=127.0.0.1:%d" % KUBELET_PORT, "--node-lease-duration-seconds=%d" % LEASE_SECONDS)


def _node(index, gpus):
    name = "fake-%d" % index
    has = {"cpu": "96", "memory": "1Ti", "pods": "110", "ephemeral-storage": "1Ti"}
    if gpus:
        has["nvidia.com/gpu"] = str(gpus)
    return {"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "annotations": {ANNOTATION: "fake"},
                         "labels": dict(LABEL, **{"kubernetes.io/hostname": name, "kubernetes.io/os": "linux",
                                                  "kubernetes.io/arch": "amd64",
                                                  "topology.kubernetes.io/rack": "rack-%d" % (index // NODES_PER_RACK)})},
            # Only what asks for a fake node gets one.
            "spec": {"taints": [{"key": ANNOTATION, "value": "fake", "effect": "NoSchedule"}]},
            "status": {"capacity": has, "allocatable": has}}


def create(control, api, count, gpus):
    for index in range(count):
        api.create("/api/v1/nodes", _node(index, gpus))

    def all_ready():
        control.require_alive("kwok")
        return sum(is_ready(node) for name, node in api.nodes().items() if name.startswith("fake-")) >= count

    wait_until("%d fake nodes to be Ready" % count, all_ready, 60 + count // 10, period=0.3)
