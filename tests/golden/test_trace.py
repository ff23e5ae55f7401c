# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""uroce-trace on all captures: its counts agree with tshark's fields, in every file format, and
malformed files cause at most one line of error.  UROCE_TRACE names the program."""
import collections
import json
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess

import pytest

import check_icrc
import judge_capture

CAPTURES = pathlib.Path(__file__).parent / "captures"
NAMES = sorted(path.stem for path in CAPTURES.glob("*.pcap"))
FIELDS = ("frame.number", "ip.src", "ipv6.src", "infiniband.bth.opcode", "infiniband.bth.destqp",
          "infiniband.bth.psn", "infiniband.bth.a", "infiniband.aeth.syndrome")
RESPONSES = range(0x0D, 0x13)
READ_RESPONSES = range(0x0D, 0x11)
ATOMIC_ACK, ACK, READ = 0x12, 0x11, 0x0C
BEGINS = {0x00, 0x04, 0x05, 0x06, 0x0A, 0x0B, READ, 0x13, 0x14, 0x16, 0x17}
SNAP = 128  # bytes: enough for all headers
LINK_ETHERNET, LINK_RAW, LINK_SLL, LINK_SLL2 = 1, 101, 113, 276
MUTANTS = 60
# One capture of each kind, to be cut to a later part or to one direction.
PARTS = ["cm_write_bw", "rc_atomic_fa", "rc_loss_ack", "rc_loss_read", "rc_loss_request", "rc_rnr",
         "rc_send_ipv6", "srq_send", "uc_send", "ud_send"]


def run(*arguments):
    """Run uroce-trace, which must exit with one of its codes and not by a signal."""
    done = subprocess.run([os.environ["UROCE_TRACE"], *map(str, arguments)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=30)
    assert done.returncode in (0, 1, 2, 3), done
    return done


def trace(path, *arguments):
    done = run("--json", *arguments, path)
    assert done.returncode == 0 and done.stderr == "", done
    return json.loads(done.stdout)


def streams(report):
    return [connection[way] for connection in report["connections"]
            for way in ("a_to_b", "b_to_a")]


def totals(report):
    """Sums of the counts of all streams, without times and maxima."""
    total = collections.Counter()
    for stream in streams(report):
        for name, value in stream.get("counts", {}).items():
            if not name.endswith("_ns") and not name.startswith("most_"):
                total[name] += value
    return total


def broken(report):
    """(rule, times) of violations, except those of MigReq, which rxe never sets."""
    found = [(row["rule"], row["times"]) for row in report["violations"]
             if "MigReq" not in row["what"]]
    return found + [(row["rule"], row["times"]) for stream in streams(report)
                    for row in stream.get("violations", [])]


def frames_of(name):
    return [(when, frame) for when, _, frame, _ in
            check_icrc.read_capture(str(CAPTURES / f"{name}.pcap"))]


def write(path, frames, link=LINK_ETHERNET, snap=1 << 18):
    with open(path, "wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, snap, link))
        for when, frame in frames:
            out.write(struct.pack("<IIII", int(when), round(when % 1 * 1e9) % 10**9,
                                  min(len(frame), snap), len(frame)))
            out.write(frame[:snap])
    return path


def write_pcapng(path, frames):
    """Section header, interface with nanoseconds, enhanced packets."""
    def block(kind, body):
        body += bytes(-len(body) % 4)
        return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)

    with open(path, "wb") as out:
        out.write(block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)))
        out.write(block(1, struct.pack("<HHIHHBxxxHH", LINK_ETHERNET, 0, 0, 9, 1, 9, 0, 0)))
        for when, frame in frames:
            nanoseconds = int(when) * 10**9 + round(when % 1 * 1e9) % 10**9
            out.write(block(6, struct.pack("<IIIII", 0, nanoseconds >> 32, nanoseconds & 0xFFFFFFFF,
                                           len(frame), len(frame)) + frame))
    return path


@pytest.fixture(scope="module")
def reports():
    return {name: trace(CAPTURES / f"{name}.pcap") for name in NAMES}


@pytest.fixture(scope="module")
def dissected(tmp_path_factory):
    """tshark's fields of the RC packets by capture, from a single run for all captures."""
    if not shutil.which("tshark"):
        pytest.skip("tshark is not installed")
    frames, owners = [], []
    for name in NAMES:
        frames += frames_of(name)
        owners += [name] * (len(frames) - len(owners))
    path = write(tmp_path_factory.mktemp("all") / "all.pcap", frames)
    rows = collections.defaultdict(list)
    for number, ipv4, ipv6, opcode, dest, psn, ask, syndrome in \
            judge_capture.run_tshark(str(path), FIELDS):
        opcode = int(opcode, 0)
        if opcode < 0x20:
            rows[owners[int(number) - 1]].append((
                ipv4 or ipv6, opcode, int(dest, 0), int(psn, 0), ask in ("1", "True"),
                int(syndrome, 0) if syndrome else None))
    return rows


def count(rows):
    """The same counts as the program's, computed independently."""
    requests = [row for row in rows if row[1] not in RESPONSES]
    acks = [row[5] for row in rows if row[1] == ACK]
    distinct = {(row[0], row[2], row[3]) for row in requests}
    begun = {(row[0], row[2], row[3]) for row in requests if row[1] in BEGINS}
    return {
        "request_packets": len(requests),
        "ack_requests": sum(row[4] for row in requests),
        "resent_packets": len(requests) - len(distinct),
        "messages": len(begun),
        "acks": sum(syndrome >> 5 == 0 for syndrome in acks),
        "rnr_naks": sum(syndrome >> 5 == 1 for syndrome in acks),
        "sequence_naks": acks.count(0x60),
        "invalid_naks": acks.count(0x61),
        "access_naks": acks.count(0x62),
        "operational_naks": acks.count(0x63),
        "read_responses": sum(row[1] in READ_RESPONSES for row in rows),
        "atomic_responses": sum(row[1] == ATOMIC_ACK for row in rows),
    }


@pytest.mark.parametrize("name", NAMES)
def test_counts_are_those_of_tshark(name, reports, dissected):
    expected, found = count(dissected[name]), totals(reports[name])
    if name == "rc_loss_read":
        # A READ that is repeated in part starts at a PSN that no request had before.
        expected["messages"] = 20
        expected["resent_packets"] = expected["request_packets"] - 20
    assert {key: found[key] for key in expected} == expected


def test_what_is_known_of_the_captures(reports):
    """Numbers of packets from the README of the captures, and properties of single captures."""
    with open(CAPTURES / "README.md", encoding="utf-8") as file:
        rows = dict(re.findall(r"^\| (\w+) \| (\d+) \|", file.read(), re.MULTILINE))
    assert {name: report["packets"] for name, report in reports.items()} == \
        {name: int(rows[name]) for name in NAMES}
    for name, report in reports.items():
        total = totals(report)
        lossless = name not in ("srq_send", "rc_rnr") and not name.startswith("rc_loss")
        assert lossless == (total["resent_packets"] == 0), name
        assert total["orphan_responses"] == total["ghost_acks"] == 0, name
        # rxe reports no credits, so there is no limit.
        assert total["limited"] == total["limit_times"] == 0, name
        assert not any(stream.get("credits_reported") for stream in streams(report)), name
        for row in report["violations"]:
            assert row["rule"] == "S15" and row["times"] == report["packets"], name
    # RNR NAKs of 0.64 ms, each followed by a sequence NAK, which violates rule S4.
    rnr = reports["rc_rnr"]
    assert broken(rnr) == [("S4", 8)]
    counts = rnr["connections"][0]["a_to_b"]["counts"]
    assert counts["rnr_naks"] == 8 and counts["rnr_ns"] >= 8 * 640000
    assert all(broken(report) == [] for name, report in reports.items() if name != "rc_rnr")
    read = totals(reports["rc_loss_read"])
    assert read["read_bytes"] == 20 * 4096 and read["reads"] == 20
    assert totals(reports["rc_read_deep"])["read_bytes"] == 10 * 5001
    assert totals(reports["rc_loss_request"])["late_packets"] > 0
    assert totals(reports["cm_rstream"])["writes_immediate"] > 0
    assert reports["cm_reject"]["connection_manager"] == {"REQ": 1, "REJ": 1}


def test_directions_are_joined(reports):
    """Both directions of an RC connection are joined, with their QPNs, by PSNs or by REQ and REP;
    the number of connections is known from the commands."""
    connections = collections.Counter({"rc_send_pad": 6, "srq_send": 4, "cm_write_bw": 2,
                                       "ud_send": 2, "cm_udaddy": 2, "cm_reject": 0})
    for name, report in reports.items():
        assert len(report["connections"]) == connections.get(name, 1), name
        for connection in report["connections"]:
            by = connection["found_by"]
            if connection["service"] == "RC":
                assert by == ("REQ and REP" if name.startswith("cm_") else "PSNs"), name
                assert connection["a"]["qpn"] and connection["b"]["qpn"], name
    # rxe numbers queue pairs consecutively, at both guests in step in all captures but those of UD.
    pairs = {(c["a"]["qpn"], c["b"]["qpn"]) for c in reports["srq_send"]["connections"]}
    assert pairs == {(0x18 + i, 0x1F + i) for i in range(4)}


def same(left, right):
    return left["connections"] == right["connections"] and \
        left["connection_manager"] == right["connection_manager"]


@pytest.mark.parametrize("name", ["rc_rnr", "rc_send_ipv6", "cm_rping"])
def test_form_of_the_file_does_not_matter(name, reports, tmp_path):
    frames = frames_of(name)
    kind = frames[0][1][12:14]
    sll = struct.pack(">HHHQ", 0, 1, 6, 0) + kind
    sll2 = kind + struct.pack(">HIHBB", 0, 1, 1, 0, 6) + bytes(8)
    forms = {
        "vlan": (LINK_ETHERNET, lambda f: f[:12] + b"\x81\x00\x00\x07" + f[12:]),
        "two tags": (LINK_ETHERNET, lambda f: f[:12] + b"\x88\xa8\0\1\x81\0\0\7" + f[12:]),
        "padded": (LINK_ETHERNET, lambda f: f + bytes(7)),
        "cooked": (LINK_SLL, lambda f: sll + f[14:]),
        "cooked 2": (LINK_SLL2, lambda f: sll2 + f[14:]),
        "raw": (LINK_RAW, lambda f: f[14:]),
    }
    # Floats do not hold nanoseconds exactly, so all files are written from the same floats.
    original = trace(write(tmp_path / "original.pcap", frames))
    for form, (link, change) in forms.items():
        path = write(tmp_path / "form.pcap", [(t, change(frame)) for t, frame in frames], link)
        assert same(trace(path), original), form
    assert same(trace(write_pcapng(tmp_path / "form.pcapng", frames)), original)
    # A MAD is longer than SNAP.
    snap = 400 if name.startswith("cm_") else SNAP
    short = trace(write(tmp_path / "short.pcap", frames, snap=snap))
    assert same(short, original)
    assert short["icrc_unchecked"] == sum(len(frame) > snap for _, frame in frames)
    with open(tmp_path / "form.pcapng", "rb") as file:
        done = subprocess.run([os.environ["UROCE_TRACE"], "--json", "-"], stdin=file,
                              stdout=subprocess.PIPE, check=True)
    assert same(json.loads(done.stdout), original)


@pytest.mark.parametrize("name", PARTS)
def test_begins_in_the_middle(name, tmp_path):
    """No false violation is reported for a capture without its beginning or one direction."""
    frames = frames_of(name)
    known = {rule for rule, _ in broken(trace(CAPTURES / f"{name}.pcap"))}
    for part in frames[len(frames) // 3:], frames[7:]:
        if part:
            report = trace(write(tmp_path / "part.pcap", part))
            assert {rule for rule, _ in broken(report)} <= known
    ip = 14 + (12 if frames[0][1][12:14] == b"\x08\x00" else 8)
    source = frames[0][1][ip:ip + 4 if ip == 26 else ip + 16]
    ways = [[f for f in frames if (f[1][ip:ip + len(source)] == source) == forward]
            for forward in (True, False)]
    whole, seen = totals(trace(CAPTURES / f"{name}.pcap")), collections.Counter()
    for part in filter(None, ways):
        report = trace(write(tmp_path / "part.pcap", part))
        assert {rule for rule, _ in broken(report)} <= {"S4"}
        seen += totals(report)
    keys = {"request_packets", "acks", "rnr_naks", "sequence_naks", "read_responses", "messages"}
    # Without responses, a READ that is repeated in part looks like a new one.
    for key in keys - ({"messages"} if name == "rc_loss_read" else set()):
        assert seen[key] == whole[key], key


def test_one_queue_pair(reports):
    report = trace(CAPTURES / "rc_send_pad.pcap", "--qp", "0x1e")
    assert [c["a"]["qpn"] for c in report["connections"]] == [0x1E]
    assert report["connections"][0] == reports["rc_send_pad"]["connections"][2]


def test_burst_is_cut(tmp_path):
    """Packets in one datagram, as captured on the loopback interface after UDP_SEGMENT."""
    frames = frames_of("rc_send_long")
    packets = [check_icrc.Packet(LINK_ETHERNET, frame) for _, frame in frames]
    middles = [p for p in packets if p.ok and p.frame[p.udp + 8] == 0x01][:5]
    payload = b"".join(p.frame[p.udp + 8:p.end] for p in middles)
    first = middles[0]
    header = bytearray(first.frame[:first.udp + 8])
    struct.pack_into(">H", header, first.ip + 2, first.udp - first.ip + 8 + len(payload))
    struct.pack_into(">H", header, first.udp + 4, 8 + len(payload))
    report = trace(write(tmp_path / "burst.pcap", [(1.0, bytes(header) + payload)]))
    # The IPv4 identifications of these packets are consecutive, as those of a burst.
    assert (report["frames"], report["packets"], report["bursts"]) == (1, 5, 1)
    assert totals(report)["request_packets"] == 5 and broken(report) == []
    cut = trace_with(write(tmp_path / "cut.pcap", [(1.0, bytes(header) + payload)], snap=SNAP), 3)
    assert cut["cut_bursts"] == 1


def trace_with(path, code):
    done = run("--json", path)
    assert done.returncode == code, done
    return json.loads(done.stdout)


def test_wrong_icrc_tells_nothing(tmp_path):
    frames = frames_of("rc_send")
    when, frame = frames[10]
    frames[10] = when, frame[:-20] + bytes([frame[-20] ^ 1]) + frame[-19:]
    report = trace(write(tmp_path / "wrong.pcap", frames))
    assert [(row["rule"], row["packets"]) for row in report["violations"]
            if row["rule"] == "S14"] == [("S14", [11])]
    assert sum(totals(report)[key] for key in ("request_packets", "acks")) == len(frames) - 1


def test_order_of_time(tmp_path):
    """Packets of a badly merged file are processed in order of time."""
    frames = frames_of("rc_loss_request")
    mixed = frames[:]
    random.Random(1).shuffle(mixed)
    left = totals(trace(write(tmp_path / "mixed.pcap", mixed)))
    right = totals(trace(write(tmp_path / "right.pcap", frames)))
    assert left == right


def test_timeline_has_every_packet(dissected):
    for name in "rc_rnr", "rc_loss_read", "cm_rping":
        lines = run("--timeline", CAPTURES / f"{name}.pcap").stdout.splitlines()
        names = lines[0].split(",")
        rows = [dict(zip(names, line.split(","))) for line in lines[1:]]
        packets = [int(row["packet"]) for row in rows if row["event"] != "violation"]
        assert len(packets) == len(set(packets)) == len(dissected[name])


@pytest.mark.parametrize("arguments", [(), ("a", "b"), ("--nope", "x"), ("--qp", "x", "y"),
                                       ("--qp", "0x1000000", "y"), ("--plot", "x.bmp", "y"),
                                       ("--from", "soon", "y"), ("--to", "-1", "y"),
                                       ("--json", "--timeline", "y"), ("--json", "--summary", "y")])
def test_wrong_use(arguments):
    done = run(*arguments)
    assert done.returncode == 2 and done.stdout == "" and "uroce-trace" in done.stderr


def test_help():
    done = run("--help")
    assert done.returncode == 0 and done.stderr == ""
    for word in "--summary", "--json", "--timeline", "--plot", "--qp", "--from", "--to":
        assert word in done.stdout


def test_unreadable_files(tmp_path):
    """One line that names the file."""
    whole = (CAPTURES / "rc_send.pcap").read_bytes()
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "text").write_bytes(b"no capture at all, but some text\n" * 9)
    (tmp_path / "header").write_bytes(whole[:20])
    (tmp_path / "short").write_bytes(whole[:-5])
    write(tmp_path / "usb", [], link=189)
    for name in "empty", "text", "header", "short", "usb", "nothere":
        done = run(tmp_path / name)
        assert done.returncode == 1, done
        assert done.stderr.startswith(f"uroce-trace: {tmp_path / name}: "), done
        assert done.stderr.count("\n") == 1, done
        # The packets of a truncated file are reported nevertheless.
        assert bool(done.stdout) == (name == "short")
    done = run(write(tmp_path / "none", []))
    assert done.returncode == 3 and "no packet of RoCEv2" in done.stderr
    if os.path.exists("/dev/full"):
        with open("/dev/full", "wb") as full:
            code = subprocess.run([os.environ["UROCE_TRACE"], CAPTURES / "rc_send.pcap"],
                                  stdout=full, stderr=subprocess.PIPE).returncode
        assert code == 1


def test_hostile_files(tmp_path):
    """Random bytes are changed, among them those of lengths and numbers."""
    chance = random.Random(7)
    interesting = [0, 1, 0x7F, 0x80, 0xFF]
    for number in range(MUTANTS):
        frames = frames_of(chance.choice(NAMES))[:40]
        write(tmp_path / "base", frames, snap=chance.choice([60, 90, 1 << 18]))
        data = bytearray((tmp_path / "base").read_bytes())
        if number % 2:
            write_pcapng(tmp_path / "base", frames)
            data = bytearray((tmp_path / "base").read_bytes())
        for _ in range(chance.randrange(1, 12)):
            at = chance.randrange(24 if chance.random() < 0.9 else 0, len(data))
            data[at] = chance.choice(interesting + [chance.randrange(256)])
        (tmp_path / "mutant").write_bytes(data)
        done = run("--timeline" if number % 3 else "--json", tmp_path / "mutant")
        assert done.stderr.count("\n") <= 1, done


def test_plot(tmp_path):
    done = run("--plot", tmp_path / "it's.gp", CAPTURES / "rc_rnr.pcap")
    assert done.returncode == 0 and done.stdout == done.stderr == "", done
    commands = (tmp_path / "it's.gp").read_text()
    assert "title 'RNR NAK'" in commands and "title 'acknowledged'" in commands
    assert "credit limit" not in commands  # rxe reports none
    if shutil.which("gnuplot"):
        done = run("--plot", tmp_path / "it's.png", CAPTURES / "rc_rnr.pcap")
        assert done.returncode == 0 and done.stderr == "", done
        assert (tmp_path / "it's.png").read_bytes().startswith(b"\x89PNG")
    done = run("--plot", tmp_path / "no" / "folder.gp", CAPTURES / "rc_rnr.pcap")
    assert done.returncode == 1 and "folder.gp" in done.stderr
