# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests of the broker protocol: workers return to the next broker with their slots, members and
ports after theirs has ended."""
import errno
import os
import signal
import socket
import struct
import time
import zlib

import pytest

import broker_client as bc
import harness
from test_broker import (ADDRESS, broker_program, check_steering, clients, find_lost, on_address,
                         place, port, ports, sender, short_idle, until)

GRACE = 2  # seconds that a new broker waits for the clients of the one before

# Fixtures are found by name.
__all__ = ["clients", "place", "sender", "short_idle"]


def start_broker(place):
    """Starts a broker, which takes the lowest free name above the highest one in use."""
    process = place.start(broker_program(place), "--stay")
    until(lambda: bc.listeners(place), process)
    return process


def kill(broker, place):
    broker.kill()
    until(lambda: not bc.listeners(place), "the name of a killed broker stays")


class Worker(bc.Client):
    """A worker that keeps its slots and members when its broker ends, and that answers probes."""

    answered = False

    def come_back(self, place):
        slots = [self.slot]
        self.sock.close()
        self.delivery.close()
        locks, members = self.locks, self.members
        self.__init__(place, bc.RETURNING, slots)
        assert (self.error, self.slot) == (0, slots[0]) and not self.locks
        self.locks, self.members, self.answered = locks, members, False
        for address, sock in members.items():
            assert self.add_address(address, sock) == (0, 1, 0)

    def answer_probes(self):
        """Answers the probes that have arrived; returns all other datagrams."""
        others = []
        for address, sock in self.members.items():
            for data in bc.arrived(sock):
                if bc.is_probe(data):
                    self.answer(address, *bc.PROBE.unpack(data)[2:])
                else:
                    others.append(data)
        return others

    def answer(self, address, index, secret, number):
        """Answers a probe as a real worker does: only if this broker has sent it."""
        if secret == self.secret:
            self.answered = True
            body = bc.endpoint(address) + struct.pack("=II", index, number)
            self.delivery.send(bc.message(bc.PROBED, body))


@pytest.fixture
def workers(place):
    made = []

    def new():
        made.append(Worker(place))
        return made[-1]
    yield new
    for worker in made:
        worker.close()


def answer_probes(workers, seconds):
    """The workers answer probes for this time; no other datagram may come."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for worker in workers:
            assert worker.answer_probes() == []
        time.sleep(0.002)


def settle(workers, sender):
    """Waits until the broker steers to each of these workers, which answer its probes.

    The steering program of the previous broker stays attached until the new broker has the first
    answers.  After two replies to PING the broker has read them.
    """
    def all_answered():
        for worker in workers:
            assert all(bc.is_trial(data) for data in worker.answer_probes())
        return all(worker.answered for worker in workers)
    until(all_answered, "no probes")
    assert all(worker.alive() for worker in [*workers, *workers])
    waiting = set(workers)

    def all_steered():
        for worker in workers:
            for data in worker.answer_probes():
                assert data == bc.trial(worker.slot)
                waiting.discard(worker)
        for worker in waiting:
            sender.send(bc.trial(worker.slot))
        return not waiting
    until(all_steered, "not steered to")


def check_while_counted(sender, living, dead=()):
    """As check_steering(), while the broker counts the members of the group.

    To count, the broker adds a member for a moment.  A datagram whose member the kernel looks up
    while the added one is being closed is lost, so one of some tries must be without loss.
    """
    harness.good_try(lambda: find_lost(sender, living, dead, 1), lambda lost: not lost)


def come_back(workers, place):
    for worker in workers:
        worker.come_back(place)


def test_all_return(place, workers, sender):
    broker = start_broker(place)
    living = on_address(workers, 6)
    for _ in range(3):
        kill(broker, place)
        broker = start_broker(place)
        come_back(living, place)
        settle(living, sender)
        check_steering(sender, living)
        living += on_address(workers, 2)
        check_steering(sender, living)


def test_members_move(place, workers, sender):
    """When a broker is killed, members that only the broker held are closed, and the last members
    of the group take their indexes."""
    broker = start_broker(place)
    living = on_address(workers, 20)
    dead = []
    for number in 3, 0, 7, 10:
        worker = living.pop(number)
        dead.append(worker.slot)
        worker.close()
    kill(broker, place)
    broker = start_broker(place)
    come_back(living, place)
    settle(living, sender)
    check_steering(sender, living, dead)
    new = on_address(workers, 5)
    check_steering(sender, living + new, set(dead) - {worker.slot for worker in new})


def test_one_is_stopped(place, workers, sender):
    """A worker that answers no probes gets nothing, because the broker does not know the index of
    its member; the other workers get all their datagrams."""
    broker = start_broker(place)
    living = on_address(workers, 8)
    gone, stopped = living.pop(0), living.pop(3)
    gone.close()
    kill(broker, place)
    broker = start_broker(place)
    stopped.come_back(place)
    come_back(living, place)
    settle(living, sender)
    check_while_counted(sender, living, [gone.slot])
    sender.send(bc.bth(stopped.slot, 1))
    # Probes are repeated once a second.
    answer_probes(living, 1.5)
    settle([*living, stopped], sender)
    check_steering(sender, [*living, stopped])


def test_one_comes_late(place, workers, sender):
    """The slot of a worker that has not returned is given to nobody."""
    broker = start_broker(place)
    living = on_address(workers, 4)
    late = living.pop(1)
    kill(broker, place)
    broker = start_broker(place)
    come_back(living, place)
    living += on_address(workers, 70)
    assert late.slot not in {worker.slot for worker in living}
    settle(living, sender)
    check_while_counted(sender, living)
    answer_probes(living, 2)
    late.come_back(place)
    settle([*living, late], sender)
    check_steering(sender, [*living, late])


def test_forged_answers(place, workers, sender):
    """PROBED with wrong indexes and rounds does not make the broker steer to the wrong worker."""
    broker = start_broker(place)
    living = on_address(workers, 4)
    for index in range(8):
        for number in range(4):
            body = bc.endpoint(ADDRESS) + struct.pack("=II", index, number)
            living[0].delivery.send(bc.message(bc.PROBED, body))
    time.sleep(0.1)
    assert living[0].alive()
    check_steering(sender, living)
    assert broker.running()


def request(port):
    """A DATAGRAM message with a CM REQ from another host for this port of RDMA_PS_TCP."""
    mad = struct.pack(">4B3IHHI", 1, 7, 2, 3, 0, 0, 1, 0x10, 0, 0)
    mad = (mad + struct.pack(">IIQ", 77, 0, 0x01060000 + port)).ljust(256, b"\0")
    packet = struct.pack(">BBHIIII", 0x64, 0x40, 0xFFFF, 1, 0, 0x80010000, 1) + mad
    length, source = len(packet) + 4, "127.0.0.77"
    # The ICRC treats the fields that it does not cover as ones.
    path = struct.pack(">BBHHHBBH4s4sHHHH", 0x45, 255, 28 + length, 0, 0x4000, 255, 17, 0xFFFF,
                       socket.inet_aton(source), socket.inet_aton(ADDRESS), 5000, bc.UDP_PORT,
                       8 + length, 0xFFFF)
    icrc = zlib.crc32(b"\xff" * 8 + path + packet[:4] + b"\xff" + packet[5:])
    packet += struct.pack("<I", icrc)
    return bc.message(bc.DATAGRAM, bc.endpoint(source) + bc.endpoint(ADDRESS) +
                      struct.pack("=HHBBH", 5000, len(packet), 0, 64, 1) + packet, 0)


def mads(worker):
    """Reasons of the MADs that the broker has delivered: 2 (for this client) or 4 (for none)."""
    reasons = []
    for data in bc.arrived(worker.delivery):
        if bc.HEADER.unpack_from(data)[0] == bc.DATAGRAM:
            reasons += struct.unpack_from("=H", data, bc.HEADER.size + 2 * bc.ENDPOINT.size + 6)
    return reasons


@pytest.mark.parametrize("listens", (True, False), ids=("a listener", "no queue pair 1"))
def test_request_while_a_client_claims(place, workers, listens):
    """A REQ waits until the last client has sent its last claim, because the REQ may be for a port
    of that client."""
    broker = start_broker(place)
    last, other = on_address(workers, 2)
    for _ in range(10):
        kill(broker, place)
        begun = time.monotonic()
        broker = start_broker(place)
        come_back([last, other], place)
        assert other.ask(bc.GSI, struct.pack("=II", 1, 0))[1] == 0
        other.delivery.send(request(7000))
        assert other.alive() and other.alive()
        time.sleep(0.1)
        early = mads(other)
        if listens:
            assert last.ask(bc.PORT, ports(1, port(flags=4 | 8)))[1] == 0
        assert last.ask(bc.GSI, struct.pack("=II", int(listens), 0))[1] == 0
        found = mads(last), mads(other)
        in_grace = time.monotonic() - begun < GRACE
        # On a busy host the grace period may be over, and the broker then waits for no client.
        if in_grace:
            break
    assert in_grace and early == []
    assert found == (([2], []) if listens else ([], [4]))


def test_ports_return(place, workers):
    """At a new broker a port belongs to the client that had bound it; no other can bind it."""
    broker = start_broker(place)
    first, second = workers(), workers()
    assert first.ask(bc.PORT, ports(1, port()))[1] == 0
    kill(broker, place)
    broker = start_broker(place)
    come_back([first, second], place)
    entries = [port(flags=4 | 8), port(number=7001, flags=4, identity=2)]
    assert first.ask(bc.PORT, ports(2, *entries))[1] == 0
    assert second.ask(bc.PORT, ports(1, port()))[1] == -errno.EADDRINUSE
    assert second.ask(bc.PORT, ports(1, port(number=7001)))[1] == -errno.EADDRINUSE
    assert second.ask(bc.PORT, ports(1, port(number=7002)))[1] == 0
    first.close()
    until(lambda: second.ask(bc.PORT, ports(1, port(number=7001)))[1] == 0, "stays bound")


def test_lower_broker_ends(place, workers, monkeypatch):
    """A stopped broker is replaced by one with a higher name, which serves its clients as soon as
    they return; the old broker ends when it continues."""
    # The second broker, although idle, must run until the end of this test.
    monkeypatch.setenv("UROCE_TEST_BROKER_IDLE", str(harness.PATIENCE * 1000))
    old = start_broker(place)
    worker = workers()
    os.kill(old.pid, signal.SIGSTOP)
    listener = bc.listeners(place)
    words = ["ibv_devinfo", "-d", "uroce_lo"]
    place.run(*words).done()
    assert max(bc.listeners(place)) > listener[0]
    worker.come_back(place)
    os.kill(old.pid, signal.SIGCONT)
    assert old.wait() == 0, old
    assert worker.alive()
    new, = bc.brokers(place)
    os.kill(new, signal.SIGKILL)


@pytest.mark.parametrize("end", ("killed", "living"))
def test_stopped_broker_without_workers(place, end):
    """The sockets that a stopped broker still has on the port belong to its user, so other programs
    of this user can still start."""
    words = ["ibv_rc_pingpong", "-d", "uroce_lo", "-g", "0", "-n"]
    pair = harness.start_pair(place, [*words, "100000000"])
    until(lambda: len(place.sockets()[1]) > 3, "no members")
    old, = bc.brokers(place)
    os.kill(old, signal.SIGSTOP)
    try:
        if end == "killed":
            for process in pair:
                process.kill()
        for _ in range(2):
            for process in harness.start_pair(place, [*words, "50"]):
                process.done()
    finally:
        os.kill(old, signal.SIGCONT)
    for process in pair:
        process.kill()


def test_many_start_at_once(place):
    """Processes that find no broker start one for all of them."""
    for _ in range(3):
        started = [place.start("ibv_devinfo", "-d", "uroce_lo") for _ in range(20)]
        pairs = [harness.start_pair(place, ["ibv_rc_pingpong", "-d", "uroce_lo", "-g", "0", "-n",
                                            "3000"]) for _ in range(3)]
        for process in started:
            process.done()
        for pair in pairs:
            for process in pair:
                process.done()
        until(lambda: not bc.brokers(place), lambda: f"do not end: {bc.brokers(place)}")
