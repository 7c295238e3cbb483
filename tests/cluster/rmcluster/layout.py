"""Where things are: the cache that stays, the state directory that `down` removes, the addresses inside."""
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
import time

from .common import Trouble

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # tests/cluster
REPOSITORY = os.path.dirname(os.path.dirname(HERE))

FABRIC = "10.200.0.0/24"
CONTROL_ADDRESS = "10.200.0.1"
PODS = "10.244.0.0/16"
FAKE_PODS = "10.250.0.0/16"
SERVICES = "10.96.0.0/16"
API_SERVICE = "10.96.0.1"
DNS_SERVICE = "10.96.0.10"
API_PORT = 6443
DOMAIN = "cluster.local"
MAX_NODES = 99
CONTROL = "control"  # the machine of the control plane; not a node


def cache():
    """The folder that survives: programs and images."""
    base = os.environ.get("RINGMASTER_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.join(os.environ.get("HOME") or "/tmp", ".cache"), "ringmaster")
    return os.path.join(os.path.abspath(base), "cluster")


def programs():
    return os.path.join(cache(), "bin")


def default_directory():
    return os.path.join(tempfile.gettempdir(), "ringmaster-cluster-%d" % os.getuid())


def node_address(index):
    return "10.200.0.%d" % (100 + index)


def node_pods(index):
    return "10.244.%d.0/24" % index


class Layout:
    """One cluster's state directory."""

    def __init__(self, directory):
        self.dir = os.path.abspath(directory)
        for hidden in ("/run", "/var", "/proc", "/sys"):
            for path, option in ((self.dir, "--dir"), (cache(), "RINGMASTER_CACHE")):
                if os.path.realpath(path).startswith(hidden + "/"):
                    raise Trouble("%s %s is under %s, which every node has its own of: choose another place"
                                  % (option, path, hidden), status=2)
        self.locked = None  # the file descriptor of lock()
        # Two clusters may stand side by side; whatever has a machine-wide name carries this one.
        self.id = "rmc-" + hashlib.sha256(self.dir.encode()).hexdigest()[:8]

    def path(self, *parts):
        return os.path.join(self.dir, *parts)

    @property
    def kubeconfig(self):
        return self.path("kubeconfig")

    def machine(self, name, *parts):
        return self.path("machines", name, *parts)

    def exists(self):
        return os.path.isdir(self.dir)

    def lock(self, seconds=300):
        """Holds the directory for one command that changes the cluster; released when the program ends."""
        deadline = time.monotonic() + seconds
        while self.locked is None:
            os.makedirs(self.dir, mode=0o755, exist_ok=True)
            fd = os.open(self.dir, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.isdir(self.dir) and os.path.samestat(os.fstat(fd), os.stat(self.dir)):  # not a `down` in between
                    self.locked = fd
                    return
            except OSError:
                if time.monotonic() > deadline:
                    raise Trouble("another `cluster` command has been busy with %s for %d s" % (self.dir, seconds)) from None
            os.close(fd)
            time.sleep(0.1)

    def save(self, facts):
        with open(self.path("cluster.json.new"), "w") as out:
            json.dump(facts, out, indent=1)
        os.rename(self.path("cluster.json.new"), self.path("cluster.json"))

    def facts(self):
        """What `up` was asked for and what came of it; {} when there is no cluster here."""
        try:
            with open(self.path("cluster.json")) as file:
                return json.load(file)
        except (OSError, ValueError):
            return {}

    def remove(self):
        shutil.rmtree(self.dir, ignore_errors=True)
        if os.path.isdir(self.dir):
            shutil.rmtree(self.dir)  # now the reason is shown


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(fd, "w") as out:
        out.write(text)


def write_json(path, value):
    """Configuration files are written as JSON, which every reader of YAML reads."""
    write(path, json.dumps(value, indent=1) + "\n")
