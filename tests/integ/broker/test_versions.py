# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Processes with different versions of uroce's protocols work on the same host, or report in one
line why they do not.  The test itself acts as the process of another version."""
import array
import contextlib
import itertools
import json
import os
import re
import socket
import struct
import threading

import pytest

import broker_client as bc
import harness
import shm
import verbs_peer

PORT = 4791


def version_of(header, name):
    path = os.path.join(harness.ROOT, "kernel-headers", "rdma", header)
    with open(path, encoding="utf-8") as file:
        return int(re.search(rf"#define {name} (\d+)", file.read())[1])


PROTOCOL = version_of("uroce-broker.h", "UROCE_BROKER_VERSION")
ABI = version_of("uroce-abi.h", "UROCE_ABI_VERSION")
# struct uroce_abi_header
ABI_HEADER = struct.Struct("=IIQ")
(SHM_REQUEST, _, SHM_REFUSED, _, STAT_REQUEST, STAT_REPLY, CAPTURE_REQUEST,
 CAPTURE_READY) = range(1, 9)
STATISTICS = 2  # purpose of a connection


@pytest.fixture
def place(loopback):
    """A place in which this process can make sockets."""
    harness.need_root()
    if not loopback.holder:
        pytest.skip("network namespaces are not permitted here")
    yield loopback


@contextlib.contextmanager
def other_broker(place, version, address):
    """Makes this process a broker of that version, which has bound the port of the address."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(bc.new_socket(place, socket.AF_UNIX, socket.SOCK_SEQPACKET))
        listener.bind(f"\0uroce-broker/{version}/0")
        listener.listen()
        port = stack.enter_context(bc.new_socket(place, socket.AF_INET, socket.SOCK_DGRAM))
        port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        port.bind((address, PORT))
        yield


def refusals(place):
    """Runs a pair that must fail; returns the lines in which uroce reports the reason."""
    server, client = harness.start_pair(place, ["ibv_rc_pingpong", "-d", "{device}", "-g", 0])
    for process in server, client:
        assert process.wait() == 1, process
    lines = [line for process in (server, client) for line in process.errors.splitlines()
             if line.startswith("uroce: ")]
    assert lines, server
    return lines


def check_names_both(text, version):
    for words in f"process {os.getpid()}", f"protocol version {version}", f"has {PROTOCOL}":
        assert words in text


@pytest.mark.parametrize("version", [PROTOCOL - 1, PROTOCOL + 1])
def test_port_of_a_broker_of_another_version(place, version):
    with other_broker(place, version, place.address):
        for line in refusals(place):
            assert f"port {PORT} of {place.address} is in use" in line
            check_names_both(line, version)
    # Programs work as soon as the other broker has ended.
    first, second = verbs_peer.pair(place)
    assert first.do("write") == second.do("write") == verbs_peer.SUCCESS


def test_listening_at_all_addresses(place):
    """A server that cannot use one of its addresses reports why, although it listens on others."""
    with other_broker(place, PROTOCOL + 1, place.address):
        server = place.start("rping", "-s", "-p", place.free_port())
        server.await_words("cannot listen on all addresses: UDP port")
        check_names_both(server.errors, PROTOCOL + 1)


def test_port_of_a_program_that_is_not_uroce(place):
    with bc.new_socket(place, socket.AF_INET, socket.SOCK_DGRAM) as port:
        port.bind((place.address, PORT))
        for line in refusals(place):
            assert "protocol" not in line and "a program that is not uroce" in line


@pytest.mark.parametrize("version", [PROTOCOL - 1, PROTOCOL + 1])
def test_broker_of_another_version_on_another_address(place, version):
    with other_broker(place, version, "127.0.0.9"):
        first, second = verbs_peer.pair(place)
        assert first.do("write") == second.do("write") == verbs_peer.SUCCESS


def test_stat_beside_another_version(place):
    """If uroce-stat finds no process, it reports a broker of another version if there is one."""
    stat = os.path.join(place.scratch.bin, "uroce-stat")
    with other_broker(place, PROTOCOL + 1, "127.0.0.9"):
        for command in [stat], [stat, "--json"]:
            shown = place.run(*command)
            assert shown.popen.returncode == 1
            check_names_both(shown.errors, PROTOCOL + 1)
    shown = place.run(stat)
    assert (shown.popen.returncode, shown.errors) == (0, "")


def refuse_memory(client, version):
    """Answers a request for shared memory as a process of that version does."""
    client.delivery.settimeout(harness.PATIENCE)
    kind, _, _, _, descriptors = bc.receive(client.delivery)
    assert kind == bc.CONNECTION
    with socket.socket(fileno=descriptors[0]) as conn:
        conn.settimeout(harness.PATIENCE)
        message, asked, _ = ABI_HEADER.unpack_from(conn.recv(4096))
        assert (message, asked) == (SHM_REQUEST, ABI)
        conn.send(ABI_HEADER.pack(SHM_REFUSED, version, 0))


@pytest.mark.parametrize("version", [ABI - 1, ABI + 1])
def test_shared_memory_of_another_version(place, version):
    """Several processes of another version cause only one line, and packets go by UDP."""
    end = verbs_peer.VerbsPeer(place, env={shm.SETTING: "on"})
    here = end.open(place.device, place.gid_index(4))
    numbers = itertools.count()

    def lines_after_refusal():
        """Connects to a process of that version; returns the lines printed so far."""
        number, other = next(numbers), bc.Client(place)
        assert other.add_address(place.address)[0] == 0
        thread = threading.Thread(target=refuse_memory, args=(other, version))
        thread.start()
        end.of(number, "open", place.device, place.gid_index(4))
        end.of(number, "connect", {**here, "qpn": other.slot << bc.SLOT_SHIFT | 100})
        thread.join()
        end.of(number, "post", "write")
        assert bc.arrived(other.members[place.address], harness.PATIENCE)
        other.close()
        return [line for line in end.process.errors.splitlines() if line.startswith("uroce: ")]

    # A process waits for the refusal for at most 100 ms, and reports nothing if it arrives later.
    lines = harness.good_try(lines_after_refusal, bool)
    assert len(lines) == 1
    for words in "by UDP", f"has version {version} of", f"this uroce has {ABI}":
        assert words in lines[0]
    assert lines_after_refusal() == lines


def memory_file(text):
    file = os.memfd_create("snapshot", os.MFD_ALLOW_SEALING)
    os.write(file, text.encode())
    os.lseek(file, 0, os.SEEK_SET)
    return file


def serve_tools(client, pid, version):
    """Answers a snapshot and then a capture as a process of that version does."""
    client.delivery.settimeout(harness.PATIENCE)
    snapshot = memory_file(json.dumps({"pid": pid, "format": 1, "version": "9.9.9"}))
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [snapshot]))]
    for request, reply, passed in ((STAT_REQUEST, STAT_REPLY, rights),
                                   (CAPTURE_REQUEST, CAPTURE_READY, [])):
        kind, _, _, _, descriptors = bc.receive(client.delivery)
        assert kind == bc.CONNECTION
        with socket.socket(fileno=descriptors[0]) as conn:
            conn.settimeout(harness.PATIENCE)
            assert ABI_HEADER.unpack(conn.recv(4096)) == (request, ABI, 0)
            conn.sendmsg([ABI_HEADER.pack(reply, version, 0)], passed)
    os.close(snapshot)


@pytest.mark.parametrize("version", [ABI - 1, ABI + 1])
def test_capture_across_versions(place, version):
    """The test acts first as the tool of that version, then as the process."""
    end = verbs_peer.start(place)
    guest = bc.Client(place, bc.GUEST)
    slot = end.here["qpn"] >> bc.SLOT_SHIFT
    _, error, descriptors = guest.ask(bc.CONNECT, struct.pack("=II", slot, STATISTICS))
    assert error == 0
    with socket.socket(fileno=descriptors[0]) as conn:
        conn.settimeout(harness.PATIENCE)
        conn.send(ABI_HEADER.pack(CAPTURE_REQUEST, version, 0))
        assert ABI_HEADER.unpack(conn.recv(4096)) == (CAPTURE_READY, ABI, 0)
        assert conn.recv(4096) == b""
    guest.close()
    end.end()
    other = bc.Client(place)
    thread = threading.Thread(target=serve_tools, args=(other, os.getpid(), version))
    thread.start()
    tool = place.run(os.path.join(place.scratch.bin, "uroce-stat"), "--capture", os.getpid(),
                     place.scratch.file("pcapng"))
    thread.join()
    other.close()
    assert tool.popen.returncode == 1
    assert f"version {version} of" in tool.errors and f"uroce-stat has {ABI}" in tool.errors
