"""What tests of the operator on a real cluster are written with: jobs, waits, and evidence when a test fails."""
import base64
import functools
import hmac
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY / "tests/cluster"), str(REPOSITORY / "tests/support")]

from handle import PATIENCE, Handle, cannot, condition  # noqa: E402

VERSION = re.search(r"^version: *(\S+)", (REPOSITORY / "charts/ringmaster/Chart.yaml").read_text(), re.M)[1]
JOB = "horovodjobs.ringmaster.dev"
SYSTEM = "ringmaster-system"  # namespace of the operator
RELEASE = "ringmaster"
IMAGES = pathlib.Path(os.environ.get("RINGMASTER_E2E_IMAGES", REPOSITORY / "build/release/images"))
EVIDENCE = pathlib.Path(os.environ.get("RINGMASTER_E2E_EVIDENCE", REPOSITORY / "build/release/e2e-evidence"))
# Prints what a sidecar answers; its arguments: where, and the job's token.
ASK = ("import sys, urllib.request as u; print(u.urlopen(u.Request(sys.argv[1], headers={'Ringmaster-Token': sys.argv[2]}), "
       "timeout=10).read().decode())")
TELLING = re.compile(r"error|critical|warn|fatal|panic|terminate called|Traceback", re.I)


def image_archives():
    """The archives that `deploy/build-images --save` made, or a skip that says how to make them."""
    archives = [IMAGES / (name + ".tar") for name in ("operator", "sidecar", "trainer")]
    missing = [str(archive) for archive in archives if not archive.exists()]
    if missing:
        cannot("%s is missing; type: deploy/build-images --build-dir build/release --save %s" % (", ".join(missing), IMAGES))
    return archives


class Cluster(Handle):
    """The cluster, and the operator on it."""

    @functools.cached_property
    def chart(self):
        """The archive that a release of this tree has."""
        out = self.dir / "release"
        done = subprocess.run([REPOSITORY / "hack/release", VERSION, "--only", "chart", "--out", out], capture_output=True, text=True,
                              timeout=PATIENCE, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, done.stdout + done.stderr
        return out / ("ringmaster-%s.tgz" % VERSION)

    def install_operator(self, *options):
        self.helm("upgrade", "--install", RELEASE, str(self.chart), "--namespace", SYSTEM, "--create-namespace", "--wait",
                  "--timeout", "3m", *options)

    def uninstall_operator(self):
        self.helm("uninstall", RELEASE, "--namespace", SYSTEM, "--wait")

    def scale_operator(self, replicas):
        """And waits until so many are there, and ready."""
        self.kubectl("scale", "-n", SYSTEM, "deployment/ringmaster-operator", "--replicas=%d" % replicas)
        self.wait("%d replicas of the operator" % replicas,
                  lambda: [condition(pod, "Ready") for pod in self.operator_pods()] == ["True"] * replicas)

    def operator_pods(self):
        return self.list("pods", "app.kubernetes.io/name=ringmaster,app.kubernetes.io/component=operator", namespace=SYSTEM)

    def events(self, name, namespace="default"):
        """[(reason, message)] about the object of this name, oldest first."""
        events = [event for event in self.list("events.events.k8s.io", namespace=namespace)
                  if event.get("regarding", {}).get("name") == name]
        events.sort(key=lambda event: event["metadata"]["creationTimestamp"])
        return [(event.get("reason", ""), event.get("note", "")) for event in events]

    def collect(self, directory):
        """Writes all there is to know into `directory`; returns the lines that decide."""
        return Evidence(self, pathlib.Path(directory)).collect()


class Job:
    """A HorovodJob on the cluster."""

    def __init__(self, cluster, name, namespace="default"):
        self.cluster, self.name, self.namespace = cluster, name, namespace

    @property
    def object(self):
        return self.cluster.get(JOB, self.name, self.namespace) or {}

    @property
    def status(self):
        return self.object.get("status", {})

    def pods(self):
        """{name: Pod} of the job's worker pods."""
        return {pod["metadata"]["name"]: pod for pod in
                self.cluster.list("pods", "training.kubeflow.org/job-name=" + self.name, self.namespace)}

    def condition(self, kind):
        return condition(self.object, kind)

    def wait(self, what, holds, seconds=PATIENCE):
        """The status for which holds(status) is true. A job that ended never gets there: fails at once."""
        def look():
            thing = self.object
            status = thing.get("status", {})
            if holds(status):
                return status
            if "True" in (condition(thing, "Failed"), condition(thing, "Succeeded")):
                raise AssertionError("the job ended while waiting for %s" % what)
            return None

        try:
            return self.cluster.wait(what, look, seconds)
        except AssertionError as error:
            raise AssertionError("%s\nstatus was: %s" % (error, json.dumps(self.status))) from None

    def wait_world(self, size, after_epoch=0, seconds=PATIENCE):
        """Until `size` workers train together in a view later than after_epoch; returns that view's epoch."""
        return self.wait("a world of %d" % size, lambda s: s.get("worldSize") == size and s.get("epoch", 0) > after_epoch
                         and not any(c["type"] == "Rebuilding" and c["status"] == "True" for c in s.get("conditions", [])),
                         seconds)["epoch"]

    def wait_succeeded(self, seconds=300):
        return self.wait("success", lambda s: any(c["type"] == "Succeeded" and c["status"] == "True"
                                                  for c in s.get("conditions", [])), seconds)

    def exec(self, pod, *words, container="worker", check=True):
        return self.cluster.kubectl("exec", "-n", self.namespace, pod, "-c", container, "--", *words, check=check)

    def sidecar(self, pod):
        """What the pod's sidecar says about itself: docs/contracts.md, section 5. Asked from inside the pod, with the job's token."""
        address = "http://%s:9403/status" % self.pods()[pod]["status"]["podIP"]
        return json.loads(self.exec(pod, "python3", "-c", ASK, address, self.token()))

    def token(self):
        """What opens the status of the job's sidecars: docs/contracts.md, section 5."""
        key = self.cluster.get("secrets", self.name + "-tls", self.namespace)["data"]["ring.key"]
        return hmac.new(base64.b64decode(key), b"ringmaster token of sidecars", "sha256").hexdigest()

    def kill_worker(self, pod, pattern="train.py", container="worker"):
        """Kill -9 of the training processes in a pod. The image may be without procps, so it is done with /proc."""
        script = ("for p in /proc/[0-9]*; do case \"$(tr '\\0' ' ' <$p/cmdline 2>/dev/null)\" in *%s*) "
                  "case $(readlink $p/exe) in *python*) kill -9 ${p#/proc/}; echo ${p#/proc/};; esac;; esac; done")
        killed = self.exec(pod, "sh", "-c", script % shlex.quote(pattern).strip("'"), container=container).split()
        assert killed, "no process of %s was found in %s" % (pattern, pod)
        return killed

    def logs(self, pod, container="worker"):
        return self.cluster.kubectl("logs", "-n", self.namespace, pod, "-c", container, check=False).stdout

    def scale(self, replicas):
        self.cluster.kubectl("scale", "-n", self.namespace, JOB, self.name, "--replicas=%d" % replicas)

    def delete(self):
        self.cluster.kubectl("delete", "-n", self.namespace, JOB, self.name, "--wait=true", "--timeout=120s")


class Evidence:
    """Everything about a failed test: objects, events, logs of all containers, also of those that ended before."""

    def __init__(self, cluster, directory):
        self.cluster, self.dir, self.lines = cluster, directory, []

    def collect(self):
        self.dir.mkdir(parents=True, exist_ok=True)
        self.write("cluster.txt", self.cluster.status().stdout)
        for kind in ("nodes", "pods", JOB, "deployments", "leases"):
            self.write(kind.split(".")[0] + ".yaml", self.ask("get", kind, "-A", "-o", "yaml"))
        self.write("events.txt", self.ask("get", "events", "-A", "--sort-by=.metadata.creationTimestamp"))
        self.jobs()
        self.pods()
        self.warnings()
        self.write("decisive.txt", "\n".join(self.lines) + "\n")
        return self.lines

    def ask(self, *words):
        done = self.cluster.kubectl(*words, check=False, timeout=60)
        return done.stdout or done.stderr

    def write(self, name, text):
        (self.dir / name).write_text(text)

    def items(self, kind):
        try:
            return json.loads(self.ask("get", kind, "-A", "-o", "json"))["items"]
        except (ValueError, KeyError):
            return []

    def jobs(self):
        for job in self.items(JOB):
            status = job.get("status", {})
            self.lines.append("job %s: %s, world %s, view %s, steps lost %s" % (job["metadata"]["name"], status.get("state"), *(
                status.get(field) for field in ("worldSize", "view", "stepsLost"))))
            self.lines += ["  %(type)s=%(status)s %(reason)s: %(message)s" % {"reason": "", "message": "", **each}
                           for each in status.get("conditions", [])]

    def pods(self):
        for pod in self.items("pods"):
            name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
            states = pod["status"].get("initContainerStatuses", []) + pod["status"].get("containerStatuses", [])
            if condition(pod, "Ready") != "True":
                self.lines.append("pod %s is not Ready: %s %s" % (name, pod["status"].get("phase"), "; ".join(
                    "%s %s" % (each["name"], json.dumps(each["state"])) for each in states if not each.get("ready"))))
            for each in states:
                self.log(namespace, name, each["name"])
                if each.get("restartCount"):
                    self.log(namespace, name, each["name"], "--previous")

    def log(self, namespace, pod, container, *options):
        text = self.ask("logs", "-n", namespace, pod, "-c", container, *options)
        self.write("%s.%s%s.log" % (pod, container, "".join(options).replace("--", ".")), text)
        lines = text.splitlines()
        # The last words of what ended are worth reading whatever they are.
        telling = lines[-4:] if options else [line for line in lines if TELLING.search(line)][-6:]
        self.lines += ["%s/%s%s: %s" % (pod, container, " before" if options else "", line[:400]) for line in telling]

    def warnings(self):
        events = [event for event in self.items("events") if event.get("type") == "Warning"]
        events.sort(key=lambda event: event["metadata"]["creationTimestamp"])
        self.lines += ["event %s: %s: %s" % (event["involvedObject"].get("name"), event.get("reason"), event.get("message"))
                       for event in events[-12:]]
