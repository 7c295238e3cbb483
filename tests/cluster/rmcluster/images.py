"""Container images where no registry can be reached: made here, kept in the cache as archives, imported into the nodes."""
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
import time

from . import layout, node
from .common import Trouble, lacks, run, say

BASE = "docker.io/library/debian:bookworm-slim"
SUITE = "bookworm"
FORMAT = 2  # of the archives made here: a change makes them anew
USELESS = ["usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info", "var/cache/apt", "var/lib/apt/lists"]


def folder():
    return os.path.join(layout.cache(), "images")


def pause_archive():
    return os.path.join(folder(), "pause.tar")


def base_archive():
    return os.path.join(folder(), "debian-%s-slim-%d.tar" % (SUITE, FORMAT))


def _digest(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def pack(layer, name, archive, entrypoint=None, command=None):
    """Makes a one-layer image `name` out of the tar file `layer`, in the format of `docker save`."""
    digest = _digest(layer)
    config = {"architecture": "amd64", "os": "linux", "created": "1970-01-01T00:00:00Z",
              "rootfs": {"type": "layers", "diff_ids": ["sha256:" + digest]},
              # Builders refuse to add to an image whose history doesn't tell of each layer.
              "history": [{"created": "1970-01-01T00:00:00Z", "created_by": "tests/cluster"}],
              "config": {"Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]}}
    if entrypoint:
        config["config"]["Entrypoint"] = entrypoint
    if command:
        config["config"]["Cmd"] = command
    config_text = json.dumps(config).encode()
    config_name = hashlib.sha256(config_text).hexdigest() + ".json"
    manifest = [{"Config": config_name, "RepoTags": [name], "Layers": [digest + ".tar"]}]
    with tarfile.open(archive + ".new", "w") as out:
        out.add(layer, arcname=digest + ".tar")
        for file, text in ((config_name, config_text), ("manifest.json", json.dumps(manifest).encode())):
            entry = tarfile.TarInfo(file)
            entry.size = len(text)
            out.addfile(entry, io.BytesIO(text))
    os.rename(archive + ".new", archive)


def make_pause():
    """The image every pod starts with."""
    source = os.path.join(layout.HERE, "images", "pause.c")
    stamp = pause_archive() + ".sha256"
    want = "%s %s %d" % (_digest(source), node.PAUSE, FORMAT)
    if os.path.exists(pause_archive()) and os.path.exists(stamp) and open(stamp).read() == want:
        return
    os.makedirs(folder(), exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        run("gcc", "-Os", "-Wall", "-Werror", "-static", "-s", "-o", os.path.join(work, "pause"), source)
        with tarfile.open(os.path.join(work, "layer.tar"), "w") as layer:
            layer.add(os.path.join(work, "pause"), arcname="pause", filter=_owned_by_root)
        pack(os.path.join(work, "layer.tar"), node.PAUSE, pause_archive(), entrypoint=["/pause"])
    layout.write(stamp, want)


def _owned_by_root(entry):
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    entry.mtime = 0
    return entry


def make_base(again=False):
    """A look-alike of debian:bookworm-slim from Debian's packages, with this machine's package sources."""
    if os.path.exists(base_archive()) and not again:
        return
    os.makedirs(folder(), exist_ok=True)
    say("making %s from Debian's packages" % BASE)
    started = time.monotonic()
    work = tempfile.mkdtemp(dir=layout.cache(), prefix="base-")
    try:
        root = os.path.join(work, "root")
        run("debootstrap", "--variant=minbase", SUITE, root, _mirror(), timeout=900)
        for path in USELESS:
            shutil.rmtree(os.path.join(root, path), ignore_errors=True)
            os.makedirs(os.path.join(root, path))
        os.makedirs(os.path.join(root, "var/cache/apt/archives/partial"))
        os.makedirs(os.path.join(root, "var/lib/apt/lists/partial"))
        layer = os.path.join(work, "layer.tar")
        run("tar", "-C", root, "--numeric-owner", "--exclude=./dev/*", "--exclude=./proc/*", "--exclude=./sys/*",
            "-cf", layer, ".", timeout=300)
        pack(layer, BASE, base_archive(), command=["bash"])
    finally:
        shutil.rmtree(work, ignore_errors=True)
    say("%s is made (%d s, %d MiB)" % (BASE, time.monotonic() - started, os.path.getsize(base_archive()) >> 20))


def _mirror():
    """The Debian mirror that this machine uses."""
    listed = run("bash", "-c", "apt-get indextargets --format '$(SITE) $(RELEASE)' | awk '$2 == \"%s\" {print $1; exit}'"
                 % SUITE, check=False).strip()
    return listed or "http://deb.debian.org/debian"


def offer_base_to_buildah():
    """Puts the base where `FROM debian:bookworm-slim` finds it."""
    make_base()
    if _identity(base_archive())[0] in run("buildah", "images", "--quiet", "--no-trunc", BASE, check=False):
        return
    run("buildah", "pull", "--quiet", "docker-archive:" + base_archive(), timeout=300)


def load(nodes, source):
    """Imports an archive, or an image that buildah, docker or podman knows by name, into each of the nodes."""
    if os.path.isfile(source):
        _import(nodes, os.path.abspath(source), source)
        return
    work = tempfile.mkdtemp(prefix="ringmaster-image-")
    try:
        archive = os.path.join(work, "image.tar")
        _save(source, archive)
        _import(nodes, archive, source)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _save(name, archive):
    reasons = []
    for tool, argv in (("buildah", ["buildah", "push", "--quiet", name, "docker-archive:%s:%s" % (archive, name)]),
                       ("docker", ["docker", "save", "--output", archive, name]),
                       ("podman", ["podman", "save", "--quiet", "--output", archive, name])):
        if not shutil.which(tool):
            continue
        try:
            run(*argv, timeout=300)
            return
        except Trouble as trouble:
            reasons.append(str(trouble))
            if os.path.exists(archive):
                os.unlink(archive)
    if not reasons:
        raise lacks("none of buildah, docker, podman is installed, and %s is no file" % name)
    raise Trouble("%s is neither a file nor an image that could be saved:\n%s" % (name, "\n".join(reasons)))


def _identity(archive):
    """(config digest, names) of the one image in a `docker save` archive; None for other archives."""
    try:
        with tarfile.open(archive) as tar:
            images = json.load(tar.extractfile("manifest.json"))
    except (tarfile.TarError, KeyError, ValueError):
        return None
    if len(images) != 1:
        return None
    digest = os.path.basename(images[0]["Config"]).removesuffix(".json")
    return "sha256:" + digest, images[0].get("RepoTags") or []


def _ctr(*words):
    return ["ctr", "--address", node.SOCKET, "--namespace", node.IMAGE_NAMESPACE, "images", *words]


def _has(each, identity):
    """Does the node have this very image under all its names? containerd also lists it under its config's digest."""
    if identity is None or not identity[1]:
        return False
    rows = [row.split() for row in each.run(*_ctr("ls")).splitlines()[1:]]
    manifests = {row[0]: row[2] for row in rows if len(row) > 2}
    return identity[0] in manifests and all(manifests.get(name) == manifests[identity[0]] for name in identity[1])


def _import(nodes, archive, shown):
    identity = _identity(archive)
    nodes = [each for each in nodes if not _has(each, identity)]
    if not nodes:
        say("%s is there already" % shown)
        return
    say("importing %s into %s" % (shown, ", ".join(each.name for each in nodes)))
    imports = [(each, subprocess.Popen(each.enter(*_ctr("import", archive)), stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)) for each in nodes]
    failed = []
    for each, process in imports:
        try:
            words, _ = process.communicate(timeout=300)
        except subprocess.TimeoutExpired:
            process.kill()
            words, _ = process.communicate()
        if process.returncode != 0:
            failed.append("%s: %s" % (each.name, words.strip()[-500:]))
    if failed:
        raise Trouble("importing %s failed: %s" % (shown, "; ".join(failed)))
