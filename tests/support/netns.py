"""Networks of this test's own: a switch, and network namespaces with a cable each to it, which can be cut, in one direction or
both, and slowed.

    with Network(3) as network:            # namespaces 0, 1, 2 with the addresses network.address(0) ...
    with Network(3, families=(6,)):        # with IPv6 addresses only; (6, 4): with both, and address() is the first kind's
        network.run(0, ["true"])           # in a namespace
        network.deafen(1, towards=[0])     # 1 hears nothing of 0, but 0 hears 1
        network.cut(1)                     # 1 and all others hear nothing of each other
        network.heal(1)

The switch lies in a namespace of its own, `network.switch`; its address is reached from all others. No interface or address
of the machine is touched. Each namespace lives as long as a process in it: a holder, which the kernel kills with the thread that made it.
So nothing is left behind, however this process ends; there are no names in /run/netns.

What is cut loses packets without a word, as a broken switch does: no connection is reset. Only what comes in is filtered, at the ear."""
import ctypes
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

from waiting import until

TOOLS = ("ip", "tc", "iptables", "ip6tables", "nsenter", "unshare", "bridge")
PREFIXES = {4: "10.231.77.", 6: "fd10:231:77::"}  # the host's number follows in decimal digits, for IPv6 too
LENGTHS = {4: 24, 6: 64}
FILTERS = {4: "iptables", 6: "ip6tables"}
SWITCH_HOST, FIRST_HOST = 1, 10
PR_SET_PDEATHSIG = 1
MOST = 200


def missing():
    """Why there can be no networks here; empty if there can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    tools = [tool for tool in TOOLS if shutil.which(tool, path=_path()) is None]
    if tools:
        return "not installed: %s (apt-get install iproute2 iptables util-linux)" % ", ".join(tools)
    tried = subprocess.run(["unshare", "--net", "sh", "-ec", "ip link add probe0 type veth peer name probe1; ip link add probe2 type bridge; "
                            "iptables -w -A INPUT -s 10.0.0.1 -j DROP; ip6tables -w -A INPUT -s fd10::1 -j DROP"],
                           capture_output=True, text=True, env=_env())
    return "" if tried.returncode == 0 else "this kernel makes no virtual networks: " + tried.stderr.strip()


def _path():
    return os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/bin:/bin"


def _env():
    return dict(os.environ, PATH=_path())


def _die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class _Namespace:
    """Held by a process that does nothing else."""

    def __init__(self):
        own = os.readlink("/proc/self/ns/net")
        self.holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"], env=_env(), preexec_fn=_die_with_parent,
                                       stdin=subprocess.DEVNULL)
        self.path = "/proc/%d/ns/net" % self.holder.pid
        if not until(lambda: os.readlink(self.path) != own and self._comm() == "sleep", 20, 0.005):
            raise AssertionError("unshare made no namespace")

    def _comm(self):
        return pathlib.Path("/proc/%d/comm" % self.holder.pid).read_text().strip()

    def words(self, *words):
        return ["nsenter", "--net=" + self.path, "--", *map(str, words)]

    def do(self, *words):
        done = subprocess.run(self.words(*words), capture_output=True, text=True, env=_env())
        if done.returncode != 0:
            raise AssertionError("%s: %s" % (" ".join(map(str, words)), done.stderr.strip() or done.stdout.strip()))
        return done.stdout

    def close(self):
        self.holder.kill()
        self.holder.wait()


def needed(count, families=(4,)):
    """A Network for a test; where there can be none the test is skipped with the reason, and with REQUIRE_CLUSTER=1 it fails."""
    import pytest
    why = missing()
    if why and os.environ.get("REQUIRE_CLUSTER") == "1":
        pytest.fail("REQUIRE_CLUSTER=1, and " + why, pytrace=False)
    if why:
        print("SKIPPED: " + why, file=sys.stderr)
        pytest.skip(why)
    return Network(count, families)


class Network:
    def __init__(self, count, families=(4,)):
        assert 0 < count <= MOST, count
        self.count = count
        self.families = families
        self.switch = None
        self.spaces = []
        self.deaf = set()  # (listener, speaker): filtered
        self.links = None

    def __enter__(self):
        try:
            self._make()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for space in [*self.spaces, self.switch]:
            if space is not None:
                space.close()
        self.spaces, self.switch = [], None
        if self.links is not None:
            self.links.cleanup()
            self.links = None

    def _make(self):
        self.switch = _Namespace()
        self.switch.do("ip", "link", "set", "lo", "up")
        self.switch.do("ip", "link", "add", "switch", "type", "bridge")
        self._address(self.switch, SWITCH_HOST, "switch")
        self.switch.do("ip", "link", "set", "switch", "up")
        for index in range(self.count):
            space = _Namespace()
            self.spaces.append(space)
            cable = "cable%d" % index
            self.switch.do("ip", "link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", space.holder.pid)
            self.switch.do("ip", "link", "set", cable, "master", "switch", "up")
            space.do("ip", "link", "set", "lo", "up")
            self._address(space, FIRST_HOST + index, "eth0")
            space.do("ip", "link", "set", "eth0", "up")
        # Paths by which other programs find the namespaces.
        self.links = tempfile.TemporaryDirectory(prefix="rm-net-")
        for index, space in enumerate(self.spaces):
            os.symlink(space.path, os.path.join(self.links.name, str(index)))

    def _address(self, space, host, interface):
        for family in self.families:
            # Nobody else has it: there is no need to ask around first, for as long as which nothing can listen there.
            space.do("ip", "addr", "add", "%s%d/%d" % (PREFIXES[family], host, LENGTHS[family]), "dev", interface,
                     *(["nodad"] if family == 6 else []))

    def address(self, index, family=None):
        return "%s%d" % (PREFIXES[family or self.families[0]], FIRST_HOST + index)

    def words(self, index, command):
        """What runs `command` in a namespace; None: beside the switch."""
        return (self.switch if index is None else self.spaces[index]).words(*command)

    def run(self, index, command, **options):
        return subprocess.run(self.words(index, command), env=_env(), **options)

    # ---- faults

    def deafen(self, listener, towards=None):
        """`listener` hears nothing more of those (default: of all others)."""
        self._add([(listener, speaker) for speaker in self._others(listener, towards)])

    def mute(self, speaker, towards=None):
        """Nobody of those hears `speaker`, which hears them."""
        self._add([(listener, speaker) for listener in self._others(speaker, towards)])

    def cut(self, index, towards=None):
        others = self._others(index, towards)
        self._add([(index, other) for other in others] + [(other, index) for other in others])

    def heal(self, index=None):
        """All that was cut, or all that was cut at one."""
        pairs = {pair for pair in self.deaf if index is None or index in pair}
        self._filter("-D", pairs)
        self.deaf -= pairs

    def _others(self, index, which):
        return [other for other in (range(self.count) if which is None else which) if other != index]

    def _add(self, pairs):
        new = set(pairs) - self.deaf
        self._filter("-A", new)
        self.deaf |= new

    def _filter(self, verb, pairs):
        """All listeners at nearly the same moment."""
        asked = []
        for listener in {listener for listener, _ in pairs}:
            for family in self.families:
                speakers = ",".join(sorted(self.address(speaker, family) for at, speaker in pairs if at == listener))
                words = self.spaces[listener].words(FILTERS[family], "-w", verb, "INPUT", "-s", speakers, "-j", "DROP")
                asked.append(subprocess.Popen(words, env=_env(), stderr=subprocess.PIPE, text=True))
        wrong = [process.communicate()[1] for process in asked]
        assert all(process.returncode == 0 for process in asked), "".join(wrong)

    def can_delay(self):
        """Whether the kernel has netem; where not, `slow` limits the rate instead."""
        return self._shape(0, "netem", "delay", "1ms") and self.straighten(0)

    def slow(self, index, delay_ms, kbit):
        """What this namespace sends is late by `delay_ms`; without netem its cable carries `kbit` kbit/s, with a queue as long. Says which."""
        if self._shape(index, "netem", "delay", "%dms" % delay_ms):
            return "delayed by %d ms" % delay_ms
        if self._shape(index, "tbf", "rate", "%dkbit" % kbit, "burst", "64kb", "latency", "%dms" % delay_ms):
            return "limited to %d kbit/s (no netem in this kernel)" % kbit
        return ""

    def straighten(self, index):
        """No longer slow."""
        return self.run(index, ["tc", "qdisc", "del", "dev", "eth0", "root"], capture_output=True).returncode == 0

    def _shape(self, index, *how):
        return self.run(index, ["tc", "qdisc", "replace", "dev", "eth0", "root", *how], capture_output=True).returncode == 0
