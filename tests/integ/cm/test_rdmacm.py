# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""librdmacm's stock programs, which connect through our connection manager."""
import itertools
import re
import shutil
import time

import pytest

import harness
from harness import await_listener

pytestmark = pytest.mark.skipif(not shutil.which("rping"), reason="no rdmacm-utils here")
# Every test has its own ports, so that connections of a killed server in timewait do not matter.
PORTS = itertools.count(7500)
WHERE = pytest.mark.parametrize("where", ("loopback", "veth"))
VERSION = pytest.mark.parametrize("version", (4, 6), ids=("ipv4", "ipv6"))


def address_of(place, version):
    return place.address if version == 4 else place.address6


def run_pair(place, server, client, version=4, port_option="-p", done=(True, True), **options):
    """Runs server and client of a program that takes -p PORT, and returns both processes; {address}
    in their words is the server's address."""
    port = next(PORTS)
    at = {"address": address_of(place, version)}
    serving = place.start(*[word.format(**at) for word in server], port_option, port, **options)
    await_listener(place, serving, port)
    asking = place.peer.start(*[word.format(**at) for word in client], port_option, port, **options)
    # Without options some programs run for minutes.
    seconds = 600 if harness.LONG else harness.PATIENCE
    if done[1]:
        asking.done(seconds)
    if done[0]:
        serving.done(seconds)
    return serving, asking


@WHERE
@VERSION
def test_rping(request, where, version):
    place = request.getfixturevalue(where)
    server, client = run_pair(place, ["rping", "-s", "-v", "-V", "-C", "100", "-a", "{address}"],
                              ["rping", "-c", "-v", "-V", "-C", "100", "-a", "{address}"], version)
    for process in server, client:
        assert process.output.count("ping data: rdma-ping-") == 100, process


@pytest.mark.parametrize("size", (1, 64, 4096, 65535))
def test_rping_sizes(loopback, size):
    words = ["-V", "-C", "20", "-S", str(size), "-a", "{address}"]
    run_pair(loopback, ["rping", "-s", *words], ["rping", "-c", *words])


def test_rping_with_a_queue_pair_of_its_own(loopback):
    words = ["-q", "-V", "-C", "20", "-a", "{address}"]
    run_pair(loopback, ["rping", "-s", *words], ["rping", "-c", *words])


def test_rping_of_any_address_many_times(veth):
    """A persistent server that is bound to no device serves one client after the other."""
    port = next(PORTS)
    server = veth.start("rping", "-s", "-P", "-a", "::", "-p", port)
    await_listener(veth, server, port)
    # Not at the same time: rping loses one of two requests that arrive before it reads the first.
    for version in (4, 6, 4, 6):
        veth.peer.start("rping", "-c", "-V", "-C", 10, "-a", address_of(veth, version), "-p",
                        port).done()
    local = veth.start("rping", "-c", "-V", "-C", 10, "-a", "127.0.0.1", "-p", port)
    local.done()
    assert server.running(), server


@pytest.mark.parametrize("words", ("", "-c 100 -C 2", "-m -c 10", "-t 8", "-b {address}"))
@WHERE
def test_ucmatose(request, where, words):
    place = request.getfixturevalue(where)
    # -b is the program's own address, at the server as well as at the client.
    client = words.replace("-b {address}", f"-b {place.peer.address}").split()
    run_pair(place, ["ucmatose", *words.split()], ["ucmatose", "-s", "{address}", *client])


@WHERE
def test_udaddy(request, where):
    """udaddy's -p is not the port, so it uses its built-in port."""
    place = request.getfixturevalue(where)
    server = place.start("udaddy")
    await_listener(place, server, 7174)
    place.peer.run("udaddy", "-s", place.address).done()
    server.done()


@WHERE
def test_rdma_client(request, where):
    """Right after the last message, whose sender waits for an ACK, both ends stop their queue pair,
    disconnect and wait for the disconnection.  Without the ACK this would take four seconds."""
    place = request.getfixturevalue(where)

    def meet():
        begun = time.monotonic()
        run_pair(place, ["rdma_server"], ["rdma_client", "-s", "{address}"])
        return time.monotonic() - begun

    harness.in_time(lambda: max(meet() for _ in range(3)), 3)


@pytest.mark.parametrize("kind", ("r", "x"))
@WHERE
def test_rdma_xclient(request, where, kind):
    run_pair(request.getfixturevalue(where), ["rdma_xserver", "-c", kind],
             ["rdma_xclient", "-s", "{address}", "-c", kind])


def test_cmtime(loopback):
    # Newer servers (rdma-core 56) allocate memory for 100 connections, or the number in -c, and
    # write beyond it if more connections arrive.
    count = ["-c", "200"]
    if harness.cmtime_meets():
        harness.meet_by_cmtime(loopback, loopback.free_port(), 200)
        return
    _, client = run_pair(loopback, ["cmtime", *count], ["cmtime", "-s", "{address}", *count],
                         done=(False, True))
    assert re.search(r"^(cm )?connect\s", client.output, re.MULTILINE), client


# The default amount of data takes a minute.  -T a waits by poll() and has no short form, because it
# treats the disconnection by the other end as an error, even with data that it has not read.
SHORT = "-S 4096 -I 50 -C 10 "
RSTREAM = [SHORT, SHORT + "-T b", SHORT + "-T n", SHORT + "-T r",
           SHORT + "-B 8192"]
if harness.LONG:
    RSTREAM += ["", "-T a", "-T b", "-T v"]


@pytest.mark.parametrize("words", RSTREAM)
@WHERE
def test_rstream(request, where, words):
    run_pair(request.getfixturevalue(where), ["rstream", *words.split()],
             ["rstream", *words.split(), "-s", "{address}"])


@WHERE
def test_riostream(request, where):
    words = [] if harness.LONG else ["-S", "4096", "-I", "50", "-C", "10"]
    run_pair(request.getfixturevalue(where), ["riostream", *words],
             ["riostream", *words, "-s", "{address}"])


def test_nobody_listens(loopback):
    process = loopback.run("rping", "-c", "-C", 1, "-a", "127.0.0.1", "-p", next(PORTS))
    assert process.popen.returncode != 0, process
    assert "RDMA_CM_EVENT_REJECTED" in process.said, process


@VERSION
def test_neighbour_is_absent(veth, version):
    """No host replies for the address: rping reports this after its time limit of two seconds."""
    absent = "192.0.2.77" if version == 4 else "2001:db8::77"

    def ask():
        began = time.monotonic()
        process = veth.run("rping", "-c", "-C", 1, "-a", absent, "-p", next(PORTS))
        took = time.monotonic() - began
        assert "RDMA_CM_EVENT_ADDR_ERROR, error -110" in process.said, process
        assert took > 1.9, process
        return took

    harness.in_time(ask, 4)


@VERSION
def test_neighbour_has_to_be_asked_for(veth, version):
    """The neighbor cache has no entry for the peer."""
    address, port = address_of(veth.peer, version), next(PORTS)
    server = veth.peer.start("rping", "-s", "-P", "-a", address, "-p", port)
    await_listener(veth.peer, server, port)

    def ask():
        veth.output_of("ip", "neighbour", "flush", "dev", "ura")
        began = time.monotonic()
        veth.run("rping", "-c", "-C", 1, "-a", address, "-p", port).done()
        return time.monotonic() - began

    harness.in_time(ask, 1)
    assert server.running(), server


def test_device_goes(veth):
    """A listener at an address of an interface that is removed."""
    port = next(PORTS)
    veth.output_of("ip", "link", "add", "urd", "type", "veth", "peer", "name", "ure")
    for name in "urd", "ure":
        veth.output_of("ip", "link", "set", name, "up")
    veth.output_of("ip", "address", "add", "198.51.100.1/24", "dev", "urd")
    server = veth.start("rping", "-s", "-a", "198.51.100.1", "-p", port)
    await_listener(veth, server, port)
    veth.output_of("ip", "link", "delete", "urd")
    server.wait()
    assert "cma detected device removal" in server.said, server


def test_port_is_taken(loopback):
    """The port is used by another process."""
    port = next(PORTS)
    first = loopback.start("rping", "-s", "-P", "-a", "127.0.0.1", "-p", port)
    await_listener(loopback, first, port)
    second = loopback.run("rping", "-s", "-a", "127.0.0.1", "-p", port)
    assert "Address already in use" in second.errors, second
    assert first.running(), first


def told_of_death(place, victim):
    """Kills one end of a connection; returns the seconds until the other one has ended."""
    port, of_bystander = next(PORTS), next(PORTS)
    beside = place.peer if victim == "client" else place
    bystander = beside.start("rping", "-s", "-P", "-a", beside.address, "-p", of_bystander)
    await_listener(beside, bystander, of_bystander)
    server = place.start("rping", "-s", "-a", place.address, "-p", port)
    await_listener(place, server, port)
    client = place.peer.start("rping", "-c", "-v", "-a", place.address, "-p", port)
    client.await_words("rdma-ping-9:")
    dead, other = (client, server) if victim == "client" else (server, client)
    dead.kill()
    began = time.monotonic()
    other.wait()
    took = time.monotonic() - began
    assert "DISCONNECT EVENT" in other.said, other
    assert bystander.running(), bystander
    bystander.kill()
    return took


@WHERE
@pytest.mark.parametrize("victim", ("client", "server"))
def test_killed_end_says_goodbye(request, where, victim):
    """The peer gets a DREQ that is sent for the killed process, before its own retries end."""
    place = request.getfixturevalue(where)
    # The peer's queue pair would need seven retries of half a second each.
    harness.in_time(lambda: told_of_death(place, victim), 2.5)


def test_killed_server(loopback):
    """The client of a killed server ends, and the server's port is free at once."""
    port = next(PORTS)
    server = loopback.start("rping", "-s", "-a", "127.0.0.1", "-p", port)
    await_listener(loopback, server, port)
    client = loopback.start("rping", "-c", "-v", "-a", "127.0.0.1", "-p", port)
    client.await_words("rdma-ping-9:")
    server.kill()
    # If no DREQ is sent for the killed server, the client's queue pair runs out of retries.
    client.wait()
    again = loopback.start("rping", "-s", "-a", "127.0.0.1", "-p", port)
    await_listener(loopback, again, port)


def test_seen_by_stat(loopback):
    """Listeners and connections, and whether both ends report credits: rule C19."""
    port = next(PORTS)
    server = loopback.start("rping", "-s", "-P", "-a", "127.0.0.1", "-p", port)
    await_listener(loopback, server, port)
    client = loopback.start("rping", "-c", "-v", "-a", "127.0.0.1", "-p", port,
                            env={"UROCE_CREDITS": "off"})
    client.await_words("rdma-ping-9:")
    shown = {process["pid"]: process for process in loopback.stat()}
    at_server, at_client = shown[server.popen.pid], shown[client.popen.pid]
    (listener,), (passive,) = at_server["listeners"], at_server["connections"]
    assert (listener["port"], listener["address"], listener["space"]) == (port, "127.0.0.1", "TCP")
    assert at_client["listeners"] == []
    active, = at_client["connections"]
    assert active["state"] == passive["state"] == "ESTABLISHED", (active, passive)
    assert active["active"] and not passive["active"]
    assert (active["local_id"], active["remote_id"]) == (passive["remote_id"], passive["local_id"])
    assert (active["local_qpn"], active["remote_qpn"]) == (passive["remote_qpn"],
                                                           passive["local_qpn"])
    # rule C19 test
    assert active["peer_flow_control"] and passive["flow_control"]
    assert not active["flow_control"] and not passive["peer_flow_control"]
    # The credits in the AETHs agree with these flags.
    assert not active["mismatch"] and not passive["mismatch"]
    assert {qp["qpn"]: qp["unlimited"] for qp in at_server["qps"]}[passive["local_qpn"]]
    # rping has no private data: the REQ contains the two addresses, the last byte of which is 1.
    assert (active["private_length"], passive["private_length"]) == (36, 0)
    assert (active["peer_private_length"], passive["peer_private_length"]) == (0, 36)
    for name in "REQ", "RTU":
        assert at_client["messages"][name]["sent"] >= at_server["messages"][name]["received"] >= 1
    assert at_client["messages"]["REP"]["received"] >= 1 <= at_server["messages"]["REP"]["sent"]
    assert all(not message["refused"] for message in at_server["messages"].values())
    unserved = loopback.run("rping", "-c", "-C", 1, "-a", "127.0.0.1", "-p", next(PORTS))
    assert unserved.popen.returncode != 0
    # The REQ is sent six times, or more if a REJ was late; the host's processes reply in turn.
    shown = loopback.stat()
    assert all(process["messages"]["REQ"]["refused"] == process["rejections"]["8"]
               for process in shown), shown
    assert sum(process["rejections"]["8"] for process in shown) >= 2, shown
