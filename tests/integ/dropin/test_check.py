# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""The report of uroce-run without a program, compared with the output of the host's tools."""
import json
import os
import re
import socket

import pytest

import harness
import verbs_peer

WANTED = 4 << 20  # README: default of UROCE_RECEIVE_BUFFER
SECOND_USER = 4711


def check(place, *options, code=0, limit=None, **more):
    """Runs uroce-run; returns its lines as a list of values for each name."""
    command = [os.path.join(place.scratch.bin, "uroce-run"), *options]
    if limit:
        command = ["sh", "-c", f'ulimit {limit} && exec "$@"', "sh", *command]
    process = place.run(*command, **more)
    assert process.popen.returncode == code, process
    lines = {}
    for text in process.output.splitlines():
        assert text[15] == " " and text[16] != " " and len(text) > 17, process
        name, value = text.split(":", 1)
        lines.setdefault(name, []).append(value.strip())
    assert ("FAILED" in lines) == bool(code), process
    assert (lines["result"] == ["works: uroce-run ibv_devinfo"]) != bool(code), process
    lines["stderr"] = process.errors
    return lines


def granted(option):
    """Bytes of a socket that requests WANTED; the kernel doubles what it grants."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.SOL_SOCKET, option, WANTED)
        return sock.getsockopt(socket.SOL_SOCKET, option) // 2


def devices_of(place):
    """The expected device lines, made of the kernel's addresses and ibv_devinfo's MTU."""
    shown = place.output_of("ibv_devinfo")
    roce = re.findall(r"hca_id:\t(\S+).*?active_mtu:\t+(\d+)", shown, re.DOTALL)
    links = {"uroce_" + link["ifname"]: link
             for link in json.loads(place.output_of("ip", "-json", "address"))}
    found = []
    for name, mtu in roce:
        addresses = [a["local"] for a in links[name]["addr_info"]]
        found.append(f"{name}: {', '.join(addresses)}, port active, RoCE MTU {mtu} "
                     f"(interface {links[name]['mtu']})")
    return found


def test_a_host_that_works(veth):
    veth.await_no_sockets()
    lines = check(veth)
    assert lines["stderr"] == ""
    assert sum(len(values) for values in lines.values()) <= 14, lines
    assert [re.sub(r" fe80::\S+,", "", line) for line in lines["device"]] == \
        [re.sub(r" fe80::\S+,", "", line) for line in devices_of(veth)]
    for name, option, limit in (("receive buffer", socket.SO_RCVBUF, "rmem_max"),
                                ("send buffer", socket.SO_SNDBUF, "wmem_max")):
        enough = granted(option) >= WANTED
        assert lines[name] == [f"{granted(option)} bytes of {WANTED}" +
                               ("" if enough else f", limited by net.core.{limit}")]
        assert (limit in lines["faster"][0]) != enough, lines
    assert lines["steering"] == ["by the kernel, to the socket of each process"]
    assert lines["shared memory"][0].startswith("works between processes")
    user = os.geteuid()
    assert lines["broker"][0] in (f"running, user {user}", f"started by this check, user {user}")
    assert check(veth, "--check")["broker"] == [f"running, user {user}"]


def test_small_socket_buffers(loopback):
    """The kernel's limit applies to all namespaces, so the test requests more instead."""
    with open("/proc/sys/net/core/rmem_max", encoding="utf-8") as file:
        limit = int(file.read())
    wanted = 256 << 20
    if limit >= wanted:
        pytest.skip(f"net.core.rmem_max is {limit}")
    lines = check(loopback, env={"UROCE_RECEIVE_BUFFER": str(wanted)})
    assert lines["receive buffer"] == [f"{limit} bytes of {wanted}, limited by net.core.rmem_max"]
    assert re.match(rf"sudo sysctl -w net\.core\.rmem_max={wanted}( |$)", lines["faster"][0]), lines


def test_wrong_receive_buffer(loopback):
    """The default is compared with the limit, not the digits at the beginning of the value."""
    env = {"UROCE_RECEIVE_BUFFER": "8M"}
    lines = check(loopback, code=1, env=env)
    assert "UROCE_RECEIVE_BUFFER=8M" in lines["stderr"]
    assert lines["receive buffer"] == check(loopback)["receive buffer"]


def test_small_mtu(veth):
    veth.output_of("ip", "link", "set", "ura", "mtu", "1500")
    try:
        lines = check(veth)
        assert "RoCE MTU 1024 (interface 1500)" in lines["device"][0]
        assert re.search(r"MTU .* of ura$", lines["faster"][-1]), lines
    finally:
        veth.output_of("ip", "link", "set", "ura", "mtu", "9000")


def test_no_device(scratch):
    place = harness.new_namespace(scratch)
    if not place:
        pytest.skip("network namespaces are not permitted here")
    try:
        off = check(place, code=1, env={"UROCE_LOOPBACK": "off"})
        assert "lo (UROCE_LOOPBACK=off)" in off["no device"][0] and "device" not in off
        place.output_of("ip", "link", "set", "lo", "down")
        lines = check(place, code=1)
        assert "lo (down)" in lines["no device"][0] and "device" not in lines
        assert "ip link set dev NAME up" in lines["FAILED"][0]
    finally:
        harness.release(place)


def test_no_steering(scratch):
    place = harness.new_namespace(scratch)
    if not place:
        pytest.skip("network namespaces are not permitted here")
    try:
        lines = check(place, env={"UROCE_TEST_NO_STEERING": "1"})
        assert lines["steering"][0].startswith("not by the kernel")
    finally:
        harness.release(place)


def test_another_user(loopback):
    """Another user can use uroce.  While the first user has the address, uroce-run reports this and
    a remedy, which works."""
    harness.need_root()
    loopback.await_no_sockets()
    assert check(loopback, user=SECOND_USER)["broker"][0].endswith(f"user {SECOND_USER}")
    loopback.await_no_sockets()
    verbs_peer.pair(loopback)
    lines = check(loopback, code=1, user=SECOND_USER)
    assert re.search("in use by (user 0|another user)", lines["FAILED"][0]), lines
    name, value = re.search(r"(UROCE_LOOPBACK)=(\S+)", lines["FAILED"][0]).groups()
    lines = check(loopback, user=SECOND_USER, env={name: value})
    assert value in lines["device"][0]


@pytest.mark.parametrize("view", ["namespace", "calls", "none"])
def test_view(loopback, view):
    assert check(loopback, "--view=" + view)["view"][0].startswith(view + ":")


def test_wrong_setting(loopback):
    """uroce-run prints the line that a program would print, even with UROCE_LOG=off."""
    lines = check(loopback, code=1, env={"UROCE_CREDITS": "maybe", "UROCE_LOG": "off"})
    assert "uroce_lo cannot be opened" in lines["FAILED"][0]
    assert "UROCE_CREDITS=maybe: must be on or off" in lines["stderr"]


def test_wrong_capture(loopback):
    """uroce-run reports a failure, because no program can open a device with this setting."""
    for value in "/tmp/%p.pcapng,snaplen=1", "/tmp/%p.pcapng,ring=1x64k", "":
        lines = check(loopback, code=1, env={"UROCE_CAPTURE": value})
        assert lines["FAILED"][0].startswith("UROCE_CAPTURE: "), lines
        assert value.split(",")[-1] in lines["FAILED"][0], lines
        assert "cannot use uroce" in lines["result"][0], lines


def test_capture_is_kept(loopback):
    path = loopback.scratch.file("pcapng")
    with open(path, "w", encoding="ascii") as file:
        file.write("packets")
    check(loopback, env={"UROCE_CAPTURE": path})
    with open(path, encoding="ascii") as file:
        assert file.read() == "packets"


def test_limited_address_space(loopback):
    lines = check(loopback, limit="-v 4000000")
    assert lines["shared memory"][0].startswith("not possible: ") and \
        "ulimit -v" in lines["shared memory"][0]


@pytest.mark.parametrize("arguments", [["--check", "true"], ["--capture", "/nonexistent/x"],
                                       ["--capture=/nonexistent/x"], [""]])
def test_wrong_usage(loopback, arguments):
    process = loopback.run(os.path.join(loopback.scratch.bin, "uroce-run"), *arguments)
    assert process.popen.returncode == 2 and "usage:" in process.errors and not process.output
