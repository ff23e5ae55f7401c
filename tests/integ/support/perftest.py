# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Runs server and client of a perftest program, and checks the report that they print."""
import math
import re

import harness

# Before its report the program measures its processor's clock for a fifth of a second.  If it lost
# the processor too often during that time, it prints this and no figures: 0 MB/s or infinite times.
NO_CLOCK = re.compile(r"Correlation coefficient r\^2: .* < 0\.9")
# A program prints the first remark, and does without inline data, if it does not know our device's
# numbers; the second one if the processor's clock varies.
KNOWN_REMARKS = re.compile(r"Device not recognized to implement inline feature\. Disabling it|"
                           r"Conflicting CPU frequency values detected: .*|" + NO_CLOCK.pattern)
# All other lines that a successful run prints: frames, settings, addresses, figures, and warnings
# about options that do not fit each other.
PRINTED = re.compile(r"[-*]+|\* .* \*|.* Test|MultiCast runs on UD!|Test with events\. .*|"
                     r"(?!error).*\S\s+: \S.*|PCIe relax order: \w+|Warning: .*|"
                     r"(local|remote) address: .*|M?GID ?: .*|#bytes.*|"
                     r"Waiting for client rdma_cm QP to connect|"
                     r"Please run the same command with the IB/RoCE interface IP|"
                     r"((\d[\d.]*|-?inf|-?nan)(\s+|$))+", re.IGNORECASE)
BANDWIDTH = ("ib_send_bw", "ib_write_bw", "ib_read_bw", "ib_atomic_bw")
LATENCY = ("ib_send_lat", "ib_write_lat", "ib_read_lat", "ib_atomic_lat")
ALL = BANDWIDTH + LATENCY
SIZES_OF_ALL = [1 << n for n in range(1, 24)]
MEBI = 1 << 20


def usual_size(program):
    if "atomic" in program:
        return 8
    return 65536 if program in BANDWIDTH else 2


def rows(process):
    """Returns the report's lines of numbers."""
    found = []
    lines = iter(process.output.splitlines())
    for line in lines:
        if line.lstrip().startswith("#bytes"):
            break
    for line in lines:
        words = line.split()
        if not words or not re.fullmatch(r"\d+", words[0]):
            break
        found.append([float(word) for word in words])
    return found


def had_no_clock(process):
    return NO_CLOCK.search(process.said) is not None


def check_bandwidth(row, duration):
    size, _, peak, average, rate = row
    # On a busy machine a report with messages of two bytes may have 0.00 MB/s.
    assert rate > 0, row
    # Average and rate are the same measurement, printed with two and six decimal places.
    assert abs(average * MEBI - size * rate * 1e6) <= 0.01 * MEBI + size, row
    # The program reports no peak unless the number of iterations is fixed.
    assert peak == 0 if duration else peak >= average * 0.99, row


def check_latency(row, duration):
    if duration:
        _, _, average, rate = row
        assert average > 0 and rate > 0, row
        return
    _, _, least, most, typical, average, *_ = row
    assert 0 < least <= typical <= most < math.inf and least <= average <= most, row


def check_report(process, sizes, iterations, duration=False):
    """iterations: number that the report must show; None: any number above 0."""
    found = rows(process)
    assert [row[0] for row in found] == sizes, process
    for row in found:
        assert row[1] == iterations if iterations else row[1] > 0, process
        if had_no_clock(process):
            continue
        if process.command[0].endswith("_bw"):
            check_bandwidth(row, duration)
        else:
            check_latency(row, duration)


def distinct_lines(text):
    return {line.strip() for line in text.splitlines()} - {""}


def check_remarks(process):
    """Checks that all remarks are known.  The output of a program in a guest contains its remarks
    as well."""
    assert all(map(KNOWN_REMARKS.fullmatch, distinct_lines(process.errors))), process
    others = filter(lambda line: not PRINTED.fullmatch(line), distinct_lines(process.output))
    assert all(map(KNOWN_REMARKS.fullmatch, others)), process


def start(place, program, *arguments, **options):
    return harness.start_pair(place, [program, "-d", "{device}", "-F", *arguments], **options)


def finish(server, client):
    for process in client, server:
        process.done()
        check_remarks(process)
