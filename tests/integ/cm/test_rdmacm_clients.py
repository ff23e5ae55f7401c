# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Other projects' programs that connect through librdmacm."""
import filecmp
import glob
import itertools
import os
import shutil
import time

import pytest

import harness
from test_rdmacm import WHERE, await_listener, run_pair

PORTS = itertools.count(18600)
PRELOAD = glob.glob("/usr/lib/*/rsocket/librspreload.so")
PERFTEST = [f"ib_{verb}_{what}" for verb in ("write", "read", "send", "atomic")
            for what in ("bw", "lat")]


def need(program):
    return pytest.mark.skipif(not shutil.which(program), reason=f"no {program} here")


@pytest.mark.parametrize("program", PERFTEST)
@WHERE
def test_perftest(request, where, program):
    words = [program, "-R", "-F", "-n", "200"]
    run_pair(request.getfixturevalue(where), words, [*words, "{address}"])


@pytest.mark.parametrize("words", ("ib_send_bw -c UD -n 20", "ib_write_bw -q 16 -n 200",
                                   "ib_send_bw -e -n 200", "ib_send_bw -T 32 -n 200"))
def test_perftest_modes(loopback, words):
    words = [*words.split(), "-R", "-F"]
    run_pair(loopback, words, [*words, "{address}"])


def test_rcopy(loopback):
    """A file is copied over rsockets unchanged."""
    source, target = loopback.scratch.file("in"), loopback.scratch.file("out")
    with open(source, "wb") as file:
        file.write(os.urandom(20_000_000))
    run_pair(loopback, ["rcopy"], ["rcopy", source, "{address}:" + target], done=(False, True))
    assert filecmp.cmp(source, target, shallow=False)


def test_mckey(loopback):
    words = ["-m", "224.1.2.3", "-b", "127.0.0.1", "-c", "1"]
    receiver = loopback.start("mckey", *words)
    # The receiver has no listener, but joins the group with a socket of its process.
    until = time.monotonic() + harness.PATIENCE
    while not any("030201E0" in line for line in loopback.net("igmp")):  # 224.1.2.3
        assert receiver.running() and time.monotonic() < until, receiver
        time.sleep(0.01)
    sender = loopback.start("mckey", *words, "-s")
    sender.done()
    receiver.done()


@need("fio")
@pytest.mark.parametrize("verb", ("write", "read", "send"))
def test_fio(loopback, verb):
    port = next(PORTS)
    common = ["--ioengine=rdma", f"--port={port}", "--bs=64k", "--size=8m", "--name=job"]
    # fio requests no RNR retries, and fails if a SEND finds no receive; there are as many receives
    # as SENDs.  The server verifies every byte.
    common += ["--verify=crc32c"]
    server = loopback.start("fio", *common, "--rw=read", "--iodepth=128")
    await_listener(loopback, server, port)
    client = loopback.run("fio", *common, "--hostname=127.0.0.1", f"--verb={verb}", "--rw=write",
                          "--iodepth=4", "--iodepth_batch_complete_max=4")
    # fio reports failures, but exits with 0.
    for output in client.done() + client.errors, server.done() + server.errors:
        assert "completion status" not in output and "err= 0" in output, (client, server)


@need("qperf")
@pytest.mark.parametrize("test", ("rc_bw", "rc_lat", "rc_rdma_read_bw", "rc_rdma_write_lat"))
def test_qperf(loopback, test):
    port = next(PORTS)
    server = loopback.serve(port, "qperf", "-lp", port)
    loopback.run("qperf", "127.0.0.1", "-lp", port, "-cm1", "-t", "1", test).done()
    assert server.running(), server


@need("fi_info")
def test_libfabric_offers_every_interface(veth):
    """Without an address libfabric binds an id to 127.0.0.1, and if that id has a device, offers
    only this one."""
    assert f"domain: {veth.device}\n" in veth.output_of("fi_info", "-p", "verbs")


@need("fi_pingpong")
@pytest.mark.parametrize("provider,kind", (("verbs", "msg"), ("verbs;ofi_rxm", "rdm")))
def test_libfabric(veth, provider, kind):
    """libfabric skips loopback devices by itself."""
    port = next(PORTS)
    words = ["fi_pingpong", "-p", provider, "-e", kind, "-I", "100"]
    server = veth.serve(port, *words, "-B", port)
    veth.peer.run(*words, "-P", port, veth.address).done()
    server.done()


@need("fi_pingpong")
@pytest.mark.parametrize("provider,kind", (("verbs", "dgram"), ("verbs;ofi_rxd", "rdm")))
def test_libfabric_datagrams(veth, provider, kind):
    """Messages of up to 1 MiB where libfabric splits them into datagrams.  Without a device's name
    it takes the first one, which is the loopback interface's."""
    port = next(PORTS)
    words = ["fi_pingpong", "-p", provider, "-e", kind, "-I", "3", "-d"]
    server = veth.serve(port, *words, veth.device + "-dgram", "-B", port)
    veth.peer.run(*words, veth.peer.device + "-dgram", "-P", port, veth.address).done()
    server.done()


@pytest.mark.parametrize("version", (4, 6), ids=("ipv4", "ipv6"))
def test_rstream_by_gid(veth, version):
    gid = "::ffff:" + veth.address if version == 4 else veth.address6
    words = ["rstream", "-S", "4096", "-I", "50", "-C", "10", "-f", "gid"]
    run_pair(veth, words, [*words, "-s", gid])


def test_udpong(veth):
    """Datagram rsockets create address handles without a GID, which RoCE does not support."""
    client = veth.peer.run("udpong", "-s", veth.address, "-p", next(PORTS))
    assert client.popen.returncode != 0, client
    assert "uroce: no address handle: no GID is named" in client.errors, client


@pytest.mark.skipif(not PRELOAD, reason="no librspreload here")
@pytest.mark.parametrize("kind", ("s", "f"))
def test_rstream_by_preload(loopback, kind):
    """librspreload turns rstream's plain sockets into rsockets.  With f this happens in a forked
    child, when the connection exists."""
    port = next(PORTS)
    # The transfer must take at least half a second, so that uroce-stat shows the connection.
    words = ["rstream", "-S", "4096", "-I", "200", "-C", "300", "-T", kind, "-p", port]
    options = {"env": {"LD_PRELOAD": PRELOAD[0], "RDMAV_FORK_SAFE": "1"}}
    if kind == "s":
        options["env"].pop("RDMAV_FORK_SAFE")
    server = loopback.start(*words, **options)
    until = time.monotonic() + harness.PATIENCE
    while not (loopback.has_rdma_listener(port) if kind == "s" else loopback.listens(port)):
        assert server.running() and time.monotonic() < until, server
        time.sleep(0.01)
    client = loopback.start(*words, "-s", "127.0.0.1", **options)
    while not any(process["connections"] for process in loopback.stat()):
        assert client.running() and time.monotonic() < until, f"did not use uroce: {client}"
    # On a busy host this takes a hundred times as long.
    client.done(3 * harness.PATIENCE)
    server.done()


@pytest.mark.skipif(not PRELOAD, reason="no librspreload here")
@WHERE
def test_preload(request, where):
    """The byte stream of an ordinary program returns unchanged over an rsocket."""
    place = request.getfixturevalue(where)
    port = next(PORTS)
    words = [harness.PYTHON, place.scratch.copy("cm/byte_stream.py")]
    options = {"env": {"LD_PRELOAD": PRELOAD[0]}}
    server = place.start(*words, "serve", port, **options)
    await_listener(place, server, port)
    place.peer.run(*words, "ask", port, place.address, **options).done()
    server.done()
