#!/usr/bin/env python3
"""The operator and many jobs, on a real API server with simulated nodes.

usage: tests/scale/scale.py [--operator PROGRAM] [--cluster DIR] [--jobs N] [--pods N] [--foreign N] [--json FILE] [-- OPERATOR FLAGS]

It needs root and a cluster with fake nodes, whose pods run in name only (kwok): the one in --cluster, or one that it starts itself.
The operator is a process on this machine. One run:
  foreign   the operator's memory with --foreign pods of other people on the cluster, less what it was without
  jobs      --jobs jobs of --pods pods each, applied at once: until all of their pods run
  bare      the objects that the operator has made (Secrets, Services, ... and pods), made again in the same order by a client
            that does nothing else, on --connections connections, until all of those pods run
  drain     how long after `kubectl annotate` (ringmaster.dev/drain) a pod of one job is gone while another --jobs / 4 jobs are
            on their way
Figures of the operator are of its process: CPU and memory as /proc has them, looks at jobs as its metrics have them. Compare ratios;
API server, scheduler and kwok share the machine with it.
"""
import argparse
import base64
import concurrent.futures
import http.client
import json
import os
import pathlib
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from ports import free_ports  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
JOBS = "/apis/ringmaster.dev/v1alpha1/namespaces/%s/horovodjobs"
POD_SELECTOR = "training.kubeflow.org%2Fjob-role%3Dworker"
FAKE = {"nodeSelector": {"ringmaster.dev/fake-node": "true"},
        "tolerations": [{"key": "kwok.x-k8s.io/node", "operator": "Exists"}]}
# What the operator makes for a job, in this order.
MADE = [("/api/v1/namespaces/%s/secrets", "v1", "Secret"), ("/api/v1/namespaces/%s/services", "v1", "Service"),
        ("/apis/policy/v1/namespaces/%s/poddisruptionbudgets", "policy/v1", "PodDisruptionBudget"),
        ("/apis/networking.k8s.io/v1/namespaces/%s/networkpolicies", "networking.k8s.io/v1", "NetworkPolicy"),
        ("/api/v1/namespaces/%s/pods", "v1", "Pod")]
# What the API server writes itself and refuses, or ignores, when it is sent.
SERVER_FIELDS = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "ownerReferences", "finalizers")


class Api:
    """The API server, over connections that are kept: one for each thread."""

    def __init__(self, kubeconfig):
        config = json.loads(pathlib.Path(kubeconfig).read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.host, self.port = cluster["server"].split("//")[1].split(":")
        self.context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        self.context.check_hostname = False
        with tempfile.NamedTemporaryFile() as pair:
            pair.write(base64.b64decode(user["client-certificate-data"]) + b"\n" + base64.b64decode(user["client-key-data"]))
            pair.flush()
            self.context.load_cert_chain(pair.name)
        self.own = threading.local()

    def call(self, method, path, body=None, accept="application/json", content="application/json", fine=()):
        """The parsed answer; an error unless it is 2xx or one of `fine`."""
        try:
            return self.call_once(method, path, body, accept, content, fine)
        except http.client.RemoteDisconnected:  # the server closes a connection that was quiet for minutes
            return self.call_once(method, path, body, accept, content, fine)

    def call_once(self, method, path, body, accept, content, fine):
        if getattr(self.own, "connection", None) is None:
            self.own.connection = http.client.HTTPSConnection(self.host, int(self.port), context=self.context, timeout=60)
            self.own.connection.connect()
            self.own.connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        text = None if body is None else json.dumps(body)
        try:
            self.own.connection.request(method, path, text, {"Accept": accept, **({"Content-Type": content} if text else {})})
            answer = self.own.connection.getresponse()
            data = json.loads(answer.read())
        except (OSError, http.client.HTTPException):
            self.own.connection.close()
            self.own.connection = None
            raise
        if answer.status >= 300 and answer.status not in fine:
            raise RuntimeError("%s %s: %d %s" % (method, path, answer.status, data.get("message")))
        return data

    def phases(self, namespace, selector=""):
        """{status: number of pods}, as kubectl's column STATUS has it: a table is a small part of the objects."""
        table = self.call("GET", "/api/v1/namespaces/%s/pods?resourceVersion=0&includeObject=None&labelSelector=%s" % (
            namespace, selector), accept="application/json;as=Table;v=v1;g=meta.k8s.io")
        column = [each["name"] for each in table["columnDefinitions"]].index("Status")
        counts = {}
        for row in table.get("rows") or []:
            counts[row["cells"][column]] = counts.get(row["cells"][column], 0) + 1
        return counts

    def items(self, path, **query):
        """All objects of a list, chunk by chunk."""
        found, after = [], ""
        while True:
            words = "&".join(["limit=200"] + ["%s=%s" % each for each in query.items()] + (["continue=" + after] if after else []))
            answer = self.call("GET", path + "?" + words)
            found += answer["items"]
            after = answer["metadata"].get("continue", "")
            if not after:
                return found


class Operator:
    """The program under test, and what the kernel and its metrics say of it."""

    def __init__(self, program, kubeconfig, flags, log):
        self.listen, self.metrics_port, self.health = free_ports(3)
        self.log = open(log, "w")
        self.process = subprocess.Popen(
            [program, "--kubeconfig", kubeconfig, "--listen", "0.0.0.0:%d" % self.listen, "--sidecar-target",
             "ringmaster-operator.default:%d" % self.listen, "--operator-namespace", "default", "--metrics-listen",
             "127.0.0.1:%d" % self.metrics_port, "--health-listen", "127.0.0.1:%d" % self.health,
             *flags], stdout=self.log, stderr=subprocess.STDOUT)

    def stop(self):
        if self.process.poll() is not None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def get(self, port, path):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except OSError:
            return 0, ""
        finally:
            connection.close()

    def wait_ready(self):
        until("the operator to be ready", lambda: self.get(self.health, "/readyz")[0] == 200, 60)

    def cpu_seconds(self):
        fields = pathlib.Path("/proc/%d/stat" % self.process.pid).read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory_mib(self, field="VmRSS"):
        for line in pathlib.Path("/proc/%d/status" % self.process.pid).read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1]) / 1024
        return 0

    def metrics(self):
        """{series: value}, labels left as they stand."""
        lines = self.get(self.metrics_port, "/metrics")[1].splitlines()
        return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in lines if line and not line.startswith("#")}


class Looks:
    """Looks at jobs between two moments."""

    def __init__(self, operator):
        self.operator, self.before = operator, operator.metrics()

    def figures(self):
        now = self.operator.metrics()

        def grown(part):
            return sum(value - self.before.get(name, 0) for name, value in now.items() if name.startswith(part))

        looks = grown("ringmaster_operator_reconcile_seconds_count")
        calls = {name[name.index("{"):]: int(value - self.before.get(name, 0)) for name, value in now.items()
                 if name.startswith("ringmaster_operator_api_request_seconds_count")}
        return {"calls_by_kind": {name: calls[name] for name in sorted(calls, key=calls.get, reverse=True)[:20] if calls[name]},
                "looks": int(looks),
                "look_wall_ms": 1000 * grown("ringmaster_operator_reconcile_seconds_sum") / max(1, looks),
                "look_cpu_ms": 1000 * grown("ringmaster_operator_reconcile_cpu_seconds_total") / max(1, looks),
                "api_calls": int(grown("ringmaster_operator_api_request_seconds_count")),
                "events_dropped": int(grown("ringmaster_operator_events_dropped_total"))}


def until(what, condition, seconds, period=0.25):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("%s did not come within %d s" % (what, seconds))
        time.sleep(period)


def job(name, pods):
    worker = {"name": "worker", "image": "example.com/trainer:1", "command": ["python3", "train.py"],
              "env": [{"name": "SETTING_%d" % n, "value": "value %d" % n} for n in range(10)],
              "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
    return {"apiVersion": "ringmaster.dev/v1alpha1", "kind": "HorovodJob", "metadata": {"name": name},
            "spec": {"elasticPolicy": {"minReplicas": pods},
                     "worker": {"replicas": pods, "template": {"spec": dict(FAKE, containers=[worker])}}}}


def foreign_pod(index, nodes):
    """Somebody else's pod, of a usual size, on a node already."""
    container = {"image": "example.com/web:1", "env": [{"name": "SETTING_%d" % n, "value": "v" * 40} for n in range(20)],
                 "resources": {"requests": {"cpu": "1m"}}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-%d" % index, "labels": {"app": "web"},
                                                            "annotations": {"note": "n" * 400}},
            "spec": dict(FAKE, nodeName="fake-%d" % (index % nodes), automountServiceAccountToken=False,
                         containers=[dict(container, name="web"), dict(container, name="proxy")])}


def in_parallel(connections, work, things):
    with concurrent.futures.ThreadPoolExecutor(connections) as pool:
        list(pool.map(work, things))


def remove_namespace(api, namespace):
    """The namespace and all that is in it, jobs first. Pods of fake nodes go at once when nobody waits for their end."""
    api.call("DELETE", JOBS % namespace + "?propagationPolicy=Orphan", fine=(404,))

    def remove(pod):
        path = "/api/v1/namespaces/%s/pods/%s" % (namespace, pod["metadata"]["name"])
        if pod["metadata"].get("finalizers"):
            api.call("PATCH", path, {"metadata": {"finalizers": None}}, content="application/merge-patch+json", fine=(404,))
        api.call("DELETE", path + "?gracePeriodSeconds=0", fine=(404,))

    in_parallel(8, remove, list(api.items("/api/v1/namespaces/%s/pods" % namespace)))
    api.call("DELETE", "/api/v1/namespaces/" + namespace, fine=(404, 409))
    # What is still being deleted would be work beside the next measurement.
    until("the end of namespace " + namespace, lambda: api.call(
        "GET", "/api/v1/namespaces/" + namespace, fine=(404,)).get("reason") == "NotFound", 600)


def make_namespace(api, name):
    api.call("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, fine=(409,))
    # Pods are refused until the controllers have made the account that they run as.
    until("a service account in " + name, lambda: "metadata" in api.call(
        "GET", "/api/v1/namespaces/%s/serviceaccounts/default" % name, fine=(404,)) and api.call(
        "GET", "/api/v1/namespaces/%s/serviceaccounts/default" % name, fine=(404,)).get("kind") == "ServiceAccount", 60)


class Run:
    def __init__(self, options, directory):
        self.options, self.directory = options, pathlib.Path(directory)
        self.kubeconfig = str(self.directory / "kubeconfig")
        self.api = Api(self.kubeconfig)
        self.figures = {"jobs": options.jobs, "pods_each": options.pods}
        self.operators = []

    def start_operator(self):
        log = self.options.log + (".%d" % (len(self.operators) + 1) if self.operators else "")
        operator = Operator(self.options.operator, self.kubeconfig, self.options.flags, log)
        self.operators.append(operator)
        operator.wait_ready()
        return operator

    def say(self, text):
        print("%s  %s" % (time.strftime("%H:%M:%S"), text), file=sys.stderr, flush=True)

    def all_run(self, namespace, count, operator=None):
        """Waits until `count` pods of the namespace run; returns when all of them were there (time.monotonic())."""
        began, told, there = time.monotonic(), time.monotonic(), None
        while True:
            phases = self.api.phases(namespace)
            if there is None and sum(phases.values()) >= count:
                there = time.monotonic()
            if phases.get("Running", 0) >= count:
                return there
            if time.monotonic() - told > 15:
                told = time.monotonic()
                self.say("%s: %s" % (namespace, phases))
            if operator is not None and operator.process.poll() is not None:
                raise RuntimeError("the operator ended: see %s" % self.options.log)
            if time.monotonic() - began > self.options.patience:
                raise TimeoutError("%d pods did not run within %d s: %s" % (count, self.options.patience, phases))
            time.sleep(0.5)

    def foreign(self):
        nodes = len(self.api.items("/api/v1/nodes"))
        operator = self.start_operator()
        time.sleep(2)
        without = operator.memory_mib()
        operator.stop()
        make_namespace(self.api, "foreign")
        path = "/api/v1/namespaces/foreign/pods"
        self.say("%d foreign pods" % self.options.foreign)
        in_parallel(8, lambda n: self.api.call("POST", path, foreign_pod(n, nodes), fine=(409,)), range(self.options.foreign))
        operator = self.start_operator()
        time.sleep(2)
        self.figures["foreign_pods"] = self.options.foreign
        self.figures["foreign_mib"] = operator.memory_mib() - without
        self.figures["foreign_peak_mib"] = operator.memory_mib("VmHWM") - without
        operator.stop()
        self.say("foreign: %s" % self.figures)
        remove_namespace(self.api, "foreign")

    def jobs(self):
        options, api = self.options, self.api
        make_namespace(api, "jobs")
        operator = self.start_operator()
        looks, cpu, rss = Looks(operator), operator.cpu_seconds(), operator.memory_mib()
        began = time.monotonic()
        in_parallel(8, lambda n: api.call("POST", JOBS % "jobs", job("j%04d" % n, options.pods), fine=(409,)), range(options.jobs))
        self.figures["applied_s"] = time.monotonic() - began
        there = self.all_run("jobs", options.jobs * options.pods, operator)
        took = time.monotonic() - began
        self.figures.update(operator_made_s=there - began, operator_s=took, operator_jobs_per_s=options.jobs / took)
        self.settle(operator)
        used = operator.cpu_seconds() - cpu
        self.figures.update(cpu_ms_per_job=1000 * used / options.jobs, rss_start_mib=rss, rss_end_mib=operator.memory_mib(),
                            rss_peak_mib=operator.memory_mib("VmHWM"), **looks.figures())
        self.say("jobs: %s" % json.dumps(self.figures))
        return operator

    def settle(self, operator):
        """Until the operator has nothing more to do about the jobs at hand."""
        last = -1.0
        for _ in range(60):
            now = operator.cpu_seconds()
            if now - last < 0.05:
                return
            last = now
            time.sleep(1)

    def bare(self):
        """The same objects by a client that does nothing else."""
        options, api = self.options, self.api
        groups = {}
        for path, version, kind in MADE:
            for thing in api.items(path % "jobs"):
                owners = thing["metadata"].get("ownerReferences", [])
                if not owners:
                    continue
                groups.setdefault(owners[0]["name"], []).append((path, strip(thing, version, kind)))
        remove_namespace(api, "jobs")
        make_namespace(api, "bare")

        def make(name):
            # The job itself under a manager that nobody is, so that nobody takes it up.
            mine = job(name, options.pods)
            mine["spec"]["runPolicy"] = {"managedBy": "nobody.example.com/none"}
            api.call("POST", JOBS % "bare", mine)
            for path, thing in groups[name]:
                api.call("POST", path % "bare", thing)

        began = time.monotonic()
        in_parallel(options.connections, make, sorted(groups))
        made = time.monotonic() - began
        self.all_run("bare", options.jobs * options.pods)
        took = time.monotonic() - began
        self.figures.update(bare_made_s=made, bare_s=took, bare_jobs_per_s=options.jobs / took)
        self.figures["made_ratio"] = made / self.figures["operator_made_s"]
        self.figures["ratio"] = self.figures["operator_jobs_per_s"] / self.figures["bare_jobs_per_s"]
        remove_namespace(api, "bare")

    def drain(self, operator):
        """A pod of a job leaves while others are being admitted."""
        options, api = self.options, self.api
        make_namespace(api, "more")
        threading.Thread(target=in_parallel, daemon=True, args=(
            4, lambda n: api.call("POST", JOBS % "more", job("m%04d" % n, options.pods), fine=(409,)),
            range(max(1, options.jobs // 4)))).start()
        until("pods of the later jobs", lambda: sum(api.phases("more").values()) > 0, 60)
        path = "/api/v1/namespaces/jobs/pods/j0000-worker-0"
        uid = api.call("GET", path)["metadata"]["uid"]
        began = time.monotonic()
        api.call("PATCH", path, {"metadata": {"annotations": {"ringmaster.dev/drain": "Measured"}}},
                 content="application/merge-patch+json")

        def goes():
            pod = api.call("GET", path, fine=(404,))["metadata"]
            return pod.get("uid") != uid or "deletionTimestamp" in pod

        until("the drained pod to go", goes, 120, period=0.02)
        self.figures["drain_s"] = time.monotonic() - began
        self.all_run("more", max(1, options.jobs // 4) * options.pods, operator)

    def whole(self):
        options = self.options
        if options.foreign:
            self.foreign()
        operator = self.jobs()
        self.drain(operator)
        operator.stop()
        remove_namespace(self.api, "more")
        if options.connections:
            self.bare()
        return self.figures


def strip(thing, version, kind):
    """What a client would have sent to get this object."""
    metadata = {key: value for key, value in thing["metadata"].items() if key not in SERVER_FIELDS + ("namespace",)}
    mine = {"apiVersion": version, "kind": kind, "metadata": metadata}
    mine.update({key: value for key, value in thing.items() if key in ("spec", "data", "type", "immutable")})
    if kind == "Pod":
        for field in ("nodeName", "serviceAccount", "serviceAccountName", "priority", "preemptionPolicy", "schedulingGates"):
            mine["spec"].pop(field, None)
        mine["spec"]["tolerations"] = FAKE["tolerations"]
        mine["spec"]["volumes"] = [each for each in mine["spec"].get("volumes", []) if not each["name"].startswith("kube-api-access")]
    if kind == "Service":
        mine["spec"] = {key: value for key, value in mine["spec"].items() if key in ("selector", "ports", "publishNotReadyAddresses")}
        mine["spec"]["clusterIP"] = "None"
    return mine


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--operator", default=str(ROOT / "build/release/bin/ringmaster-operator"))
    parser.add_argument("--cluster", help="state directory of a cluster that is up with --fake-nodes")
    parser.add_argument("--fake-nodes", type=int, default=40, help="of a cluster that is started here")
    parser.add_argument("--jobs", type=int, default=100)
    parser.add_argument("--pods", type=int, default=10, help="of each job")
    parser.add_argument("--foreign", type=int, default=0)
    parser.add_argument("--connections", type=int, default=8, help="of the bare client; 0: no bare client")
    parser.add_argument("--patience", type=int, default=1200, help="seconds until pods that don't run are a failure")
    parser.add_argument("--log", default="/tmp/ringmaster-scale-operator.log")
    parser.add_argument("--json", help="append the figures to this file, a line for each run")
    split = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser.parse_args(arguments[:split])
    options.flags = arguments[split + 1:]
    return options


def main(arguments):
    options = parse(arguments)
    program = str(ROOT / "tests/cluster/cluster")
    directory, run = options.cluster, None
    if directory is None:
        directory = tempfile.mkdtemp(prefix="ringmaster-scale-")
        subprocess.run([program, "up", "--dir", directory, "--nodes", "0", "--fake-nodes", str(options.fake_nodes)], check=True,
                       stdout=subprocess.DEVNULL)
    try:
        subprocess.run([program, "kubectl", "--dir", directory, "apply", "--server-side", "-f", str(ROOT / "crds")], check=True,
                       stdout=subprocess.DEVNULL)
        run = Run(options, directory)
        figures = run.whole()
    finally:
        for operator in run.operators if run else []:
            operator.stop()
        if options.cluster is None:
            subprocess.run([program, "down", "--dir", directory], check=False)
    for name, value in figures.items():
        print("%-22s %s" % (name, "%.2f" % value if isinstance(value, float) else value))
    if options.json:
        with open(options.json, "a") as file:
            file.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
