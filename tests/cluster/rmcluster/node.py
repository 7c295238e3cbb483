"""A node: containerd, kubelet, kube-proxy and, where asked for, made-up GPUs, on a machine of its own."""
import os
import uuid

from . import layout
from .common import run, wait_until

SOCKET = "/run/containerd/containerd.sock"
PAUSE = "localhost/ringmaster-pause:1"
IMAGE_NAMESPACE = "k8s.io"  # where the kubelet looks
GPU = "nvidia.com/gpu"

CONTAINERD = """version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
oom_score = 0
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
                    "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs"]
[grpc]
  address = "%(socket)s"
[plugins."io.containerd.internal.v1.opt"]
  path = "/var/lib/containerd/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "%(pause)s"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "%(cni)s"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "%(snapshotter)s"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
"""


def _bin(name):
    return os.path.join(layout.programs(), name)


def _snapshotter(node):
    """Layers are overlays, but an overlay can't lie on an overlay (as in a container): there they are copied."""
    return "native" if run("stat", "-f", "-c", "%T", node.path()).strip() == "overlayfs" else "overlayfs"


def configure(node, pki, index):
    layout.write(node.path("containerd.toml"), CONTAINERD % {
        "socket": SOCKET, "pause": PAUSE, "cni": node.path("cni"), "snapshotter": _snapshotter(node)})
    layout.write_json(node.path("cni", "10-pods.conflist"), {
        "cniVersion": "0.4.0", "name": "pods", "plugins": [
            # isGateway with a route of our own; isDefaultGateway would add the same route twice.
            {"type": "bridge", "bridge": "pods", "isGateway": True, "hairpinMode": True, "ipMasq": False,
             "ipam": {"type": "host-local", "ranges": [[{"subnet": layout.node_pods(index)}]],
                      "routes": [{"dst": "0.0.0.0/0"}]}},
            {"type": "portmap", "capabilities": {"portMappings": True}}]})
    layout.write_json(node.path("kubelet.json"), {
        "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
        "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True},
                           "x509": {"clientCAFile": pki.file("ca.crt")}},
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": pki.file("node-%s.crt" % node.name), "tlsPrivateKeyFile": pki.file("node-%s.key" % node.name),
        "containerRuntimeEndpoint": "unix://" + SOCKET,
        "cgroupDriver": "cgroupfs", "cgroupRoot": "/" + node.cgroup, "failCgroupV1": False, "failSwapOn": False,
        "oomScoreAdj": 0, "volumePluginDir": "/var/lib/kubelet/volume-plugins",
        "resolvConf": "", "clusterDNS": [layout.DNS_SERVICE], "clusterDomain": layout.DOMAIN,
        # The nodes share one disk with everything else: its filling up is not theirs to act upon.
        "evictionHard": {"memory.available": "100Mi"}, "imageGCHighThresholdPercent": 100, "maxPods": 200,
        "systemReserved": {"cpu": "100m", "memory": "256Mi"},
        # A lost node is noticed by its lease, renewed every quarter of this.
        "nodeStatusUpdateFrequency": "2s", "nodeStatusReportFrequency": "10s", "nodeLeaseDurationSeconds": 8})
    layout.write_json(node.path("kube-proxy.json"), {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration", "mode": "iptables",
        "clientConnection": {"kubeconfig": pki.file("proxy.kubeconfig")}, "clusterCIDR": layout.PODS,
        "hostnameOverride": node.name, "oomScoreAdj": 0,
        # Limits of connection tracking belong to the whole kernel: leave them.
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"}})


def start_containers(node):
    node.start("containerd", "containerd", "--config", node.path("containerd.toml"))

    def answers():
        node.require_alive("containerd")
        return "Server:" in node.run("ctr", "--address", SOCKET, "version", check=False)

    wait_until("containerd on %s" % node.name, answers, 30)


def start_kubelet(node, pki, index):
    node.start("kubelet", _bin("kubelet"), "--config=" + node.path("kubelet.json"), "--v=2",
               "--kubeconfig=" + pki.file("node-%s.kubeconfig" % node.name), "--hostname-override=" + node.name,
               "--node-ip=" + layout.node_address(index))


def start_proxy_and_devices(node, gpus):
    node.start("kube-proxy", _bin("kube-proxy"), "--config=" + node.path("kube-proxy.json"), "--v=1")
    if gpus:
        # A fixed folder, made by the node that comes first.
        node.run("mkdir", "-p", "/var/lib/kubelet/device-plugins")
        node.start("devices", _bin("devices"), "-resource", GPU, "-count", gpus, "-unhealthy", node.path("sick-devices"))


def renew_boot_id(node):
    """A computer that starts again has a new boot id. All machines share one kernel, and show its id after their first start
    (machine-init.sh)."""
    layout.write(node.path("boot-id"), str(uuid.uuid4()) + "\n")


def set_sick(node, devices):
    layout.write(node.path("sick-devices"), " ".join(map(str, sorted(devices))) + "\n")


def sick(node):
    try:
        with open(node.path("sick-devices")) as file:
            return {int(word) for word in file.read().split()}
    except OSError:
        return set()
