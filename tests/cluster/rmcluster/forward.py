"""Carries connections from a port of the system's loopback to an address inside a machine.

usage: python3 forward.py PORT PID ADDRESS TARGET_PORT PORT_FILE
PORT 0 takes a free one; the port taken is written to PORT_FILE. The listening socket stays in the network it was made
in, while the process moves into the network of PID: so no address or route is needed in the system's own network.
"""
import asyncio
import ctypes
import os
import socket
import sys

CLONE_NEWNET = 0x40000000


async def carry(reader, writer):
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
    except OSError:
        writer.close()


async def serve(listener, address, port):
    async def connected(reader, writer):
        try:
            far_reader, far_writer = await asyncio.wait_for(asyncio.open_connection(address, port), 10)
        except (OSError, asyncio.TimeoutError):
            writer.close()
            return
        await asyncio.gather(carry(reader, far_writer), carry(far_reader, writer))
        writer.close()
        far_writer.close()

    server = await asyncio.start_server(connected, sock=listener)
    await server.serve_forever()


def main():
    port, pid, address, target, port_file = sys.argv[1:]
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", int(port)))
    listener.listen(256)
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/%s/ns/net" % pid) as network:
        if libc.setns(network.fileno(), CLONE_NEWNET) != 0:
            sys.exit("setns: " + os.strerror(ctypes.get_errno()))
    with open(port_file + ".new", "w") as out:
        out.write("%d\n" % listener.getsockname()[1])
    os.rename(port_file + ".new", port_file)
    asyncio.run(serve(listener, address, int(target)))


if __name__ == "__main__":
    main()
