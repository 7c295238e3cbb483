"""kubectl at a run on this machine: the commands that docs/operations.md, install.md and troubleshooting.md show are typed."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading

import pytest

import harness
from harness import REPOSITORY, Run, manifest, wait_for

sys.path.insert(0, str(REPOSITORY / "tests/docs"))
import doc_commands  # noqa: E402

CACHE = pathlib.Path(os.environ.get("RINGMASTER_CACHE") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "ringmaster"))


@pytest.fixture
def kubectl():
    """The folder of the program. `tests/cluster/cluster build kubectl` makes one."""
    found = shutil.which("kubectl", path="%s:%s" % (CACHE / "cluster/bin", os.environ["PATH"]))
    if found:
        return pathlib.Path(found).parent
    assert os.environ.get("REQUIRE_CLUSTER") != "1", "there is no kubectl (tests/cluster/cluster build kubectl)"
    pytest.skip("SKIPPED: no kubectl here, so the pages' commands are not tried: tests/cluster/cluster build kubectl")


class Shell:
    """Types commands of the pages at a run, with names in the place of RUN_DIR, JOB and POD."""

    def __init__(self, run, folder, kubectl, **names):
        self.names = dict(names, RUN_DIR=str(run.dir))
        self.cwd = folder
        self.env = harness.environment(PATH="%s:%s" % (kubectl, os.environ["PATH"]), HOME=str(folder))
        self.first = self.command("operations", "export KUBECONFIG")

    def command(self, page, begins):
        """As the page has it, without its comments."""
        shown = [command for command, _ in doc_commands.commands(doc_commands.page_file(page).read_text()) if command.startswith(begins)]
        assert shown, "%s shows no such command: %s" % (page, begins)
        text = re.sub(r"\s+#.*", "", shown[0])
        return re.sub(r"\b(RUN_DIR|JOB|POD)\b", lambda match: self.names[match[0]], text)

    def bash(self, page, begins, more):
        return ["bash", "-c", "set -o pipefail\n%s\n%s %s" % (self.first, self.command(page, begins), more)]

    def type(self, page, begins, more="", cwd=None, **env):
        """What the command prints, to which `more` is added."""
        done = subprocess.run(self.bash(page, begins, more), cwd=cwd or self.cwd, env=dict(self.env, **env), capture_output=True, text=True,
                              timeout=harness.PATIENCE, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, "%s: %s%s" % (begins, done.stdout, done.stderr)
        return done.stdout

    def goes_on(self, page, begins):
        return Lines(subprocess.Popen(self.bash(page, begins, "& read -r; kill $!"), cwd=self.cwd, env=self.env, stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, text=True))


class Lines:
    """A command that a person ends by Ctrl-C, and what it has printed."""

    def __init__(self, process):
        self.process = process
        self.lines = []
        self.reader = threading.Thread(target=lambda: self.lines.extend(iter(process.stdout.readline, "")), daemon=True)
        self.reader.start()

    def has(self, pattern):
        return wait_for("a line like %r" % pattern, lambda: any(re.search(pattern, line) for line in list(self.lines)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(30)
        self.reader.join(5)


def the_job(out, **fields):
    shell = 'echo "worker $HOROVOD_RANK begins"; exec %s %s' % (harness.WORKER, out)
    return manifest("mine", ["sh", "-c", shell], replicas=1, **fields)


def test_kubectl_at_a_run_does_what_the_pages_say(kubectl, write, tmp_path):
    with Run(write(the_job(tmp_path))) as run:
        run.world("mine", 1)
        shell = Shell(run, tmp_path, kubectl, JOB="mine", POD="mine-worker-0")
        there = shell.type("operations", "kubectl get hvdjob,pods,nodes")
        for line in (r"horovodjob\.ringmaster\.dev/mine +Running +1 +1\.\d+ ", r"pod/mine-worker-0 +2/2 +Running ", r"node/local-0 "):
            assert re.search("^" + line, there, re.M), there
        assert re.search(r"Type: +Running$", shell.type("operations", "kubectl describe hvdjob JOB"), re.M)
        with shell.goes_on("operations", "kubectl logs -f POD") as logs, shell.goes_on("install", "kubectl get hvdjob -w") as watch:
            logs.has(r"^\[0\] worker 0 begins$|^worker 0 begins$")
            watch.has(r"^mine +Running +1 ")
            assert "scaled" in shell.type("operations", "kubectl scale hvdjob JOB --replicas 3")
            run.world("mine", 3)
            watch.has(r"^mine +Running +3 ")

        let_go = shell.type("install", "kubectl get pods -A -l ringmaster.dev/job-uid")
        assert {"pod/mine-worker-%d patched" % index for index in range(3)} == set(let_go.splitlines()), let_go

        shell.type("troubleshooting", "kubectl patch hvdjob JOB --type=merge")
        assert "condition met" in shell.type("troubleshooting", "kubectl wait hvdjob/JOB --for=condition=Suspended")
        assert "edited" in shell.type("troubleshooting", "kubectl edit hvdjob JOB", "--validate=false", KUBE_EDITOR="sed -i 's/suspend: true/suspend: false/'")
        run.world("mine", 3, run.job("mine")["status"]["epoch"])

        images = shell.type("install", "sed 's|ringmaster.dev/examples|", "--validate=false --dry-run=server -o jsonpath='{..image}'", cwd=REPOSITORY)
        assert re.fullmatch(r"registry\.example\.com/ringmaster/examples-digits:[\d.]+", images), images

        write(the_job(tmp_path, runPolicy={"backoffLimit": 3}))
        assert "configured" in shell.type("operations", "kubectl apply --validate=false -f job.yaml")
        assert run.job("mine")["spec"]["runPolicy"]["backoffLimit"] == 3
        assert "deleted" in shell.type("operations", "kubectl delete hvdjob JOB")
        assert run.wait() == 1 and "deleted while it ran" in run.text(), run.text()


def test_a_pod_of_no_job_is_not_asked_to_leave(kubectl, write, tmp_path):
    with Run(write(the_job(tmp_path))) as run:
        run.world("mine", 1)
        env = dict(harness.environment(PATH="%s:%s" % (kubectl, os.environ["PATH"])), KUBECONFIG=str(run.dir / "kubeconfig"))

        def type_kubectl(*words, stdin=""):
            return subprocess.run(["kubectl", *words], env=env, input=stdin, capture_output=True, text=True, timeout=harness.PATIENCE, check=True).stdout
        type_kubectl("create", "--validate=false", "-f", "-", stdin=json.dumps(
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "stranger"}, "spec": {"containers": [{"name": "main", "image": "x", "command": ["true"]}]}}))
        done = run.command("drain", "stranger")
        assert done.returncode == 1 and done.stderr.startswith("ringmaster: stranger belongs to no HorovodJob: "), done
        assert "drain" not in type_kubectl("get", "pod", "stranger", "-o", "yaml"), "nobody would take that back"
        (tmp_path / "stop").touch()
        assert run.wait() == 0, run.text()


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))


def test_a_dry_run_on_the_server_changes_nothing(kubectl, tmp_path, write):
    with Run(write(manifest(command=["sleep", "1000"]))) as run:
        run.line("run directory")
        env = harness.environment(HOME=str(tmp_path), KUBECONFIG=str(run.dir / "kubeconfig"))

        def type_(*words):
            return subprocess.run([str(kubectl / "kubectl"), *words], env=env, capture_output=True, text=True, timeout=harness.PATIENCE)

        def job():
            return json.loads(type_("get", "hvdjob", "job", "-o", "json").stdout or "{}")
        wait_for("the job", job, alive=run.alive)
        for words, says in [(("scale", "hvdjob", "job", "--replicas=1"), "scaled"), (("delete", "hvdjob", "job"), "deleted")]:
            done = type_(*words, "--dry-run=server")
            assert done.returncode == 0 and says in done.stdout and "dry run" in done.stdout, done
        assert job()["spec"]["worker"]["replicas"] == 2 and "deletionTimestamp" not in job()["metadata"]
