"""Debian's Prometheus scrapes the operator and the sidecars of a job; what it sees changes when a worker is killed.

It runs beside the cluster with deploy/monitoring's configuration. That program is built without Kubernetes discovery, so the test
finds the pods for it, by the labels that the configuration names, and gives it what discovery would. It reaches them through the API
server's proxy.
"""
import base64
import json
import os
import re
import shutil
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import pytest
import yaml

from harness import REPOSITORY, Job, cannot

MONITORING = REPOSITORY / "deploy/monitoring"


class Prometheus:
    def __init__(self, cluster, folder):
        self.cluster, self.folder = cluster, folder
        self.config = yaml.safe_load((MONITORING / "prometheus.yaml").read_text())
        self.selectors = {}
        tls = self.credentials()
        for scrape in self.config["scrape_configs"]:
            name = scrape["job_name"]
            self.selectors[name] = scrape.pop("kubernetes_sd_configs")[0]["selectors"][0]["label"]
            scrape.update({"scheme": "https", "tls_config": tls,
                           "file_sd_configs": [{"files": [str(folder / (name + ".json"))], "refresh_interval": "1s"}]})
        self.config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        (folder / "rules.yaml").write_text((MONITORING / "rules.yaml").read_text())
        (folder / "prometheus.yaml").write_text(yaml.safe_dump(self.config))

    def credentials(self):
        kubeconfig = yaml.safe_load(self.cluster.kubectl("config", "view", "--raw", "--flatten"))
        at, user = kubeconfig["clusters"][0]["cluster"], kubeconfig["users"][0]["user"]
        self.server = at["server"].split("://")[1]
        for name, data in (("ca", at["certificate-authority-data"]), ("cert", user["client-certificate-data"]),
                           ("key", user["client-key-data"])):
            path = self.folder / (name + ".pem")
            path.write_bytes(base64.b64decode(data))
            path.chmod(0o600)
        return {name + "_file": str(self.folder / (name + ".pem")) for name in ("ca", "cert", "key")}

    def discover(self):
        """What Kubernetes discovery finds: a target for each port of each container, with the pod's labels."""
        for name, selector in self.selectors.items():
            targets = []
            for pod in self.cluster.list("pods", selector, namespace=None):
                meta, spec = pod["metadata"], pod["spec"]
                for container in spec["containers"] + spec.get("initContainers", []):
                    for port in container.get("ports", []):
                        targets.append({"targets": [self.server], "labels": {
                            "__metrics_path__": "/api/v1/namespaces/%s/pods/%s:%d/proxy/metrics" % (
                                meta["namespace"], meta["name"], port["containerPort"]),
                            "instance": "%s:%d" % (meta["name"], port["containerPort"]),
                            "__meta_kubernetes_namespace": meta["namespace"], "__meta_kubernetes_pod_name": meta["name"],
                            "__meta_kubernetes_pod_phase": pod["status"]["phase"],
                            "__meta_kubernetes_pod_container_port_name": port.get("name", "")}})
            new = self.folder / (name + ".new")
            new.write_text(json.dumps(targets))
            os.replace(new, self.folder / (name + ".json"))

    def start(self, program):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.url = "http://127.0.0.1:%d" % free.getsockname()[1]
        self.discover()
        with open(self.folder / "log", "w") as log:
            self.process = subprocess.Popen(
                [program, "--config.file=%s" % (self.folder / "prometheus.yaml"), "--storage.tsdb.path=%s" % (self.folder / "data"),
                 "--web.listen-address=" + self.url.split("//")[1]], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self.cluster.wait("Prometheus to answer", lambda: self.get("/-/ready", text=True))

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(20)

    def get(self, path, text=False):
        assert self.process.poll() is None, (self.folder / "log").read_text()[-2000:]
        try:
            with urllib.request.urlopen(self.url + path, timeout=10) as answer:
                words = answer.read().decode()
                return words if text else json.loads(words)["data"]
        except (urllib.error.URLError, OSError):
            return None

    def query(self, expression):
        """[(labels, value)] as of now."""
        data = self.get("/api/v1/query?query=" + urllib.parse.quote(expression)) or {"result": []}
        return [(each["metric"], float(each["value"][1])) for each in data["result"]]

    def number(self, expression):
        """The only value, 0 if there is none."""
        found = self.query(expression)
        assert len(found) < 2, found
        return found[0][1] if found else 0.0

    def wait(self, what, holds):
        def look():
            self.discover()
            return holds()
        return self.cluster.wait(what, look, period=1.0)


@pytest.fixture(scope="module")
def prometheus(operator, tmp_path_factory):
    program = shutil.which("prometheus")
    if program is None:
        cannot("there is no prometheus: apt-get install --no-install-recommends prometheus")
    prometheus = Prometheus(operator, tmp_path_factory.mktemp("prometheus"))
    prometheus.start(program)
    yield prometheus
    prometheus.stop()


@pytest.fixture(scope="module")
def job(operator):
    manifest = yaml.safe_load((REPOSITORY / "examples/digits/job.yaml").read_text())
    container = manifest["spec"]["worker"]["template"]["spec"]["containers"][0]
    container["imagePullPolicy"] = "IfNotPresent"
    container["env"] = [{"name": "DIGITS_EPOCHS", "value": "1000"}, {"name": "DIGITS_PACE_MS", "value": "50"},
                        {"name": "OMP_NUM_THREADS", "value": "1"}]
    operator.apply(manifest)
    job = Job(operator, "digits")
    job.wait_world(4)
    yield job
    job.delete()


def test_operator_and_sidecars_are_scraped(prometheus, job):
    prometheus.wait("two replicas of the operator", lambda: prometheus.number('sum(up{job="ringmaster-operator"})') == 2)
    prometheus.wait("four sidecars", lambda: prometheus.number('sum(up{job="ringmaster-workers"})') == 4)
    assert not prometheus.query("up == 0")
    assert prometheus.number("sum(ringmaster_operator_leader)") == 1
    prometheus.wait("the job's size", lambda: prometheus.number('ringmaster_job_world_size{namespace="default", job_name="digits"}') == 4)
    steps = prometheus.wait("steps", lambda: prometheus.number('max(ringmaster_sidecar_step{job_name="digits"})'))
    prometheus.wait("more steps", lambda: prometheus.number('max(ringmaster_sidecar_step{job_name="digits"})') > steps)


def test_a_kill_is_seen_in_the_series_that_are_about_it(prometheus, job):
    def values():
        return {name: prometheus.number(expression) for name, expression in {
            "exits": 'sum(ringmaster_sidecar_worker_exits_total{job_name="digits", exit_code="137"})',
            "restarts": 'sum(ringmaster_job_worker_restarts_total{job_name="digits"})',
            "epoch": 'max(ringmaster_job_epoch{job_name="digits"})',
            "rebuilds": 'sum(ringmaster_sidecar_rebuilds_total{job_name="digits", reason="WorkerLost"})',
            "recoveries": 'sum(ringmaster_operator_recovery_seconds_count{phase="total", cause="WorkerLost"})',
            "resizes": 'sum(ringmaster_job_resizes_total{job_name="digits"})',
        }.items()}

    before = values()
    epoch = job.status["epoch"]
    job.kill_worker("digits-worker-1")
    job.wait_world(4, after_epoch=epoch + 1)
    prometheus.wait("every series to rise: %s" % before, lambda: all(after > before[name] for name, after in values().items()))
    assert prometheus.number('sum(ringmaster_job_steps_lost_total{job_name="digits"})') == 0


def test_every_alert_is_evaluated_without_an_error_and_none_that_is_grave_stays_pending(prometheus, job):
    def rules():
        return [rule for group in (prometheus.get("/api/v1/rules") or {"groups": []})["groups"] for rule in group["rules"]]

    prometheus.wait("rules", lambda: rules() and all(rule["health"] == "ok" for rule in rules()))
    # The test is shorter than what alerts wait for before they fire. Pending for a moment, as at a rebuild, is no mistake.
    prometheus.wait("no grave alert", lambda: prometheus.query('vector(1) unless on() ALERTS{severity="critical"}'))
    assert not prometheus.query('ALERTS{alertname="RingmasterApiForbidden"}')


def test_promtool_finds_nothing_wrong_with_what_is_exported(operator, job):
    texts = []
    pods = operator.list("pods", "app.kubernetes.io/component=operator", namespace="ringmaster-system")
    for pod, port in [(pod, 8080) for pod in pods] + [(pod, 9403) for pod in job.pods().values()]:
        meta = pod["metadata"]
        texts.append(operator.kubectl("get", "--raw", "/api/v1/namespaces/%s/pods/%s:%d/proxy/metrics" % (
            meta["namespace"], meta["name"], port)))
        done = subprocess.run(["promtool", "check", "metrics"], input=texts[-1], capture_output=True, text=True, timeout=30)
        assert done.returncode == 0, "%s\n%s" % (meta["name"], done.stdout + done.stderr)
    documented = set(re.findall(r"^\| `(ringmaster_\w+)", (REPOSITORY / "docs/metrics.md").read_text(), re.M))
    exported = set(re.findall(r"^# TYPE (ringmaster_\w+)", "\n".join(texts), re.M))
    assert exported and exported <= documented, "not in docs/metrics.md: %s" % (exported - documented)
