# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""A kernel that cannot steer packets to processes (qemu-user, gVisor), or that lacks UDP_SEGMENT
(Linux before 4.18): everything works, but slower."""
import shutil

import pytest

import harness
import verbs_peer

ENV = {"UROCE_TEST_NO_STEERING": "1"}


def open_pair(place):
    first, second = verbs_peer.VerbsPeer(place, env=ENV), verbs_peer.VerbsPeer(place, env=ENV)
    here, there = first.open(place.device, 0), second.open(place.device, 0)
    first.connect(there)
    second.connect(here)
    return first, second


def test_processes_share_one_socket(loopback):
    """Three pairs in six processes write in turn: a process that reads a packet for another one
    forwards it."""
    pairs = [open_pair(loopback) for _ in range(3)]
    for _ in range(10):
        for first, second in pairs:
            assert first.do("write") == second.do("write") == verbs_peer.SUCCESS
    counters = [loopback.stat(end.pid)["counters"] for pair in pairs for end in pair]
    assert sum(counter["forwarded"] for counter in counters) > 0, counters
    # The first process ends, and a new pair starts.
    pairs[0][0].process.kill()
    first, second = open_pair(loopback)
    assert first.do("write") == second.do("write") == verbs_peer.SUCCESS
    assert pairs[1][0].do("write") == verbs_peer.SUCCESS


@pytest.mark.parametrize("program", ["ibv_rc_pingpong -c", "ibv_rc_pingpong -e", "ibv_ud_pingpong"])
def test_pingpong(loopback, program):
    pingpong(loopback, program, ENV)


def test_pingpong_without_runs(loopback):
    pingpong(loopback, "ibv_rc_pingpong -c", {"UROCE_TEST_NO_SEGMENTS": "1"})


def pingpong(place, program, env):
    server, client = harness.start_pair(place, [*program.split(), "-d", "{device}", "-g", 0,
                                                "-n", 200], env=env)
    client.done()
    server.done()


@pytest.mark.skipif(not shutil.which("rping"), reason="no rdmacm-utils here")
def test_connection_manager(loopback):
    port = loopback.free_port()
    options = ["-a", "127.0.0.1", "-C", 10, "-p", port]
    server = loopback.start("rping", "-s", *options, env=ENV)
    harness.await_listener(loopback, server, port)
    loopback.run("rping", "-c", *options, env=ENV).done()
    server.done()
