"""Reads who may run workers: -H, a hostfile.

`ringmaster run --hosts` reaches other machines by ssh.
"""

import array
import fcntl
import re
import socket
import struct

from ringmaster.runner.errors import LaunchError

_HOST = re.compile(r"(\[[0-9a-fA-F:]+\]|[^\s:,=]+)(?::(\d+))?$")
_LINE = re.compile(r"(\[[0-9a-fA-F:]+\]|[^\s:=]+)(?:\s+slots\s*=\s*(\d+))?$")


def from_option(text):
    """`localhost:2,other:4` as [("localhost", 2), ("other", 4)]. Without a number: one slot."""
    return [_read(_HOST, word.strip(), "-H", "HOST:SLOTS, such as localhost:4", 1)
            for word in text.split(",")]


def from_file(path):
    """The hosts of a hostfile: a line `HOST slots=N` each; `#` begins a comment."""
    try:
        with open(path) as file:
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise LaunchError("--hostfile %s: can't be read: %s" % (path, error))
    hosts = []
    for number, line in enumerate(lines, 1):
        line = line.split("#")[0].strip()
        if line:
            hosts.append(_read(_LINE, line, "--hostfile %s, line %d" % (path, number),
                               "HOST slots=N, such as localhost slots=4", 1))
    if not hosts:
        raise LaunchError("--hostfile %s: names no host" % path)
    return hosts


def _read(pattern, text, where, allowed, default):
    match = pattern.match(text)
    slots = int(match[2]) if match and match[2] else default
    if not match or slots > 100000:
        raise LaunchError("%s: %r is no host; allowed is %s" % (where, text, allowed))
    return match[1].strip("[]"), slots


def elsewhere(hosts):
    """The names of those that are other machines."""
    return [name for name, slots in hosts if slots and not is_here(name)]


def slots_of(hosts):
    return sum(slots for _, slots in hosts)


def to_option(hosts):
    """As `ringmaster run --hosts` takes them."""
    return ",".join("%s:%d" % host for host in hosts if host[1])


def is_here(name):
    """Whether a host's name is this machine's: localhost, its own name, or one of its addresses."""
    if name in ("localhost", socket.gethostname(), socket.gethostname().split(".")[0]):
        return True
    try:
        addresses = {entry[4][0] for entry in socket.getaddrinfo(name, None)}
    except (OSError, UnicodeError):
        return False
    own = _own_ipv4() | _own_ipv6()
    return bool(addresses) and all(_packed(address) in own or address.startswith("127.")
                                   for address in addresses)


def _packed(address):
    if ":" not in address:
        return socket.inet_pton(socket.AF_INET, address)
    return socket.inet_pton(socket.AF_INET6, address.split("%")[0])


# What can be bound says less: with net.ipv4.ip_nonlocal_bind every address can.
def _own_ipv4():
    """Of this machine's interfaces, as Linux's SIOCGIFCONF lists them: 40 bytes each, in them a
    sockaddr_in after a name of 16.
    """
    room = array.array("B", bytes(40 * 4096))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        answer = fcntl.ioctl(probe, 0x8912, struct.pack("iL", len(room), room.buffer_info()[0]))
    return {room[at + 20:at + 24].tobytes() for at in range(0, struct.unpack("iL", answer)[0], 40)}


def _own_ipv6():
    try:
        with open("/proc/net/if_inet6") as file:
            return {bytes.fromhex(line.split()[0]) for line in file}
    except OSError:  # a kernel without IPv6
        return set()
