"""The digits example as a job on the cluster: the manifest of local mode, its image named, its audit log where the test can read it."""
import os
import pathlib
import subprocess

import yaml

from harness import REPOSITORY, Job
from story import newest_epoch, newest_step

DIGITS = REPOSITORY / "examples/digits"
PACED = pathlib.Path(__file__).with_name("paced.py")
MOUNT = "/audit"
CONVERGED = 30  # epochs after which accuracy differs by less than the checker allows, in whatever order the samples came


def trainer_image():
    version = [line for line in (REPOSITORY / "CMakeLists.txt").read_text().splitlines() if line.startswith("project(")][0]
    return "ringmaster.dev/examples-digits:" + version.split("VERSION ")[1].split()[0]


class DigitsJob(Job):
    """A job that trains slowly until it is told to hurry(), and is judged by the example's checker."""

    def __init__(self, cluster, name, audit):
        super().__init__(cluster, name)
        self.audit = audit

    def wait_steps(self, count, seconds=120):
        """Until so many steps more were completed than there are now: by the audit log, the status doesn't tell."""
        goal = newest_step(self.audit) + count
        self.cluster.wait("step %d" % goal, lambda: newest_step(self.audit) >= goal, seconds)

    def wait_bootstrapped(self, size):
        """Until the first world trains, long enough to know how long its steps take; returns its epoch."""
        epoch = self.wait_world(size)
        self.wait_steps(15)
        return epoch

    def hurry(self):
        """To the end of an epoch that no worker comes near to before it can know, and in which training has converged."""
        last = max(newest_epoch(self.audit) + 6, CONVERGED)
        (self.audit / "hurry.new").write_text(str(last))
        (self.audit / "hurry.new").rename(self.audit / "hurry")

    def finish(self):
        """To the end, and what the checker prints."""
        self.hurry()
        self.wait_succeeded()
        return judge(self.audit)


def judge(audit):
    """What the checker prints: it knows nothing of the product. Finds lost steps, parameters, samples, accuracy."""
    done = subprocess.run(["/usr/bin/python3", "-B", str(DIGITS / "check.py"), str(audit)], capture_output=True, text=True,
                          timeout=300, env=dict(os.environ, OMP_NUM_THREADS="1"))
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def manifest(name, audit, replicas, epochs, pace_ms, elastic=None, job=None, pod=None, container=None):
    """The example's manifest with an audit log. The last four are laid over the elasticPolicy, spec, pod and container."""
    made = yaml.safe_load((DIGITS / "job.yaml").read_text())
    made["metadata"]["name"] = name
    spec = made["spec"]
    spec.update(job or {})
    spec["elasticPolicy"].update(elastic or {})
    spec["worker"]["replicas"] = replicas
    template = spec["worker"]["template"]["spec"]
    worker = template["containers"][0]
    settings = {"DIGITS_EPOCHS": str(epochs), "DIGITS_PACE_MS": str(pace_ms), "RINGMASTER_AUDIT_DIR": MOUNT}
    worker["env"] = [each for each in worker["env"] if each["name"] not in settings]
    worker["env"] += [{"name": key, "value": value} for key, value in settings.items()]
    worker.update(image=trainer_image(), command=["python3", MOUNT + "/paced.py", "train.py"],
                  volumeMounts=[{"name": "audit", "mountPath": MOUNT}], **(container or {}))
    template["volumes"] = [{"name": "audit", "hostPath": {"path": str(audit)}}]
    template.update(pod or {})
    return made
