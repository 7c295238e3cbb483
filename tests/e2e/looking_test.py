"""What a person types at a job on a real cluster after a fault: the command, which asks running sidecars through the API server's pod
proxy, the page, and kubectl."""
import json
import os
import re
import subprocess
import urllib.request

import pytest

from disruptions_test import kill_training_process
from harness import PATIENCE, REPOSITORY

BIN = REPOSITORY / "build/release/bin"
COMMAND = os.environ.get("RINGMASTER_BIN", str(BIN)) + "/ringmaster"


@pytest.fixture
def job(digits):
    """Of two workers, one of which was killed and is back."""
    job = digits(replicas=2, epochs=500, elastic={"minReplicas": 1})
    epoch = job.wait_bootstrapped(2)
    kill_training_process(job, "digits-worker-1")
    job.wait_world(2, after_epoch=epoch + 1)
    job.wait_steps(5)
    return job


def environment(job):
    env = {name: value for name, value in os.environ.items() if name not in ("RINGMASTER_RUN_DIR", "RINGMASTER_RUNS", "XDG_RUNTIME_DIR")}
    return dict(env, KUBECONFIG=str(job.cluster.dir / "kubeconfig"))


def ringmaster(job, *words):
    """What the command prints; on standard error it must say nothing, for then something failed."""
    done = subprocess.run([COMMAND, *words], env=environment(job), text=True, capture_output=True, timeout=PATIENCE, stdin=subprocess.DEVNULL)
    assert done.returncode == 0 and done.stderr == "", "ringmaster %s\n%s\n%s" % (" ".join(words), done.stdout, done.stderr)
    return done.stdout


class Page:
    """`ringmaster ui`, and what it serves."""

    def __init__(self, job):
        self.process = subprocess.Popen([COMMAND, "ui", "--interval", "0.5"], env=environment(job), text=True, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        line = self.process.stdout.readline()
        self.address, port, self.token = re.fullmatch(r"(http://127\.0\.0\.1:(\d+))/\?token=(\w+)\n", line).groups()
        self.cookie = "ringmaster_ui_%s=%s" % (port, self.token)

    def get(self, path):
        request = urllib.request.Request(self.address + path, headers={"Cookie": self.cookie})
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            assert error.code == 404, error
            return {}  # it has not looked at the job yet

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(30)
        self.process.stdout.close()


def looks_at_all(job, tmp_path):
    """Each command shows what only the sidecars know."""
    rows = re.findall(r"^(\S+).* Running +Training +0 +([01]) +([1-9]\d*) +[1-9]\d*$", ringmaster(job, "get", "digits"), re.M)
    assert {(pod, rank) for pod, rank, _ in rows} in ({("digits-worker-0", "0"), ("digits-worker-1", "1")},
                                                      {("digits-worker-0", "1"), ("digits-worker-1", "0")}), rows
    assert re.match(r"digits trains: step \d+, [1-9]\d* more in 2 s, 2 workers, view 1\.\d; nothing holds it up\n", ringmaster(job, "why", "digits"))
    described = ringmaster(job, "describe", "digits")
    assert re.search(r"^Step: +[1-9]\d*$", described, re.M), described
    assert re.search(r"WorkerRestarted, pod digits-worker-1: worker 0 of pod digits-worker-1 was ended by signal 9", described), described
    assert re.search(r"^Changes:\n(.*\n)*? +\S+ ago  view 1\.\d, 1 worker: WorkerLost; digits-worker-1 lost", described, re.M), described
    assert re.search(r"^digits   view 1\.\d   2 workers   step \d+", ringmaster(job, "top", "digits", "--interval", "0.5"))
    assert re.search(r"ringmaster-launcher: worker exited slot=0 .*exit_code=137", ringmaster(job, "logs", "digits"))
    wrote = ringmaster(job, "timeline", "digits", "-o", str(tmp_path / "timeline.json"))
    assert re.match(r"2 ranks, [1-9]\d* events of ", wrote), wrote
    assert json.loads((tmp_path / "timeline.json").read_text())["traceEvents"]


def the_page_shows_it(job):
    with Page(job) as page:
        def seen():
            now = page.get("/api/job?job=default/digits").get("job", {})
            return len(now.get("ranks", [])) == 2 and now["changes"] and now
        now = job.cluster.wait("the page", seen)
        assert "WorkerLost" in [change["reason"] for change in now["changes"]], now["changes"]
        lanes = page.get("/api/timeline?job=default/digits&seconds=3")
        assert len(lanes["lanes"]) == 2 and not lanes["missing"], lanes


def kubectl_tells_the_story(job):
    """Of the last fault, with its cause, whoever reads it first."""
    text = job.cluster.kubectl("describe", "hvdjob", "digits")
    assert re.search(r"Message: +2 pods and 2 ranks in epoch 1\.\d\n(.*\n)*? *Reason: +Training\n", text), text
    story = [text.find(said) for said in ("WorkerRestarted", "WorkerLost", "WorkerJoined")]
    assert min(story) > 0, text
    assert re.search(r"Warning +WorkerRestarted .*worker 0 of pod digits-worker-1 was ended by signal 9", text), text
    assert re.search(r"Warning +WorkerLost .*epoch 1\.\d: world size 1, before 2", text), text


def test_after_a_fault_every_command_shows_the_job_and_tells_what_happened(job, tmp_path):
    looks_at_all(job, tmp_path)
    the_page_shows_it(job)
    kubectl_tells_the_story(job)
