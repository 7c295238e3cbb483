"""A cluster in the hands of a test: its commands, kubectl, and waits with a deadline. Used here and by tests/e2e."""
import json
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]
from rmcluster import layout  # noqa: E402
from waiting import until  # noqa: E402

PROGRAM = HERE / "cluster"
REQUIRED = os.environ.get("REQUIRE_CLUSTER") == "1"
IMAGE = "docker.io/library/debian:bookworm-slim"
PATIENCE = 240.0  # two cores may be shared with much else; nothing is asserted about time


def cannot(reason):
    """No cluster here: a failure where one is required, else a skip that can't be overlooked."""
    if REQUIRED:
        pytest.fail("REQUIRE_CLUSTER=1, and " + reason, pytrace=False)
    pytest.skip("SKIPPED, no cluster: " + reason)


def require_programs(*things):
    """Skips where programs are not built (default: all): a test run shall not start a build of minutes by surprise."""
    done = subprocess.run([str(PROGRAM), "build", "--check", *things], capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        cannot(done.stderr.strip())


def run(program, name, words, check, **options):
    """The outcome of program and words; check: it must have succeeded."""
    done = subprocess.run([*program, *map(str, words)], capture_output=True, text=True, **options)
    assert not check or done.returncode == 0, "%s %s: exit status %d\n%s%s" % (
        name, " ".join(map(str, words)), done.returncode, done.stdout, done.stderr)
    return done


class Handle:
    def __init__(self, directory):
        self.dir = pathlib.Path(directory)

    def run(self, command, *words, check=True, timeout=300, stdin=""):
        """`cluster COMMAND --dir DIR WORDS...`, to its end."""
        program = [str(PROGRAM), command, "--dir", str(self.dir)]
        return run(program, "cluster " + command, words, check, timeout=timeout, input=stdin)

    def up(self, *words):
        done = self.run("up", *words, check=False, timeout=600)
        if done.returncode == 3:
            cannot(done.stderr.strip())
        assert done.returncode == 0, done.stderr
        return done

    def down(self, check=True):
        return self.run("down", check=check)

    def status(self):
        return self.run("status", check=False)

    def kubectl(self, *words, check=True, timeout=150, stdin=""):
        """What kubectl printed; with check=False the whole outcome."""
        done = run([self._kubectl()], "kubectl", words, check, timeout=timeout, input=stdin, env=self._environment())
        return done.stdout if check else done

    def popen_kubectl(self, *words):
        return subprocess.Popen([self._kubectl(), *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, env=self._environment())

    # A test asks a thousand times: `cluster kubectl` would begin a Python for each, which takes longer than the question.
    def _kubectl(self):
        return os.path.join(layout.programs(), "kubectl")

    def _environment(self):
        return dict(os.environ, KUBECONFIG=layout.Layout(str(self.dir)).kubeconfig)

    def helm(self, *words, check=True, timeout=300):
        return self.run("helm", *words, check=check, timeout=timeout)

    def apply(self, *things, namespace="default"):
        """Applies objects (dicts), or manifests (text)."""
        texts = [thing if isinstance(thing, str) else json.dumps(thing) for thing in things]
        return self.kubectl("apply", "-n", namespace, "-f", "-", stdin="\n---\n".join(texts))

    def get(self, kind, name, namespace="default"):
        """The object, or None."""
        done = self.kubectl("get", kind, name, "-n", namespace, "-o", "json", check=False)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def list(self, kind, selector="", namespace="default"):
        words = ["-A"] if namespace is None else ["-n", namespace]
        return json.loads(self.kubectl("get", kind, *words, "-l", selector, "-o", "json"))["items"]

    def wait(self, what, condition, seconds=PATIENCE, period=0.3):
        """The first true value of condition(); fails with `what` after `seconds`."""
        value = until(condition, seconds, period)
        assert value, "%s did not come within %.0f s\n%s" % (what, seconds, self.status().stdout)
        return value

    def wait_pods_ready(self, *names, namespace="default"):
        self.kubectl("wait", "-n", namespace, "--for=condition=Ready", "--timeout=%ds" % PATIENCE,
                     *("pod/" + name for name in names), timeout=PATIENCE + 30)

    def nodes_ready(self):
        return sorted(node["metadata"]["name"] for node in json.loads(self.kubectl("get", "nodes", "-o", "json"))["items"]
                      if condition(node, "Ready") == "True")


def condition(thing, kind):
    """Status of a condition of an object, or None."""
    for each in (thing or {}).get("status", {}).get("conditions", []):
        if each["type"] == kind:
            return each["status"]
    return None


def pod(name, script, node=None, labels=None, container=None, **spec):
    """A pod of one container that runs a bash script."""
    main = {"name": "main", "image": IMAGE, "imagePullPolicy": "IfNotPresent", "command": ["bash", "-c", script]}
    main.update(container or {})
    placed = {"nodeName": node} if node else {}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels or {}},
            "spec": dict({"terminationGracePeriodSeconds": 5, "containers": [main]}, **placed, **spec)}
