# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""The programs of perftest with their usual options, each report checked."""

import pytest

import perftest
from perftest import ALL, BANDWIDTH, usual_size

# ib_write_bw and ib_write_lat refuse -e.
WITH_EVENTS = tuple(p for p in ALL if "write" not in p)
WITH_INLINE = tuple(p for p in ALL if "send" in p or "write" in p)
ITERATIONS = 1000
PAIRS = 16


def check(place, program, *arguments, iterations=ITERATIONS, size=None):
    server, client = perftest.start(place, program, "-n", ITERATIONS, *arguments)
    perftest.finish(server, client)
    perftest.check_report(client, [size or usual_size(program)], iterations)


@pytest.mark.parametrize("program", ALL)
def test_without_options(loopback, program):
    server, client = perftest.start(loopback, program)
    perftest.finish(server, client)
    count = 5000 if program == "ib_write_bw" else 1000
    perftest.check_report(client, [usual_size(program)], count)


@pytest.mark.parametrize("program", ["ib_send_bw", "ib_write_lat", "ib_read_bw", "ib_atomic_lat"])
def test_between_namespaces(veth, program):
    check(veth, program)


@pytest.mark.parametrize("program", BANDWIDTH)
def test_both_directions(loopback, program):
    check(loopback, program, "-b")


@pytest.mark.parametrize("program", BANDWIDTH)
def test_many_queue_pairs(loopback, program):
    check(loopback, program, "-q", PAIRS, iterations=PAIRS * ITERATIONS)


@pytest.mark.parametrize("program", ["ib_read_bw", "ib_read_lat", "ib_atomic_bw", "ib_atomic_lat"])
def test_depth_of_the_kernels_device(loopback, program):
    """As many outstanding READs and Atomics as the kernel's soft RoCE has: each end uses the number
    that the other one sends, and fails if its own device supports fewer."""
    server, client = perftest.start(loopback, program, "-n", ITERATIONS)
    perftest.finish(server, client)
    for process in server, client:
        assert "Outstand reads  : 128\n" in process.output, process


@pytest.mark.parametrize("program", WITH_EVENTS)
def test_events(loopback, program):
    check(loopback, program, "-e")


@pytest.mark.parametrize("program", WITH_INLINE)
def test_inline(loopback, program):
    check(loopback, program, "-I", 64, "-s", 64, size=64)


# Output on a busy host, about once in some thousand runs.
NO_CLOCK = "Correlation coefficient r^2: 0.71 < 0.9"
NO_FIGURES = "#bytes #iterations BW peak[MB/sec] BW average[MB/sec] MsgRate[Mpps]\n" \
             " 65536 100 0.00 0.00 0.000000"


@pytest.mark.parametrize("stream", (1, 2))
def test_report_without_a_clock(loopback, stream):
    """A program in a guest has the remark in its output."""
    script = f"echo '{NO_CLOCK}' >&{stream}; echo '{NO_FIGURES}'"
    process = loopback.run("sh", "-c", script)
    process.command = ["ib_send_bw"]
    perftest.check_report(process, [65536], 100)
    perftest.check_remarks(process)


@pytest.mark.parametrize("stream", (1, 2))
def test_error_beside_a_report(loopback, stream):
    """The program prints an error, although its exit code is 0."""
    script = f"echo '{NO_FIGURES}'; echo ' Failed status 12: wr_id 0 syndrom 0x81' >&{stream}"
    process = loopback.run("sh", "-c", script)
    assert process.popen.returncode == 0
    with pytest.raises(AssertionError):
        perftest.check_remarks(process)


def test_report_without_figures(loopback):
    process = loopback.run("echo", NO_FIGURES)
    process.command = ["ib_send_bw"]
    with pytest.raises(AssertionError):
        perftest.check_report(process, [65536], 100)
