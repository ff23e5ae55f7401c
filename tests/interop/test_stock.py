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
# All that they say when it goes well; a guest's program has one stream for that and for errors.
PINGPONG_LINE = re.compile(r"  (local|remote) address: .*|\d+ (bytes|iters) in .*|success")
ROUNDS = 1000 if ends.LONG else 100
SIZES = {"bw": (1, 4096, 65536), "lat": (2, 4097)}
ALL_SIZES = {program: (8,) if "atomic" in program else SIZES[program.rsplit("_", 1)[1]]
             for program in perftest.ALL}
WAYS = [("poll", 4), ("events", 6), *([("poll", 6), ("events", 4)] if ends.LONG else [])]
OVER_IPV6 = perftest.ALL if ends.LONG else ("ib_send_lat", "ib_write_bw", "ib_read_bw",
                                           "ib_atomic_lat")
# 0.5 s for perftest's 67 ms, seven times of which an emulated host may be silent that waits for a
# processor; what is asked for again meanwhile is more than it can answer in time.
TIMEOUT = 17
# Of an error that perftest reports, and the last that enum ibv_wc_status has.
STATUS = re.compile(r"Failed status (-?\d+)")
LAST_STATUS = 23
WITH_EVENTS = tuple(program for program in perftest.ALL if "write" not in program)


def in_some_try(run, excused):
    """It may fail twice, in a way that is not uroce's fault."""
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
    """Their time-out and retries are built in, 0.54 s in all: an emulated host that waits for a
    processor may be silent for as long."""
    words = [program, "-d", "{device}", "-g", f"{{gid{version}}}", "-n", ROUNDS, "-c"]
    words += ["-s", 1000] if "_ud_" in program else ["-s", 5000, "-m", 1024]
    words += ["-e"] if wait == "events" else []
    in_some_try(lambda: check_pingpong(server, words),
                lambda failure: "transport retry counter exceeded" in str(failure))


def check(server, program, size, *more, version=4):
    """Without -o: each asks for as many READs as it finds the other device to have."""
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
    """Did ib_send_lat of perftest 4.5 print a status that it had not read?  With events it waits
    for a send and for a receive by one channel.  When the answer comes before the ACK, which it
    may, the event is the receive's, there is nothing to poll for the send, and it looks at a
    completion that is whatever the stack held (run_iter_lat_send(); newer ones have two)."""
    found = STATUS.search(str(failure))
    return found and not 0 <= int(found[1]) <= LAST_STATUS


@pytest.mark.parametrize("program", WITH_EVENTS)
def test_perftest_with_events(server, program):
    """ib_send_lat leaves a completion behind in that case, if it goes well.  Its CQ must have room
    for that one, or rxe drops the next (one of 1000 rounds on a busy host), and that is as large as
    the depth."""
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
    # So few that no buffer on the way overflows: they are not sent again.
    check(server, program, 1024, "-c", service, "-t", 16)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
