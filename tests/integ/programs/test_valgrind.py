# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Stock programs under valgrind: no reports but those for which buildlib/valgrind.supp explains why
they are not errors of uroce.

A few programs in CI, all of them with UROCE_INTEG_LONG=1.  By hand, with the whole reports:
    UROCE_INTEG_LONG=1 /usr/bin/python3 -m pytest tests/integ/programs/test_valgrind.py \
        -k helgrind-srq
"""
import itertools
import os
import re
import shutil
import signal
import time

import pytest

import harness

if not shutil.which("valgrind"):
    pytest.exit("valgrind is not installed", returncode=77)

SUPPRESSIONS = os.path.join(harness.ROOT, "buildlib", "valgrind.supp")
REPORTED = 99  # valgrind's exit code when it has found something
PATIENCE = 60
LEAKS = "definite,possible"
TOOLS = {
    "memcheck": ["--leak-check=full", "--show-leak-kinds=" + LEAKS,
                 "--errors-for-leak-kinds=" + LEAKS],
    "helgrind": [],
    "drd": [],
}
# Programs with one queue pair use their buffer in turns; with many queue pairs each message causes
# many suppressed reports, which take longer than the programs' timeouts.
PROGRAMS = {
    "rc": ["ibv_rc_pingpong", "-d", "{device}", "-g", 0, "-n", 200],
    "ud": ["ibv_ud_pingpong", "-d", "{device}", "-g", 0, "-n", 200],
    "srq": ["ibv_srq_pingpong", "-d", "{device}", "-g", 0, "-n", 100, "-q", 4, "-s", 64],
    **{name: ["ib_" + name, "-d", "{device}", "-F", "-x", 0, "-n", 100]
       for name in ("send_bw", "write_bw", "read_lat", "atomic_lat")},
}
# Cases that run by default.
QUICK = {"memcheck-rc-poll", "memcheck-ud-events", "memcheck-read_lat-poll",
         "helgrind-rc-poll", "helgrind-rc-events", "helgrind-srq-events", "helgrind-send_bw-poll",
         "drd-rc-poll"}


def cases():
    for words in itertools.product(TOOLS, PROGRAMS, ("poll", "events")):
        name = "-".join(words)
        # WRITEs cause no events at their responder.
        if (harness.LONG or name in QUICK) and words[1:] != ("write_bw", "events"):
            yield pytest.param(*words, id=name)


def under(tool, words, options=()):
    return ["valgrind", "-q", f"--tool={tool}", f"--error-exitcode={REPORTED}", *TOOLS[tool],
            *options, *words]


@pytest.mark.parametrize("tool,program,wait", cases())
def test_no_report(loopback, tool, program, wait):
    words = PROGRAMS[program] + (["-e"] if wait == "events" else [])
    for process in harness.start_pair(
            loopback, under(tool, words, ["--suppressions=" + SUPPRESSIONS])):
        process.done(PATIENCE)


# librdmacm and its programs do not free memory that a thread may still use at exit, and some of it
# has only interior pointers ("possibly lost").  If an option is given twice the later one holds.
DEFINITE = ["--leak-check=full", "--show-leak-kinds=definite", "--errors-for-leak-kinds=definite",
            "--suppressions=" + SUPPRESSIONS]


# The server of an older cmtime does not exit by itself, and needs the number of connections.
CMTIME = ("cmtime -c 30", "cmtime -s 127.0.0.1 -c 30")
if harness.cmtime_meets():
    CMTIME = ("cmtime -L -b 127.0.0.1 -C 127.0.0.1 -c 30", "cmtime -b 127.0.0.1 -C 127.0.0.1 -c 30")


@pytest.mark.parametrize("server,client", (
    pytest.param("rping -s -a 127.0.0.1 -V -C 20", "rping -c -a 127.0.0.1 -V -C 20", id="rping"),
    pytest.param(*CMTIME, id="cmtime")))
def test_no_report_of_the_connection_manager(loopback, server, client):
    port = str(loopback.free_port())
    words = ["-p", port]
    serving = loopback.start(*under("memcheck", server.split() + words, DEFINITE))
    until = time.monotonic() + PATIENCE
    while not (loopback.listens(int(port)) or loopback.has_rdma_listener(port)):
        assert serving.running() and time.monotonic() < until, serving
        time.sleep(0.05)
    loopback.start(*under("memcheck", client.split() + words, DEFINITE)).done(PATIENCE)
    if "-C" in server:
        serving.done(PATIENCE)
    else:
        serving.kill(signal.SIGTERM)
    assert not re.search(r"^==\d+== ", serving.errors, re.MULTILINE), serving


@pytest.mark.skipif(not harness.LONG, reason="only with UROCE_INTEG_LONG=1: half a minute")
def test_no_race_of_the_connection_manager(loopback):
    """Each end has two threads of rping and those of uroce."""
    port = str(loopback.free_port())
    words = ["-a", "127.0.0.1", "-p", port, "-V", "-C", "5"]
    options = ["--suppressions=" + SUPPRESSIONS]
    server = loopback.start(*under("helgrind", ["rping", "-s", *words], options))
    harness.await_listener(loopback, server, port)
    client = loopback.start(*under("helgrind", ["rping", "-c", *words], options))
    for process in client, server:
        process.wait(PATIENCE)
        assert not re.search(r"^==\d+== ", process.errors, re.MULTILINE), process


def test_reports_are_seen(loopback):
    """Without the suppressions perftest's own leaks are reported."""
    for process in harness.start_pair(loopback, under("memcheck", PROGRAMS["read_lat"])):
        assert process.wait(PATIENCE) == REPORTED, process
        assert "definitely lost" in process.errors, process
