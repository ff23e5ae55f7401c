# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""librdmacm's programs between uroce and the kernel's connection manager, each in both roles.

rping's and cmtime's clients disconnect, and so do ucmatose's and rstream's servers.
"""
import re
import sys
import time

import pytest

import harness
import perftest

VERSION = pytest.mark.parametrize("version", (4, 6), ids=("ipv4", "ipv6"))
PORT, OTHER_PORT = 7301, 7302
BUILT_IN_PORT = 7174  # udaddy's; its -p is something else
# REJ and DREQ are received at once; a retransmission by the kernel would take four seconds.
AT_ONCE = 3
TOLD = "DISCONNECT EVENT"
# rxe of newer kernels (7.2) refuses requests to a killed process until its DREQ has been sent.
REFUSED = "cq completion failed status 11"


def address_of(place, version=4):
    return place.address if version == 4 else place.address6


def start_server(place, port, *words):
    # A killed program of the guest ends later than its process here, and listens until then.
    until = time.monotonic() + harness.PATIENCE
    while place.has_rdma_listener(port):
        assert time.monotonic() < until, f"there is a listener at {port}"
        time.sleep(0.01)
    server = place.start(*words)
    harness.await_listener(place, server, port)
    return server


def run_pair(server, *words, version=4, port=PORT, client_only=()):
    """Run a program whose server takes its address as -b, and the client the server's as -s."""
    port_option = ["-p", port] if port == PORT else []
    serving = start_server(server, port, *words, "-b", address_of(server, version), *port_option)
    asking = server.peer.start(*words, "-s", address_of(server, version), *client_only,
                               *port_option)
    for process in asking, serving:
        process.done()
    return serving, asking


def start_rping(server, version=4):
    """Start an rping without end; returns (server, client) after they have exchanged messages."""
    words = ["-v", "-V", "-a", address_of(server, version), "-p", PORT]
    serving = start_server(server, PORT, "rping", "-s", *words)
    asking = server.peer.start("rping", "-c", *words)
    asking.await_words("rdma-ping-9:")
    return serving, asking


def connection_of(host, process):
    """uroce-stat's entry of the process's connection, as soon as that is established."""
    until = time.monotonic() + harness.PATIENCE
    while True:
        # uroce-stat does not list a process that has not opened the device yet.
        found = [connection for shown in host.stat() if shown["pid"] == process.pid
                 for connection in shown["connections"] if connection["state"] == "ESTABLISHED"]
        if found:
            return found[0]
        assert process.running() and time.monotonic() < until, process


@VERSION
def test_rping(server, version):
    words = ["-v", "-V", "-C", "20", "-S", "2000", "-a", address_of(server, version), "-p", PORT]
    serving = start_server(server, PORT, "rping", "-s", *words)
    asking = server.peer.start("rping", "-c", *words)
    for process in asking, serving:
        assert process.done().count("ping data: rdma-ping-") == 20, process


@VERSION
def test_ucmatose(server, version):
    run_pair(server, "ucmatose", "-c", "20", "-C", "3", version=version)


@VERSION
def test_udaddy(server, version):
    """UD by service ID resolution (SIDR)."""
    run_pair(server, "udaddy", "-c", "5", version=version, port=BUILT_IN_PORT)


def test_cmtime(server):
    """Many connections at once.  An old server does not end; newer ones need their number."""
    if harness.cmtime_meets():
        harness.meet_by_cmtime(server, PORT, 50)
        return
    words = ["cmtime", "-c", "50", "-p", PORT]
    start_server(server, PORT, *words)
    client = server.peer.start(*words, "-s", server.address)
    assert re.search(r"^(full |cm )?connect\s", client.done(), re.MULTILINE), client


@VERSION
def test_rstream(server, version):
    """Addresses and rkeys of its queues are private data of REQ and REP."""
    run_pair(server, "rstream", "-S", "4096", "-I", "50", "-C", "10", version=version)


def test_flow_control_bits(server, host):
    """The kernel sends 0 for rping and 1 for rsockets; uroce always sends 1.  rule C19 test"""
    pair = start_rping(server)
    connection = connection_of(host, pair[server is not host])
    assert connection["flow_control"] and not connection["peer_flow_control"], connection
    for process in pair:
        process.kill()
    words = ["rstream", "-S", "4096", "-I", "1000000", "-p", PORT]
    serving = start_server(server, PORT, *words)
    asking = server.peer.start(*words, "-s", server.address)
    connection = connection_of(host, serving if server is host else asking)
    assert connection["flow_control"] and connection["peer_flow_control"], connection


@pytest.mark.parametrize("program,told", [
    (["ucmatose", "-p", OTHER_PORT], "REJECTED, error: 8"), (["udaddy"], "UNREACHABLE, error: 1")])
def test_nobody_listens(server, program, told):
    """Nothing listens at the port.  Without a process at uroce's address nothing would respond."""
    start_server(server, PORT, "rping", "-s", "-P", "-a", server.address, "-p", PORT)

    def refused_after():
        began = time.monotonic()
        refused = server.peer.run(*program, "-s", server.address)
        assert refused.popen.returncode != 0, refused
        assert f"RDMA_CM_EVENT_{told}" in refused.said, refused
        return time.monotonic() - began

    # An emulated host may need three seconds for the program alone when others are busy.
    harness.in_time(refused_after, AT_ONCE)


def goodbye_took(server, host, victim):
    """Returns the seconds from the kill of one end until the other reported it.

    The kernel's rping is not expected to end: rxe does not flush a request that is posted after its
    queue pair was moved to ERR, and rping waits forever if that request was its next receive.
    """
    pair = start_rping(server)
    ours, theirs = pair if server is host else pair[::-1]
    dead, other = (ours, theirs) if victim == "uroce" else (theirs, ours)
    killed = time.monotonic()
    dead.kill()
    if other is ours:
        other.wait()
        assert TOLD in other.said or REFUSED in other.said, other
    else:
        other.await_words(TOLD)
    took = time.monotonic() - killed
    other.kill()
    return took


@pytest.mark.parametrize("victim", ("uroce", "kernel"))
def test_killed_end_says_goodbye(server, host, victim):
    """The DREQ of a killed end is sent by the kernel or by uroce-broker."""
    start_server(host, OTHER_PORT, "rping", "-s", "-P", "-a", host.address, "-p", OTHER_PORT)
    harness.in_time(lambda: goodbye_took(server, host, victim), AT_ONCE)
    # New connections work after that.
    for process in start_rping(server):
        process.kill()


@pytest.mark.parametrize("program", ("ib_send_bw", "ib_read_lat"))
def test_perftest(server, program):
    words = [program, "-d", "{device}", "-R", "-F", "-n", 100, "-s", 4096]
    pair = []
    for place in server, server.peer:
        filled = [place.filled(word) for word in words]
        if place is server:
            pair.append(start_server(place, PORT, *filled, "-p", PORT))
        else:
            pair.append(place.start(*filled, "-p", PORT, server.address))
    perftest.finish(*pair)
    perftest.check_report(pair[1], [4096], 100)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
