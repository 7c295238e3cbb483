"""The cluster does what docs/testing-cluster.md says, and leaves nothing behind. Slow: one cluster for the whole file.

The tests stand in the order in which they run: each leaves a cluster with both nodes Ready to the next.
"""
import os
import pathlib
import signal
import ssl
import subprocess
import time
import urllib.error
import urllib.request

import pytest

from handle import IMAGE, PROGRAM, Handle, pod, require_programs
from rmcluster.layout import Layout, cache

DIRECTORY = pathlib.Path(os.environ.get("RINGMASTER_CLUSTER_TEST_DIR", "/tmp/ringmaster-cluster-test"))
CLUSTER = Handle(DIRECTORY)
# They change by themselves, or tell of time that passes.
RESTLESS = ("kernel/random", "kernel/ns_last_pid", "kernel/pty/nr", "fs/", "net/netfilter/nf_conntrack_count", "kernel/tainted",
            "kernel/perf_event_max_sample_rate", "kernel/perf_cpu_time_max_percent")
SYSTEM_PLACES = ["/run/netns", "/run/containerd", "/run/xtables.lock", "/run/ringmaster", "/var/lib/kubelet", "/var/lib/cni",
                 "/var/log/pods", "/var/log/containers", "/etc/cni", "/etc/kubernetes", "/opt/cni", "/opt/containerd", "/opt/nri",
                 "/usr/libexec/kubernetes"]


def cluster(*words, check=True):
    return CLUSTER.run(*words, check=check)


def kubectl(*words, check=True):
    return CLUSTER.kubectl(*words, check=check)


FOREVER = "trap 'echo main-ended; exit 0' TERM; while :; do sleep 1 & wait $!; done"


def snapshot():
    """What `down` must restore, as far as a process of this system can see it."""
    def output(*words):
        return subprocess.run(words, capture_output=True, text=True, timeout=30).stdout

    settings = {}
    for folder, _, files in os.walk("/proc/sys"):
        for file in files:
            path = os.path.join(folder, file)
            name = path[len("/proc/sys/"):]
            if not name.startswith(RESTLESS):
                try:
                    settings[name] = pathlib.Path(path).read_bytes()
                except OSError:
                    pass
    cgroups = output("find", "/sys/fs/cgroup", "-type", "d", "-name", Layout(DIRECTORY).id)
    return {"processes": {entry: pathlib.Path("/proc", entry, "comm").read_text() for entry in os.listdir("/proc")
                          if entry.isdigit() and int(entry) != os.getpid()},
            "mounts": pathlib.Path("/proc/self/mountinfo").read_text(), "sysctls": settings,
            "links": output("ip", "-o", "link"), "addresses": output("ip", "-o", "addr"), "routes": output("ip", "route"),
            "packet filter": output("iptables-save"), "cgroups": cgroups,
            "places": [place for place in SYSTEM_PLACES if os.path.exists(place)],
            "temporary files": sorted(os.listdir("/tmp")), "state directory": DIRECTORY.exists()}


def differences(before, after):
    found = []
    for key in before:
        if before[key] != after[key]:
            if isinstance(before[key], dict):
                keys = {k for k in {**before[key], **after[key]} if before[key].get(k) != after[key].get(k)}
                found.append("%s: %s" % (key, {k: (before[key].get(k), after[key].get(k)) for k in sorted(keys)}))
            else:
                found.append("%s: before %s, after %s" % (key, before[key], after[key]))
    return found


@pytest.fixture(scope="module")
def before():
    require_programs("kubernetes", "coredns", "devices")
    CLUSTER.down(check=False)  # what an interrupted run of this test has left is not what is tested here
    return snapshot()


@pytest.fixture(scope="module")
def up(before):
    yield CLUSTER.up("--nodes", 2, "--gpus", 4, "--grace", 15)
    CLUSTER.down(check=False)


def allocatable(node):
    return kubectl("get", "node", node, "-o", r"jsonpath={.status.allocatable.nvidia\.com/gpu}")


def boot_id(node):
    return kubectl("get", "node", node, "-o", "jsonpath={.status.nodeInfo.bootID}")


def test_up_says_where_the_cluster_is(up):
    assert "export KUBECONFIG=%s/kubeconfig" % DIRECTORY in up.stdout
    assert CLUSTER.nodes_ready() == ["n1", "n2"]
    status = cluster("status").stdout
    assert "kubelet" in status and "ENDED" not in status


def test_up_again_leaves_a_running_cluster_alone(up):
    pid = (DIRECTORY / "machines/control/init.pid").read_text()
    assert "is up already" in cluster("up", "--nodes", 2, "--gpus", 4, "--grace", 15).stderr
    assert (DIRECTORY / "machines/control/init.pid").read_text() == pid
    other = cluster("up", "--nodes", 1, check=False)
    assert other.returncode == 1 and "another cluster is up" in other.stderr


def test_a_native_sidecar_starts_before_the_pod_and_ends_after_it(up):
    shared = [{"name": "shared", "mountPath": "/shared"}]
    thing = pod("sidecar", "test -f /shared/up && echo sidecar-was-first; " + FOREVER, node="n2",
                volumes=[{"name": "shared", "emptyDir": {"medium": "Memory"}}],
                initContainers=[{"name": "side", "image": IMAGE, "imagePullPolicy": "IfNotPresent", "restartPolicy": "Always",
                                 "command": ["bash", "-c", "touch /shared/up; " + FOREVER], "volumeMounts": shared,
                                 "startupProbe": {"exec": {"command": ["test", "-f", "/shared/up"]}, "periodSeconds": 1}}])
    thing["spec"]["containers"][0]["volumeMounts"] = shared
    CLUSTER.apply(thing)
    CLUSTER.wait_pods_ready("sidecar")
    assert kubectl("logs", "sidecar", "-c", "main").strip() == "sidecar-was-first"
    assert kubectl("exec", "sidecar", "-c", "main", "--", "cat", "/proc/sys/kernel/hostname").strip() == "sidecar"
    log = CLUSTER.popen_kubectl("logs", "-f", "sidecar", "-c", "main")
    kubectl("delete", "pod", "sidecar")
    assert "main-ended" in log.communicate(timeout=60)[0]


def test_names_and_service_addresses_work_across_nodes(up):
    server = ("exec perl -e 'use IO::Socket::INET; $s = IO::Socket::INET->new(Listen => 5, LocalPort => 8080, ReuseAddr => 1) "
              "or die; while ($c = $s->accept) { print $c qq(page\\n); close $c }'")
    CLUSTER.apply(pod("server", server, node="n1", labels={"app": "server"}), pod("client", FOREVER, node="n2"),
          {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "server"},
           "spec": {"selector": {"app": "server"}, "ports": [{"port": 80, "targetPort": 8080}]}})
    CLUSTER.wait_pods_ready("server", "client")
    ask = "for i in $(seq 60); do exec 3<>/dev/tcp/%s/80 && cat <&3 && exit; sleep 0.5; done 2>/dev/null; exit 1"
    for client in ("client", "server"):  # from the other node, and from the pod itself
        assert kubectl("exec", client, "--", "bash", "-c", ask % "server.default.svc.cluster.local").strip() == "page"
    assert kubectl("exec", "client", "--", "getent", "hosts", "no-such-name", check=False).returncode != 0
    kubectl("delete", "pod,service", "--all", "--wait=true")


def test_a_sick_gpu_is_no_longer_allocatable(up):
    assert allocatable("n1") == "4"
    cluster("gpu-unhealthy", "n1", 0, 2)
    CLUSTER.wait("two GPUs of n1 to be sick", lambda: allocatable("n1") == "2")
    assert allocatable("n2") == "4"
    CLUSTER.apply(pod("gpus", "echo got $NVIDIA_VISIBLE_DEVICES", restartPolicy="Never",
                      container={"resources": {"limits": {"nvidia.com/gpu": 3}}}))
    CLUSTER.wait("the pod's log", lambda: "got GPU-" in kubectl("logs", "gpus", check=False).stdout)
    assert kubectl("get", "pod", "gpus", "-o", "jsonpath={.spec.nodeName}") == "n2"
    cluster("gpu-healthy", "n1", 0, 2)
    CLUSTER.wait("all GPUs of n1 to be well", lambda: allocatable("n1") == "4")
    kubectl("delete", "pod", "gpus")
    assert "0 to 3" in cluster("gpu-unhealthy", "n1", 4, check=False).stderr


def test_a_partitioned_node_is_lost_until_it_heals_and_its_containers_go_on(up):
    CLUSTER.apply(pod("steady", FOREVER, node="n2"))
    CLUSTER.wait_pods_ready("steady")
    started = kubectl("get", "pod", "steady", "-o", "jsonpath={.status.containerStatuses[0].containerID}")
    cluster("partition", "n2", "--wait", 120)
    assert CLUSTER.nodes_ready() == ["n1"]
    assert "partitioned" in cluster("status", check=False).stdout
    cluster("heal", "n2", "--wait", 120)
    assert CLUSTER.nodes_ready() == ["n1", "n2"]
    assert kubectl("get", "pod", "steady", "-o", "jsonpath={.status.containerStatuses[0].containerID}") == started


def test_a_crashed_node_loses_its_containers_and_boots_again(up):
    booted = boot_id("n2")
    assert booted == boot_id("n1") == pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    cluster("crash", "n2", "--wait", 120)
    status = cluster("status", check=False)
    assert status.returncode == 1 and "n2          off" in status.stdout
    assert cluster("crash", "n2", check=False).returncode == 1
    cluster("boot", "n2", "--wait", 120)
    assert boot_id("n2") != booted
    CLUSTER.wait("the pod to start again", lambda: kubectl(
        "get", "pod", "steady", "-o", "jsonpath={.status.containerStatuses[0].restartCount}") == "1")
    CLUSTER.wait_pods_ready("steady")
    assert cluster("boot", "n2", check=False).returncode == 1
    assert cluster("status").returncode == 0


def status_for(token):
    """HTTP status of a request by the holder of this token."""
    server = kubectl("config", "view", "-o", "jsonpath={.clusters[0].cluster.server}")
    ask = urllib.request.Request(server + "/api", headers={"Authorization": "Bearer " + token})
    try:
        with urllib.request.urlopen(ask, timeout=10, context=ssl.create_default_context(cafile=DIRECTORY / "pki/ca.crt")) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def test_the_api_server_can_be_restarted_and_refuse_the_tokens_of_before(up):
    token = kubectl("create", "token", "default").strip()
    cluster("restart-apiserver", "--away", "1")
    assert status_for(token) == 200, "etcd and the key are the same"
    cluster("replace-token-key")
    assert status_for(token) == 401
    assert status_for(kubectl("create", "token", "default").strip()) == 200
    CLUSTER.wait("both nodes to be Ready", lambda: CLUSTER.nodes_ready() == ["n1", "n2"])
    assert cluster("status").returncode == 0


def test_an_image_can_be_loaded_from_an_archive_and_several_at_a_time(up):
    kept = [str(path) for path in sorted((pathlib.Path(cache()) / "images").glob("*.tar"))]
    assert len(kept) >= 2
    cluster("load-image", *kept)


def test_wrong_words_are_refused_with_what_is_allowed(up):
    assert "the nodes are n1, n2" in cluster("crash", "n3", check=False).stderr
    assert "is neither a file nor an image" in cluster("load-image", "no/such:image", check=False).stderr
    for words in (["up", "--nodes", "many"], ["up", "--gpus", "-1"], ["fly"], ["crash"]):
        assert cluster(*words, check=False).returncode == 2
    refused = subprocess.run([str(PROGRAM), "up", "--dir", "/var/tmp/x"], capture_output=True, text=True, timeout=600)
    assert refused.returncode == 2 and "/var" in refused.stderr and not os.path.exists("/var/tmp/x")


def test_down_leaves_nothing(up, before):
    cluster("down")
    left = wait_until_same(before)
    assert not left, "\n".join(left)
    assert "no cluster in" in cluster("status", check=False).stdout


def test_up_works_after_an_earlier_up_was_killed(before):
    first = subprocess.Popen([str(PROGRAM), "up", "--dir", str(DIRECTORY)], stderr=subprocess.PIPE, text=True)
    for line in first.stderr:
        if "control plane" in line:
            break
    CLUSTER.wait("the first node's machine", lambda: (DIRECTORY / "machines/n1/init.pid").exists())
    first.send_signal(signal.SIGKILL)
    first.wait(timeout=30)
    CLUSTER.up()
    assert CLUSTER.nodes_ready() == ["n1", "n2"]
    cluster("down")
    left = wait_until_same(before)
    assert not left, "\n".join(left)


def test_fake_nodes_run_the_pods_that_ask_for_them(before):
    require_programs("kwok")
    CLUSTER.up("--nodes", 0, "--fake-nodes", 20, "--gpus", 8)
    CLUSTER.apply(pod("ordinary", FOREVER), *(
        pod("fake-%d" % index, FOREVER, nodeSelector={"ringmaster.dev/fake-node": "true"},
            tolerations=[{"key": "kwok.x-k8s.io/node", "operator": "Exists"}],
            container={"resources": {"limits": {"nvidia.com/gpu": 8}}}) for index in range(20)))

    def phases():
        return {thing["metadata"]["name"]: thing["status"]["phase"] for thing in CLUSTER.list("pods")}

    CLUSTER.wait("20 pods on 20 fake nodes", lambda: sorted(phases().values()) == ["Pending"] + 20 * ["Running"])
    assert phases()["ordinary"] == "Pending"
    assert len({thing["spec"]["nodeName"] for thing in CLUSTER.list("pods") if "nodeName" in thing["spec"]}) == 20
    cluster("down")


def wait_until_same(before):
    """The differences that stay: the kernel takes a moment to collect dead processes."""
    deadline = time.monotonic() + 20
    while True:
        left = differences(before, snapshot())
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.2)
