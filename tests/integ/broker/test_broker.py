# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests of uroce-broker's protocol, see Documentation/decisions/broker.md."""
import contextlib
import errno
import os
import resource
import select
import signal
import socket
import struct
import time

import pytest

import broker_client as bc
import harness

IDLE = 0.2  # seconds; the environment variable has milliseconds
LINGER = 5
OTHER_UID = 54321
ADDRESS = "127.0.0.1"


def until(condition, what, seconds=harness.PATIENCE):
    """Waits for a condition; what is the message of a failure, or a function that returns it."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, what() if callable(what) else what
        time.sleep(0.01)


@pytest.fixture(autouse=True)
def short_idle(monkeypatch):
    monkeypatch.setenv("UROCE_TEST_BROKER_IDLE", str(int(IDLE * 1000)))


@pytest.fixture
def place(loopback):
    """A place without a broker, in which this process can make sockets."""
    harness.need_root()
    if not loopback.holder:
        pytest.skip("network namespaces are not permitted here")
    until(lambda: not bc.brokers(loopback), "a broker of an earlier test does not end")
    yield loopback
    loopback.close()
    until(lambda: not bc.brokers(loopback), "a broker does not end")


def broker_program(place):
    return os.path.join(place.scratch.lib, "uroce-broker")


@pytest.fixture
def broker(place):
    """A broker that stays until the test ends."""
    process = place.start(broker_program(place), "--stay")
    until(lambda: bc.listeners(place), process)
    # Wait for a reply: the broker sets its limit of descriptors before it replies.
    with contextlib.closing(bc.Client(place, bc.GUEST)) as guest:
        assert guest.alive()
    yield process
    assert process.running(), process
    process.kill()


@pytest.fixture
def clients(place):
    """Makes clients, which are closed at the end of the test."""
    with contextlib.ExitStack() as stack:
        def new(*arguments, **options):
            client = bc.Client(place, *arguments, **options)
            stack.callback(client.close)
            return client
        yield new


@pytest.fixture
def sender(place):
    made = bc.Sender(place)
    yield made
    made.close()


def on_address(new, count):
    made = [new() for _ in range(count)]
    for client in made:
        assert client.add_address(ADDRESS) == (0, 0, 0)
    return made


def test_welcome(broker, place, clients):
    """Each worker gets a slot, a delivery socket and a lock: a socket bound to the slot's name."""
    made = [clients() for _ in range(3)]
    assert [client.error for client in made] == [0, 0, 0]
    assert len({client.slot for client in made}) == 3
    assert len({client.secret for client in made}) == 1
    names = {line.split()[-1] for line in place.net("unix")}
    for client in made:
        assert client.role == bc.WORKER and client.slot < bc.SLOTS and len(client.locks) == 1
        assert client.delivery.type == socket.SOCK_SEQPACKET
        assert f"@uroce-broker/1/slot/{client.slot}" in names
        assert client.alive()


def test_guest_has_no_slot(broker, clients):
    guest = clients(bc.GUEST)
    assert (guest.error, guest.role, guest.slot) == (0, bc.GUEST, bc.NO_SLOT)
    assert not guest.locks and guest.alive()


def test_lock_outlives_the_connection(broker, place, clients):
    """While a worker holds the lock, the name is bound and no other worker gets the slot."""
    first = clients()
    slot = first.slot
    first.sock.close()
    taken = [clients().slot for _ in range(100)]
    assert slot not in taken
    names = {line.split()[-1] for line in place.net("unix")}
    assert f"@uroce-broker/1/slot/{slot}" in names


def test_further_slots(broker, clients, sender):
    """A worker has at most 64 slots; datagrams for each of them arrive at its one member."""
    worker, other = on_address(clients, 2)
    slots = {worker.slot}
    for _ in range(63):
        error, slot = worker.add_slot()
        assert error == 0
        slots.add(slot)
    assert len(slots) == 64 and other.slot not in slots and len(worker.locks) == 64
    for slot in slots:
        sender.send(bc.bth(slot, slot))
    found = bc.arrived(worker.members[ADDRESS], 1)
    assert set(found) == {bc.bth(slot, slot) for slot in slots}
    assert bc.arrived(other.members[ADDRESS]) == []
    error, slot = worker.add_slot()
    assert error < 0 and slot == bc.NO_SLOT
    assert worker.alive()


@contextlib.contextmanager
def no_descriptor_left(pid="self"):
    """In this context the process cannot open a descriptor."""
    folder = f"/proc/{pid}/fd"
    # Without the descriptor by which listdir() has read the directory.
    used = {int(fd) for fd in os.listdir(folder) if os.path.lexists(f"{folder}/{fd}")}
    lowest_free = min(set(range(len(used) + 1)) - used)
    number = 0 if pid == "self" else pid
    soft, hard = resource.prlimit(number, resource.RLIMIT_NOFILE)
    resource.prlimit(number, resource.RLIMIT_NOFILE, (lowest_free, hard))
    yield
    resource.prlimit(number, resource.RLIMIT_NOFILE, (soft, hard))


def test_slot_that_was_not_received(broker, clients):
    """If a worker has no descriptor left, the kernel drops the lock that a reply passes.  The next
    request gets the same slot with its lock."""
    worker, other = clients(), clients()
    worker.send(bc.message(bc.SLOT, struct.pack("=II", bc.NO_SLOT, 0), number=2))
    assert select.select([worker.sock], [], [], harness.PATIENCE)[0]
    with no_descriptor_left():
        data, rights, flags, _ = worker.sock.recvmsg(4096, socket.CMSG_SPACE(4))
    assert flags & socket.MSG_CTRUNC and not rights
    lost, _ = struct.unpack("=II", data[bc.HEADER.size:])
    assert other.add_slot()[1] != lost
    slots = [worker.add_slot() for _ in range(63)]
    assert slots[0] == (0, lost)
    assert all(error == 0 for error, _ in slots)
    assert len({worker.slot} | {slot for _, slot in slots}) == 64
    assert worker.add_slot()[0] < 0


def find_lost(sender, living, dead=(), seconds=harness.PATIENCE):
    """Sends ten datagrams to each slot; returns slot and number of those that were lost.

    Each worker in living must get its own datagrams, in their order, and no others.  Datagrams for
    the slots in dead, whose workers have ended, do not count.
    """
    for number in range(10):
        for slot in dead:
            sender.send(bc.bth(slot, number))
        for client in living:
            sender.send(bc.bth(client.slot, number))
    end, lost = time.monotonic() + seconds, []
    for client in living:
        expected = [bc.bth(client.slot, number) for number in range(10)]
        found = []
        while len(found) < 10:
            found += [data for data in bc.arrived(client.members[ADDRESS], 0.01)
                      if not bc.is_probe(data) and not bc.is_trial(data)]
            if time.monotonic() >= end:
                break
        assert found == [data for data in expected if data in found], client.slot
        lost += [(client.slot, number) for number, data in enumerate(expected) if data not in found]
    return lost


def check_steering(sender, living, dead=()):
    """Each worker in living must get all its own datagrams and no others, see find_lost()."""
    assert find_lost(sender, living, dead) == []


def test_steering(broker, clients, sender):
    living = on_address(clients, 5)
    check_steering(sender, living)
    dead = []
    for gone in 2, 0:
        client = living.pop(gone)
        dead.append(client.slot)
        client.close()
        check_steering(sender, living, dead)
    # A datagram that is too short to contain a slot, and one for an unused slot.
    sender.send(b"short")
    sender.send(bc.bth(bc.SLOTS - 1, 1))
    check_steering(sender, living, dead)
    living += on_address(clients, 3)
    assert not {client.slot for client in living} & set(dead)
    check_steering(sender, living, dead)


def inode(client):
    return os.fstat(client.members[ADDRESS].fileno()).st_ino


def test_look(broker, clients):
    """LOOKUP returns the member that the client of another slot has, or -ENOENT."""
    user, other = on_address(clients, 2)
    assert user.lookup(ADDRESS, other.slot) == (0, inode(other))
    assert user.lookup("127.0.0.2", other.slot) == (-errno.ENOENT, None)
    assert user.lookup(ADDRESS, 4000) == (-errno.ENOENT, None)


def test_look_before_address(broker, place, clients, sender):
    """LOOKUP reserves members for clients that have not requested the address, also for more
    clients than there are spare members, and never one member for two clients."""
    user, *late = [clients() for _ in range(7)]
    assert user.lookup(ADDRESS, late[0].slot) == (-errno.ENOENT, None)
    assert user.add_address(ADDRESS) == (0, 0, 0)
    seen = {client: user.lookup(ADDRESS, client.slot)[1] for client in late[1:]}
    assert len({*seen.values(), inode(user)} - {None}) == 6
    for client in late[:4]:
        assert client.add_address(ADDRESS) == (0, 0, 0)
    for client in late[1:4]:
        assert inode(client) == seen[client]
    assert inode(late[0]) not in seen.values()
    check_steering(sender, [user, *late[:4]], [client.slot for client in late[4:]])
    # If a client ends before it requests its reserved member, another client gets the member.
    sockets = len(place.sockets()[1])
    late[4].close()
    assert on_address(clients, 1)[0].alive() and len(place.sockets()[1]) == sockets


def test_a_promise_keeps_no_port(broker, place, clients):
    user, late = clients(), clients()
    assert user.add_address(ADDRESS) == (0, 0, 0)
    assert user.lookup(ADDRESS, late.slot)[0] == 0
    user.close()
    until(lambda: not place.sockets()[1], "the port is in use")
    assert late.add_address(ADDRESS) == (0, 0, 0)


def test_steering_of_many(broker, clients, sender):
    living = on_address(clients, 100)
    assert len({client.slot for client in living}) == 100
    dead = []
    for _ in range(50):
        client = living.pop(0)
        dead.append(client.slot)
        client.close()
    check_steering(sender, living, dead)
    living += on_address(clients, 30)
    check_steering(sender, living, set(dead) - {client.slot for client in living})


def test_member_of_a_dead_worker_is_drained(broker, clients, sender):
    """The next worker that gets a slot does not receive datagrams for the previous worker."""
    dead, other = on_address(clients, 2)
    slot = dead.slot
    for number in range(20):
        sender.send(bc.bth(slot, number))
    dead.close()
    for _ in range(200):
        client = clients()
        assert client.add_address(ADDRESS)[0] == 0
        if client.slot == slot:
            assert bc.arrived(client.members[ADDRESS]) == []
            check_steering(sender, [client, other])
            return
        client.close()
    pytest.fail("the slot is never given again")


def test_address_end(broker, clients, sender):
    leaving, staying = on_address(clients, 2)
    leaving.send(bc.message(bc.ADDRESS_END, bc.address_body(ADDRESS)))
    assert leaving.alive()
    check_steering(sender, [staying], [leaving.slot])
    assert leaving.add_address(ADDRESS) == (0, 0, 0)
    check_steering(sender, [staying, leaving])


def test_ipv6(broker, place, clients):
    sender = bc.Sender(place, "::1")
    first, second = clients(), clients()
    for client in first, second:
        assert client.add_address("::1") == (0, 0, 0)
        sender.send(bc.bth(client.slot, 7))
        assert bc.arrived(client.members["::1"], 1) == [bc.bth(client.slot, 7)]
    assert bc.arrived(first.members["::1"]) == []
    sender.close()


def test_address_of_nobody(broker, clients):
    """A request that fails gets a reply with the error, and the connection goes on."""
    client = clients()
    assert client.add_address("192.0.2.77") == (-errno.EADDRNOTAVAIL, 0, 0)
    assert not client.members
    assert client.alive()


def test_member_that_cannot_be_passed(broker, place, clients):
    """A client that cannot be passed a member does not use the address: the port becomes free when
    the last user of the address ends."""
    user, = on_address(clients, 1)
    refused = clients()
    # Wait for a reply: the broker has then closed its copies of the descriptors in WELCOME.
    assert refused.alive()
    with no_descriptor_left(*bc.brokers(place)):
        assert refused.add_address(ADDRESS)[0] == -errno.ENFILE
    user.close()
    stranger = bc.new_socket(place, socket.AF_INET, socket.SOCK_DGRAM)

    def port_is_free():
        with contextlib.suppress(OSError):
            stranger.bind((ADDRESS, bc.UDP_PORT))
            return True
        return False
    until(port_is_free, "the address is still used")
    stranger.close()
    assert refused.alive()


@pytest.fixture
def old_kernel(monkeypatch):
    """Behavior of Linux before 6.16: other users can send descriptors to the broker."""
    monkeypatch.setenv("UROCE_TEST_OLD_KERNEL", "1")


def lingering(address):
    """A TCP socket whose last close() blocks for LINGER seconds, as its peer never reads."""
    sock = socket.create_connection(address)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, LINGER))
    sock.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            sock.send(bytes(65536))
    return sock


def send_lingering(place):
    """Connects to the broker as another user and sends a socket whose close() blocks."""
    name = f"\0uroce-broker/{bc.VERSION}/{max(bc.listeners(place))}"
    sock = bc.new_socket(place, socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with sock, socket.create_server(("127.0.0.1", 0)) as server:
        child = os.fork()
        if child == 0:
            # The child is a copy of the test process and must exit here in any case.
            with contextlib.suppress(BaseException):
                tcp = lingering(server.getsockname())
                os.setuid(OTHER_UID)
                sock.connect(name)
                socket.send_fds(sock, [b"x"], [tcp.fileno()])
                os._exit(0)
            os._exit(1)
        received = server.accept()[0]
    assert os.waitpid(child, 0)[1] == 0
    return received


def served_after_a_lingering_connection(pid, place, clients):
    """Returns the seconds that a client waited for the broker after the broker had to reject a
    lingering connection because it had no descriptor left."""
    with no_descriptor_left(pid):
        os.kill(pid, signal.SIGSTOP)
        received = send_lingering(place)
        os.kill(pid, signal.SIGCONT)
        time.sleep(0.2)
    with received:
        start = time.monotonic()
        assert clients().alive()
        return time.monotonic() - start


def test_no_descriptor_for_a_lingering_connection(old_kernel, broker, place, clients):
    """The broker rejects the connection without waiting for its close(), and goes on to serve the
    clients of its own user."""
    pid, = bc.brokers(place)
    harness.in_time(lambda: served_after_a_lingering_connection(pid, place, clients), LINGER / 2)
    # The broker can reject more connections.
    with no_descriptor_left(pid):
        assert bc.Connection(place).ends()


HELLO_BODY = bc.hello()
BAD_BEGINNINGS = {
    "one byte": b"\x01",
    "less than a header": bc.message(bc.HELLO)[:15],
    "a header": bc.message(bc.HELLO),
    "short": bc.message(bc.HELLO, HELLO_BODY)[:-1],
    "long": bc.message(bc.HELLO, HELLO_BODY + b"\0"),
    "very long": bc.message(bc.HELLO, HELLO_BODY + bytes(50000)),
    "a slot of a new worker": bc.message(bc.HELLO, bc.hello(bc.WORKER, [5])),
    "older version": bc.message(bc.HELLO, HELLO_BODY, version=0),
    "newer version": bc.message(bc.HELLO, HELLO_BODY, version=2),
    "an error": bc.message(bc.HELLO, HELLO_BODY, error=-1),
    "type 0": bc.message(0, HELLO_BODY),
    "unknown type": bc.message(27, HELLO_BODY),
    "short SUPERSEDE": bc.message(bc.SUPERSEDE)[:-1],
    "huge type": bc.message(0xFFFFFFFF, HELLO_BODY),
    "role 0": bc.message(bc.HELLO, bc.hello(0)),
    "role 4": bc.message(bc.HELLO, bc.hello(4)),
    "a slot too high": bc.message(bc.HELLO, bc.hello(bc.RETURNING, [bc.SLOTS])),
    "the same slot twice": bc.message(bc.HELLO, bc.hello(bc.RETURNING, [7, 7])),
    "too many slots": bc.message(bc.HELLO, bc.hello(bc.RETURNING, range(100, 165))),
    "fewer slots than it says": bc.message(bc.HELLO, bc.hello(bc.RETURNING, [5, 6]))[:-4],
    "a slot of a guest": bc.message(bc.HELLO, bc.hello(bc.GUEST, [5])),
    "PING first": bc.message(bc.PING),
    "SLOT first": bc.message(bc.SLOT, struct.pack("=II", bc.NO_SLOT, 0)),
    "ADDRESS first": bc.message(bc.ADDRESS, bc.address_body(ADDRESS)),
    "LIST first": bc.message(bc.LIST, bytes(8)),
    "a reply": bc.message(bc.WELCOME, bytes(16)),
}


def goes_on(client, sender):
    assert client.alive()
    check_steering(sender, [client])


@pytest.mark.parametrize("name", BAD_BEGINNINGS)
def test_bad_beginning(broker, place, clients, sender, name):
    """A message that does not pass the checks ends its connection, and no other."""
    other, = on_address(clients, 1)
    connection = bc.Connection(place)
    connection.send(BAD_BEGINNINGS[name])
    assert connection.ends()
    goes_on(other, sender)


def ports(count, *entries):
    return struct.pack("=II", count, 0) + b"".join(entries)


def port(space=0x0106, number=7000, flags=0, identity=1, reserved=0):
    return bc.endpoint(ADDRESS) + struct.pack("=HHIII", space, number, flags, identity, reserved)


SECOND = {
    "second HELLO": (bc.HELLO, HELLO_BODY),
    "a reply": (bc.SLOT_REPLY, struct.pack("=II", 5, 0)),
    "PONG without PING": (bc.PONG, b""),
    "long PING": (bc.PING, bytes(4)),
    "SLOT names a slot": (bc.SLOT, struct.pack("=II", 5, 0)),
    "SLOT reserved": (bc.SLOT, struct.pack("=II", bc.NO_SLOT, 1)),
    "short SLOT": (bc.SLOT, bytes(4)),
    "ADDRESS flags": (bc.ADDRESS, bc.address_body(ADDRESS, 128)),
    "ADDRESS reserved": (bc.ADDRESS, bc.endpoint(ADDRESS) + struct.pack("=II", 0, 1)),
    "endpoint reserved": (bc.ADDRESS, bc.address_body(ADDRESS)[:20] + b"\1" + bytes(11)),
    "short ADDRESS": (bc.ADDRESS, bc.address_body(ADDRESS)[:-1]),
    "a claim without a member": (bc.ADDRESS, bc.address_body(ADDRESS, 1)),
    "GSI flags": (bc.GSI, struct.pack("=II", 128, 0)),
    "GSI reserved": (bc.GSI, struct.pack("=II", 1, 1)),
    "GSI without the file": (bc.GSI, struct.pack("=II", 3, 0)),
    "no port": (bc.PORT, ports(0)),
    "fewer ports than it says": (bc.PORT, ports(2, port(flags=4))),
    "more ports than it says": (bc.PORT, ports(1, port(flags=4), port(flags=4))),
    "two new ports": (bc.PORT, ports(2, port(), port(number=7001))),
    "65 ports": (bc.PORT, ports(65, *[port(number=n, flags=4) for n in range(7000, 7065)])),
    "huge number of ports": (bc.PORT, ports(0xFFFFFFFF, port(flags=4))),
    "PORT flags": (bc.PORT, ports(1, port(flags=0x80))),
    "PORT listens without returning": (bc.PORT, ports(1, port(flags=8))),
    "PORT reserved": (bc.PORT, ports(1, port(reserved=1))),
    "PORT space": (bc.PORT, ports(1, port(space=0x7777))),
    "two ports to listen": (bc.PORT_LISTEN, ports(2, port(), port(number=7001))),
    "LOOKUP slot": (bc.LOOKUP, bc.endpoint(ADDRESS) + struct.pack("=II", bc.SLOTS, 0)),
    "CONNECT slot": (bc.CONNECT, struct.pack("=II", bc.SLOTS, 1)),
    "CONNECT purpose 0": (bc.CONNECT, struct.pack("=II", 1, 0)),
    "CONNECT purpose 3": (bc.CONNECT, struct.pack("=II", 1, 3)),
    "LIST of no slot": (bc.LIST, struct.pack("=II", 0, 1)),
    "CONNECTION from a client": (bc.CONNECTION, struct.pack("=II", 1, 1)),
    "DATAGRAM on the control connection": (bc.DATAGRAM, bytes(56)),
    "PROBED on the control connection": (bc.PROBED, bc.endpoint(ADDRESS) + bytes(8)),
    "SUPERSEDE after HELLO": (bc.SUPERSEDE, b""),
    "WATCH from a client": (bc.WATCH, struct.pack("=II", 1, 0)),
}


@pytest.mark.parametrize("name", SECOND)
def test_bad_request(broker, clients, sender, name):
    other, bad = on_address(clients, 2)
    bad.send(bc.message(*SECOND[name]))
    assert bad.ends()
    goes_on(other, sender)


@pytest.mark.parametrize("count", (1, 2, 64, 253))
def test_descriptors_of_no_use(broker, clients, sender, count):
    """Descriptors in a message that must not carry any end the connection and are closed."""
    other, bad = on_address(clients, 2)
    read, write = os.pipe()
    bad.send(bc.message(bc.PING), [write] * count)
    os.close(write)
    assert bad.ends()
    assert os.read(read, 1) == b""
    os.close(read)
    goes_on(other, sender)


BAD_DELIVERIES = {
    "one byte": b"\1",
    "a request": bc.message(bc.PING),
    "very long": bytes(60000),
    "short DATAGRAM": bc.message(bc.DATAGRAM, bytes(55)),
    "DATAGRAM without reason": bc.message(bc.DATAGRAM, bytes(56)),
}


@pytest.mark.parametrize("name", BAD_DELIVERIES)
def test_bad_delivery(broker, clients, sender, name):
    other, bad = on_address(clients, 2)
    bad.delivery.send(BAD_DELIVERIES[name])
    assert bad.ends()
    goes_on(other, sender)


def beside_silent_connections(place, clients):
    """Opens connections that send nothing; returns the seconds until a worker was served, and until
    the broker had ended all these connections."""
    silent = [bc.Connection(place) for _ in range(200)]
    start = time.monotonic()
    assert clients().error == 0
    served = time.monotonic() - start
    assert all(connection.ends() for connection in silent)
    ended = time.monotonic() - start
    for connection in silent:
        connection.close()
    return served, ended


def test_silent_connections(broker, place, clients):
    """The broker ends connections that send no HELLO for a second; many of them do not prevent a
    worker from being served."""
    harness.good_try(lambda: beside_silent_connections(place, clients),
                     lambda took: took[0] < 1 and took[1] < 4)


STRANGER = """
import socket, sys
name, hello = "\\0uroce-broker/1/" + sys.argv[1], bytes.fromhex(sys.argv[2])
got, kept = 0, []
for round in range(200):
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    sock.settimeout(2)
    try:
        sock.connect(name)
        sock.send(hello)
    except OSError:
        pass
    kept.append(sock)
    if round == 20:
        print("begun", flush=True)
for sock in kept:
    try:
        got += len(sock.recv(4096))
    except OSError:
        pass
print("got", got, flush=True)
"""


def beside_a_stranger(place, clients):
    """Returns the seconds until a worker got its slot and member while another user connects."""
    stranger = place.start(harness.PYTHON, "-c", STRANGER, max(bc.listeners(place)),
                           bc.message(bc.HELLO, HELLO_BODY).hex(), user=harness.NOBODY)
    stranger.await_words("begun")
    start = time.monotonic()
    on_address(clients, 1)
    took = time.monotonic() - start
    assert stranger.done().split() == ["begun", "got", "0"]
    return took


def test_another_user(broker, place, clients, sender):
    """Another user gets nothing from the broker and does not delay the broker's own clients."""
    harness.need_root()
    other, = on_address(clients, 1)
    harness.in_time(lambda: beside_a_stranger(place, clients), 1)
    check_steering(sender, [other, *on_address(clients, 1)])
