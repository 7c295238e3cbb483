"""The faults of storm.py. Each is a generator: what comes before its `yield` begins the fault, what it yields is how long it
lasts in seconds, and what comes after ends it. Victims are pods; those of PLACELESS strike the machine that all share."""
import contextlib
import os
import signal

import processes

HOUR = 3600
DELETE_RECORD = """
import base64, json, ssl, sys, urllib.error, urllib.request
config = json.load(open(sys.argv[1]))
cluster = config["clusters"][0]["cluster"]
tls = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
request = urllib.request.Request(cluster["server"] + "/api/v1/namespaces/default/configmaps/" + sys.argv[2], method="DELETE",
                                 headers={"Authorization": "Bearer " + config["users"][0]["user"]["token"]})
try:
    urllib.request.urlopen(request, context=tls, timeout=30).read()
except urllib.error.HTTPError as error:
    if error.code != 404:
        raise
"""


class Pod:
    """The processes of a pod."""

    def __init__(self, name):
        self.name = name
        self.place = int(name.rsplit("-", 1)[1])
        self.workers, self.sidecars, self.launchers = [], [], []
        self.files = ""

    def add(self, pid, program):
        {"ringmaster-sidecar": self.sidecars, "ringmaster-launcher": self.launchers,
         "elastic_worker": self.workers}.get(program, []).append(pid)


def pods():
    """{name: Pod} as their processes say."""
    found = {}
    for pid, program in processes.with_environment(None):
        try:
            with open("/proc/%d/environ" % pid, "rb") as file:
                variables = dict(item.split(b"=", 1) for item in file.read().split(b"\0") if b"=" in item)
        except OSError:
            continue
        name = variables.get(b"RINGMASTER_POD_NAME", b"").decode()
        if name:
            pod = found.setdefault(name, Pod(name))
            pod.add(pid, program)
            if program == "ringmaster-sidecar":
                pod.files = variables.get(b"RINGMASTER_STATE_DIR", b"").decode()
    return found


def send(pids, sig):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, sig)


class Faults:
    """`run`: harness.Run; `network`: PodNetwork; `places`: folders with a disk of their own: {"shm": path, "run": path};
    `clocks`: folder of the files that libfaketime reads."""

    # How often each is drawn, relative to the others.
    KINDS = {"worker_kill": 3, "worker_stop": 2, "worker_freeze": 2, "launcher_kill": 2, "launcher_stop": 1, "sidecar_kill": 3,
             "sidecar_stop": 2, "pod_kill": 2, "drain": 2, "scale": 2, "operator_stop": 2, "cut": 3, "long_cut": 1, "deaf": 2,
             "mute": 2, "one_link": 2, "one_way": 2, "link_reset": 2, "slow": 2, "shm_full": 2, "disk_full": 2, "record_deleted": 2,
             "state_deleted": 1, "clock": 2}
    PLACELESS = ("scale", "operator_stop", "record_deleted")

    def __init__(self, run, network, places, clocks, size, limits):
        self.run, self.network, self.places, self.clocks = run, network, places, clocks
        self.size = size  # pods that are wished for
        self.limits = limits

    # ---- processes

    def worker_kill(self, dice, pod):
        send([dice.choice(sorted(pod.workers))], signal.SIGKILL)
        yield 0

    def launcher_kill(self, dice, pod):
        send(pod.launchers, signal.SIGKILL)
        yield 0

    def sidecar_kill(self, dice, pod):
        send(pod.sidecars, signal.SIGKILL)
        yield 0

    def pod_kill(self, dice, pod):
        self.run.do("kill", pod.name)
        yield 0

    def worker_freeze(self, dice, pod):
        """For good: its pod notices."""
        send([dice.choice(sorted(pod.workers))], signal.SIGSTOP)
        yield 0

    def worker_stop(self, dice, pod):
        yield from self._stop([dice.choice(sorted(pod.workers))], dice.uniform(0.05, 0.8))

    def launcher_stop(self, dice, pod):
        yield from self._stop(pod.launchers, dice.uniform(0.05, 3))

    def sidecar_stop(self, dice, pod):
        yield from self._stop(pod.sidecars, dice.choice((dice.uniform(0.05, 2), dice.uniform(0.05, 2), dice.uniform(9, 13))))

    def operator_stop(self, dice, _):
        """With it the API server, the scheduler and the kubelet: in local mode they are one process."""
        yield from self._stop([self.run.process.pid], dice.uniform(0.5, 5))

    def _stop(self, pids, seconds):
        send(pids, signal.SIGSTOP)
        yield seconds
        send(pids, signal.SIGCONT)

    # ---- what people do

    def drain(self, dice, pod):
        self.run.do("drain", pod.name)
        yield 0

    def scale(self, dice, _):
        self.size = dice.randint(*self.limits)
        self.run.do("scale", "job", "--replicas", self.size)
        yield 0

    # ---- links

    def cut(self, dice, pod):
        self.network.cut(pod.place)
        yield from self._healed(pod, dice.uniform(0.2, 4))

    def long_cut(self, dice, pod):
        self.network.cut(pod.place)
        yield from self._healed(pod, dice.uniform(10, 15))

    def deaf(self, dice, pod):
        self.network.deafen(pod.place)
        yield from self._healed(pod, dice.uniform(0.2, 4))

    def mute(self, dice, pod):
        self.network.mute(pod.place)
        yield from self._healed(pod, dice.uniform(0.2, 4))

    def one_link(self, dice, pod):
        self.network.cut(pod.place, [self._another(dice, pod)])
        yield from self._healed(pod, dice.uniform(0.2, 4))

    def one_way(self, dice, pod):
        self.network.deafen(pod.place, [self._another(dice, pod)])
        yield from self._healed(pod, dice.uniform(0.2, 4))

    def link_reset(self, dice, pod):
        """Both ends live, and so do all other connections between their pods."""
        self.network.reset(pod.place, self._another(dice, pod))
        yield 0

    def slow(self, dice, pod):
        self.network.slow(pod.place, dice.randint(5, 50), dice.randint(2000, 20000))
        yield dice.uniform(0.5, 4)
        self.network.straighten(pod.place)

    def _another(self, dice, pod):
        return dice.choice([place for place in range(self.size) if place != pod.place])

    def _healed(self, pod, seconds):
        yield seconds
        self.network.heal(pod.place)

    # ---- disks, records, clocks

    def shm_full(self, dice, pod):
        yield from self._full("shm", dice, pod)

    def disk_full(self, dice, pod):
        """The disk of the run directory: of the sidecars' state, logs and volumes."""
        yield from self._full("run", dice, pod)

    def _full(self, place, dice, pod):
        """And a worker dies meanwhile: while nothing changes nobody needs room."""
        file = os.path.join(self.places[place], "filler")
        free = os.statvfs(self.places[place])
        with open(file, "wb") as out, contextlib.suppress(OSError):
            os.posix_fallocate(out.fileno(), 0, free.f_bavail * free.f_frsize)
        # The last bytes, if somebody wrote meanwhile.
        with open(file, "ab") as out, contextlib.suppress(OSError):
            while True:
                os.write(out.fileno(), b"0" * 4096)
        send([dice.choice(sorted(pod.workers))], signal.SIGKILL)
        yield dice.uniform(0.2, 3)
        os.unlink(file)

    def record_deleted(self, dice, _):
        """The operator's voter forgets (docs/membership.md)."""
        self.network.run(None, ["python3", "-c", DELETE_RECORD, str(self.run.dir / "kubeconfig"), "job-record"], check=True)
        yield 0

    def state_deleted(self, dice, pod):
        """A sidecar comes back without its file: as another member."""
        send(pod.sidecars, signal.SIGSTOP)
        with contextlib.suppress(FileNotFoundError):  # its last sidecar has only just been killed
            os.unlink(os.path.join(pod.files, "membership.json"))
        send(pod.sidecars, signal.SIGKILL)
        yield 0

    def clock(self, dice, pod):
        """The wall clock of the pod jumps and stays there; its processes look at the file once a second."""
        with open(os.path.join(self.clocks, str(pod.place)), "w") as file:
            file.write("%+d\n" % dice.choice((-24 * HOUR, -HOUR, -5, 5, HOUR, 24 * HOUR)))
        yield 1.5
