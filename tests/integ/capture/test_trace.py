# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""uroce-trace on captures of uroce: its counts are those of uroce-stat, and of tshark."""
import glob
import json
import os
import shutil

import pytest

import harness
import perftest
from hold import Hold
from test_capture import ACK, SEND_OPCODES, Capture

FINAL_ACKS = 3  # FINAL_ACKS of the engine

# Rules that a busy host violates, because it is late.
BUSY = {"S7", "S11"}


def trace(place, *arguments):
    return place.run(os.path.join(place.scratch.bin, "uroce-trace"), *arguments).done()


def start(place, messages, size, env=None):
    return perftest.start(place, "ib_send_bw", "-r", 4, "-n", messages, "-s", size, "-m", 1024,
                          env=env)


def counters(hold, pair):
    """Returns the counters of the receiver's and the sender's queue pair when all messages have
    been acknowledged."""
    shown, _ = hold.counted(pair)
    queue_pairs = [shown[process.pid]["qps"][0] for process in pair]
    assert queue_pairs[1]["sq_used"] == 0
    return [queue_pair["counters"] for queue_pair in queue_pairs]


def stream_of(report):
    """Returns the direction of the requests in the only connection."""
    connection, = report["connections"]
    return max((connection["a_to_b"], connection["b_to_a"]),
               key=lambda stream: stream["counts"]["messages"])


def captured(place, messages, size):
    """Runs ib_send_bw; returns the capture, the receiver's and the sender's counters.  Returns None
    if the receiver had no processor for so long that the sender repeated requests: the ACKs of
    duplicates look like final ACKs."""
    hold = Hold(place)
    with Capture(place, "lo") as capture:
        pair = start(place, messages, size, hold.env)
        receiving, sending = counters(hold, pair)
        perftest.finish(*pair)
    return None if receiving["duplicate_request"] else (capture, receiving, sending)


def test_few_receives(loopback):
    """ib_send_bw with four receives: the sender reaches its credit limit, as the trace shows."""
    messages, size = 500, 4096
    capture, receiving, sending = harness.tries(lambda: captured(loopback, messages, size))[0]
    stream = stream_of(json.loads(trace(loopback, "--json", capture.path)))
    counts = stream["counts"]
    assert counts["sends"] == counts["messages"] == sending["rdma_sends"] == messages
    assert receiving["rdma_recvs"] == messages
    assert counts["payload_bytes"] == messages * size
    assert counts["request_packets"] == sending["sent_pkts"] == receiving["rcvd_pkts"]
    rnr_naks = (counts["rnr_naks"], sending["rcvd_rnr_err"], receiving["send_rnr_err"])
    assert len(set(rnr_naks)) == 1, rnr_naks
    assert counts["sequence_naks"] == sending["rcvd_seq_err"]
    # When it ends, after uroce-stat was run, a queue pair repeats its last ACK.
    final_acks = counts["repeated_acks"]
    assert final_acks <= FINAL_ACKS
    assert counts["acks"] - final_acks + counts["rnr_naks"] + counts["sequence_naks"] == \
        receiving["sent_pkts"] == sending["rcvd_pkts"]
    assert counts["unsolicited_acks"] == receiving["unsolicited_acks_sent"]
    assert counts["missing_packets"] == counts["late_packets"] == counts["ghost_acks"] == 0
    # An ACK is on the wire before the sender receives it; until then requests begin as limited.
    assert 0 < counts["limited"] <= sending["limited_requests"]
    assert counts["limit_times"] > 0 and counts["limit_ns"] > 0
    assert stream["credits_reported"] and stream["credits_most"] <= 4
    assert stream["ssn"] == stream["msn"] == messages
    assert {row["rule"] for row in stream["violations"]} <= BUSY, stream["violations"]
    judged = capture.judge()
    assert sum(judged[opcode] for opcode in SEND_OPCODES) == counts["request_packets"]
    assert judged[ACK] == receiving["sent_pkts"] + final_acks
    check_figure(loopback, capture.path)


def test_own_captures(loopback):
    """Files of uroce itself: sender, receiver and both merged."""
    messages = 200
    prefix = loopback.scratch.file("trace")
    hold = Hold(loopback)
    pair = start(loopback, messages, 4096, {"UROCE_CAPTURE": prefix + ".%p.pcapng", **hold.env})
    _, sending = counters(hold, pair)
    perftest.finish(*pair)
    files = {process.pid: f"{prefix}.{process.pid}.pcapng" for process in pair}
    assert sorted(files.values()) == sorted(glob.glob(prefix + ".*"))
    reports = [json.loads(trace(loopback, "--json", files[process.pid])) for process in pair[::-1]]
    if shutil.which("mergecap"):
        merged = loopback.scratch.file("pcapng")
        loopback.run("mergecap", "-w", merged, *files.values()).done()
        reports.append(json.loads(trace(loopback, "--json", merged)))
        # When a queue pair sends its final ACKs, its peer may have ended.
        assert 0 <= reports[-1]["packets"] - 2 * reports[-1]["copies"] <= FINAL_ACKS
    limited = []
    for report in reports:
        stream = stream_of(report)
        counts = stream["counts"]
        assert counts["messages"] == messages
        assert counts["request_packets"] == sending["sent_pkts"]
        assert counts["rnr_naks"] == sending["rcvd_rnr_err"]
        assert counts["unsolicited_acks"] == sending["unsolicited_acks_rcvd"]
        assert {row["rule"] for row in stream["violations"]} <= BUSY, stream["violations"]
        limited.append(counts["limited"])
    # The sender's own file and the merged file show which ACKs the sender has received when it
    # begins a request; in the receiver's file these ACKs are earlier.  Initial credits that arrive
    # before the sender is in RTR are in its file, but the sender does not use them.
    by_sender = [limited[0]] + limited[2:]
    assert all(sending["limited_requests"] - 1 <= n <= sending["limited_requests"]
               for n in by_sender), (limited, sending)
    assert 0 < limited[1] <= sending["limited_requests"]


def few_messages(place):
    """Returns a capture and the number of limited requests in it."""
    with Capture(place, "lo") as capture:
        perftest.finish(*perftest.start(place, "ib_send_bw", "-r", 4, "-n", 20, "-s", 4096))
    stream = stream_of(json.loads(trace(place, "--json", capture.path)))
    return capture.path, stream["counts"]["limited"]


def test_figure_of_few_messages(loopback):
    """The part that the figure shows in detail is near the beginning and the end."""
    path, _ = harness.good_try(lambda: few_messages(loopback), lambda found: found[1] > 0)
    check_figure(loopback, path)


def check_figure(place, path):
    """Checks that the figure has both lines, and that the sender reaches the limit in the part that
    it shows in detail."""
    commands = place.scratch.file("gp")
    trace(place, "--plot", commands, path)
    with open(commands, encoding="utf-8") as file:
        text = file.read()
    for word in ("acknowledged", "credit limit (LSN)", "limited request",
                 "comes to the credit limit"):
        assert word in text
    if shutil.which("gnuplot"):
        picture = place.scratch.file("png")
        trace(place, "--plot", picture, path)
        with open(picture, "rb") as file:
            assert file.read(4) == b"\x89PNG"


@pytest.mark.parametrize("program", ["ib_write_bw -s 5001 -m 1024", "ib_read_bw -s 5001 -m 1024",
                                     "ib_atomic_bw -A FETCH_AND_ADD"])
def test_other_operations(loopback, program):
    """No rule is violated, and every message is counted once."""
    with Capture(loopback, "lo") as capture:
        perftest.finish(*perftest.start(loopback, *program.split(), "-n", 50))
    stream = stream_of(json.loads(trace(loopback, "--json", capture.path)))
    counts = stream["counts"]
    kind = program.split()[0].split("_")[1] + "s"
    assert counts[kind] == counts["messages"] == 50
    assert {row["rule"] for row in stream["violations"]} <= BUSY, stream["violations"]
    if kind != "atomics":
        assert counts["payload_bytes"] + counts["read_bytes"] == 50 * 5001
