"""Ports for programs that can't be told to choose their own."""
import socket


def free_ports(count):
    """Ports of 127.0.0.1 that were free a moment ago, each another one."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports
