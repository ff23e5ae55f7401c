# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""UROCE_CAPTURE: the files contain the packets that went through sockets, through shared memory and
within a process, as other programs would capture them."""
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

import captured
import harness
import perftest
import verbs_peer
from hold import Hold, quiet_stat

sys.path.insert(0, os.path.join(os.path.dirname(harness.HERE), "golden"))
import judge_capture  # noqa: E402

WAYS = {"sockets": {}, "memory": {"UROCE_SHM": "on"}}
ACK = 0x11
SEND_ONLY = 0x04


def check_fields(file):
    """rule S15 test: transport version 0, MigReq 1, the default P_Key."""
    for packet in file.packets:
        bth = captured.udp_payload(packet)
        assert bth[1] & 0x0F == 0 and bth[1] & 0x40 and bth[2:4] == b"\xff\xff", bth


class Captures:
    """The capture files of the processes of a place that are started with env."""

    def __init__(self, place, options=""):
        self.place, self.prefix = place, place.scratch.file("capture")
        self.env = {"UROCE_CAPTURE": f"{self.prefix}.%p.pcapng{options}"}

    def paths(self):
        folder, begin = os.path.split(self.prefix)
        return [os.path.join(folder, name) for name in sorted(os.listdir(folder))
                if name.startswith(begin + ".")]

    def files(self, count):
        paths = self.paths()
        assert len(paths) == count, paths
        return [captured.File(path) for path in paths]

    def merged(self):
        """Returns one file of all packets, merged by a program that considers only their times."""
        merged = self.place.scratch.file("pcapng")
        subprocess.run(["mergecap", "-w", merged, *self.paths()], check=True,
                       stderr=subprocess.DEVNULL)
        said = subprocess.run(["capinfos", "-o", merged], check=True, stdout=subprocess.PIPE,
                              text=True).stdout
        assert re.search(r"^Strict time order: +True", said, re.MULTILINE), said
        return merged

    def judge(self, count):
        """Checks the files by tshark, and their ICRCs and the order of times; returns the files."""
        files = self.files(count)
        for file in files:
            assert file.statistics == [(len(file.packets), 0)] and not file.passed_over
            check_fields(file)
        captured.check_arrivals(files)
        if not all(map(shutil.which, ("tshark", "mergecap", "capinfos"))):
            pytest.skip("tshark is not installed")
        opcodes, complaints = judge_capture.judge(self.merged())
        # tshark prints our comments as well.
        comments = {p.comment for file in files for p in file.packets}
        assert [c for c in complaints if c.split("tshark: ")[-1] not in comments] == []
        assert sum(opcodes.values()) == sum(len(file.packets) for file in files)
        return files


def check_counts(captures, shown, until):
    """Each file contains as many packets as the queue pairs of its process have counted."""
    for pid, process in shown.items():
        file = of_process(captures, pid)
        for direction, name in (captured.IN, "rcvd_pkts"), (captured.OUT, "sent_pkts"):
            there = sum(packet.time < until for packet in file.went(direction))
            assert there == sum(qp["counters"][name] for qp in process["qps"]) > 0, name


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("version", [4, 6])
def test_pingpong(loopback, way, version):
    captures, hold = Captures(loopback), Hold(loopback)
    pair = harness.start_pair(loopback, ["ibv_rc_pingpong", "-d", "{device}", "-g",
                                         loopback.gid_index(version), "-n", 100, "-c"],
                              env={**WAYS[way], **captures.env, **hold.env})
    counted = hold.counted(pair)
    for process in pair:
        process.done()
    files = captures.judge(2)
    check_counts(captures, *counted)
    # 4096 bytes are four packets of the program's MTU; on a busy host some are sent again.
    for file in files:
        for direction in captured.IN, captured.OUT:
            data = [captured.psn(p) for p in file.went(direction) if len(p.frame) > 1024]
            assert len(set(data)) == 400


@pytest.mark.parametrize("way", WAYS)
def test_few_receives(loopback, way):
    """The sender runs out of credits repeatedly."""
    captures, hold = Captures(loopback), Hold(loopback)
    pair = perftest.start(loopback, "ib_send_bw", "-r", 4, "-n", 500, "-s", 1024,
                          env={**WAYS[way], **captures.env, **hold.env})
    counted = hold.counted(pair)
    perftest.finish(*pair)
    captures.judge(2)
    check_counts(captures, *counted)


def is_solicitation(packet):
    """Returns true if this is a SEND without data, which may solicit an ACK on a busy host."""
    return captured.opcode(packet) == SEND_ONLY and len(packet.frame) < 100


@pytest.mark.parametrize("program, seen", [
    ("ib_write_bw -s 5001 -m 1024", {0x06, 0x07, 0x08, ACK}), ("ib_write_lat", {0x0A, ACK}),
    ("ib_read_bw -s 5001 -m 1024", {0x0C, 0x0D, 0x0E, 0x0F}), ("ib_read_lat", {0x0C, 0x10}),
    ("ib_atomic_bw -A FETCH_AND_ADD", {0x12, 0x14}),
    ("ib_atomic_bw -A CMP_AND_SWAP", {0x12, 0x13}),
    ("ib_send_bw -s 5001 -m 1024", {0x00, 0x01, 0x02, ACK})])
def test_every_operation(loopback, program, seen):
    captures = Captures(loopback)
    perftest.finish(*perftest.start(loopback, *program.split(), "-n", 50, env=captures.env))
    opcodes = {captured.opcode(p) for file in captures.judge(2) for p in file.packets
               if not is_solicitation(p)}
    # Unsolicited ACKs are possible with all operations.
    assert seen <= opcodes <= seen | {ACK}


def test_lost_and_repeated(loopback):
    """Retransmissions and NAKs are well formed, too."""
    captures = Captures(loopback)
    for process in harness.start_pair(
            loopback, ["ibv_rc_pingpong", "-d", "{device}", "-g", loopback.gid_index(4), "-n", 50,
                       "-s", 5001, "-m", 1024],
            env={**captures.env, "UROCE_FAULT": "drop=0.05,dup=0.05,reorder=0.05,seed=5"}):
        process.done()
    captures.judge(2)


@pytest.mark.parametrize("method, arguments, result", [
    ("pingpong", [100, 4096], 200), ("flood", [500, 1024, 4], [500, 500])])
def test_within_a_process(loopback, method, arguments, result):
    """The traffic of ibv_rc_pingpong and ib_send_bw -r 4, between two queue pairs of a process."""
    captures = Captures(loopback)
    end = verbs_peer.VerbsPeer(loopback, env=captures.env)
    here = end.open(loopback.device, loopback.gid_index(4))
    there = end.of(1, "open", loopback.device, loopback.gid_index(4))
    end.connect(there)
    end.of(1, "connect", here)
    assert getattr(end, method)(1, *arguments) == result
    counted = quiet_stat(loopback)
    end.end()
    file, = captures.judge(1)
    check_counts(captures, *counted)
    # Each packet is captured once as sent and once as received; later packets are final ACKs.
    into, out = (sum(packet.time < counted[1] for packet in file.went(way))
                 for way in (captured.IN, captured.OUT))
    assert into == out


def test_one_process(loopback):
    """Both queue pairs are in one file, each packet once as sent and once as received."""
    captures = Captures(loopback)
    loopback.run(os.path.join(harness.BUILD, "tests", "verbs_operations"),
                 env=captures.env).done()
    file, = captures.judge(1)
    # When the last packets are sent, the other queue pair, or the process, may have ended.
    assert 10 < len(file.went(captured.IN)) <= len(file.went(captured.OUT))


def talk_pair(place, **options):
    ends = [verbs_peer.VerbsPeer(place, **options) for _ in range(2)]
    for end in ends:
        end.here = end.open(place.device, place.gid_index(4))
    for end, other in ends, ends[::-1]:
        end.connect(other.here)
    return ends


def of_process(captures, pid):
    return captured.File(f"{captures.prefix}.{pid}.pcapng")


def comments(file, direction, until):
    found = {}
    for packet in file.packets:
        if packet.comment and packet.direction == direction and packet.time < until:
            found[packet.comment] = found.get(packet.comment, 0) + 1
    return found


REASONS = {
    "icrc_err": "refused: wrong ICRC",
    "unknown_qp": "refused: unknown queue pair",
    "bad_pkey": "refused: wrong P_Key",
    "malformed_pkts": "refused: malformed",
    "mad_no_listener": "refused: no program here uses the connection manager",
    "forwarded": "forwarded: for a queue pair of another process of this host",
}


INJECTED = {
    "not sent: dropped by fault injection": "fault_dropped",
    "corrupted by fault injection": "fault_corrupted",
}


@pytest.mark.parametrize("way", WAYS)
def test_counters(loopback, way):
    """The files contain as many packets as uroce-stat counts, while fault injection drops some.

    A try of a WRITE or READ of one packet fails with probability 0.19 (1 - 0.95^4), all 8 tries of
    one of the 60 with 10^-4.
    """
    captures = Captures(loopback)
    ends = talk_pair(loopback, env={
        **WAYS[way], **captures.env, "UROCE_FAULT": "drop=0.05,dup=0.1,corrupt=0.05,seed=3"})
    for _ in range(30):
        assert ends[0].do("write") == verbs_peer.SUCCESS
        assert ends[1].do("read") == verbs_peer.SUCCESS
    shown, until = quiet_stat(loopback)
    for end in ends:
        end.end()
    for end in ends:
        counters, qp = shown[end.pid]["counters"], shown[end.pid]["qps"][0]["counters"]
        file = of_process(captures, end.pid)
        into = [p for p in file.went(captured.IN) if p.time < until]
        assert len(into) == qp["rcvd_pkts"]
        refused, sent = (comments(file, way, until) for way in (captured.IN, captured.OUT))
        # If the queue pair number was corrupted, the reason is not a wrong ICRC.
        assert refused == {why: counters[name] for name, why in REASONS.items() if counters[name]}
        assert sent == {why: counters[name] for why, name in INJECTED.items() if counters[name]}
        out = [p for p in file.packets if p.direction == captured.OUT and p.time < until]
        assert len(out) == qp["sent_pkts"] + counters["fault_duplicated"]


STRAYS = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for text in sys.argv[2:]:
    s.sendto(bytes.fromhex(text), (sys.argv[1], 4791))
"""


def test_refused(loopback):
    """Packets that are for no queue pair, or are invalid, have a comment with the reason."""
    captures = Captures(loopback)
    end, other = talk_pair(loopback, env=captures.env)
    assert end.do("write") == verbs_peer.SUCCESS
    qpn = end.here["qpn"]
    loopback.run(harness.PYTHON, "-c", STRAYS, "127.0.0.1",
                 f"1140ffff00{qpn ^ 1:06x}00000000" + "1f000000" + "00000000",
                 f"1140000000{qpn:06x}00000000" + "1f000000" + "00000000",
                 f"1140ffff00{qpn:06x}00000000" + "1f000000" + "00000000",
                 f"ff40ffff00{qpn:06x}00000000").done()
    counters, until = {}, time.monotonic() + harness.PATIENCE
    while counters.get("malformed_pkts", 0) < 1 and time.monotonic() < until:
        counters = loopback.stat(end.pid)["counters"]
    end.end()
    other.end()
    found = comments(of_process(captures, end.pid), captured.IN, time.time_ns())
    assert found == {"refused: unknown queue pair": 1, "refused: wrong P_Key": 1,
                     "refused: wrong ICRC": 1, "refused: malformed": 1}


def test_short_frames(loopback):
    """The files contain the beginning of each packet and its original length."""
    captures = Captures(loopback, ",snaplen=128")
    perftest.finish(*perftest.start(loopback, "ib_write_bw", "-n", 50, "-s", 65536,
                                    env=captures.env))
    files = captures.files(2)
    for file in files:
        assert max(len(p.frame) for p in file.packets) == 128
        assert max(p.length for p in file.packets) > 4096
    captured.check_arrivals(files)


def missing_of_the_killed(place, way):
    """Kills a pair, which must leave complete files; returns the seconds before the kill of which a
    file contains no packet."""
    captures = Captures(place)
    server, client = perftest.start(place, "ib_send_bw", "-s", 8192, "-D", 20,
                                    env={**WAYS[way], **captures.env})
    until = time.monotonic() + harness.PATIENCE
    while time.monotonic() < until and (len(captures.paths()) < 2 or min(
            map(os.path.getsize, captures.paths())) < 8 << 20):
        time.sleep(0.01)
    killed = time.time_ns()
    client.kill()
    server.kill()
    files = captures.files(2)
    assert all(len(file.packets) > 100 for file in files)
    if shutil.which("capinfos"):
        subprocess.run(["capinfos", *captures.paths()], check=True, stdout=subprocess.DEVNULL)
    return (killed - min(file.packets[-1].time for file in files)) / 1e9


@pytest.mark.parametrize("way", WAYS)
def test_killed(loopback, way):
    """The file of a killed process contains its packets up to a short time before the kill."""
    # An idle writer checks for packets every 10 ms, and may have to wait for a processor.
    harness.in_time(lambda: missing_of_the_killed(loopback, way), 2)


def test_full_disk(loopback):
    """The program prints one line and goes on."""
    server, client = perftest.start(loopback, "ib_send_bw", "-n", 1000, "-s", 4096,
                                    env={"UROCE_CAPTURE": "/dev/full"})
    for process in server, client:
        process.done()
        lines = [line for line in process.errors.splitlines() if line.startswith("uroce: ")]
        assert lines == ["uroce: the capture ends, the program goes on: /dev/full: "
                         "No space left on device"]


def test_small_disk(loopback):
    """A file system that fills up during the run: the same line, and a complete file."""
    may_mount = ["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"]
    if not shutil.which("unshare") or subprocess.run(may_mount, stderr=subprocess.DEVNULL,
                                                     check=False).returncode:
        pytest.skip("nobody may mount here")
    # Each program has its own mount namespace, in which its file is checked as well.
    script = """mount -t tmpfs -o size=256k none "$0" && "$@" &&
        [ $(stat -c %s "$0/x.pcapng") -gt 100000 ] && capinfos "$0/x.pcapng" > /dev/null"""
    folder = loopback.scratch.file("small")
    os.mkdir(folder)
    server, client = harness.start_pair(
        loopback, ("unshare", "-m", "sh", "-c", script, folder, "ib_send_bw", "-d", "{device}",
                   "-F", "-n", 1000, "-s", 4096),
        env={"UROCE_CAPTURE": f"{folder}/x.pcapng"})
    for process in server, client:
        process.done()
        lines = [line for line in process.errors.splitlines() if line.startswith("uroce: ")]
        assert lines == ["uroce: the capture ends, the program goes on: "
                         f"{folder}/x.pcapng: No space left on device"]


def test_one_file_for_two(loopback):
    """A second process with the same file fails, because it would overwrite the first one's."""
    name = loopback.scratch.file("pcapng")
    first = verbs_peer.VerbsPeer(loopback, env={"UROCE_CAPTURE": name})
    first.open("uroce_lo", 0)
    second = loopback.run("ibv_devinfo", "-d", "uroce_lo", env={"UROCE_CAPTURE": name})
    assert second.popen.returncode != 0 and "another process captures into it" in second.errors
    first.end()
    captured.File(name)


def ask(place, pid, file, **options):
    return place.start(os.path.join(place.scratch.bin, "uroce-stat"), "--capture", pid, file,
                       **options)


def test_asked_for(loopback):
    """A capture is begun and ended by uroce-stat while the process runs, twice, and by only one
    uroce-stat at a time."""
    end, other = talk_pair(loopback)
    for writes in 3, 5:
        assert end.do("write") == verbs_peer.SUCCESS
        prefix = loopback.scratch.file("asked")
        asker = ask(loopback, end.pid, prefix + ".%p")
        asker.await_words("has begun")
        second = ask(loopback, end.pid, loopback.scratch.file("pcapng"))
        assert second.wait() == 1 and "already" in second.errors, second
        for _ in range(writes):
            assert end.do("write") == verbs_peer.SUCCESS
        quiet_stat(loopback)
        asker.kill(signal.SIGINT)
        file = captured.File(f"{prefix}.{end.pid}")
        sent = [p for p in file.went(captured.OUT) if captured.opcode(p) == 0x0A]
        assert len({captured.psn(p) for p in sent}) == writes
        assert f"{len(file.packets)} packets captured, 0 missing" in asker.errors, asker
    assert end.do("write") == verbs_peer.SUCCESS
    for one in end, other:
        one.end()


def test_asker_goes(loopback):
    """A killed uroce-stat leaves a complete file, and the process stops capturing."""
    end, other = talk_pair(loopback)
    name = loopback.scratch.file("pcapng")
    asker = ask(loopback, end.pid, name + ",snaplen=100")
    asker.await_words("has begun")
    assert end.do("write") == verbs_peer.SUCCESS
    asker.kill(signal.SIGKILL)
    until = time.monotonic() + harness.PATIENCE
    while not captured.File(name).statistics and time.monotonic() < until:
        time.sleep(0.01)
    size = os.path.getsize(name)
    assert end.do("write") == verbs_peer.SUCCESS
    quiet_stat(loopback)
    assert os.path.getsize(name) == size and captured.File(name).packets
    for one in end, other:
        one.end()


def test_who_may_ask(loopback):
    harness.need_root()
    end = verbs_peer.start(loopback)
    name = loopback.scratch.file("pcapng")
    stranger = ask(loopback, end.pid, name, user=harness.NOBODY)
    assert stranger.wait() == 1 and "no uroce process of yours" in stranger.errors
    assert not os.path.exists(name)
    for file, code, part in (("/nonexistent/x", 1, "No such file"), ("x,ring=2x1M", 1, "ring="),
                             ("x,snaplen=1", 2, "snaplen=1"), ("", 2, "the name of a file")):
        wrong = ask(loopback, end.pid, file)
        assert wrong.wait() == code and part in wrong.errors, wrong
    end.end()


def test_run_option(loopback):
    """uroce-run sets the variable.  With the file -, standard output contains only the packets, and
    the output of the program goes to standard error."""
    run = os.path.join(loopback.scratch.bin, "uroce-run")
    server, client = harness.start_pair(
        loopback, [run, "--capture", "-,snaplen=128", "ibv_rc_pingpong", "-d", "{device}", "-g",
                   loopback.gid_index(4), "-n", 10])
    for process in client, server:
        process.done()
        assert "10 iters" in process.errors
        assert len(captured.File(process.out_path).packets) > 20
    alone = loopback.run(run, "--capture")
    assert alone.popen.returncode == 2 and "usage" in alone.errors
