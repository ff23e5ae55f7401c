# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""All measures by name.  Each call of a measure measures once and returns one number."""
import concurrent.futures
import dataclasses
import tempfile
from typing import Callable

import host
import instructions
import programs

# Duration of a stream in seconds; the numbers of messages of latencies take about as long.
SECONDS = {False: 1, True: 1}
RAW_SECONDS = {False: 0.5, True: 0.2}
LATENCY_MESSAGES = {False: 20000, True: 3000}
EVENT_MESSAGES = {False: 5000, True: 1000}
HABIT_EXCHANGES = {False: 3000, True: 300}
MANY = 10000
MOST = 65536  # queue pairs that a device has
HANDLES = 100000
CONNECTS = {False: 1000, True: 200}
AT_ONCE = 1000
MORE_AT_ONCE = 10000
FEW_ENTRIES, MORE_ENTRIES = 16, 64
PAIRS = 4
# WRITE's headers and ICRC around each packet's payload: BTH 12, RETH 16, ICRC 4.
HEADERS = 32
MTU = 4096
MAX_RUN_PACKETS = 128
MAX_RUN_BYTES = 65507
SMALL = 2
WIRE_SMALL = SMALL + HEADERS - 2
MEBI = 1 << 20
# Suffix of the names of measures whose processes use shared memory.
SHM = ", shm"
SWEEP_SIZES = (8, 64, 512, 4096, 16384, 65536, 262144, 1048576)


@dataclasses.dataclass(frozen=True)
class Measure:
    """run(quick) measures, in the short form if quick, and returns a number in the unit."""
    name: str
    unit: str
    run: Callable[[bool], float]
    settings: tuple = ()
    shm: bool = False

    def once(self, quick):
        for setting in self.settings:
            if not host.knows_setting(setting):
                raise host.Skipped(f"this build does not know {setting}")
        with host.settings({"UROCE_SHM": "on"} if self.shm else {}):
            return self.run(quick)


ALL = {}


def _add(name, unit, run, settings=()):
    assert name not in ALL
    ALL[name] = Measure(name, unit, run, tuple(settings))


def _add_both(name, unit, run, settings=()):
    """Add a measure twice: through sockets, and through shared memory."""
    _add(name, unit, run, settings)
    ALL[name + SHM] = Measure(name + SHM, unit, run, (*settings, "UROCE_SHM"), shm=True)


def _latency(program, *arguments):
    return lambda quick: programs.perftest(program, *arguments, "-n",
                                           LATENCY_MESSAGES[quick])["typical"]


def _perftest_stream(program, key, scale, *arguments, timeout=30, **kwargs):
    # A margin of 0: the whole of the duration counts.
    return lambda quick: programs.perftest(program, *arguments, "-D", SECONDS[quick], "-f", 0,
                                           timeout=timeout, **kwargs)[key] / scale


def _bandwidth(program, size, *arguments, **kwargs):
    return _perftest_stream(program, "bytes_per_s", 1e9, "-s", size, *arguments, **kwargs)


def _rate(program, size, *arguments, **kwargs):
    return _perftest_stream(program, "per_s", 1e6, "-s", size, *arguments, **kwargs)


def _captured_rate(program, size):
    """The rate while both processes capture the beginning of each packet into files."""
    def once(quick):
        with tempfile.TemporaryDirectory() as folder, \
                host.settings({"UROCE_CAPTURE": f"{folder}/%p.pcapng,snaplen=128"}):
            return _rate(program, size)(quick)
    return once


def _raw_latency(program, size, *options):
    return lambda quick: programs.raw(program, "pingpong", "--size", size, "--seconds",
                                      RAW_SECONDS[quick], *options)["p50_us"]


def _packets(size):
    """Wire size of a packet, and packets per system call, for messages of this size."""
    wire = min(size, MTU) + HEADERS
    return wire, min(MAX_RUN_PACKETS, MAX_RUN_BYTES // wire)


def _udp_stream(size, *options, run=None):
    """Payload in GB/s, without headers, of bursts of run packets (default: full bursts)."""
    wire, full = _packets(size)
    run = run or full

    def once(quick):
        report = programs.raw("floor", "stream", "--size", wire, "--run", run, "--seconds",
                              RAW_SECONDS[quick], *options)
        return report["units_per_s"] * (wire - HEADERS) / 1e9
    return once


def _tcp_stream(size, key, scale, **kwargs):
    """The better result of spinning and sleeping processes; the size decides which is better."""
    def once(quick):
        options = ["--size", size, "--seconds", RAW_SECONDS[quick]]
        return max(programs.raw("tcp", "stream", *options, **kwargs)[key],
                   programs.raw("tcp", "stream", *options, "--blocking", **kwargs)[key]) / scale
    return once


def _many_qps_seconds(_):
    report = programs.many_qps(MANY, FEW_ENTRIES)
    return report["create_s"] + report["rts_s"]


def _memory_per_qp(_):
    """KiB of a queue pair without queue entries, extrapolated from two numbers of entries."""
    few = programs.many_qps(MANY, FEW_ENTRIES)
    more = programs.many_qps(MANY, MORE_ENTRIES)
    worst = 0
    for kind in ("data_per_qp", "resident_per_qp"):
        for_one = (more[kind] - few[kind]) / (MORE_ENTRIES - FEW_ENTRIES)
        worst = max(worst, few[kind] - for_one * FEW_ENTRIES)
    return worst / 1024


def _idle(what):
    return lambda quick: programs.idle(what, settle=0.5, seconds=1 if quick else 3)


def _pairs(count, program, key, scale, *arguments):
    """The sum over several pairs at once; perftest's margins let their measurements overlap."""
    def one(_):
        return programs.perftest(program, *arguments, "-D", 4, "-f", 1, timeout=60)[key] / scale

    def once(_):
        with concurrent.futures.ThreadPoolExecutor(count) as pool:
            return sum(pool.map(one, range(count)))
    return once


def _add_references():
    wire, run = _packets(MTU)
    _add("UDP half round trip, spinning", "us", _raw_latency("floor", WIRE_SMALL))
    _add("UDP half round trip, blocking", "us", _raw_latency("floor", WIRE_SMALL, "--blocking"))
    _add("TCP half round trip, spinning", "us", _raw_latency("tcp", SMALL))
    _add("TCP half round trip, blocking", "us", _raw_latency("tcp", SMALL, "--blocking"))
    _add(f"UDP stream, {run} x {wire} B", "GB/s", _udp_stream(MTU))
    _add("UDP stream from 64 MiB", "GB/s", _udp_stream(MTU, "--region", 64 * MEBI))
    # An upper limit of WRITE and SEND in uroce, which sends a WRITE of 64 KiB in two calls.
    for packets in (run, 8):
        _add(f"UDP stream with ICRC and copy, {packets} x {wire} B", "GB/s",
             _udp_stream(MTU, "--work", run=packets))
    _add("UDP stream, 128 x 40 B", "M/s",
         lambda quick: _udp_stream(8)(quick) * 1e3 / 8)
    _add("TCP stream, 1 MiB", "GB/s", _tcp_stream(MEBI, "bytes_per_s", 1e9))
    _add("TCP stream, 8 B", "M/s", _tcp_stream(8, "units_per_s", 1e6))
    _add("TCP stream over veth, 1 MiB", "GB/s", _tcp_stream(MEBI, "bytes_per_s", 1e9, veth=True))


def _add_latencies():
    for verb in ("send", "write", "read"):
        _add_both(f"ib_{verb}_lat, 2 B", "us", _latency(f"ib_{verb}_lat", "-s", SMALL))
    _add_both("ib_atomic_lat", "us", _latency("ib_atomic_lat"))
    _add_both("ib_send_lat -e, 2 B", "us",
         lambda quick: programs.perftest("ib_send_lat", "-e", "-s", SMALL, "-n",
                                         EVENT_MESSAGES[quick])["typical"])
    _add_both("ibv_rc_pingpong -e, 2 B", "us",
         lambda quick: programs.pingpong("-e", "-s", SMALL, "-n", EVENT_MESSAGES[quick]))


def _add_bandwidths():
    for verb, size, text in (("write", 65536, "64 KiB"), ("write", MEBI, "1 MiB"),
                             ("send", 65536, "64 KiB"), ("read", 65536, "64 KiB")):
        _add_both(f"ib_{verb}_bw, {text}", "GB/s", _bandwidth(f"ib_{verb}_bw", size, "-m", MTU))
    _add("ib_write_bw over veth, MTU 1024", "GB/s",
         _bandwidth("ib_write_bw", 65536, "-m", 1024, veth=True))
    for count, timeout in ((64, 60), (1024, 120)):
        _add_both(f"ib_write_bw -q {count}, 64 KiB", "GB/s",
             _bandwidth("ib_write_bw", 65536, "-q", count, timeout=timeout))
    _add("ib_write_bw, 64 KiB, 1 % loss", "GB/s",
         _bandwidth("ib_write_bw", 65536, env={"UROCE_FAULT": "drop=0.01,seed=1"}))
    _add("ib_write_bw, 64 KiB, default buffers", "GB/s",
         _bandwidth("ib_write_bw", 65536, env={"UROCE_RECEIVE_BUFFER": "212992"}),
         ["UROCE_RECEIVE_BUFFER"])


def _add_rates():
    _add_both("ib_write_bw, 8 B", "M/s", _rate("ib_write_bw", 8))
    _add_both("ib_write_bw -l 64, 8 B", "M/s", _rate("ib_write_bw", 8, "-l", 64))
    _add_both("ib_send_bw, 8 B", "M/s", _rate("ib_send_bw", 8))
    _add_both("ib_send_bw, 64 B", "M/s", _rate("ib_send_bw", 64))
    for program, size in (("ib_write_bw", 8), ("ib_send_bw", 64)):
        _add_both(f"{program}, {size} B, captured", "M/s", _captured_rate(program, size),
                  ["UROCE_CAPTURE"])
    _add_both("ib_send_bw, 64 B, no credits", "M/s",
         _rate("ib_send_bw", 64, env={"UROCE_CREDITS": "off"}), ["UROCE_CREDITS"])


def _add_the_rest():
    _add(f"{MANY} queue pairs to RTS", "s", _many_qps_seconds)
    _add(f"{MOST} queue pairs destroyed", "s",
         lambda _: programs.many_qps(MOST, FEW_ENTRIES)["destroy_s"])
    _add(f"{HANDLES} address handles made and destroyed", "s",
         lambda _: programs.many_handles(HANDLES))
    _add("memory of a queue pair", "KiB", _memory_per_qp)
    _add("idle, device open", "%", _idle("open"))
    _add("idle, waiting for an event", "%", _idle("event"))
    for count in (1, PAIRS):
        _add_both(f"ib_send_bw, 64 KiB, pairs: {count}", "GB/s",
             _pairs(count, "ib_send_bw", "bytes_per_s", 1e9, "-s", 65536))
        _add_both(f"ib_send_lat, 2 B, pairs: {count}", "k/s",
             _pairs(count, "ib_send_lat", "tps", 1e3, "-s", SMALL))


def _habit(what, think_us):
    return lambda quick: programs.habit(what, think_us, HABIT_EXCHANGES[quick])


HABITS = {
    "WRITE, spin on memory": ("memory", 0),
    "WRITE, spin on memory, answer after 100 us": ("memory", 100),
    "WRITE to a program that computes 300 us between polls": ("compute", 300),
    "SEND, arm, poll, block, answer after 100 us": ("block", 100),
}


def _add_habits():
    for name, (what, think_us) in HABITS.items():
        _add_both(name, "us", _habit(what, think_us))


THREAD_WORKLOADS = {
    "WRITE, 8 B": ("write8", "M/s", 1e6),
    "WRITE, 64 KiB": ("write64k", "GB/s", 1e9 / 65536),
    "SEND, 64 KiB": ("send64k", "GB/s", 1e9 / 65536),
    "SEND and back, 2 B": ("rtt", "k/s", 1e3),
}
THREAD_UNITS = (2, 4, 8)


def threads_name(workload, units, kind):
    return f"{workload}, {units} {kind}"


def _add_threads():
    """Total rates of simultaneous streams of threads and of processes."""
    for name, (workload, unit, scale) in THREAD_WORKLOADS.items():
        for units in THREAD_UNITS:
            for kind in ("threads", "contexts", "processes"):
                _add_both(threads_name(name, units, kind), unit,
                          lambda quick, args=(workload, units, kind), scale=scale:
                          programs.threads(*args, RAW_SECONDS[quick]) / scale)


def _connect_less_trips(quick):
    """Time to connect without the trips of three messages, each of which wakes a thread."""
    trip = _raw_latency("floor", WIRE_SMALL, "--blocking")(quick)
    return programs.connect("rdma", "one", CONNECTS[quick]) - 3 * trip


def _add_connects():
    _add("connect, less 3 one-way trips", "us", _connect_less_trips)
    for how in ("rdma", "tcp"):
        name = "TCP connect" if how == "tcp" else "connect"
        _add(name, "us", lambda quick, how=how: programs.connect(how, "one", CONNECTS[quick]))
        _add(f"{name}, {AT_ONCE} at once", "s",
             lambda _, how=how: programs.connect(how, "many", AT_ONCE) / 1e6)
    _add(f"connect, {MORE_AT_ONCE} at once", "s",
         lambda _: programs.connect("rdma", "shared", MORE_AT_ONCE) / 1e6)


def _add_instructions():
    """Instructions per message, and per round trip on either side."""
    write = ("ib_write_bw", (2000, 12000), "-s", 8)
    latency = ("ib_send_lat", (1000, 5000), "-s", SMALL)
    for name, side, command in (("ib_write_bw, 8 B", 1, write),
                                ("ib_send_lat, 2 B", 1, latency),
                                ("ib_send_lat, 2 B, server", 0, latency)):
        _add(f"instructions of {name}", "", lambda quick, side=side, command=command:
             instructions.of(*command)[side].busy())
        _add(f"empty polls in {name}", "", lambda quick, side=side, command=command:
             instructions.of(*command)[side].idle_polls)
        _add(f"helper thread in {name}", "", lambda quick, side=side, command=command:
             instructions.of(*command)[side].helper)
    _add("instructions of an empty poll", "", lambda _: instructions.idle_poll())
    _add("instructions of the least round trip", "", lambda _: instructions.least())


def _sweep_messages(size, quick):
    """Number of messages: enough for a median, and few enough to take a second."""
    return max(200, min(LATENCY_MESSAGES[quick], 200 * MEBI // size))


def _sweep_latency(verb, size):
    return lambda quick: programs.perftest(f"ib_{verb}_lat", "-s", size, "-n",
                                           _sweep_messages(size, quick))["typical"]


def sweep_name(series, what, size):
    return f"{what} {series} {size}"


def _add_sweep():
    for size in SWEEP_SIZES:
        for verb in ("send", "write", "read"):
            _add_both(sweep_name(f"ib_{verb}_lat", "latency", size), "us",
                      _sweep_latency(verb, size))
            _add_both(sweep_name(f"ib_{verb}_bw", "stream", size), "GB/s",
                      _bandwidth(f"ib_{verb}_bw", size))
        _add(sweep_name("UDP", "latency", size), "us", _raw_latency("floor", size + HEADERS))
        _add(sweep_name("TCP", "latency", size), "us", _raw_latency("tcp", size))
        if size <= MTU:
            _add(sweep_name("UDP", "stream", size), "GB/s", _udp_stream(size))
        _add(sweep_name("TCP", "stream", size), "GB/s", _tcp_stream(size, "bytes_per_s", 1e9))


_add_references()
_add_latencies()
_add_bandwidths()
_add_rates()
_add_the_rest()
_add_habits()
_add_threads()
_add_connects()
_add_instructions()
_add_sweep()
