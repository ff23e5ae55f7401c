# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""A process of another user that does to ours what it can, for test_hostile.py.

usage: stranger.py ABI-VERSION ATTACK SECONDS

It prints how often it could do what, as JSON; "answers" is what it got from ours, which is to be
nothing.
"""
import array
import collections
import contextlib
import json
import os
import random
import select
import signal
import socket
import struct
import sys
import tempfile
import time

VERSION, ATTACK, SECONDS = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])
SLOTS = 6
LINGER_SECONDS = 20
KINDS = range(0, 14)
LOOPBACK = bytes(10) + b"\xff\xff\x7f\0\0\1"
RANDOM = random.Random(5)
DONE = collections.Counter()


def name(kind, slot):
    return f"\0uroce/{VERSION}/{kind}/{slot}"


def lingering():
    """A TCP socket whose last close waits for what its peer never reads."""
    sender = socket.create_connection(LISTENER.getsockname())
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, LINGER_SECONDS))
    sender.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            sender.send(bytes(65536))
    return sender.detach()


# Its connections live on when a child has ended; nobody accepts them, so nobody reads.
LISTENER = socket.create_server(("127.0.0.1", 0), backlog=4096)
KEPT = []


def in_flight_itself():
    first, second = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    rights(first, b"x", [second.fileno(), first.fileno()])
    first.close()
    return second.detach()


def fifo():
    path = os.path.join(tempfile.mkdtemp(), "fifo")
    os.mkfifo(path)
    return os.open(path, os.O_RDWR | os.O_NONBLOCK)


def udp(port):
    bound = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    bound.bind(("127.0.0.9", port))
    return bound.detach()


DESCRIPTORS = {
    "lingering": lingering,
    "pipe": lambda: os.pipe()[0],
    "memory": lambda: os.memfd_create("stranger"),
    "udp": lambda: udp(0),
    "udp of the port": lambda: udp(4791),
    "unix": lambda: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM).detach(),
    "in flight itself": in_flight_itself,
    "epoll": lambda: os.dup(select.epoll().fileno()),
    "null": lambda: os.open("/dev/null", os.O_RDWR),
    "tty": lambda: os.open("/dev/ptmx", os.O_RDWR),
    "folder": lambda: os.open("/", os.O_RDONLY),
    "path": lambda: os.open("/", os.O_PATH),
    "fifo": fifo,
}


def rights(sock, data, fds, to=None):
    control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]
    sock.sendmsg([data], control, socket.MSG_DONTWAIT, *([to] if to else []))


def messages():
    """Each kind, in its right and in other lengths, with and without a key and a right version."""
    for kind in KINDS:
        for version in VERSION, VERSION + 1:
            for key in 0, 1, RANDOM.getrandbits(64):
                head = struct.pack("=IIQ", kind, version, key)
                for body in (b"", LOOPBACK + struct.pack("=IIQ", 0, 64, key),
                             LOOPBACK + struct.pack("=II", 0, 3),
                             LOOPBACK * 2 + struct.pack("=IHH", 0, 0xc000, 40) + bytes(40)):
                    whole = head + body
                    yield whole
                    yield whole[:RANDOM.randrange(len(whole) + 1)]
                    yield whole + bytes(RANDOM.randrange(1, 70000))


def count(what, action, *arguments):
    try:
        result = action(*arguments)
        DONE[what] += 1
        return result
    except OSError:
        DONE["not: " + what] += 1
        return None


def connect(kind, slot):
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    sock.setblocking(False)
    if RANDOM.random() < 0.5:  # as if it were a process with a slot
        with contextlib.suppress(OSError):
            sock.bind(name("asker", RANDOM.randrange(64)))
    try:
        sock.connect(name(kind, slot))
    except OSError:
        DONE["not: connected"] += 1
        sock.close()
        return None
    DONE["connected"] += 1
    return sock


def listen_for_answers(sock):
    """Nothing is to come, however long one waits; the end of the connection may."""
    readable, _, _ = select.select([sock], [], [], 0.002)
    if readable:
        with contextlib.suppress(OSError):
            if sock.recvmsg(100, 1000)[0]:
                DONE["answers"] += 1


def send_to_all(data, fds=()):
    for slot in range(SLOTS):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.bind("")
            if fds:
                count("datagrams", rights, sock, data, fds, name("slot", slot))
            else:
                count("datagrams", sock.sendto, data, socket.MSG_DONTWAIT, name("slot", slot))
            listen_for_answers(sock)
        for kind in "answer", "stat":
            sock = connect(kind, slot)
            if not sock:
                continue
            if fds:
                count("messages", rights, sock, data, fds)
            else:
                count("messages", sock.send, data)
            listen_for_answers(sock)
            sock.close()


def try_messages(end):
    for data in messages():
        send_to_all(data)
        if time.monotonic() > end:
            break


def try_descriptors(end):
    while time.monotonic() < end:
        for make in DESCRIPTORS.values():
            # In a child that is killed when it has sent: who receives is the last to have it.
            child = os.fork()
            if child == 0:
                fd = count("made", make)
                if fd is not None:
                    send_to_all(next(messages()), [fd] * RANDOM.choice([1, 3, 250]))
                report(DONE)
                os.kill(os.getpid(), signal.SIGKILL)
            CHILDREN.append(child)
        # Their own closing may take its time as well.
        time.sleep(0.3)
    collect()


CHILDREN = []
REPORT = tempfile.mkstemp()[0]


def report(counted):
    os.write(REPORT, (json.dumps(counted) + "\n").encode())


def collect():
    with open(f"/proc/self/fd/{REPORT}", encoding="utf-8") as file:
        for line in file:
            DONE.update(json.loads(line))


def flood(end):
    data = struct.pack("=IIQ", 1, VERSION, 7) + bytes(1000)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    while time.monotonic() < end:
        for slot in range(SLOTS):
            for _ in range(100):
                count("datagrams", sock.sendto, data, socket.MSG_DONTWAIT, name("slot", slot))
            for kind in "answer", "stat":
                for _ in range(20):
                    one = connect(kind, slot)
                    if one:
                        count("messages", one.send, data)
                        one.close()


def hold(end):
    """Connections that are left open."""
    held = []
    while time.monotonic() < end and len(held) < 400:
        for slot in range(SLOTS):
            for kind in "answer", "stat":
                held.append(connect(kind, slot))
        time.sleep(0.01)
    time.sleep(max(0, end - time.monotonic()))


def squat(end):
    """Have slots, and give whoever connects what it has not asked for."""
    listeners = {}
    for slot in range(SLOTS, 64):
        for kind in "answer", "stat":
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with contextlib.suppress(OSError):
                sock.bind(name(kind, slot))
                sock.listen(50)
                listeners[sock.fileno()] = sock
    fd = lingering()
    while time.monotonic() < end:
        for readable in select.select(list(listeners), [], [], 0.1)[0]:
            visitor, _ = listeners[readable].accept()
            count("given", rights, visitor, bytes(48), [fd] * 4)
            listen_for_answers(visitor)
            KEPT.append(visitor)


def main():
    print("ready", flush=True)
    attacks = {"messages": try_messages, "descriptors": try_descriptors, "flood": flood,
               "hold": hold, "squat": squat}
    attacks[ATTACK](time.monotonic() + SECONDS)
    print(json.dumps(DONE), flush=True)
    # Without closing what would wait.
    os.kill(os.getpid(), signal.SIGKILL)


main()
