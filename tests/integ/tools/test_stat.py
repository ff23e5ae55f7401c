# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""uroce-stat: which processes it shows, with which values, and in which format."""
import contextlib
import json
import os
import re
import signal
import socket
import struct
import sys
import threading
import time

import pytest

import harness
import verbs_peer

sys.path.insert(0, os.path.join(harness.HERE, "broker"))
import broker_client as bc  # noqa: E402

PROCESS_FIELDS = {"format", "pid", "slot", "command", "version", "devices", "counters", "qps",
                  "workers"}
DEVICE_FIELDS = {"name", "netdev", "active", "mtu", "address", "contexts"}
STAT_REPLY = 6  # enum uroce_abi_message
QP_FIELDS = {"device", "type", "state", "waiting", "local", "remote", "qpn", "dest_qpn", "src_port",
             "mtu", "next_psn", "unacked_psn", "expected_psn", "ssn", "msn", "lsn",
             "credits_advertised", "credits_now", "credits_reported", "credits_heard", "unlimited",
             "sq_used", "rq_used", "outstanding_reads", "in_flight", "cwnd", "retries_left",
             "rnr_retries_left", "shared_memory", "counters"}


def run(place, *arguments, **options):
    return place.run(os.path.join(place.scratch.bin, "uroce-stat"), *arguments, **options)


def test_json(loopback):
    first, second = verbs_peer.pair(loopback, mtu=4)
    second.receive()
    for opcode in "send", "write", "read", "fetch_add":
        assert first.do(opcode) == verbs_peer.SUCCESS
    first.post("send")  # has no receive and has to wait
    shown = {process["pid"]: process for process in loopback.stat()}
    assert set(shown) == {first.pid, second.pid}
    assert len({process["slot"] for process in shown.values()}) == 2
    for end, peer in (first, second), (second, first):
        process = shown[end.pid]
        assert set(process) >= PROCESS_FIELDS
        assert process["command"] == "python3"
        device, = process["devices"]
        assert set(device) >= DEVICE_FIELDS
        assert (device["name"], device["netdev"], device["active"]) == ("uroce_lo", "lo", True)
        queue_pair, = process["qps"]
        assert set(queue_pair) >= QP_FIELDS
        assert queue_pair["qpn"] == end.here["qpn"]
        assert queue_pair["dest_qpn"] == peer.here["qpn"]
        assert (queue_pair["type"], queue_pair["state"], queue_pair["mtu"]) == ("RC", "RTS", 2048)
        assert queue_pair["remote"] == queue_pair["local"] == "127.0.0.1"
    sender = shown[first.pid]["qps"][0]
    assert sender["ssn"] == 5 and sender["sq_used"] == 1
    assert sender["counters"]["rdma_sends"] == 5
    assert sender["counters"]["ack_probes"] == sender["counters"]["ack_solicitations"]
    receiver = shown[second.pid]["qps"][0]
    assert receiver["msn"] == 4 and receiver["counters"]["rdma_recvs"] == 1
    assert receiver["credits_now"] == 0


def test_table(loopback):
    first, second = verbs_peer.pair(loopback)
    assert first.do("write") == verbs_peer.SUCCESS
    text = run(loopback).done()
    for end, peer in (first, second), (second, first):
        assert re.search(rf"^process {end.pid} ", text, re.MULTILINE), text
        assert re.search(rf"QP 0x{end.here['qpn']:06x}  RC RTS  uroce_lo -> "
                         rf"QP 0x{peer.here['qpn']:06x} at 127\.0\.0\.1", text), text
    # Counters that are zero are left out, unless asked for.
    assert "icrc_err=0" not in text
    assert "icrc_err=0" in run(loopback, "--all").done()


def test_workers(loopback):
    """Workers are shown with their queue pairs; a process's counters are the sums of theirs."""
    streams = loopback.start(os.path.join(harness.BUILD, "tests/bin/bench_threads"),
                             "uroce_lo", "rtt", 2, "threads", 20)
    until = time.monotonic() + harness.PATIENCE
    while [len(process["qps"]) for process in loopback.stat()] != [2, 2]:
        assert time.monotonic() < until
        time.sleep(0.05)
    for process in loopback.stat():
        assert [worker["number"] for worker in process["workers"]] == [0, 1]
        for worker in process["workers"]:
            qpns = [qp["qpn"] for qp in process["qps"] if qp["qpn"] >> 12 == worker["slot"]]
            assert worker["qps"] == len(qpns) == 1
        for name, value in process["counters"].items():
            # The workers' counters are read after those of the process.
            assert sum(worker["counters"][name] for worker in process["workers"]) >= value
    shown = run(loopback).done()
    assert len(re.findall(r"^  worker \d  slot \d+  queue pairs 0x.* 1$", shown, re.MULTILINE)) == 4
    streams.kill()


def test_one_process(loopback):
    first, second = verbs_peer.pair(loopback)
    text = run(loopback, second.pid).done()
    assert f"process {second.pid} " in text and f"process {first.pid} " not in text
    assert [p["pid"] for p in json.loads(run(loopback, "--json", first.pid).done())] == [first.pid]


def test_nobody_is_there(loopback):
    assert json.loads(run(loopback, "--json").done()) == []
    assert "no uroce process" in run(loopback).done()
    # Process 1, whatever that is here, does not use uroce.
    assert json.loads(run(loopback, "--json", 1).output) == []
    assert "no uroce process" in run(loopback, 1).output


@contextlib.contextmanager
def process_of_another_release(place):
    """A worker of this process that replies once with a format that is not known."""
    starter = verbs_peer.start(place)
    worker = bc.Client(place)
    starter.end()
    reply = os.memfd_create("stat")
    os.write(reply, json.dumps({"format": 99, "pid": 4711, "version": "7.8.9"}).encode())

    def answer():
        kind = None
        worker.delivery.settimeout(harness.PATIENCE)
        while kind != bc.CONNECTION:
            kind, _, _, _, descriptors = bc.receive(worker.delivery)
        with socket.socket(fileno=descriptors[0]) as tool:
            tool.settimeout(harness.PATIENCE)
            _, version, _ = struct.unpack("=IIQ", tool.recv(100))
            os.lseek(reply, 0, os.SEEK_SET)
            socket.send_fds(tool, [struct.pack("=IIQ", STAT_REPLY, version + 1, 0)], [reply])

    thread = threading.Thread(target=answer)
    thread.start()
    yield
    thread.join()
    worker.close()
    os.close(reply)


@pytest.mark.parametrize("pid, shown", [((), True), ((4711,), True), ((4712,), False)])
def test_process_of_another_release(loopback, pid, shown):
    """The process is named with both versions, and is not reported as missing."""
    if not loopback.holder:
        pytest.skip("network namespaces are not permitted here")
    with process_of_another_release(loopback):
        process = run(loopback, *pid)
    own = run(loopback, "--version").done().split()[1]
    assert process.popen.returncode == 1
    if shown:
        assert process.output == ""
        assert process.errors == ("uroce-stat: process 4711 has uroce 7.8.9, whose format this "
                                  f"uroce-stat ({own}) does not know\n")
    else:
        assert "no uroce process of yours has this number" in process.output
        assert process.errors == ""


def await_lines(watcher, enough):
    """Waits until enough() accepts the lines that uroce-stat has written, and returns them."""
    until = time.monotonic() + harness.PATIENCE
    while True:
        whole = [line for line in watcher.output.splitlines(True) if line.endswith("\n")]
        lines = [json.loads(line) for line in whole]
        if enough(lines):
            return lines
        assert watcher.running() and time.monotonic() < until, watcher
        time.sleep(0.01)


def watched(place):
    """Returns the time in seconds for six reports of a process; once the process has ended, a
    report must be empty."""
    end = verbs_peer.start(place)
    begun = time.monotonic()
    watcher = place.start(os.path.join(place.scratch.bin, "uroce-stat"), "--json", "--watch=0.1")
    lines = await_lines(watcher, lambda lines: len(lines) > 5)
    took = time.monotonic() - begun
    assert all([process["pid"] for process in line] == [end.pid] for line in lines), watcher
    end.close()
    end.end()
    lines = await_lines(watcher, lambda lines: lines[-1] == [])
    assert len(lines) <= (time.monotonic() - begun) / 0.1 + 2, watcher
    watcher.kill(signal.SIGINT)
    return took


def test_watch(loopback):
    # Without an interval uroce-stat reports once a second, which would take longer.
    harness.in_time(lambda: watched(loopback), 2)


@pytest.mark.parametrize("arguments", [("--nope",), ("x",), ("1", "2"), ("0",), ("-1",), ("12x",),
                                       ("--watch=0",), ("--watch=soon",), ("",)])
def test_wrong_use(loopback, arguments):
    process = run(loopback, *arguments)
    assert process.popen.returncode == 2
    assert process.output == "" and "uroce-stat" in process.errors


def test_help(loopback):
    process = run(loopback, "--help")
    assert process.popen.returncode == 0 and process.errors == ""
    for word in "--json", "--watch", "--all", "PID":
        assert word in process.output


def test_processes_of_others_are_not_shown(loopback):
    harness.need_root()
    first, _ = verbs_peer.pair(loopback)
    other = run(loopback, "--json", user=harness.NOBODY)
    assert json.loads(other.output) == [] and str(first.pid) not in other.errors
    asked = run(loopback, first.pid, user=harness.NOBODY)
    assert "process " + str(first.pid) not in asked.output
    assert "no uroce process of yours" in asked.output


def test_processes_of_others_do_not_hide_ones_own(loopback):
    harness.need_root()
    root = verbs_peer.start(loopback)
    own = verbs_peer.VerbsPeer(loopback, user=harness.NOBODY)
    own.open("uroce_lo", 0)
    shown = json.loads(run(loopback, "--json", user=harness.NOBODY).done())
    assert [process["pid"] for process in shown] == [own.pid]
    assert root.pid in [process["pid"] for process in loopback.stat()]


def test_stopped_process_is_named(loopback):
    """A stopped process cannot answer; the others are still shown."""
    stopped, other = verbs_peer.pair(loopback)
    os.kill(stopped.pid, signal.SIGSTOP)
    try:
        process = run(loopback, "--json")
        assert process.popen.returncode == 1
        assert "does not answer" in process.errors
        assert [shown["pid"] for shown in json.loads(process.output)] == [other.pid]
    finally:
        os.kill(stopped.pid, signal.SIGCONT)
    assert len(loopback.stat()) == 2


def test_counting_does_not_disturb(loopback):
    """Processes continue while uroce-stat queries them all the time: nothing waits for it."""
    first, _ = verbs_peer.pair(loopback)
    watcher = loopback.start(os.path.join(loopback.scratch.bin, "uroce-stat"), "--json",
                             "--watch=0.01")
    watcher.await_words("\n")
    for _ in range(300):
        assert first.do("write", length=4096) == verbs_peer.SUCCESS
    watcher.kill(signal.SIGINT)
    assert len(watcher.output.splitlines()) >= 1
