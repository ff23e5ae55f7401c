# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""UC, UD, shared receive queues, XRC and multicast under stock programs."""
import re
import time

import pytest

import harness
import perftest

ITERATIONS = 200
PAIRS = 16
# Any socket buffer holds this number of 4 KB datagrams: nothing slows down a remote sender.
FEW = 40
ATTEMPTS = 5
FOUND_NOTHING = "poll CQ failed 2\n"  # ENOENT
GROUP4 = "0:0:0:0:0:0:0:0:0:0:255:255:239:1:2:3"  # ::ffff:239.1.2.3
GROUP6 = "255:14:0:0:0:0:0:0:0:0:0:0:0:1:2:3"  # ff0e::1:203
PINGPONGS = ("ibv_uc_pingpong", "ibv_ud_pingpong", "ibv_srq_pingpong", "ibv_xsrq_pingpong")
# ibv_xsrq_pingpong has no data check.
MODES = [pytest.param(program, words, id=f"{program[4:]}-{name}") for program in PINGPONGS
         for name, words in (("poll", []), ("events", ["-e"]), ("checked", ["-c"]))
         if name != "checked" or "xsrq" not in program]


def pingpong(place, version, program, *arguments, **options):
    server, client = harness.start_pair(
        place, [program, "-d", "{device}", "-g", place.gid_index(version), *arguments], **options)
    check_pingpong(server, client)


def check_pingpong(server, client):
    for process in server, client:
        text = process.done()
        assert "invalid data" not in text, process
        assert process.errors == "", process
        assert re.search(r"^(\d+ iters in|success$)", text, re.MULTILINE), process


@pytest.mark.parametrize("version", (4, 6), ids=("ipv4", "ipv6"))
@pytest.mark.parametrize("program,mode", MODES)
@pytest.mark.parametrize("where", ("loopback", "veth"))
def test_pingpong(request, where, program, mode, version):
    pingpong(request.getfixturevalue(where), version, program, *mode)


@pytest.mark.parametrize("words", ("-N", "-t", "-o", "-o -O", "-o -P", "-j", "-N -o -e",
                                   "-N -j -e"))
def test_ways_of_rc_pingpong(loopback, words):
    """Posts with ibv_wr_*(), completions with timestamps, on-demand memory and device memory."""
    pingpong(loopback, 4, "ibv_rc_pingpong", "-c", *words.split())


def set_mtu(place, mtu):
    place.output_of("ip", "link", "set", place.device.removeprefix("uroce_"), "mtu", mtu)


def test_path_mtu_above_the_interface(veth):
    """A path MTU of 4096 fails on 1500-byte Ethernet, and a message names the value to use."""
    set_mtu(veth, 1500)
    try:
        server, client = harness.start_pair(
            veth, ["ibv_rc_pingpong", "-d", "{device}", "-g", veth.gid_index(4), "-m", 4096])
        assert server.wait() == 1, server
        client.wait()
    finally:
        set_mtu(veth, 9000)
    lines = [line for line in server.errors.splitlines() if line.startswith("uroce: ")]
    assert len(lines) == 1, server
    assert f"path MTU 4096 is larger than {veth.device} carries: use 1024" in lines[0], server


def await_found_nothing(*pair):
    """Waits until both ends have ended, or one has given up; returns true if one has given up."""
    until = time.monotonic() + harness.PATIENCE
    while any(process.running() for process in pair) and time.monotonic() < until:
        if any(process.errors == FOUND_NOTHING for process in pair):
            break
        time.sleep(0.02)
    for process in pair:
        if process.running():
            process.kill()
    return any(process.errors == FOUND_NOTHING for process in pair)


@pytest.mark.parametrize("words", ("-N -t -o -e", "-N -t -j -e"))
def test_times_with_events(loopback, words):
    """The program gets an event, arms, polls, and gives up if there is no completion.  With any
    adapter that happens after a completion has arrived between arming and polling: it has been
    polled when the program gets its event."""
    for _ in range(ATTEMPTS):
        pair = harness.start_pair(loopback, ["ibv_rc_pingpong", "-d", "{device}", "-g", "{gid4}",
                                             "-c", *words.split()])
        if not await_found_nothing(*pair):
            break
    check_pingpong(*pair)


@pytest.mark.parametrize("program", ("ibv_srq_pingpong", "ibv_xsrq_pingpong"))
def test_pingpong_on_bad_network(loopback, program):
    pingpong(loopback, 4, program, "-n", 100, env={"UROCE_FAULT": harness.FAULTS})


def run(place, program, *arguments, version=4, **expected):
    server, client = perftest.start(place, program, "-x", place.gid_index(version), *arguments)
    finish(server, client, **expected)


def finish(server, client, size, iterations):
    perftest.finish(server, client)
    perftest.check_report(client, [size], iterations)


def check(place, program, *arguments, iterations=ITERATIONS, size=None, version=4):
    default = 65536 if program.endswith("_bw") else 2
    if "atomic" in program:
        default = 8
    if ("-c", "UD") == arguments[:2] and program.endswith("_bw") and not size:
        # By default the program uses the largest size, and prints a remark.
        default = 4096
        arguments += ("-s", default)
    expected = {"version": version, "size": size or default, "iterations": iterations}
    try:
        run(place, program, *arguments, **expected)
    except harness.Timeout:
        # Messages to a receiver that gets no processor for a second may be lost.
        if not {"UC", "UD"}.intersection(arguments):
            raise
        for at in {place, place.peer}:
            at.close()
        run(place, program, *arguments, **expected)


def options(*rows):
    return [pytest.param(row.split(), id=row.replace(" ", "") or "plain") for row in rows]


@pytest.mark.parametrize("more", options("", "-b", "-e", "--use-srq"))
@pytest.mark.parametrize("service", ("UC", "UD", "XRC"))
def test_send_bandwidth(loopback, service, more):
    check(loopback, "ib_send_bw", "-c", service, "-n", ITERATIONS, *more)


@pytest.mark.parametrize("service", ("RC", "UC", "UD", "XRC"))
def test_many_queue_pairs(loopback, service):
    check(loopback, "ib_send_bw", "-c", service, "-n", ITERATIONS, "-q", PAIRS, "-s", 4096,
          *(["--use-srq"] if service == "RC" else []), iterations=PAIRS * ITERATIONS, size=4096)


@pytest.mark.parametrize("more", options("", "-e", "--use-srq"))
@pytest.mark.parametrize("service", ("UC", "UD", "XRC"))
def test_send_latency(loopback, service, more):
    check(loopback, "ib_send_lat", "-c", service, "-n", ITERATIONS, *more)


@pytest.mark.parametrize("program,service", [
    ("ib_write_bw", "UC"), ("ib_write_lat", "UC"), ("ib_write_bw", "XRC"), ("ib_write_lat", "XRC"),
    ("ib_read_bw", "XRC"), ("ib_read_lat", "XRC"), ("ib_atomic_bw", "XRC"),
    ("ib_atomic_lat", "XRC")])
def test_one_sided(loopback, program, service):
    check(loopback, program, "-c", service, "-n", ITERATIONS)


@pytest.mark.parametrize("words", ("-b", f"-q {PAIRS}"), ids=("both", "many"))
@pytest.mark.parametrize("program,service", [
    ("ib_write_bw", "UC"), ("ib_write_bw", "XRC"), ("ib_read_bw", "XRC"), ("ib_atomic_bw", "XRC")])
def test_one_sided_bandwidth(loopback, program, service, words):
    check(loopback, program, "-c", service, "-n", ITERATIONS, *words.split(),
          iterations=ITERATIONS * (1 if words == "-b" else PAIRS))


@pytest.mark.parametrize("program", ("ib_read_bw", "ib_read_lat", "ib_atomic_bw", "ib_atomic_lat"))
def test_events_of_xrc(loopback, program):
    """ib_write_bw and ib_write_lat refuse -e."""
    check(loopback, program, "-c", "XRC", "-n", ITERATIONS, "-e")


@pytest.mark.parametrize("version", (4, 6), ids=("ipv4", "ipv6"))
@pytest.mark.parametrize("service", ("UC", "UD", "XRC"))
def test_between_namespaces(veth, service, version):
    check(veth, "ib_send_bw", "-c", service, "-n", FEW, "-s", 4096, iterations=FEW, size=4096,
          version=version)


@pytest.mark.parametrize("program", ("ib_send_bw", "ib_send_lat"))
def test_group_on_loopback(loopback, program):
    check(loopback, program, "-c", "UD", "-g", "-M", GROUP4, "-n", FEW, iterations=FEW)


@pytest.mark.parametrize("version,group", [(4, GROUP4), (6, GROUP6)], ids=("ipv4", "ipv6"))
def test_group_on_veth(veth, version, group):
    check(veth, "ib_send_bw", "-c", "UD", "-g", "-M", group, "-n", FEW, iterations=FEW,
          version=version)


def test_group_of_two_receivers(loopback):
    """Two servers in one group: each receives from both clients, and counts the messages that it
    expects."""
    words = ["-c", "UD", "-g", "-M", GROUP4, "-x", loopback.gid_index(4), "-s", 64, "-n", FEW]
    pairs = [perftest.start(loopback, "ib_send_bw", *words) for _ in range(2)]
    for server, client in pairs:
        finish(server, client, size=64, iterations=FEW)


def test_group_without_a_way(loopback):
    """The kernel has no route for IPv6 multicast on a loopback interface, and uroce reports it."""
    port = loopback.free_port()
    words = ["ib_send_bw", "-d", loopback.device, "-F", "-c", "UD", "-g", "-x",
             loopback.gid_index(6), "-p", port]
    loopback.serve(port, *words)
    client = loopback.run(*words, loopback.address)
    assert client.popen.returncode != 0, client
    assert "uroce: " in client.errors and "unreachable" in client.errors, client
