# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""A path that carries only smaller packets than the queue pair sends is detected and reported."""
import os
import re
import sys
import time

import pytest

import bottleneck
import harness

LINE = re.compile(r"uroce: queue pair \d+ sends packets of up to (\d+) bytes \(path MTU 4096\), "
                  r"but the path from (\S+) to (\S+) carries 1400: .* at most 1024, or .*\n")
COUNTER = "path_too_small"


@pytest.fixture
def ends(lab):
    """Starts a server at b and a client at a, which sends; returns (server, client)."""
    def start(version=4, iterations=50):
        # -u 18: the ACK timeout is a second, and the connection breaks after nine.
        command = ["ib_write_bw", "-d", "{device}", "-F", "-n", iterations, "-m", "4096", "-u",
                   "18", "-x", f"{{gid{version}}}"]
        return harness.start_pair(lab.b, command)
    yield start
    lab.close()
    bottleneck.script(lab.r, f"ip link set rb mtu {bottleneck.MTU}")
    bottleneck.script(lab.a, "ip route flush cache", "ip -6 route flush cache",
                      "ip route replace default via 192.0.2.254",
                      "ip -6 route replace default via 2001:db8:1::254")


def await_line(process):
    """Wait for the message to the user; returns its match, with MTU and addresses."""
    until = time.monotonic() + harness.PATIENCE
    while not LINE.search(process.errors):
        # The process may have printed the message after the last search and exited.
        ended = not process.running()
        assert LINE.search(process.errors) or not ended, process
        assert time.monotonic() < until, process
        time.sleep(0.02)
    return LINE.search(process.errors)


@pytest.mark.parametrize("version", [4, 6])
def test_router_with_a_smaller_mtu(lab, ends, version):
    """The router drops the packets and reports it by ICMP; otherwise they would just be lost."""
    bottleneck.script(lab.r, "ip link set rb mtu 1400")
    server, client = ends(version)
    addresses = [(lab.a.address, lab.b.address), (lab.a.address6, lab.b.address6)][version == 6]
    found = await_line(client)
    assert found.groups() == (str(4136 + (20 if version == 4 else 40)), *addresses)
    assert lab.a.stat(client.pid)["counters"][COUNTER] > 0
    assert lab.b.stat(server.pid)["counters"][COUNTER] == 0


def test_route_with_a_smaller_mtu(lab, ends):
    """The message appears when the queue pair is connected, before any packet is sent."""
    bottleneck.script(lab.a, "ip route replace default via 192.0.2.254 mtu 1400")
    _, client = ends()
    assert await_line(client).group(2) == lab.a.address
    client.done()  # succeeds, since the interface and the router do carry the packets


def test_a_way_that_fits(lab, ends):
    server, client = ends()
    client.done()
    server.done()
    assert "carries" not in client.errors + server.errors


def test_forged_message(lab, ends):
    """A forged ICMP "packet too big" does not stop the flow, which lasts eight seconds."""
    server, client = ends(iterations=3000)
    pairs = []
    while not (pairs and pairs[0]["state"] == "RTS" and pairs[0]["counters"]["sent_pkts"]):
        assert client.running(), client
        pairs = lab.a.stat(client.pid)["qps"] if lab.a.stat() else []
    forger = os.path.join(bottleneck.HERE, "forge_icmp.py")
    lab.r.output_of(harness.PYTHON, forger, lab.a.address, pairs[0]["src_port"], lab.b.address,
                    "600")
    assert "mtu 600" in lab.a.output_of("ip", "route", "get", lab.b.address)
    assert client.running(), client
    client.done()
    server.done()
    assert "carries" not in client.errors


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
