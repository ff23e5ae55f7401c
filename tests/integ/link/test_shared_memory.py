# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""UROCE_SHM=on: queue pairs of two processes on the same address exchange their packets through
shared memory, for all operations, also when other processes are killed and replaced."""
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
MANY = 600  # requests of 4 KiB, more than any ring holds


@pytest.fixture(autouse=True)
def switched_on(monkeypatch):
    """Enables shared memory for all programs, unless the test passes another setting."""
    monkeypatch.setenv(shm.SETTING, "on")


# ---- Every kind of traffic ----

def run(place, sender_at, *words, **options):
    """Returns the results of shm.run(), and the number of datagrams that the place sender_at has
    sent during the run."""
    before = shm.datagrams_sent(sender_at)
    seen, client = shm.run(place, *words, "-D", SECONDS, **options)
    return seen, client, shm.datagrams_sent(sender_at) - before


def run_with_many_datagrams(*arguments, **options):
    """As run(), which must send many datagrams in one of some tries: on a busy host a second may be
    too short for them."""
    return harness.good_try(lambda: run(*arguments, **options), lambda found: found[2] > shm.MANY)


@pytest.mark.parametrize("program", [
    "ib_send_bw", "ib_write_bw -s 4096", "ib_read_bw", "ib_atomic_bw", "ib_write_lat",
    "ib_send_bw -b", "ib_send_bw -c XRC", "ib_write_bw -q 16"])
def test_traffic(loopback, program):
    seen, _, datagrams = harness.good_try(lambda: run(loopback, loopback, *program.split()),
                                          lambda found: shm.all_use_memory(found[0]))
    shm.check_memory_is_used(seen)
    shm.check_no_packet_was_damaged(seen)
    # The number of packets in a second depends on the host.
    assert shm.FEW < shm.sent_through_memory(seen) > datagrams


@pytest.mark.parametrize("opcode", ["send", "write"])
def test_unreliable_connection(loopback, opcode):
    """Only one side sends."""
    first, second = shm.pair(loopback, kind="UC")
    before = shm.datagrams_sent(loopback)
    if opcode == "write":
        posted, good = first.stream(opcode, 0.5, at_least=MANY, length=4096)
        assert posted == good >= MANY
    for _ in range(30):
        second.receive()
        assert first.do("send") == verbs_peer.SUCCESS
    assert len(second.wait(30)) == 30
    sender, receiver = shm.shown(loopback, first, second)
    shm.check_no_packet_was_damaged([sender, receiver])
    shm.check_all_went_through_memory(sender["counters"])
    assert receiver["counters"]["shm_rcvd"] == sender["counters"]["shm_sent"]
    assert shm.datagrams_sent(loopback) - before < shm.FEW


@pytest.mark.parametrize("here, there", [(ON, OFF), (OFF, ON), (AUTO, ON), (AUTO, AUTO)])
def test_not_when_one_side_has_it_off(loopback, here, there):
    seen, *_ = run_with_many_datagrams(loopback, loopback, "ib_write_bw", "-s", 4096, env=here,
                                       client_env=there)
    shm.check_memory_is_not_used(seen)


def closed_meanwhile(place):
    """Returns two ends whose second queue pairs have exchanged data, and true if memory is used."""
    first, second = shm.pair(place)
    assert first.exchange(30, 100, 1) == second.exchange(30, 100, 2) == 30
    here, there = (end.of(1, "open", place.device, place.gid_index(4))
                   for end in (first, second))
    first.of(1, "connect", there)
    second.close()
    second.of(1, "connect", here)
    assert first.of(1, "exchange", 30, 100, 3) == 30
    assert second.of(1, "exchange", 30, 100, 4) == 30
    return first, second, shm.is_used(place, first, second)


def test_address_that_is_closed_meanwhile(loopback):
    """A queue pair connects while the other process has the address open.  That process then closes
    the address with its last queue pair, and opens it again for the peer."""
    *ends, _ = harness.good_try(lambda: closed_meanwhile(loopback), lambda found: found[-1])
    shm.check_memory_is_used(shm.shown(loopback, *ends))


SLOW = ["strace", "-f", "-o", "/dev/null", "-e", "trace=getsockopt", "-e",
        "inject=getsockopt:delay_exit=20000"]


def asked_while_the_address_is_opened(place):
    """Returns the number of packets that went through memory."""
    first, second = verbs_peer.start(place), verbs_peer.VerbsPeer(place, under=SLOW)
    there = second.open(place.device, place.gid_index(4))
    # As in a handshake in which both ends connect at the same time.
    second.begin("connect", first.here)
    time.sleep(0.1)
    first.connect(there)
    second.answer()
    assert first.do("write") == verbs_peer.SUCCESS
    return shm.counters(place, first)[0]["shm_sent"]


def test_asked_while_the_address_is_opened(loopback):
    """A process that gets the request for shared memory while it opens the address sleeps after
    that, and packets that arrive through memory wake it up."""
    if not shutil.which("strace") or loopback.run(*SLOW, "true").popen.returncode:
        pytest.skip("strace cannot slow down a process here")
    harness.good_try(lambda: asked_while_the_address_is_opened(loopback), bool)


def check_few_datagrams(place, run):
    def sent():
        before = shm.datagrams_sent(place)
        run()
        return shm.datagrams_sent(place) - before
    harness.good_try(sent, lambda count: count < shm.FEW)


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("arguments", ["-s 1", "-s 300001 -m 1024", "-s 4096 -e",
                                       "-s 300001 -m 256 -e"])
def test_data_is_right(loopback, version, arguments):
    def run():
        server, client = harness.start_pair(
            loopback, ["ibv_rc_pingpong", "-d", "{device}", "-g", loopback.gid_index(version), "-c",
                       "-n", 1000, *arguments.split()])
        for process in client, server:
            assert "invalid data" not in process.done()
            assert process.errors == "", process
    check_few_datagrams(loopback, run)


def test_data_of_one_sided_operations(loopback):
    """Both ends READ from each other from the beginning."""
    first, second = shm.pair(loopback)
    for end in first, second:
        end.begin("exchange", 300, 7000, end.pid)
    assert [end.answer() for end in (first, second)] == [300, 300]
    shm.check_memory_is_used(shm.shown(loopback, first, second))


@pytest.mark.parametrize("program", ["ib_send_bw", "ib_read_lat", "ib_send_lat", "ib_atomic_bw"])
def test_events(loopback, program):
    def run():
        server, client = perftest.start(loopback, program, "-e", "-n", 2000)
        perftest.finish(server, client)
        perftest.check_report(client, [perftest.usual_size(program)], 2000)
    check_few_datagrams(loopback, run)


def test_waiting_uses_no_processor(loopback):
    """Processes that have used memory wait for an event, or for a peer's requests, without using a
    processor, and both wake up."""
    first, second = shm.pair(loopback)
    first.exchange(50, 100, 1)
    second.exchange(50, 100, 1)
    shm.check_memory_is_used_by(loopback, first, second)
    harness.in_time(lambda: idle.woken(first, second), 0.5)


def held_up_beside_a_stream(place):
    """Returns the longest time for which a WRITE of a third process to the second one was held up;
    None if a WRITE failed."""
    first, second = shm.pair(place)
    third = verbs_peer.VerbsPeer(place, env=OFF)
    there = third.open(place.device, place.gid_index(4))
    third.connect(second.of(1, "open", place.device, place.gid_index(4)))
    second.of(1, "connect", there)
    first.begin("stream", "write", 2, at_least=MANY, length=4096)
    second.begin("wait", seconds=2)
    time.sleep(0.1)
    paced = third.pace(1.5, False, [third.pid, second.pid])
    print("held up, took, count", paced)
    posted, good = first.answer()
    assert posted == good >= MANY
    second.answer()
    shm.check_memory_is_not_used(shm.shown(place, third))
    return paced and paced[0]


def test_socket_beside_a_stream_through_memory(loopback):
    """A third process that does not use memory reaches a process whose rings are never empty."""
    # Less than one timeout, not counting the time in which the processes waited for a processor.
    harness.in_time(lambda: held_up_beside_a_stream(loopback), 0.05)


# ---- Many ----

def eight_pairs(place):
    """Runs eight pairs at the same time; returns true if all of them used memory."""
    pairs = [perftest.start(place, "ib_write_bw", "-D", 2, "-f", 0) for _ in range(8)]
    processes = sum(pairs, ())
    through_memory = shm.await_traffic(place, *[client for _, client in pairs])
    for server, client in pairs:
        perftest.finish(server, client)
    assert all(perftest.rows(process) for process in processes)
    return through_memory


def test_eight_pairs(loopback):
    harness.good_try(lambda: eight_pairs(loopback), bool)


def test_many_queue_pairs(loopback):
    # The program never ends when -t does not divide -n.
    server, client = perftest.start(loopback, "ib_send_bw", "-q", 1024, "-s", 1024, "-n", 24,
                                    "-r", 8, "-t", 8)
    perftest.finish(server, client)
    perftest.check_report(client, [1024], 24 * 1024)


def hub_and_peers(place, count):
    """One process with a queue pair to each of count other processes."""
    hub, peers = verbs_peer.VerbsPeer(place), []
    for number in range(count):
        peers.append(shm.join(place, hub, number))
    return hub, peers


def exchange_with_all(hub, peers, rounds=20):
    for peer in peers:
        peer.begin("exchange", rounds, 3000, peer.pid)
    for number in range(len(peers)):
        assert hub.of(number, "exchange", rounds, 3000, number) == rounds
    assert [peer.answer() for peer in peers] == [rounds] * len(peers)


def test_one_process_with_many_others(loopback):
    """Some processes are killed, and new ones take their slots: each channel must lead to the right
    process."""
    rng = random.Random(5)
    hub, peers = hub_and_peers(loopback, 6)
    exchange_with_all(hub, peers)
    for _ in range(4):
        number = rng.randrange(len(peers))
        peers[number].process.kill()
        assert hub.of(number, "do", "write") == verbs_peer.RETRY_EXC_ERR
        hub.of(number, "close")
        peers[number] = shm.join(loopback, hub, number)
        exchange_with_all(hub, peers)
    shm.check_memory_is_used(shm.shown(loopback, hub, *peers))


# ---- Where there is no shared memory ----

# Makes memfd_create() fail as on an old kernel or in a strict container, and executes the program.
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
    """Runs a pair whose programs are both started by another program."""
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
    """Shared memory needs some more open files.  No limit may kill the process, whether memory is
    used or not."""
    run_under(loopback, ["prlimit", limit])


def test_two_hosts(veth):
    """Two hosts have different addresses, and therefore do not use memory."""
    seen, client, _ = run_with_many_datagrams(veth, veth.peer, "ib_write_bw")
    perftest.check_report(client, [65536], None, duration=True)
    shm.check_memory_is_not_used(seen)


def test_faults_are_injected(loopback):
    env = {"UROCE_FAULT": "drop=0.02,seed=4"}
    seen, client = shm.run(loopback, "ib_write_bw", "-s", 16384, "-D", SECONDS, env=env)
    perftest.check_report(client, [16384], None, duration=True)
    sender = seen[1]
    assert sender["counters"]["fault_dropped"] > 0, sender
    numbers = sender["qps"][0]["counters"]
    assert numbers["rcvd_seq_err"] + numbers["timeouts"] > 0, numbers
