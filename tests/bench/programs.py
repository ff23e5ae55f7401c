# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Runs programs, our own and pairs of stock ones, and reads their reports."""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

import host
from host import Failed

DEVICE = "uroce_lo"
SERVER_ADDRESS = "127.0.0.1"
GID_INDEX = "0"
START_SECONDS = 20
# perftest counts MiB, see its --help: "MiB=2^20 byte, while Gb=10^9 bits".
PERFTEST_MB = 1 << 20
# The report has six decimals of a rate in millions, and two of MiB/s.
REPORT_TOLERANCE = 0.02


class Process:
    """A running program.  Its output goes to a file, since it may be longer than a pipe holds."""

    def __init__(self, command, cpu, env, netns=None):
        prefix = ["ip", "netns", "exec", netns] if netns else []
        # The programs are killed when this process ends for whatever reason.
        prefix += ["setpriv", "--pdeathsig", "KILL", "taskset", "-c", str(cpu)]
        self.command = command
        self._output = tempfile.TemporaryFile()
        self._popen = subprocess.Popen(prefix + command, env=env, stdin=subprocess.DEVNULL,
                                       stdout=self._output, stderr=subprocess.STDOUT,
                                       start_new_session=True)
        self.pid = self._popen.pid

    def output(self):
        # The program writes at the file's position, so this must not move it.
        size = os.fstat(self._output.fileno()).st_size
        return os.pread(self._output.fileno(), size, 0).decode(errors="replace")

    def running(self):
        return self._popen.poll() is None

    def kill(self):
        if self.running():
            os.killpg(self.pid, signal.SIGKILL)
        self._popen.wait()

    def finish(self, deadline):
        """Wait for the program to succeed and return its output; raises Failed otherwise."""
        try:
            code = self._popen.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.kill()
            raise Failed(f"timed out: {' '.join(self.command)}{self._tail()}") from None
        if code != 0:
            raise Failed(f"exit code {code}: {' '.join(self.command)}{self._tail()}")
        return self.output()

    def _tail(self):
        lines = [line.strip() for line in self.output().splitlines() if line.strip()]
        # perftest complains before the table whose head it has printed already.
        telling = [line for line in lines if re.search("fail|error|unable|cannot", line, re.I)]
        return "".join("\n    " + line[:200] for line in (telling or lines)[-4:])


@contextlib.contextmanager
def started(*args, **kwargs):
    process = Process(*args, **kwargs)
    try:
        yield process
    finally:
        process.kill()


def _wait_until_listening(server, port):
    deadline = time.monotonic() + START_SECONDS
    while not host.listening(server.pid, port):
        if not server.running():
            server.finish(deadline)
            raise Failed(f"ended at once: {' '.join(server.command)}")
        if time.monotonic() > deadline:
            raise Failed(f"does not listen: {' '.join(server.command)}")
        time.sleep(0.02)


def _need(name):
    if not shutil.which(name):
        raise host.Skipped(f"{name} is not installed")


def stock_pair(name, options, arguments, env=(), veth=False, timeout=30, under=((), ())):
    """
    Run a stock program that takes -p PORT and the server's address; returns the client's output.

    options: those of the device, which differ, one list for the server and one for the client.
    under: words in front of either command, of a program that watches it (perf, valgrind).
    """
    _need(name)
    spaces = host.NAMESPACES.require().names if veth else (None, None)
    address = host.NAMESPACES.ADDRESSES[0] if veth else SERVER_ADDRESS
    env = host.environment(env)
    port = host.free_port()
    server_command, client_command = [
        [*watch, name, *own, "-p", str(port), *map(str, arguments)]
        for watch, own in zip(under, options)]
    deadline = time.monotonic() + timeout
    with started(server_command, host.SERVER_CPU, env, spaces[0]) as server:
        _wait_until_listening(server, port)
        with started(client_command + [address], host.CLIENT_CPU, env, spaces[1]) as client:
            output = client.finish(deadline)
        server.finish(deadline)
    return output


def _report_lines(text):
    """The last line that starts with #bytes, and the rows of numbers below it."""
    header, rows = None, []
    for line in text.splitlines():
        if line.strip().startswith("#bytes"):
            header, rows = line, []
        elif header and re.match(r"\s*\d", line):
            rows.append([float(word) for word in line.split()])
        elif header and rows:
            break
    if not rows:
        raise Failed("perftest has printed no report:\n" + text[-500:])
    return header, rows


def _latency(header, row):
    if "t_typical[usec]" in header:
        names = ("bytes", "count", "min", "max", "typical", "mean")
    elif "tps average" in header:
        names = ("bytes", "count", "mean", "tps")
    else:
        raise Failed(f"unknown report of perftest: {header}")
    return dict(zip(names, row))


def _bandwidth(header, row):
    # Releases after 4.5 print MiB/sec; older ones print MB/sec and mean MiB/sec.
    if not re.search(r"BW average\[Mi?B/sec\]", header) or "MsgRate[Mpps]" not in header:
        raise Failed(f"unknown report of perftest: {header}")
    size, count, _, megabytes, rate = row[:5]
    result = {"bytes": size, "count": count, "bytes_per_s": megabytes * PERFTEST_MB,
              "per_s": rate * 1e6}
    # Both columns agree if their units are those that we assume.
    implied = result["per_s"] * size
    if abs(implied - result["bytes_per_s"]) > REPORT_TOLERANCE * result["bytes_per_s"] + 1e4:
        raise Failed(f"the columns of perftest's report disagree: {row}")
    return result


# perftest was preempted too often while it calibrated the clock, and has no figures.
_NO_CLOCK = re.compile(r"^Correlation coefficient r\^2: ", re.MULTILINE)
_TRIES = 3


def perftest(name, *arguments, veth=False, **kwargs):
    """The last line of the report, as a dictionary: us, bytes/s, messages/s."""
    devices = [DEVICE, DEVICE]
    if veth:
        devices = ["uroce_" + i for i in host.NAMESPACES.require().INTERFACES]
    options = [["-d", device, "-x", GID_INDEX, "-F"] for device in devices]
    for _ in range(_TRIES):
        text = stock_pair(name, options, arguments, veth=veth, **kwargs)
        if not _NO_CLOCK.search(text):
            break
    header, rows = _report_lines(text)
    parse = _latency if name.endswith("_lat") else _bandwidth
    return parse(header, rows[-1])


def pingpong(*arguments, timeout=30):
    """ibv_rc_pingpong: half a round trip in us, the mean of all."""
    options = [["-d", DEVICE, "-g", GID_INDEX]] * 2
    text = stock_pair("ibv_rc_pingpong", options, arguments, timeout=timeout)
    found = re.search(r"= ([0-9.]+) usec/iter", text)
    if not found:
        raise Failed("ibv_rc_pingpong has printed no report:\n" + text[-500:])
    return float(found.group(1)) / 2


def raw(name, mode, *options, veth=False, timeout=20):
    """Run bench_NAME, such as bench_floor or bench_tcp, and return its report."""
    command = [host.program(name), mode, "--cpus", f"{host.SERVER_CPU},{host.CLIENT_CPU}"]
    if veth:
        spaces = host.NAMESPACES.require()
        command += ["--netns", ",".join(spaces.names), "--addresses", ",".join(spaces.ADDRESSES)]
    command += [str(option) for option in options]
    with started(command, f"{host.CLIENT_CPU},{host.SERVER_CPU}", host.environment()) as process:
        return json.loads(process.finish(time.monotonic() + timeout))


def connect(how, what, count, timeout=60):
    """Microseconds to connect: median of one after the other, or total of all at once."""
    cpus = f"{host.SERVER_CPU},{host.CLIENT_CPU}"
    command = [host.program("connect"), how, what, cpus, str(count)]
    with started(command, cpus, host.environment()) as process:
        return json.loads(process.finish(time.monotonic() + timeout))["us"]


def habit(what, think_us, count, timeout=60):
    """Mean time of an exchange in us: habits.c."""
    command = [host.program("habits"), DEVICE, what, str(think_us), str(count)]
    with started(command, f"{host.CLIENT_CPU},{host.SERVER_CPU}", host.environment()) as process:
        return json.loads(process.finish(time.monotonic() + timeout))["us"]


def threads(workload, units, kind, seconds, timeout=30):
    """Messages per second of several streams at the same time, on all processors: threads.c."""
    command = [host.program("threads"), DEVICE, workload, str(units), kind, str(seconds)]
    with started(command, f"0-{os.cpu_count() - 1}", host.environment()) as process:
        return float(process.finish(time.monotonic() + timeout))


def many_qps(count, entries, timeout=60):
    command = [host.program("many_qps"), DEVICE, str(count), str(entries)]
    with started(command, host.CLIENT_CPU, host.environment()) as process:
        return json.loads(process.finish(time.monotonic() + timeout))


def many_handles(count, timeout=60):
    """Seconds to create and to destroy this number of address handles."""
    command = [host.program("many_handles"), DEVICE, str(count)]
    with started(command, host.CLIENT_CPU, host.environment()) as process:
        report = json.loads(process.finish(time.monotonic() + timeout))
    return report["make_s"] + report["destroy_s"]


def _cpu_ns(pid):
    """Processor time of all threads of a process."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as file:
            total += int(file.read().split()[0])
    return total


def idle(what, settle, seconds):
    """Percentage of a processor that an idle process uses."""
    command = [host.program("idle"), DEVICE, what]
    with started(command, host.CLIENT_CPU, host.environment()) as process:
        deadline = time.monotonic() + START_SECONDS
        while "ready" not in process.output():
            if not process.running():
                process.finish(deadline)
            if time.monotonic() > deadline:
                raise Failed(f"{command} does not get ready")
            time.sleep(0.02)
        time.sleep(settle)
        before, start = _cpu_ns(process.pid), time.monotonic()
        time.sleep(seconds)
        used, elapsed = _cpu_ns(process.pid) - before, time.monotonic() - start
    return 100 * used / 1e9 / elapsed
