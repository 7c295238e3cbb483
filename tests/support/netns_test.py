"""The networks of netns.py: who hears whom, and that nothing is left of them."""
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import netns  # noqa: E402
from processes import alive  # noqa: E402
from waiting import until  # noqa: E402

LISTEN = """
import socket, sys
s = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM)
s.bind((sys.argv[1], 7))
print("up", flush=True)
while True:
    print(s.recv(100).decode(), flush=True)
"""
SPEAK = """
import socket, sys
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
socket.socket(family, socket.SOCK_DGRAM).sendto(sys.argv[2].encode(), (sys.argv[1], 7))
"""
PATIENCE = 30


@pytest.fixture(params=[(4,), (6,)], ids=["IPv4", "IPv6"])
def network(request):
    with netns.needed(3, request.param) as network:
        yield network


class Ear:
    """Collects what comes in at a namespace."""

    def __init__(self, network, index, folder):
        self.file = folder / ("heard-%d" % index)
        with open(self.file, "wb") as out:
            self.process = subprocess.Popen(network.words(index, ["python3", "-c", LISTEN, network.address(index)]), stdout=out)
        assert until(lambda: "up" in self.words(), PATIENCE, 0.01)

    def words(self):
        return self.file.read_text().split()


def talk(network, ears, pairs):
    """Which of these (speaker, listener) are heard. Word by word until those that must be are there, so nothing depends on time:
    what comes through at all comes before the last word of a witness that is sent after it."""
    said = "word%d" % time.monotonic_ns()
    for speaker, listener in pairs:
        network.run(speaker, ["python3", "-c", SPEAK, network.address(listener), "%s-%d" % (said, speaker)], check=False)
    for listener in {listener for _, listener in pairs}:
        # From beside the switch, whom nobody is deaf to.
        witness = "%s-witness" % said
        network.run(None, ["python3", "-c", SPEAK, network.address(listener), witness], check=True)
        assert until(lambda: witness in ears[listener].words(), PATIENCE, 0.01)
    return {(speaker, listener) for speaker, listener in pairs if "%s-%d" % (said, speaker) in ears[listener].words()}


PAIRS = [(a, b) for a in range(3) for b in range(3) if a != b]


def test_each_hears_each_until_cut_and_again_when_healed(network, tmp_path):
    ears = {index: Ear(network, index, tmp_path) for index in range(3)}
    everybody = set(PAIRS)
    assert talk(network, ears, PAIRS) == everybody
    network.cut(1)
    assert talk(network, ears, PAIRS) == {(0, 2), (2, 0)}
    network.heal(1)
    assert talk(network, ears, PAIRS) == everybody
    network.deafen(1, [0])
    assert talk(network, ears, PAIRS) == everybody - {(0, 1)}
    network.mute(2)
    assert talk(network, ears, PAIRS) == everybody - {(0, 1), (2, 0), (2, 1)}
    network.heal()
    assert talk(network, ears, PAIRS) == everybody


def test_a_slow_cable_still_carries(network, tmp_path):
    ears = {index: Ear(network, index, tmp_path) for index in range(2)}
    how = network.slow(0, 20, 500)
    print(how or "this kernel has neither netem nor tbf")
    assert how
    assert talk(network, ears, [(0, 1), (1, 0)]) == {(0, 1), (1, 0)}
    assert network.straighten(0)
    assert not network.straighten(0), "there was nothing left"


def interfaces():
    return sorted(os.listdir("/sys/class/net")), subprocess.run(["ip", "addr"], capture_output=True).stdout


def test_nothing_of_this_machine_is_touched_and_nothing_is_left():
    before, names = interfaces(), os.path.exists("/run/netns") and os.listdir("/run/netns")
    with netns.needed(2) as network:
        holders = [space.holder.pid for space in [network.switch, *network.spaces]]
        assert interfaces() == before
        assert all(map(alive, holders))
    assert not any(map(alive, holders))
    assert interfaces() == before
    assert (os.path.exists("/run/netns") and os.listdir("/run/netns")) == names


HOLD = """
import sys
sys.path.insert(0, sys.argv[1])
import netns
with netns.Network(2) as network:
    print(*[space.holder.pid for space in [network.switch, *network.spaces]], flush=True)
    sys.stdin.read()
"""


def test_nothing_is_left_of_a_test_that_was_killed(network, tmp_path):
    # Its folder of links lies in TMPDIR, which is ours to remove.
    test = subprocess.Popen([sys.executable, "-c", HOLD, os.path.dirname(__file__)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            text=True, env=dict(os.environ, TMPDIR=str(tmp_path)))
    holders = list(map(int, test.stdout.readline().split()))
    assert len(holders) == 3 and all(map(alive, holders))
    os.kill(test.pid, signal.SIGKILL)
    test.wait()
    assert until(lambda: not any(map(alive, holders)), PATIENCE, 0.01)


def test_why_there_can_be_none_is_said(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert netns.missing() == "network namespaces need root"
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(netns, "TOOLS", ("ip", "no-such-tool"))
    assert "not installed: no-such-tool" in netns.missing()


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
