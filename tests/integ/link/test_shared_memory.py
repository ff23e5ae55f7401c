# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""UROCE_SHM=on: queue pairs of two processes with one address exchange their packets through
shared memory, whatever they do, and whatever becomes of the other process."""
import random
import shutil
import time

import pytest

import harness
import idle
import shm
import perftest
import verbs_peer

ON, OFF, AUTO = ({shm.SETTING: value} for value in ("on", "off", "auto"))
SECONDS = 1


@pytest.fixture(autouse=True)
def switched_on(monkeypatch):
    """For all programs whose test does not say otherwise."""
    monkeypatch.setenv(shm.SETTING, "on")


# ---- Every kind of traffic ----

@pytest.mark.parametrize("program", [
    "ib_send_bw", "ib_write_bw -s 4096", "ib_read_bw", "ib_atomic_bw", "ib_write_lat",
    "ib_send_bw -b", "ib_send_bw -c XRC", "ib_write_bw -q 16"])
def test_traffic(loopback, program):
    before = shm.datagrams_sent(loopback)
    seen, _ = shm.run(loopback, *program.split(), "-D", SECONDS)
    shm.check_memory_is_used(seen)
    shm.check_no_packet_was_damaged(seen)
    # How many there are in a second is the host's affair.
    assert shm.FEW < shm.sent_through_memory(seen) > shm.datagrams_sent(loopback) - before


@pytest.mark.parametrize("opcode", ["send", "write"])
def test_unreliable_connection(loopback, opcode):
    """Only one side sends."""
    first, second = (verbs_peer.start(loopback, kind="UC") for _ in range(2))
    first.connect(second.here)
    second.connect(first.here)
    before = shm.datagrams_sent(loopback)
    if opcode == "write":
        first.begin("stream", opcode, 0.5, length=4096)
        posted, good = first.answer()
        assert posted == good > 600
    for _ in range(30):
        second.receive()
        assert first.do("send") == verbs_peer.SUCCESS
    assert len(second.wait(30, seconds=5)) == 30
    sender, receiver = shm.shown(loopback, first, second)
    shm.check_no_packet_was_damaged([sender, receiver])
    shm.check_all_went_through_memory(sender["counters"])
    assert receiver["counters"]["shm_rcvd"] == sender["counters"]["shm_sent"]
    assert shm.datagrams_sent(loopback) - before < shm.FEW


@pytest.mark.parametrize("here, there", [(ON, OFF), (OFF, ON), (AUTO, ON), (AUTO, AUTO)])
def test_not_when_one_side_has_it_off(loopback, here, there):
    before = shm.datagrams_sent(loopback)
    seen, _ = shm.run(loopback, "ib_write_bw", "-s", 4096, "-D", SECONDS, env=here,
                      client_env=there)
    shm.check_memory_is_not_used(seen)
    assert shm.datagrams_sent(loopback) - before > shm.MANY


def test_address_that_is_closed_meanwhile(loopback):
    """A queue pair connects while the other process has the address, which then closes it with its
    last queue pair and opens it again for the peer."""
    first, second = verbs_peer.pair(loopback)
    assert first.exchange(30, 100, 1) == second.exchange(30, 100, 2) == 30
    here, there = (end.of(1, "open", loopback.device, loopback.gid_index(4))
                   for end in (first, second))
    first.of(1, "connect", there)
    second.close()
    second.of(1, "connect", here)
    assert first.of(1, "exchange", 30, 100, 3) == 30
    assert second.of(1, "exchange", 30, 100, 4) == 30
    shm.check_memory_is_used(shm.shown(loopback, first, second))


def test_asked_while_the_address_is_opened(loopback):
    """The process that is asked sleeps after that, and is woken up by what comes through memory."""
    slow = ["strace", "-f", "-o", "/dev/null", "-e", "trace=getsockopt", "-e",
            "inject=getsockopt:delay_exit=20000"]
    if not shutil.which("strace") or loopback.run(*slow, "true").popen.returncode:
        pytest.skip("strace cannot slow down a process here")
    first, second = verbs_peer.start(loopback), verbs_peer.VerbsPeer(loopback, under=slow)
    there = second.open(loopback.device, loopback.gid_index(4))
    # As in a handshake in which both connect at once.
    second.begin("connect", first.here)
    time.sleep(0.1)
    first.connect(there)
    second.answer()
    assert first.do("write") == verbs_peer.SUCCESS
    assert shm.counters(loopback, first)[0]["shm_sent"] > 0


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("arguments", ["-s 1", "-s 300001 -m 1024", "-s 4096 -e",
                                       "-s 300001 -m 256 -e"])
def test_data_is_right(loopback, version, arguments):
    before = shm.datagrams_sent(loopback)
    server, client = harness.start_pair(
        loopback, ["ibv_rc_pingpong", "-d", "{device}", "-g", loopback.gid_index(version), "-c",
                   "-n", 1000, *arguments.split()])
    for process in client, server:
        assert "invalid data" not in process.done()
        assert process.errors == "", process
    assert shm.datagrams_sent(loopback) - before < shm.FEW


def test_data_of_one_sided_operations(loopback):
    """Two that READ from each other from the start."""
    first, second = verbs_peer.pair(loopback)
    for end in first, second:
        end.begin("exchange", 300, 7000, end.pid)
    assert [end.answer() for end in (first, second)] == [300, 300]
    shm.check_memory_is_used(shm.shown(loopback, first, second))


@pytest.mark.parametrize("program", ["ib_send_bw", "ib_read_lat", "ib_send_lat", "ib_atomic_bw"])
def test_events(loopback, program):
    before = shm.datagrams_sent(loopback)
    server, client = perftest.start(loopback, program, "-e", "-n", 2000)
    perftest.finish(server, client)
    perftest.check_report(client, [perftest.usual_size(program)], 2000)
    assert shm.datagrams_sent(loopback) - before < shm.FEW


def test_waiting_uses_no_processor(loopback):
    """For an event and for a peer's request, after memory was used; and both wake up."""
    first, second = verbs_peer.pair(loopback)
    first.exchange(50, 100, 1)
    second.exchange(50, 100, 1)
    shm.check_memory_is_used_by(loopback, first, second)
    harness.in_time(lambda: idle.woken(first, second), 0.5)


def held_up_beside_a_stream(first, second, third):
    """How long writes of the third process to the second were at most."""
    first.begin("stream", "write", 2, length=4096)
    second.begin("wait", seconds=2)
    time.sleep(0.1)
    held_up, took, count = third.pace(1.5, False, [third.pid, second.pid])
    print("held up", held_up, "took", took, count)
    posted, good = first.answer()
    assert posted == good > 600
    second.answer()
    return held_up


def test_socket_beside_a_stream_through_memory(loopback, monkeypatch):
    """A third process that has no memory gets through to one whose rings are never empty."""
    first, second = verbs_peer.pair(loopback)
    monkeypatch.setenv(shm.SETTING, "off")
    third = verbs_peer.start(loopback)
    here = second.of(1, "open", loopback.device, loopback.gid_index(4))
    second.of(1, "connect", third.here)
    third.connect(here)
    # Less than one timeout, but for what the processes waited for a processor.
    harness.in_time(lambda: held_up_beside_a_stream(first, second, third), 0.05)
    shm.check_memory_is_not_used(shm.shown(loopback, third))


# ---- Many ----

def test_eight_pairs(loopback):
    pairs = [perftest.start(loopback, "ib_write_bw", "-D", 2, "-f", 0) for _ in range(8)]
    processes = sum(pairs, ())
    shm.await_memory(loopback, *[client for _, client in pairs])
    for server, client in pairs:
        perftest.finish(server, client)
    assert all(perftest.rows(process) for process in processes)


def test_many_queue_pairs(loopback):
    # The program never ends when -t does not divide -n.
    server, client = perftest.start(loopback, "ib_send_bw", "-q", 1024, "-s", 1024, "-n", 24,
                                    "-r", 8, "-t", 8)
    perftest.finish(server, client)
    perftest.check_report(client, [1024], 24 * 1024)


def hub_and_peers(place, count):
    """One process with a queue pair to each of others."""
    hub, peers = verbs_peer.VerbsPeer(place), []
    for number in range(count):
        peers.append(join(place, hub, number))
    return hub, peers


def join(place, hub, number):
    here = hub.of(number, "open", place.device, place.gid_index(4))
    peer = verbs_peer.start(place)
    hub.of(number, "connect", peer.here)
    peer.connect(here)
    return peer


def exchange_with_all(hub, peers, rounds=20):
    for peer in peers:
        peer.begin("exchange", rounds, 3000, peer.pid)
    for number in range(len(peers)):
        assert hub.of(number, "exchange", rounds, 3000, number) == rounds
    assert [peer.answer() for peer in peers] == [rounds] * len(peers)


def test_one_process_with_many_others(loopback):
    """Some of them die, and others take their slots: each channel leads to the right process."""
    rng = random.Random(5)
    hub, peers = hub_and_peers(loopback, 6)
    exchange_with_all(hub, peers)
    for _ in range(4):
        number = rng.randrange(len(peers))
        peers[number].process.kill()
        assert hub.of(number, "do", "write") == verbs_peer.RETRY_EXC_ERR
        hub.of(number, "close")
        peers[number] = join(loopback, hub, number)
        exchange_with_all(hub, peers)
    shm.check_memory_is_used(shm.shown(loopback, hub, *peers))


# ---- Where there is no shared memory ----

# Makes memfd_create() fail as an old kernel or a strict container does, and becomes the program.
WITHOUT_MEMORY_FILES = """
import ctypes, errno, os, platform, struct, sys
number = {"x86_64": 319, "aarch64": 279}[platform.machine()]
LOAD, EQUAL, RETURN, ALLOW, ERROR = 0x20, 0x15, 0x06, 0x7fff0000, 0x00050000
code = [(LOAD, 0, 0, 0), (EQUAL, 0, 1, number), (RETURN, 0, 0, ERROR | errno.ENOSYS),
        (RETURN, 0, 0, ALLOW)]
filters = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in code))
program = struct.pack("HxxxxxxP", len(code), ctypes.addressof(filters))
libc = ctypes.CDLL(None, use_errno=True)
SET_SECCOMP, SET_NO_NEW_PRIVS, MODE_FILTER = 22, 38, 2
if libc.prctl(SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(SET_SECCOMP, MODE_FILTER, program):
    sys.exit(77)
os.execvp(sys.argv[1], sys.argv[1:])
"""


def run_under(place, wrapper):
    """A pair of which both run by way of another program."""
    port = place.free_port()
    command = [*wrapper, "ib_write_bw", "-d", place.device, "-F", "-n", 2000, "-p", port]
    server = place.serve(port, *command)
    client = place.start(*command, place.address)
    perftest.finish(server, client)
    (size, iterations, *_), = perftest.rows(client)
    assert (size, iterations) == (65536, 2000), client


def test_no_memory_files(loopback):
    before = shm.datagrams_sent(loopback)
    run_under(loopback, [harness.PYTHON, "-c", WITHOUT_MEMORY_FILES])
    assert shm.datagrams_sent(loopback) - before > shm.MANY


@pytest.mark.parametrize("limit", ["--nofile=100:100", "--nofile=80:80", "--fsize=1000000:1000000",
                                   "--core=0:0"])
def test_limits(loopback, limit):
    """Of files it needs some more, and none may kill the process; memory is used or not."""
    run_under(loopback, ["prlimit", limit])


def test_two_hosts(veth):
    """Each of them with addresses of its own."""
    before = shm.datagrams_sent(veth)
    seen, client = shm.run(veth, "ib_write_bw", "-D", SECONDS)
    perftest.check_report(client, [65536], None, duration=True)
    shm.check_memory_is_not_used(seen)
    assert shm.datagrams_sent(veth.peer) - before > shm.MANY


def test_faults_are_injected(loopback):
    env = {"UROCE_FAULT": "drop=0.02,seed=4"}
    seen, client = shm.run(loopback, "ib_write_bw", "-s", 16384, "-D", SECONDS, env=env)
    perftest.check_report(client, [16384], None, duration=True)
    sender = seen[1]
    assert sender["counters"]["fault_dropped"] > 0, sender
    numbers = sender["qps"][0]["counters"]
    assert numbers["rcvd_seq_err"] + numbers["timeouts"] > 0, numbers
