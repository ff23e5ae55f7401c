# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Prints the table of results, and writes the same as JSON."""
import json
import os
import statistics

import measures

# A figure is marked if others used more than this fraction of a processor.
FOREIGN_LIMIT = 0.1
MARK = "~"


class Results:
    """Results of each measure, round by round."""

    def __init__(self):
        self.values = {}
        self.foreign = {}
        self.failed = {}
        self.skipped = {}

    def add(self, name, value, foreign):
        self.values.setdefault(name, []).append(value)
        self.foreign.setdefault(name, []).append(foreign)

    def median(self, name):
        return statistics.median(self.values[name]) if name in self.values else None

    def disturbed(self, name):
        return name in self.foreign and statistics.median(self.foreign[name]) > FOREIGN_LIMIT

    def why_missing(self, name):
        if name in self.skipped:
            return "skipped: " + self.skipped[name]
        return "FAILED, see above"


def figure(value, unit):
    """The value with three significant digits, and never with an exponent."""
    digits = 0
    while 0 < value * 10 ** digits < 99.5 and digits < 4:
        digits += 1
    return f"{value:.{digits}f} {unit}"


def judge(target, results):
    """Returns a target's row: the bound, the measured value, and the verdict."""
    row = {"target": target.measure, "wanted": target.wanted(), "measured": None,
           "reference": None, "ratio": None, "met": None}
    missing = [name for name in target.measures() if results.median(name) is None]
    if missing:
        return {**row, "verdict": results.why_missing(missing[0])}
    row["measured"] = results.median(target.measure)
    row["reference"] = results.median(target.reference) if target.reference else None
    row["ratio"] = target.ratio(row["measured"], row["reference"])
    row["met"] = target.met(row["ratio"])
    row["verdict"] = "met" if row["met"] else "NOT MET"
    row["disturbed"] = any(results.disturbed(name) for name in target.measures())
    return row


def _table_line(row):
    unit = measures.ALL[row["target"]].unit
    measured = figure(row["measured"], unit) if row["measured"] is not None else ""
    reference = figure(row["reference"], unit) if row["reference"] is not None else ""
    ratio = f"{row['ratio']:.2f}" if row["reference"] is not None else ""
    mark = MARK if row.get("disturbed") else " "
    return (f"{row['target']:37} {measured:>11} {reference:>11} {ratio:>6} "
            f"{row['wanted']:42} {mark}{row['verdict']}")


def print_table(rows):
    print(f"\n{'measured':37} {'median':>11} {'reference':>11} {'ratio':>6} {'wanted':42}  verdict")
    for row in rows:
        print(_table_line(row))
    met = sum(1 for row in rows if row["met"])
    judged = sum(1 for row in rows if row["met"] is not None)
    print(f"\n{met} of {judged} targets met, {len(rows) - judged} without a figure")
    if any(row.get("disturbed") for row in rows):
        print(f"{MARK} other processes used more than {FOREIGN_LIMIT:g} processors meanwhile")


def print_beside(names, results):
    for name in names:
        if results.median(name) is not None:
            print(f"{name:37} {figure(results.median(name), measures.ALL[name].unit):>11}")


def _foreign(results):
    return [value for values in results.foreign.values() for value in values]


def _disturbed_part(results):
    foreign = _foreign(results)
    return sum(1 for value in foreign if value > FOREIGN_LIMIT) / len(foreign) if foreign else 0


def quality(results):
    """The quality of the measurements, for the title of a plot."""
    part = _disturbed_part(results)
    return f"{part:.0%} disturbed" if part else "quiet machine"


def warn(results, loads):
    """Print how busy the machine was, with a warning if others disturbed measurements."""
    if not results.foreign:
        return
    print(f"load average {loads[0][0]:.2f} before, {loads[1][0]:.2f} after; other processes used "
          f"{statistics.mean(_foreign(results)):.2f} processors on average")
    foreign = _foreign(results)
    disturbed = sum(1 for value in foreign if value > FOREIGN_LIMIT)
    if disturbed:
        print(f"WARNING: {disturbed} of {len(foreign)} measurements were disturbed by other "
              "processes; such figures are worth little, their ratios more")


def write_json(path, about, rows, results):
    document = {"about": about, "targets": rows, "measures": {}}
    for name, values in results.values.items():
        document["measures"][name] = {
            "unit": measures.ALL[name].unit, "median": statistics.median(values),
            "min": min(values), "max": max(values), "values": values,
            "foreign": results.foreign[name]}
    document["failed"], document["skipped"] = results.failed, results.skipped
    temporary = path + ".new"
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
    os.replace(temporary, path)
