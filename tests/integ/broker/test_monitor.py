# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""The broker appoints one process that uses queue pair 1 to monitor it.  If the broker is stopped,
that process starts another one, although no process makes a request."""
import os
import signal
import struct
import time

import broker_client as bc
import harness
from test_broker import ADDRESS, broker, clients, place, short_idle, until
from test_broker_death import needs_rping, one_broker, rping_server

# Fixtures are found by name.
__all__ = ["broker", "clients", "place", "short_idle"]

PING_SECONDS = 0.5  # interval of the appointed client's PING
WATCH_SECONDS = 1.5  # without PING, after which the broker appoints another client


def with_gsi(clients):
    client = clients()
    assert client.ask(bc.GSI, struct.pack("=II", 1, 0))[1] == 0
    return client


def is_appointed(client, seconds=0.0):
    """Returns true if the broker has sent WATCH; waits for it up to seconds."""
    watches = [data[bc.HEADER.size:] for data in bc.arrived(client.delivery, seconds)
               if bc.HEADER.unpack_from(data)[0] == bc.WATCH]
    assert all(struct.unpack("=II", body) == (1, 0) for body in watches)
    return bool(watches)


def only_one_is_appointed(clients):
    """Lets the appointed client send PING for some time.  Returns true if no other client was
    appointed, or None if this test ran late and a PING may have come too late."""
    first = with_gsi(clients)
    assert is_appointed(first, harness.PATIENCE)
    others = [with_gsi(clients) for _ in range(2)]
    late = False
    for _ in range(5):
        begun = time.monotonic()
        assert first.alive()
        time.sleep(PING_SECONDS)
        late |= time.monotonic() - begun > 0.8 * WATCH_SECONDS
    found = [is_appointed(other) for other in others]
    for client in first, *others:
        client.close()
    return None if late else not any(found)


def test_one_client_is_appointed(broker, clients):
    harness.good_try(lambda: only_one_is_appointed(clients), bool)


def test_appointed_client_is_silent(broker, clients):
    """A client that sends no PING, because it is stopped, is replaced by another one."""
    first, second, third = (with_gsi(clients) for _ in range(3))
    assert is_appointed(first, harness.PATIENCE)
    assert is_appointed(second, harness.PATIENCE)
    assert is_appointed(third, harness.PATIENCE)


@needs_rping
def test_nobody_makes_a_request(place):
    """The broker is stopped, as in a debugger, and so is one of three idle servers.  The first
    server, which monitors the broker, starts another one.  Connections then come to the others,
    and to the third when it continues."""
    servers = {port: rping_server(place, port, "-P") for port in (7920, 7921, 7922)}
    stopped = servers[7922]
    old = one_broker(place)

    def connect(port):
        place.await_rdma_listener(servers[port], port)
        place.run("rping", "-c", "-C", 3, "-a", ADDRESS, "-p", port).done()

    os.kill(stopped.pid, signal.SIGSTOP)
    os.kill(old, signal.SIGSTOP)
    try:
        until(lambda: len(bc.brokers(place)) > 1, "there is no new broker")
        connect(7920)
        connect(7921)
        os.kill(stopped.pid, signal.SIGCONT)
        connect(7922)
    finally:
        os.kill(old, signal.SIGCONT)
    until(lambda: old not in bc.brokers(place), "the old broker does not end")
    connect(7922)
    assert all(server.running() for server in servers.values())
