# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Stock programs between uroce and rxe, each in both roles, with path MTU 4096."""
import re
import sys

import pytest

import ends
import harness
import perftest

MTU = 4200
# Not ibv_xsrq_pingpong: rxe has no XRC.
PINGPONGS = ("ibv_rc_pingpong", "ibv_uc_pingpong", "ibv_ud_pingpong", "ibv_srq_pingpong")
# Lines that they print on success; a program in the guest has one stream for output and errors.
PINGPONG_LINE = re.compile(r"  (local|remote) address: .*|\d+ (bytes|iters) in .*|success")
ROUNDS = 1000 if ends.LONG else 100
SIZES = {"bw": (1, 4096, 65536), "lat": (2, 4097)}
ALL_SIZES = {program: (8,) if "atomic" in program else SIZES[program.rsplit("_", 1)[1]]
             for program in perftest.ALL}
WAYS = [("poll", 4), ("events", 6), *([("poll", 6), ("events", 4)] if ends.LONG else [])]
OVER_IPV6 = perftest.ALL if ends.LONG else ("ib_send_lat", "ib_write_bw", "ib_read_bw",
                                           "ib_atomic_lat")
# 0.5 s instead of perftest's 67 ms: an emulated host that waits for a processor may not respond for
# seven times 67 ms, and then cannot answer all retransmitted requests in time.
TIMEOUT = 17
# The status in an error message of perftest, and the last value of enum ibv_wc_status.
STATUS = re.compile(r"Failed status (-?\d+)")
LAST_STATUS = 23
WITH_EVENTS = tuple(program for program in perftest.ALL if "write" not in program)


def in_some_try(run, excused):
    """Allow run() to fail twice if excused(failure), that is, if uroce is not the cause."""
    for tries in range(3):
        try:
            return run()
        except AssertionError as failure:
            if not excused(failure) or tries == 2:
                raise


def check_pingpong(server, words):
    pair = harness.start_pair(server, words)
    ends.finish(*pair)
    for process in pair:
        text = process.output
        assert all(map(PINGPONG_LINE.fullmatch, text.splitlines())), process
        assert process.errors == "", process
        assert re.search(r"^(\d+ iters in|success$)", text, re.MULTILINE), process


@pytest.mark.parametrize("wait,version", WAYS)
@pytest.mark.parametrize("program", PINGPONGS)
def test_pingpong(server, program, wait, version):
    """The programs' timeout and retries are fixed, 0.54 s in all; an emulated host that waits for a
    processor may not respond for that long."""
    words = [program, "-d", "{device}", "-g", f"{{gid{version}}}", "-n", ROUNDS, "-c"]
    words += ["-s", 1000] if "_ud_" in program else ["-s", 5000, "-m", 1024]
    words += ["-e"] if wait == "events" else []
    in_some_try(lambda: check_pingpong(server, words),
                lambda failure: "transport retry counter exceeded" in str(failure))


def check(server, program, size, *more, version=4):
    """Without -o, each end uses as many outstanding READs as the other device supports."""
    words = ["-x", f"{{gid{version}}}", "-n", ROUNDS, "-u", TIMEOUT, *more]
    words += ["-s", size] if "atomic" not in program else []
    pair = perftest.start(server, program, *words)
    ends.finish(*pair)
    perftest.finish(*pair)
    perftest.check_report(pair[1], [size], ROUNDS)


@pytest.mark.parametrize("program,size", [
    (program, size) for program, sizes in ALL_SIZES.items()
    for size in (sizes if ends.LONG else sizes[-1:])])
def test_perftest(server, program, size):
    check(server, program, size)


def read_no_completion(failure):
    """Returns true if ib_send_lat of perftest 4.5 printed an uninitialized status.  With events it
    waits for sends and receives on one channel.  If the reply arrives before the ACK, which is
    allowed, the event is that of the receive, polling for the send finds nothing, and ib_send_lat
    reads an uninitialized completion (run_iter_lat_send(); newer versions have two channels)."""
    found = STATUS.search(str(failure))
    return found and not 0 <= int(found[1]) <= LAST_STATUS


@pytest.mark.parametrize("program", WITH_EVENTS)
def test_perftest_with_events(server, program):
    """In that case ib_send_lat, if it does not fail, leaves a completion in its CQ.  The CQ, which
    is as large as the depth, must have room for it, or rxe drops the next completion (in one of
    1000 rounds on a busy host)."""
    more = ["-t", 16] if program == "ib_send_lat" else []
    in_some_try(lambda: check(server, program, ALL_SIZES[program][-1], "-e", *more),
                lambda failure: program == "ib_send_lat" and read_no_completion(failure))


@pytest.mark.parametrize("program", perftest.BANDWIDTH)
def test_perftest_both_ways(server, program):
    check(server, program, ALL_SIZES[program][-1], "-b")


@pytest.mark.parametrize("program", OVER_IPV6)
def test_perftest_over_ipv6(server, program):
    check(server, program, ALL_SIZES[program][-1], version=6)


@pytest.mark.parametrize("program,service", [
    ("ib_send_bw", "UC"), ("ib_send_lat", "UC"), ("ib_write_bw", "UC"), ("ib_write_lat", "UC"),
    ("ib_send_lat", "UD")])
def test_perftest_unreliable(server, program, service):
    # Few messages at a time, so that no buffer on the way overflows: UC and UD do not retransmit.
    check(server, program, 1024, "-c", service, "-t", 16)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
