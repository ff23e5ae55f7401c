# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Programs whose uroce-broker is killed or stopped."""
import array
import contextlib
import itertools
import os
import re
import shutil
import signal
import socket
import struct
import time

import pytest

import broker_client as bc
import datagrams
import harness
import idle
import verbs_peer
from test_broker import ADDRESS, broker, broker_program, place, short_idle, until

# Fixtures are found by name.
__all__ = ["broker", "place", "short_idle"]


def run_pair(place, seconds=harness.PATIENCE):
    """Runs a pair that exchanges some messages; returns the seconds that it took."""
    start = time.monotonic()
    words = ["ibv_rc_pingpong", "-d", "uroce_lo", "-g", "0", "-n", "50"]
    for process in reversed(harness.start_pair(place, words)):
        process.done(seconds)
    return time.monotonic() - start


def one_broker(place):
    until(lambda: len(bc.brokers(place)) == 1, lambda: f"brokers: {bc.brokers(place)}")
    return bc.brokers(place)[0]


def pair_beside_killed_brokers(place):
    """Kills five brokers while a pair sends a stream, and runs another pair after each of them.
    Returns the first pair, or None if its stream ended too early."""
    words = ["ib_send_bw", "-d", "uroce_lo", "-F", "-D", "10", "-s", "4096", "-x", "0"]
    server, client = harness.start_pair(place, words)
    run_pair(place)
    killed = set()
    for _ in range(5):
        killed.add(one_broker(place))
        os.kill(one_broker(place), signal.SIGKILL)
        run_pair(place)
        assert one_broker(place) not in killed
    outlives_them = client.running() and server.running()
    for process in client, server:
        process.done()
    return (server, client) if outlives_them else None


@pytest.mark.skipif(not shutil.which("ib_send_bw"), reason="no perftest here")
def test_broker_is_killed(place):
    """Traffic goes on, and new processes find a new broker; the last broker ends."""
    harness.tries(lambda: pair_beside_killed_brokers(place))
    until(lambda: not bc.brokers(place), "the broker does not end")
    place.await_no_sockets()


def first_datagram_took(place, is_stopped):
    receiver, sender = datagrams.End(place), datagrams.End(place)
    broker_pid = one_broker(place)
    if is_stopped:
        os.kill(broker_pid, signal.SIGSTOP)
    start = time.monotonic()
    sender.send(f"::ffff:{ADDRESS}", receiver.qpn, 4)
    assert receiver.receive()
    took = time.monotonic() - start
    os.kill(broker_pid, signal.SIGCONT)
    for end in receiver, sender:
        end.process.kill()
    return took


@pytest.mark.parametrize("is_stopped", (False, True))
def test_first_datagram_to_a_process(place, is_stopped):
    """The sender requests the receiver's socket from the broker, and waits a second at most."""
    harness.in_time(lambda: first_datagram_took(place, is_stopped), 1.5 if is_stopped else 0.5)


def test_idle_after_a_return(place):
    """Processes that do not use queue pair 1 sleep again when they have found a new broker."""
    ends = verbs_peer.pair(place)
    old = one_broker(place)
    os.kill(old, signal.SIGKILL)
    assert ends[0].do("write") == verbs_peer.SUCCESS
    until(lambda: bc.brokers(place) not in ([], [old]), "there is no new broker")
    harness.in_time(lambda: max(idle.used_while_idle(*ends)), 0.3)


def run_pair_beside_a_stopped_broker(place):
    """Returns the seconds that the pair took; the stopped broker must end when it continues."""
    old = one_broker(place)
    os.kill(old, signal.SIGSTOP)
    try:
        took = run_pair(place)
        assert len(bc.brokers(place)) == 2
        number = max(bc.listeners(place))
    finally:
        os.kill(old, signal.SIGCONT)
    until(lambda: bc.listeners(place) == [number], "the old broker does not end")
    return took


def test_broker_is_stopped(place):
    """A stopped broker is replaced, and traffic goes on."""
    server, client = harness.start_pair(place, ["ibv_rc_pingpong", "-d", "uroce_lo", "-g", "0",
                                                "-n", "100000000"])
    harness.in_time(lambda: run_pair_beside_a_stopped_broker(place), 5)
    harness.in_time(lambda: run_pair(place), 5)
    for process in server, client:
        used = process.ticks()
        until(lambda: process.ticks() > used + 0.05, lambda: f"does not go on: {process}")


@pytest.mark.parametrize("wait", ([], ["-e"]), ids=("polls", "sleeps"))
def test_new_broker_does_not_reply(place, wait):
    """Clients wait a second for a new broker that does not reply.  Members whose index has changed
    get no packets until the next broker has found them, which takes longer than eight timeouts of
    67 ms; these timeouts must not use up the retries."""
    pair = harness.start_pair(place, ["ibv_rc_pingpong", "-d", "uroce_lo", "-g", "0",
                                      "-n", "100000000", *wait])
    until(lambda: all(process.ticks() > 0.1 for process in pair), "no traffic")
    old = one_broker(place)
    silent = bc.new_socket(place, socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with contextlib.closing(silent):
        silent.bind(f"\0uroce-broker/{bc.VERSION}/{max(bc.listeners(place)) + 1}")
        silent.listen(16)
        os.kill(old, signal.SIGKILL)
        time.sleep(2)
    for process in pair:
        used = process.ticks()
        until(lambda: process.ticks() > used + 0.05, lambda: f"does not go on: {process}")


# Listens at the first name of brokers, is ready to run for argv[1] seconds, and then executes
# the broker argv[2].
LATE_BROKER = f"""
import ctypes, os, socket, sys, time
PR_SET_NAME = 15
ctypes.CDLL(None).prctl(PR_SET_NAME, b"uroce-broker")
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind("\\0uroce-broker/{bc.VERSION}/0")
listener.listen(16)
until = time.monotonic() + float(sys.argv[1])
while time.monotonic() < until:
    pass
os.dup2(listener.fileno(), 3)
os.execv(sys.argv[2], ["uroce-broker"])
"""


def numbers_until_end(place, client):
    """The numbers of all brokers that listen until the client ends."""
    seen = set()

    def has_ended():
        ended = not client.running()
        seen.update(bc.listeners(place))
        return ended
    until(has_ended, client)
    return seen


def test_broker_is_ready_to_run(place):
    """A broker that does not reply for a second is not replaced while it is ready to run: on a busy
    host it may wait for a processor."""
    broker = place.start(harness.PYTHON, "-c", LATE_BROKER, 2.5, broker_program(place))
    until(lambda: bc.listeners(place), broker)
    client = place.start("ibv_devinfo", "-d", "uroce_lo")
    assert numbers_until_end(place, client) == {0}
    client.done()
    until(lambda: not broker.running(), broker)


# Is ready to run for two to three seconds, as a broker that is being executed on a busy host, and
# then executes the broker.
STARTING_BROKER = """#!/bin/bash
until=$((SECONDS + 3))
while ((SECONDS < until)); do :; done
exec {program}
"""


def test_broker_starts_slowly(place, tmp_path, monkeypatch):
    """A new broker that has not run its first instruction is not replaced while it is ready to
    run."""
    program = tmp_path / "uroce-broker"
    program.write_text(STARTING_BROKER.format(program=broker_program(place)), encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("UROCE_TEST_BROKER", str(program))
    client = place.start("ibv_devinfo", "-d", "uroce_lo")
    assert numbers_until_end(place, client) == {0}
    client.done()


def test_stopped_broker_ends_later(place):
    """When a stopped broker ends, its members are closed, and the last members of the group take
    their indexes.  The new broker must detect this before the queue pairs of the members that have
    moved use up their retries (0.54 s)."""
    pingpong = ["ibv_rc_pingpong", "-d", "uroce_lo", "-g", "0", "-n", "100000000"]
    pairs = [harness.start_pair(place, pingpong)]
    for _ in range(3):
        old = one_broker(place)
        os.kill(old, signal.SIGSTOP)
        pairs.append(harness.start_pair(place, pingpong))
        until(lambda: len(bc.brokers(place)) == 2, "there is no new broker")
        run_pair(place)
        # After this time without changes the new broker counts the members less often.
        time.sleep(0.7)
        os.kill(old, signal.SIGKILL)
        time.sleep(1)
        for process in itertools.chain(*pairs):
            assert process.running(), process
        for process in pairs.pop(0):
            process.kill()


def test_stopped_broker_ends_beside_another(place):
    """One of two stopped brokers is killed.  Nobody detects the members that move then, until the
    processes whose queue pairs time out find that their broker does not reply, and start another
    one."""
    pingpong = ["ibv_rc_pingpong", "-d", "uroce_lo", "-g", "0", "-n", "100000000"]
    pairs = [harness.start_pair(place, pingpong)]
    until(lambda: all(process.ticks() > 0.1 for process in pairs[0]), "no traffic")
    first = one_broker(place)
    os.kill(first, signal.SIGSTOP)
    pairs += [harness.start_pair(place, pingpong) for _ in range(3)]
    until(lambda: all(process.ticks() > 0.1 for process in pairs[-1]), "no traffic")
    second, = set(bc.brokers(place)) - {first}
    os.kill(second, signal.SIGSTOP)
    try:
        os.kill(first, signal.SIGKILL)
        until(lambda: set(bc.brokers(place)) - {second}, "there is no new broker")
        time.sleep(1)
        for process in itertools.chain(*pairs):
            assert process.running(), process
    finally:
        os.kill(second, signal.SIGCONT)


@contextlib.contextmanager
def doomed_broker(place):
    """A socket that listens at the first broker name, without a broker that serves it."""
    doomed = bc.new_socket(place, socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with contextlib.closing(doomed):
        doomed.settimeout(harness.PATIENCE)
        doomed.bind(f"\0uroce-broker/{bc.VERSION}/0")
        doomed.listen(16)
        yield doomed


def test_brokers_that_die_at_once(place):
    """A program whose first brokers end at once finds one that runs: it searches for 5 s."""
    with doomed_broker(place) as doomed:
        program = place.start("ibv_devinfo", "-d", "uroce_lo")
        for _ in range(6):
            doomed.accept()[0].close()
    program.done()


needs_rping = pytest.mark.skipif(not shutil.which("rping"), reason="no rdmacm-utils here")


def rping_server(place, port, *words):
    server = place.start("rping", "-s", "-a", ADDRESS, "-p", port, *words)
    place.await_rdma_listener(server, port)
    return server


def greet_and_die(place, listener):
    """Acts as a broker that replies to one client's HELLO and ends when it gets a request."""
    control = listener.accept()[0]
    control.settimeout(harness.PATIENCE)
    kind, number, _, body, _ = bc.receive(control)
    assert kind == bc.HELLO
    role = struct.unpack_from("=I", body)[0]
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    # The slot of the highest number is nobody's.
    slot = bc.new_socket(place, socket.AF_UNIX, socket.SOCK_SEQPACKET)
    given = [theirs.fileno()] + [slot.fileno()] * (role == bc.WORKER)
    welcome = struct.pack("=IIII", role, bc.SLOTS - 1, 1, 0)
    control.sendmsg([bc.message(bc.WELCOME, welcome, number)],
                    [(bc.SOL_SOCKET, bc.SCM_RIGHTS, array.array("i", given))])
    control.recv(65536)
    for sock in control, ours, theirs, slot:
        sock.close()


@needs_rping
def test_requests_of_brokers_that_die(place):
    """A program whose brokers end before they reply repeats its request, for up to 10 s, until a
    broker replies."""
    with doomed_broker(place) as doomed:
        server = place.start("rping", "-s", "-a", ADDRESS, "-p", 7903)
        for _ in range(6):
            greet_and_die(place, doomed)
    place.await_rdma_listener(server, 7903)


def client_after_a_killed_broker(place):
    """Kills the broker; returns the seconds that a client then takes."""
    os.kill(one_broker(place), signal.SIGKILL)
    start = time.monotonic()
    place.start("rping", "-c", "-V", "-C", 10, "-a", ADDRESS, "-p", 7901).done()
    return time.monotonic() - start


@needs_rping
def test_listener_at_the_next_broker(place):
    """Connections come to a server whose broker was killed after it began to listen."""
    server = rping_server(place, 7901, "-P")
    for _ in range(3):
        harness.in_time(lambda: client_after_a_killed_broker(place), 5)
    assert server.running(), server


def peer_of_a_killed_process(place, moment):
    """Kills a client, and its broker if moment is not empty; returns the seconds until the client's
    server reported the disconnection."""
    server = rping_server(place, 7902)
    client = place.start("rping", "-c", "-v", "-C", 100000000, "-a", ADDRESS, "-p", 7902)
    client.await_words("ping data")
    if moment:
        killed = one_broker(place)
        os.kill(killed, signal.SIGKILL)
    if moment == "broker killed before":
        until(lambda: killed not in bc.brokers(place), "still there")
        place.output_of("ibv_devinfo", "-d", "uroce_lo")
        time.sleep(0.5)
    client.kill()
    return disconnection_took(place, server)


def disconnection_took(place, server):
    """Returns the seconds until the server reports it; then kills all programs of the place."""
    start = time.monotonic()
    server.await_words("DISCONNECT")
    took = time.monotonic() - start
    place.close()
    return took


@needs_rping
@pytest.mark.parametrize("moment", ("", "broker killed before", "broker killed with it"))
def test_peer_of_a_killed_process(place, moment):
    """The peer gets a DREQ that the broker sends; if no broker can send it, the peer detects the
    end of the process itself."""
    harness.in_time(lambda: peer_of_a_killed_process(place, moment), 2)


def peer_when_slots_are_given_again(place):
    """Kills a client and its broker while its server is stopped; returns the seconds until the
    server, when it continues, reported the disconnection."""
    server = rping_server(place, 7904)
    client = place.start("rping", "-c", "-v", "-C", 100000000, "-a", ADDRESS, "-p", 7904)
    client.await_words("ping data")
    os.kill(server.pid, signal.SIGSTOP)
    os.kill(one_broker(place), signal.SIGKILL)
    client.kill()
    # These servers get the first slots that the next broker assigns.
    for port in range(7905, 7909):
        rping_server(place, port)
    os.kill(server.pid, signal.SIGCONT)
    return disconnection_took(place, server)


@needs_rping
def test_slot_of_a_killed_process_rests(place):
    """The next broker does not assign the slot soon, so that peers of the killed process see that
    no process has it."""
    harness.in_time(lambda: peer_when_slots_are_given_again(place), 5)


def test_command_line(place):
    program = broker_program(place)
    for word in "--help", "--version":
        shown = place.run(program, word)
        assert shown.popen.returncode == 0 and shown.output and not shown.errors, shown
    assert re.search(r"\d+\.\d+", shown.output), shown
    for words in (), ("--nonsense",), ("--stay", "more"):
        shown = place.run(program, *words)
        assert shown.popen.returncode == 2, shown
        assert "usage" in shown.errors.lower() and not shown.output, shown


def test_second_broker_of_a_user(broker, place):
    second = place.run(broker_program(place), "--stay")
    assert second.popen.returncode == 1, second
    assert len(second.errors.splitlines()) == 1 and not second.output, second
    assert bc.brokers(place) == [broker.pid]
