# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The SPACE authors
"""An agent's job: read four years of Seattle's weather, write a chart and a summary. Standard library only."""

import csv
import pathlib
from collections import defaultdict
from datetime import date

here = pathlib.Path(__file__).parent
rain = defaultdict(float)
days = defaultdict(int)
wettest = (0.0, "")
hottest = (-99.0, "")

with open(here / "weather.csv", newline="") as table:
    rows = list(csv.DictReader(table))
for row in rows:
    day = date.fromisoformat(row["date"])
    fell, high = float(row["precipitation"]), float(row["temp_max"])
    rain[day.month] += fell
    days[day.month] += 1
    wettest = max(wettest, (fell, day.isoformat()))
    hottest = max(hottest, (high, day.isoformat()))

years = len({row["date"][:4] for row in rows})
monthly = [rain[month] / years for month in range(1, 13)]
names = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
top = max(monthly)

bars = "".join(
    f'<rect x="{40 + 45 * i}" y="{240 - 200 * value / top:.1f}" width="34" height="{200 * value / top:.1f}" fill="#3572a5"/>'
    f'<text x="{57 + 45 * i}" y="256" text-anchor="middle">{names[i]}</text>'
    f'<text x="{57 + 45 * i}" y="{235 - 200 * value / top:.1f}" text-anchor="middle">{value:.0f}</text>'
    for i, value in enumerate(monthly)
)
(here / "chart.svg").write_text(
    '<svg xmlns="http://www.w3.org/2000/svg" width="600" height="270" font-family="sans-serif" font-size="11">'
    f'<text x="40" y="20" font-size="14">Rain in Seattle, mm a month (mean of {years} years)</text>{bars}</svg>\n'
)

summary = (
    f"{len(rows)} days, {years} years\n"
    f"wettest month: {names[monthly.index(top)]}, {top:.0f} mm\n"
    f"driest month: {names[monthly.index(min(monthly))]}, {min(monthly):.0f} mm\n"
    f"wettest day: {wettest[1]}, {wettest[0]} mm\n"
    f"hottest day: {hottest[1]}, {hottest[0]} degrees C\n"
)
(here / "summary.txt").write_text(summary)
print(summary, end="")
