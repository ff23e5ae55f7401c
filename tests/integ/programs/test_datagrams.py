# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Datagrams between processes and hosts: addresses that are added and removed, the network header
that a receiver gets, and multicast groups with members in several places."""
import ipaddress
import time

import pytest

import harness
import perftest
from datagrams import CLASS, End, HOPS

GROUPS = ((4, "::ffff:239.9.8.7"), (6, "ff0e::987"), (6, "ff02::987"))
EVERYBODY = 0xffffff
COUNT = 5
# Less than the number of receives of an End.
MANY = 40


def own_address(place, version):
    return ipaddress.ip_address(place.address if version == 4 else place.address6)


def as_gid(address):
    return f"::ffff:{address}" if address.version == 4 else address


def unmapped(group):
    return ipaddress.ip_address(group).ipv4_mapped or ipaddress.ip_address(group)


@pytest.mark.parametrize("version", (4, 6))
@pytest.mark.parametrize("where", ("loopback", "veth"))
def test_header_is_what_was_sent(request, where, version):
    place = request.getfixturevalue(where)
    receiver, sender = End(place), End(place.peer)
    to = own_address(place, version)
    sender.send(as_gid(to), receiver.qpn, version)
    assert receiver.receive() == (version, own_address(place.peer, version), to, HOPS, CLASS)


@pytest.mark.parametrize("where", ("loopback", "veth"))
def test_one_list_to_several_processes(request, where):
    """Datagrams that are sent in one call are for several processes, which share the port."""
    place = request.getfixturevalue(where)
    receivers = [End(place) for _ in range(4)]
    sender = End(place.peer)
    to = as_gid(own_address(place, 4))
    sender.send(to, ",".join(str(end.qpn) for end in receivers), 4, COUNT)
    for end in receivers:
        for _ in range(COUNT):
            assert end.receive()
        assert end.receive(20) is None


@pytest.mark.parametrize("version", (4, 6))
def test_new_address_is_heard(veth, version):
    receiver, sender = End(veth), End(veth.peer)
    new = ipaddress.ip_address("192.0.2.77" if version == 4 else "2001:db8::77")
    sender.send(as_gid(own_address(veth, version)), receiver.qpn, version)
    assert receiver.receive()
    name = veth.device.removeprefix("uroce_")
    prefix = f"{new}/{24 if version == 4 else 64}"
    veth.output_of("ip", "address", "add", prefix, "dev", name,
                   *(["nodad"] if version == 6 else []))
    try:
        until = time.monotonic() + harness.PATIENCE
        seen = None
        # The kernel notifies the helper thread of the address.
        while not seen and time.monotonic() < until:
            sender.send(as_gid(new), receiver.qpn, version)
            seen = receiver.receive(50)
        assert seen and seen[2] == new
    finally:
        veth.output_of("ip", "address", "del", prefix, "dev", name)
    # Datagrams to the old address still arrive.
    while receiver.receive(50):
        pass
    sender.send(as_gid(own_address(veth, version)), receiver.qpn, version)
    assert receiver.receive()[2] == own_address(veth, version)


@pytest.mark.parametrize("version,group", GROUPS)
def test_group_in_two_places(veth, version, group):
    """The group has two members in one place, and one and the sender in the other place; another
    process is in another group."""
    members = [End(veth), End(veth), End(veth.peer)]
    sender, other = End(veth.peer), End(veth)
    for end in *members, sender:
        end.attach(group)
    other.attach("ff0e::1" if version == 6 else "::ffff:239.0.0.1")
    sender.send(group, EVERYBODY, version, COUNT)
    expected = (version, own_address(veth.peer, version), unmapped(group), HOPS, CLASS)
    for end in *members, sender:
        for _ in range(COUNT):
            assert end.receive() == expected
        assert end.receive(20) is None
    assert other.receive(20) is None
    members[0].detach(group)
    sender.send(group, EVERYBODY, version)
    assert members[0].receive(50) is None
    assert members[1].receive() == expected


def mgid(group):
    """Returns the group in perftest's notation: sixteen numbers."""
    return ":".join(str(byte) for byte in ipaddress.ip_address(group).packed)


@pytest.mark.parametrize("where,version,group", [
    ("loopback", 4, "::ffff:239.9.8.7"), ("veth", 4, "::ffff:239.9.8.7"), ("veth", 6, "ff0e::987")])
def test_receivers_beside_a_stock_one(request, where, version, group):
    """Each member of the group gets all datagrams that perftest's client sends to its server."""
    place = request.getfixturevalue(where)
    members = [End(place), End(place.peer)]
    for end in members:
        end.attach(group)
    server, client = perftest.start(place, "ib_send_bw", "-c", "UD", "-g", "-M", mgid(group), "-x",
                                    place.gid_index(version), "-s", 4, "-n", MANY)
    perftest.finish(server, client)
    perftest.check_report(client, [4], MANY)
    for end in members:
        for _ in range(MANY):
            header = end.receive()
            assert header and header[1:3] == (own_address(place.peer, version), unmapped(group))
        assert end.receive(20) is None
