# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""A client of uroce-broker for tests; it implements the protocol of <rdma/uroce-broker.h>."""
import array
import contextlib
import ctypes
import ipaddress
import itertools
import os
import re
import select
import socket
import struct

import harness

VERSION = 1
NAMES = 64
UDP_PORT = 4791
SLOT_SHIFT, SLOTS, NO_SLOT = 12, 4096, 0xFFFFFFFF
(HELLO, WELCOME, SLOT, SLOT_REPLY, ADDRESS, ADDRESS_REPLY, GSI, GSI_REPLY, PORT, PORT_LISTEN,
 PORT_REPLY, LOOKUP, LOOKUP_REPLY, CONNECT, CONNECT_REPLY, LIST, LIST_REPLY, PING, PONG,
 ADDRESS_END, PORT_END, PROBED, SUPERSEDE, DATAGRAM, CONNECTION, WATCH) = range(1, 27)
WORKER, RETURNING, GUEST = 1, 2, 3
HEADER = struct.Struct("=IIIi")
ENDPOINT = struct.Struct("=16sII")
PROBE, PROBE_BEGIN = struct.Struct(">IIIII"), struct.pack(">II", 0xFF0F0000, 0)
SOL_SOCKET, SCM_RIGHTS = socket.SOL_SOCKET, socket.SCM_RIGHTS
LIBC = ctypes.CDLL(None, use_errno=True)


def set_namespace(path):
    with open(path, "rb") as file:
        if LIBC.setns(file.fileno(), 0) != 0:
            raise OSError(ctypes.get_errno(), "setns")


def new_socket(place, family, kind):
    """A socket of the place's network namespace, in this process."""
    own = f"/proc/{os.getpid()}/ns/net"
    with open(own, "rb") as back:
        set_namespace(f"/proc/{place.holder.pid}/ns/net")
        try:
            return socket.socket(family, kind)
        finally:
            LIBC.setns(back.fileno(), 0)


def listeners(place):
    """Numbers of the names of brokers that listen at the place."""
    # A listener has the flag 0x10000, __SO_ACCEPTCON.
    found = (re.search(r" 00010000 .*@uroce-broker/1/(\d+)$", line) for line in place.net("unix"))
    return sorted({int(match[1]) for match in found if match})


def brokers(place):
    """Process ids of the brokers in the place's network namespace."""
    own = os.stat(f"/proc/{place.holder.pid}/ns/net").st_ino
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
                name = file.read().strip()
            if name == "uroce-broker" and os.stat(f"/proc/{pid}/ns/net").st_ino == own:
                with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                    state = file.read().rsplit(")", 1)[1].split()[0]
                if state != "Z":
                    found.append(int(pid))
    return found


def endpoint(address, scope=0):
    parsed = ipaddress.ip_address(address)
    mapped = parsed if parsed.version == 6 else ipaddress.ip_address(f"::ffff:{address}")
    return ENDPOINT.pack(mapped.packed, scope, 0)


def message(kind, body=b"", number=1, version=VERSION, error=0):
    return HEADER.pack(kind, version, number, error) + body


def hello(role=WORKER, slots=()):
    return struct.pack(f"=II{len(slots)}I", role, len(slots), *slots)


def address_body(address, flags=0):
    return endpoint(address) + struct.pack("=II", flags, 0)


class Ended(Exception):
    """The broker has ended the connection."""


class Connection:
    """A control connection; name: number of the broker's name, by default the highest one."""

    def __init__(self, place, name=None):
        self.sock = new_socket(place, socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.settimeout(harness.PATIENCE)
        self.numbers = itertools.count(1)
        name = max(listeners(place)) if name is None else name
        self.sock.connect(f"\0uroce-broker/{VERSION}/{name}")

    def send(self, data, descriptors=()):
        rights = [(SOL_SOCKET, SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
        self.sock.sendmsg([data], rights)

    def receive(self):
        """(type, number, error, body, descriptors)"""
        return receive(self.sock)

    def ask(self, kind, body=b"", descriptors=()):
        """Sends a request; returns the reply without its header, its error and its descriptors."""
        number = next(self.numbers)
        self.send(message(kind, body, number), descriptors)
        reply, repeated, error, body, got = self.receive()
        assert (reply, repeated) == (kind + (2 if kind == PORT else 1), number)
        return body, error, got

    def ends(self, seconds=harness.PATIENCE):
        """Returns true if the broker has ended this connection, without a reply before."""
        self.sock.settimeout(seconds)
        try:
            return not self.sock.recv(4096)
        except ConnectionError:
            return True
        except TimeoutError:
            return False

    def alive(self):
        return self.ask(PING)[1] == 0

    def close(self):
        self.sock.close()


def receive(sock):
    try:
        data, ancillary, flags, _ = sock.recvmsg(65536, socket.CMSG_SPACE(16 * 4))
    except ConnectionResetError:
        raise Ended from None
    if not data:
        raise Ended
    assert not flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC)
    descriptors = array.array("i")
    for level, kind, got in ancillary:
        if (level, kind) == (SOL_SOCKET, SCM_RIGHTS):
            descriptors.frombytes(got)
    kind, version, number, error = HEADER.unpack_from(data)
    assert version == VERSION
    return kind, number, error, data[HEADER.size:], list(descriptors)


class Client(Connection):
    """A client that has sent HELLO, by default as a new worker, which gets one slot."""

    def __init__(self, place, role=WORKER, slots=(), name=None):
        super().__init__(place, name)
        body, self.error, got = self.ask(HELLO, hello(role, slots))
        self.role, self.slot, self.secret, reserved = struct.unpack("=IIII", body)
        assert reserved == 0
        self.delivery = socket.socket(fileno=got[0]) if got else None
        self.locks, self.members = got[1:], {}

    def add_address(self, address, sock=None):
        """Returns the error, the flags and the reserved field of the reply; keeps the member."""
        flags = 1 if sock else 0
        descriptors = [sock.fileno()] if sock else []
        body, error, got = self.ask(ADDRESS, address_body(address, flags), descriptors)
        assert body[:ENDPOINT.size] == endpoint(address)
        if got:
            assert len(got) == 1
            self.members[address] = socket.socket(fileno=got[0])
            self.members[address].setblocking(False)
        return error, *struct.unpack("=II", body[ENDPOINT.size:])

    def lookup(self, address, slot):
        """Returns the error, and the inode of the slot's member on the address or None."""
        _, error, got = self.ask(LOOKUP, endpoint(address) + struct.pack("=II", slot, 0))
        inodes = [os.fstat(fd).st_ino for fd in got]
        for fd in got:
            os.close(fd)
        return error, *(inodes or [None])

    def add_slot(self):
        body, error, got = self.ask(SLOT, struct.pack("=II", NO_SLOT, 0))
        self.locks += got
        return error, struct.unpack("=II", body)[0]

    def close(self):
        super().close()
        for lock in self.locks:
            os.close(lock)
        for sock in [self.delivery, *self.members.values()]:
            if sock:
                sock.close()
        self.locks, self.members, self.delivery = [], {}, None


def bth(slot, mark, index=100):
    """A datagram for a queue pair of this slot; mark, its PSN, distinguishes it from others."""
    return struct.pack(">BBHII", 4, 0, 0xFFFF, slot << SLOT_SHIFT | index, mark)


def trial(slot):
    """A datagram that shows whether the broker steers to this slot yet."""
    return bth(slot, 0xFFFFFF)


def is_trial(data):
    return data[8:] == trial(0)[8:]


class Sender:
    """A peer that sends from one UDP port to the RoCEv2 port."""

    def __init__(self, place, address="127.0.0.1"):
        self.family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.sock = new_socket(place, self.family, socket.SOCK_DGRAM)
        self.address = address, UDP_PORT

    def send(self, data):
        self.sock.sendto(data, self.address)

    def close(self):
        self.sock.close()


def arrived(sock, seconds=0.0):
    """Returns all datagrams that a member has received; waits up to seconds for the first one."""
    found = []
    while select.select([sock], [], [], 0 if found else seconds)[0]:
        found.append(sock.recv(65536))
    return found


def is_probe(data):
    return len(data) == PROBE.size and data.startswith(PROBE_BEGIN)
