"""etcd, kube-apiserver, controllers, scheduler and the cluster's DNS, on the control machine."""
import os

from . import layout
from .common import wait_until

DEFAULT_GRACE = 20


def _bin(name):
    return os.path.join(layout.programs(), name)


def start_etcd(control):
    """It keeps its data in memory: a test cluster is never started from an old state."""
    control.run("mkdir", "-p", "/var/lib/etcd")
    control.run("mount", "-t", "tmpfs", "tmpfs", "/var/lib/etcd")
    control.start("etcd", "etcd", "--data-dir=/var/lib/etcd", "--quota-backend-bytes=2000000000",
                  "--listen-client-urls=http://127.0.0.1:2379", "--advertise-client-urls=http://127.0.0.1:2379",
                  "--listen-peer-urls=http://127.0.0.1:2380", "--initial-advertise-peer-urls=http://127.0.0.1:2380",
                  "--initial-cluster=default=http://127.0.0.1:2380")


def _gates(facts):
    """What `up --feature-gates` asked for, of every program of Kubernetes' that knows them."""
    return ["--feature-gates=" + facts["feature_gates"]] if facts.get("feature_gates") else []


def start_api_server(control, pki, facts):
    eviction_delay = facts["eviction_delay"]
    # Kinds that a gate lets in are of versions that are off by default.
    gates = _gates(facts) + (["--runtime-config=api/beta=true"] if _gates(facts) else [])
    control.start(
        "kube-apiserver", _bin("kube-apiserver"), *gates, "--etcd-servers=http://127.0.0.1:2379",
        "--advertise-address=" + layout.CONTROL_ADDRESS, "--secure-port=%d" % layout.API_PORT,
        "--service-cluster-ip-range=" + layout.SERVICES, "--allow-privileged=true",
        "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
        "--client-ca-file=" + pki.file("ca.crt"),
        "--tls-cert-file=" + pki.file("apiserver.crt"), "--tls-private-key-file=" + pki.file("apiserver.key"),
        "--kubelet-preferred-address-types=InternalIP", "--kubelet-certificate-authority=" + pki.file("ca.crt"),
        "--kubelet-client-certificate=" + pki.file("kubelet-client.crt"),
        "--kubelet-client-key=" + pki.file("kubelet-client.key"),
        "--service-account-issuer=https://kubernetes.default.svc." + layout.DOMAIN,
        "--service-account-key-file=" + pki.file("sa.pub"), "--service-account-signing-key-file=" + pki.file("sa.key"),
        # The control machine has no kube-proxy: services of webhooks are reached at their endpoints.
        "--enable-aggregator-routing=true", "--requestheader-client-ca-file=" + pki.file("front-proxy-ca.crt"),
        "--requestheader-allowed-names=front-proxy-client", "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        "--requestheader-group-headers=X-Remote-Group", "--requestheader-username-headers=X-Remote-User",
        "--proxy-client-cert-file=" + pki.file("front-proxy-client.crt"),
        "--proxy-client-key-file=" + pki.file("front-proxy-client.key"),
        "--default-not-ready-toleration-seconds=%d" % eviction_delay,
        "--default-unreachable-toleration-seconds=%d" % eviction_delay)


def wait_for_api(control, api):
    def ready():
        if api.ready():
            return True
        control.require_alive("etcd")
        control.require_alive("kube-apiserver")
        return False

    wait_until("kube-apiserver (see %s)" % control.log("kube-apiserver"), ready, 90)


def _client(pki, name):
    path = pki.file(name + ".kubeconfig")
    return ["--leader-elect=false", "--bind-address=127.0.0.1", "--kube-api-qps=300", "--kube-api-burst=600",
            "--kubeconfig=" + path, "--authentication-kubeconfig=" + path, "--authorization-kubeconfig=" + path]


def start_controllers(control, pki, facts):
    control.start(
        "kube-controller-manager", _bin("kube-controller-manager"), *_gates(facts), *_client(pki, "controller-manager"),
        "--node-monitor-period=1s", "--node-monitor-grace-period=%ds" % facts["grace"], "--use-service-account-credentials=true",
        "--root-ca-file=" + pki.file("ca.crt"), "--service-account-private-key-file=" + pki.file("sa.key"),
        "--cluster-signing-cert-file=" + pki.file("ca.crt"), "--cluster-signing-key-file=" + pki.file("ca.key"))


def start_scheduler(control, pki, facts):
    control.start("kube-scheduler", _bin("kube-scheduler"), *_gates(facts), *_client(pki, "scheduler"))


def start_dns(control, pki, api):
    """Names of services and pods; every other name doesn't exist, since nothing outside can be reached from inside."""
    zones = layout.DOMAIN + ":53 in-addr.arpa:53"
    layout.write(control.path("Corefile"), """%(zones)s {
  bind %(address)s
  errors
  kubernetes %(domain)s in-addr.arpa {
    kubeconfig %(kubeconfig)s
    pods insecure
    ttl 1
  }
}
.:53 {
  bind %(address)s
  template ANY ANY . {
    rcode NXDOMAIN
  }
}
""" % {"zones": zones, "address": layout.CONTROL_ADDRESS, "domain": layout.DOMAIN,
       "kubeconfig": pki.file("admin.kubeconfig")})
    control.start("coredns", _bin("coredns"), "-conf", control.path("Corefile"))
    ports = [("dns", "UDP"), ("dns-tcp", "TCP")]
    api.create("/api/v1/namespaces/kube-system/services", {
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "kube-dns"},
        "spec": {"clusterIP": layout.DNS_SERVICE,
                 "ports": [{"name": name, "port": 53, "protocol": protocol} for name, protocol in ports]}})
    api.create("/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices", {
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": "kube-dns", "labels": {"kubernetes.io/service-name": "kube-dns"}},
        "endpoints": [{"addresses": [layout.CONTROL_ADDRESS], "conditions": {"ready": True}}],
        "ports": [{"name": name, "port": 53, "protocol": protocol} for name, protocol in ports]})
