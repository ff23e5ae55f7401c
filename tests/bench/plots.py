# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Three pictures over the size of messages, by gnuplot: latency, bandwidth, message rate."""
import os
import shutil
import subprocess

from measures import SWEEP_SIZES, sweep_name

LATENCY = [("UDP", "raw UDP"), ("TCP", "TCP"), ("ib_send_lat", "ib_send_lat"),
           ("ib_write_lat", "ib_write_lat"), ("ib_read_lat", "ib_read_lat (whole round trip)")]
STREAM = [("UDP", "raw UDP"), ("TCP", "TCP"), ("ib_send_bw", "ib_send_bw"),
          ("ib_write_bw", "ib_write_bw"), ("ib_read_bw", "ib_read_bw")]

HEAD = """set terminal pngcairo size 900,600 font ",11"
set output "{output}"
set title "{title}"
set xlabel "bytes of a message"
set ylabel "{unit}"
set logscale x 2
set logscale y
set format x "%.0b%B"
set grid
set key left top
"""


def names():
    """Every measure that the pictures need."""
    return [sweep_name(series, what, size) for what, lines in (("latency", LATENCY),
                                                               ("stream", STREAM))
            for series, _ in lines for size in SWEEP_SIZES]


def _points(results, series, what, value):
    points = []
    for size in SWEEP_SIZES:
        median = results.median(sweep_name(series, what, size))
        if median is not None:
            points.append((size, value(median, size)))
    return points


def _script(output, title, unit, curves):
    """gnuplot's program with the data inside."""
    lines, data = [], []
    for name, points in curves:
        lines.append(f"'-' using 1:2 with linespoints linewidth 2 title '{name}' noenhanced")
        data += [f"{size} {value}" for size, value in points] + ["e"]
    return (HEAD.format(output=output, title=title, unit=unit) + "plot " + ", ".join(lines) +
            "\n" + "\n".join(data) + "\n")


def draw(folder, results):
    """The paths of what was drawn."""
    if not shutil.which("gnuplot"):
        print("no plots: gnuplot is not installed")
        return []
    pictures = (
        ("latency", "Half round trip over size (median)", "us", LATENCY, lambda v, _: v),
        ("bandwidth", "Bandwidth over size", "GB/s", STREAM, lambda v, _: v),
        ("rate", "Messages over size", "M/s", STREAM, lambda v, size: v * 1e3 / size),
    )
    drawn = []
    for name, title, unit, lines, value in pictures:
        what = "latency" if lines is LATENCY else "stream"
        curves = [(text, _points(results, series, what, value)) for series, text in lines]
        curves = [(text, points) for text, points in curves if points]
        if not curves:
            continue
        path = os.path.join(folder, name + ".png")
        subprocess.run(["gnuplot"], input=_script(path, title, unit, curves), text=True, check=True)
        drawn.append(path)
    return drawn
