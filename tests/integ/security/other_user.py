# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""A process of another user that attacks ours, for attacks.py.

usage: other_user.py BROKER-VERSION TYPES-OF-MESSAGES ATTACK SECONDS

It tries every abstract name of ours that it finds in /proc/net/unix, whatever the name is for, and
prints how often each action succeeded, as JSON.  "answers", the number of messages that it got from
our processes, must be 0.
"""
import array
import collections
import contextlib
import fcntl
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

VERSION, ATTACK, SECONDS = int(sys.argv[1]), sys.argv[3], float(sys.argv[4])
BROKERS = 6
SLOTS = 6
LINGER_SECONDS = 20
# The types of uroce-broker.h, 0, and some unknown ones.
KINDS = range(int(sys.argv[2]) + 4)
TYPES = {"DGRAM": socket.SOCK_DGRAM, "SEQPACKET": socket.SOCK_SEQPACKET,
         "STREAM": socket.SOCK_STREAM}
LOOPBACK = bytes(10) + b"\xff\xff\x7f\0\0\1"
RANDOM = random.Random(5)
DONE = collections.Counter()
# Connections that may still be answered; the oldest are closed.
OPEN = collections.deque(maxlen=200)


def names():
    prefix = f"@uroce-broker/{VERSION}/"
    with open("/proc/net/unix", encoding="utf-8") as file:
        found = {line.split()[-1] for line in file if prefix in line}
    return ["\0" + name[1:] for name in sorted(found)]


def filled(sock):
    sock.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            sock.send(bytes(65536))
    return sock.detach()


def lingering():
    """Returns a TCP socket whose last close waits, as its peer never reads the data."""
    sender = socket.create_connection(LISTENER.getsockname())
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, LINGER_SECONDS))
    return filled(sender)


# Its connections stay open when a child has ended; they are never accepted, so nothing is read.
LISTENER = socket.create_server(("127.0.0.1", 0), backlog=4096)
KEPT = []


def in_flight_itself():
    first, second = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    rights(first, b"x", [second.fileno(), first.fileno()])
    first.close()
    return second.detach()


def lingering_in_flight():
    """Returns a socket whose last close also closes another socket, which waits."""
    first, second = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    rights(first, b"x", [lingering()])
    return second.detach()


def full_socket():
    first, second = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    KEPT.append(second)
    return filled(first)


def epoll():
    made = select.epoll()
    made.register(LISTENER.fileno())
    return os.dup(made.fileno())


def fifo():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "fifo")
        os.mkfifo(path)
        return os.open(path, os.O_RDWR | os.O_NONBLOCK)


def nameless_file():
    """Creates a file of which nothing is left, however this process ends."""
    file, path = tempfile.mkstemp()
    os.unlink(path)
    return file


def locked_file():
    file = nameless_file()
    os.write(file, bytes(1 << 20))
    fcntl.flock(file, fcntl.LOCK_EX)
    return file


def udp(port):
    bound = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    bound.bind(("127.0.0.9", port))
    return bound.detach()


def nobody_reads():
    reader, writer = os.pipe()
    os.close(reader)
    return writer


def crowded_listener():
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.bind("")
    sock.listen(8)
    for _ in range(8):
        one = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        one.setblocking(False)
        one.connect(sock.getsockname())
        KEPT.append(one)
    return sock.detach()


DESCRIPTORS = {
    "lingering": lingering,
    "lingering in flight": lingering_in_flight,
    "file": locked_file,
    "pipe": lambda: os.pipe()[0],
    "pipe that nobody reads": nobody_reads,
    "memory": lambda: os.memfd_create("stranger"),
    "udp": lambda: udp(0),
    "udp of the port": lambda: udp(4791),
    "tcp listener": lambda: os.dup(LISTENER.fileno()),
    "unix": lambda: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM).detach(),
    "unix, full": full_socket,
    "unix listener": crowded_listener,
    "in flight itself": in_flight_itself,
    "netlink": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).detach(),
    "epoll": epoll,
    "event": lambda: os.eventfd(1),
    "process": lambda: os.pidfd_open(os.getpid()),
    "namespace": lambda: os.open("/proc/self/ns/net", os.O_RDONLY),
    "proc": lambda: os.open("/proc/self/mem", os.O_RDONLY),
    "null": lambda: os.open("/dev/null", os.O_RDWR),
    "random": lambda: os.open("/dev/urandom", os.O_RDONLY),
    "tty": lambda: os.open("/dev/ptmx", os.O_RDWR),
    "folder": lambda: os.open("/", os.O_RDONLY),
    "path": lambda: os.open("/", os.O_PATH),
    "fifo": fifo,
}


def rights(sock, data, fds):
    control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]
    sock.sendmsg([data], control, socket.MSG_DONTWAIT)


def messages():
    """Yields messages of each type, with valid and invalid lengths, versions and numbers.

    The type varies fastest, so that an attack that ends early has tried all types.
    """
    while True:
        for version in VERSION, VERSION + 1:
            for number in 0, 1, RANDOM.getrandbits(32):
                # HELLO, WELCOME and SLOT; ADDRESS; LOOKUP; CONNECT; a datagram.
                for body in (b"", struct.pack("=II", 1, 0), struct.pack("=III", 2, 1, 40),
                             LOOPBACK + struct.pack("=IIII", 0, 0, 0, 0),
                             LOOPBACK + struct.pack("=IIII", 0, 0, 40, 0),
                             struct.pack("=II", 40, 1),
                             (LOOPBACK + bytes(8)) * 2 + struct.pack("=QHHBBH", 0, 0xc000, 40, 0,
                                                                     64, 1) + bytes(40)):
                    for kind in KINDS:
                        whole = struct.pack("=IIIi", kind, version, number, 0) + body
                        yield kind, whole
                        yield kind, whole[:RANDOM.randrange(len(whole) + 1)]
                        yield kind, whole + bytes(RANDOM.randrange(1, 70000))


def count(what, action, *arguments):
    try:
        result = action(*arguments)
        DONE[what] += 1
        return result
    except OSError:
        DONE["not: " + what] += 1
        return None


def connect(type_name, name):
    sock = socket.socket(socket.AF_UNIX, TYPES[type_name])
    sock.setblocking(False)
    try:
        sock.connect(name)
    except OSError:
        sock.close()
        return None
    DONE["connected " + type_name] += 1
    return sock


def look_for_answers():
    """Counts answers; there must be none, but our processes may close a connection."""
    readable = select.select([sock for sock in OPEN if sock.fileno() >= 0], [], [], 0)[0]
    for sock in readable:
        with contextlib.suppress(OSError):
            data, control, _, _ = sock.recvmsg(100, 1000, socket.MSG_DONTWAIT)
            if data or control:
                DONE["answers"] += 1
                continue
        sock.close()


def send_to(name, data, fds=(), wait=True):
    """Sends the data to a name, by a socket of each type."""
    for type_name in TYPES:
        sock = connect(type_name, name)
        if not sock:
            continue
        if fds:
            count(type_name + " with descriptors", rights, sock, data, fds)
        else:
            count(type_name, sock.send, data)
        if not wait:
            sock.close()
            continue
        if len(OPEN) == OPEN.maxlen:
            OPEN[0].close()
        OPEN.append(sock)


def try_messages(end):
    for kind, data in messages():
        for name in names():
            send_to(name, data)
        DONE[f"kind {kind}"] += 1
        look_for_answers()
        # Each kind is sent, however late this process gets a processor.
        if time.monotonic() > end and all(DONE[f"kind {kind}"] for kind in KINDS):
            break


def try_descriptors(end):
    while time.monotonic() < end:
        for what, make in DESCRIPTORS.items():
            # In a child that is killed after sending, so that the receiver has the last reference
            # to the descriptor.
            child = os.fork()
            if child == 0:
                fd = count("made " + what, make)
                if fd is not None:
                    for name in names():
                        send_to(name, next(messages())[1], [fd] * RANDOM.choice([1, 3, 250]))
                look_for_answers()
                report(DONE)
                os.kill(os.getpid(), signal.SIGKILL)
            CHILDREN.append(child)
        # The children's own close of the descriptors may take time as well.
        time.sleep(0.3)
    for child in CHILDREN:
        os.waitpid(child, 0)
    collect()


CHILDREN = []
REPORT = nameless_file()


def report(counted):
    os.write(REPORT, (json.dumps(counted) + "\n").encode())


def collect():
    with open(f"/proc/self/fd/{REPORT}", encoding="utf-8") as file:
        for line in file:
            DONE.update(json.loads(line))


def flood(end):
    data = struct.pack("=IIIi", 1, VERSION, 7, 0) + bytes(1000)
    null = os.open("/dev/null", os.O_RDWR)
    while time.monotonic() < end:
        for name in names():
            for _ in range(20):
                send_to(name, data, wait=False)
                send_to(name, data, [null], wait=False)


def hold(end):
    """Opens connections and leaves them open."""
    while time.monotonic() < end and len(KEPT) < 800:
        for name in names():
            KEPT.extend(connect(type_name, name) for type_name in TYPES)
        time.sleep(0.01)
    time.sleep(max(0, end - time.monotonic()))


def squat(end):
    """Binds names of brokers and slots, and sends unsolicited data and descriptors to each process
    that connects."""
    listeners = {}
    for name in ([f"{number}" for number in range(BROKERS, 64)] +
                 [f"slot/{slot}" for slot in range(SLOTS, 64)]):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with contextlib.suppress(OSError):
            sock.bind(f"\0uroce-broker/{VERSION}/{name}")
            sock.listen(50)
            listeners[sock.fileno()] = sock
    fd = lingering()
    while time.monotonic() < end:
        for readable in select.select(list(listeners), [], [], 0.1)[0]:
            visitor, _ = listeners[readable].accept()
            count("given", rights, visitor, bytes(48), [fd] * 4)
            OPEN.append(visitor)
        look_for_answers()


def main():
    print("ready", flush=True)
    attacks = {"messages": try_messages, "descriptors": try_descriptors, "flood": flood,
               "hold": hold, "squat": squat}
    attacks[ATTACK](time.monotonic() + SECONDS)
    time.sleep(0.05)
    look_for_answers()
    print(json.dumps(DONE), flush=True)
    # Killed, so that the interpreter does not close sockets, which would wait.
    os.kill(os.getpid(), signal.SIGKILL)


main()
