# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Draws three plots over the message size by gnuplot: latency, bandwidth, message rate."""
import os
import shutil
import subprocess

from measures import MTU, SHM, SWEEP_SIZES, sweep_name

LATENCY = [("UDP", "raw UDP"), ("TCP", "TCP"), ("ib_send_lat", "ib_send_lat"),
           ("ib_write_lat", "ib_write_lat"), ("ib_read_lat", "ib_read_lat (whole round trip)"),
           ("ib_send_lat" + SHM, "ib_send_lat, UROCE_SHM=on"),
           ("ib_read_lat" + SHM, "ib_read_lat, UROCE_SHM=on")]
STREAM = [("UDP", "raw UDP"), ("TCP", "TCP"), ("ib_send_bw", "ib_send_bw"),
          ("ib_write_bw", "ib_write_bw"), ("ib_read_bw", "ib_read_bw"),
          ("ib_send_bw" + SHM, "ib_send_bw, UROCE_SHM=on"),
          ("ib_write_bw" + SHM, "ib_write_bw, UROCE_SHM=on")]

HEAD = """set terminal pngcairo size 900,600 font ",11"
set output "{output}"
set title "{title}"
set xlabel "bytes of a message"
set ylabel "{unit}"
set logscale x 2
set logscale y
set format x "%.0b%B"
set grid
set key {key} top
"""


def names():
    """Names of the measures that the plots need."""
    needed = [_measure(series, what, size) for what, lines in (("latency", LATENCY),
                                                               ("stream", STREAM))
              for size in SWEEP_SIZES for series, _ in lines]
    return list(dict.fromkeys(needed))


def _measure(series, what, size):
    # A raw UDP stream has packets but no messages: one of full packets serves all larger sizes.
    if (series, what) == ("UDP", "stream"):
        size = min(size, MTU)
    if series.endswith(SHM):
        return sweep_name(series.removesuffix(SHM), what, size) + SHM
    return sweep_name(series, what, size)


def _points(results, series, what, value):
    points = []
    for size in SWEEP_SIZES:
        median = results.median(_measure(series, what, size))
        if median is not None:
            points.append((size, value(median, size)))
    return points


def _script(output, title, unit, key, curves):
    """A gnuplot script that contains the data."""
    lines, data = [], []
    for name, points in curves:
        lines.append(f"'-' using 1:2 with linespoints linewidth 2 title '{name}' noenhanced")
        data += [f"{size} {value}" for size, value in points] + ["e"]
    head = HEAD.format(output=output, title=title, unit=unit, key=key)
    return head + "plot " + ", ".join(lines) + "\n" + "\n".join(data) + "\n"


def draw(folder, results, subtitle):
    """Draw the plots that there are results for; returns their paths."""
    if not shutil.which("gnuplot"):
        print("no plots: gnuplot is not installed")
        return []
    pictures = (
        ("latency", "half round trip", "us", "left", LATENCY, lambda v, _: v),
        ("bandwidth", "bandwidth", "GB/s", "left", STREAM, lambda v, _: v),
        ("rate", "messages", "millions/s", "right", STREAM, lambda v, size: v * 1e3 / size),
    )
    drawn = []
    for name, title, unit, key, lines, value in pictures:
        what = "latency" if lines is LATENCY else "stream"
        curves = [(text, _points(results, series, what, value)) for series, text in lines]
        curves = [(text, points) for text, points in curves if points]
        if not curves:
            continue
        path = os.path.join(folder, name + ".png")
        script = _script(path, f"{title} ({subtitle})", unit, key, curves)
        subprocess.run(["gnuplot"], input=script, text=True, check=True)
        drawn.append(path)
    return drawn
