"""A report's chart as a picture: SVG whose text is text, for the page; PNG for Dagster.

matplotlib takes a second to load, so that only what draws imports this (reporting). Sums arrive
exact and are rounded here only, to be drawn. Not here: what is summed (reports).
"""

import io
import logging
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pipelines.reports import Chart, Report

PANELS, PLACES = 6, 18  # panels of a picture; places on an axis, the last ones
LEAST = 3  # places that an axis has room for
ACROSS = 3  # panels beside each other
INK = "#010203"  # no other colour of the picture: it becomes the page's own
COLOURS = ("#3d85c6", "#d9822b", "#6aa84f")
UNITS = ((1e15, "qn"), (1e12, "tn"), (1e9, "bn"), (1e6, "m"), (1e3, "k"))
STYLE: dict[Any, Any] = {  # matplotlib's keys are literals
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "text.color": INK,
    "text.parse_math": False,  # a name with two dollar signs is no formula
    "xtick.color": INK,
    "ytick.color": INK,
}
logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)


@dataclass(frozen=True)
class Panel:
    """One panel: its title, the places on its axis and a height for each, bar by bar."""

    title: str
    places: list[str]
    heights: dict[str, list[float]]
    upright: bool


def svg(report: Report, frame: pd.DataFrame) -> str:
    """Return a report's chart to stand in a page, in the page's own colour."""
    drawn = _drawn(report, frame, "svg").decode()
    start = drawn.index("<svg")
    return drawn[start:].replace(INK, "currentColor")


def png(report: Report, frame: pd.DataFrame) -> bytes:
    """Return a report's chart to stand anywhere, on white."""
    return _drawn(report, frame, "png")


def caption(report: Report, frame: pd.DataFrame) -> str:
    """Return what a chart shows, and what it has no room for."""
    chart = report.chart
    if chart is None:
        return ""
    panels, places = (len(set(frame[each])) for each in (chart.panel, chart.across))
    words = [chart.words]
    if panels > PANELS:
        words.append(f"the first {PANELS} of {panels:,} by {chart.panel}")
    if places > PLACES:
        words.append(f"the last {PLACES} of each by {chart.across}")
    return "; ".join(words)


def _drawn(report: Report, frame: pd.DataFrame, kind: str) -> bytes:
    chart = report.chart
    if chart is None:
        return b""
    panels = list(_panels(chart, frame))[:PANELS]
    with mpl.rc_context({**STYLE, "svg.hashsalt": report.name}), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a glyph that no font has: the browser's may
        figure = _figure(panels)
        made = io.BytesIO()
        telling: dict[str, Any] = (
            {"metadata": {"Date": None}, "transparent": True} if kind == "svg" else {}
        )
        figure.savefig(made, format=kind, dpi=96, **telling)
    return made.getvalue()


def _panels(chart: Chart, frame: pd.DataFrame) -> Iterator[Panel]:
    for title, rows in frame.groupby(chart.panel, dropna=False, sort=True):
        places = list(dict.fromkeys(rows[chart.across]))[-PLACES:]
        few = rows[rows[chart.across].isin(places)]
        heights = {bar: [_float(each) for each in few[bar]] for bar in chart.bars}
        upright = all(isinstance(each, date) for each in places)
        yield Panel(_name(title), [_name(each) for each in few[chart.across]], heights, upright)


def _figure(panels: list[Panel]) -> Figure:
    columns = max(1, min(ACROSS, len(panels)))
    lines = max(1, -(-len(panels) // columns))
    longest = max((len(each.places) for each in panels if not each.upright), default=LEAST)
    height = max(2.3, 0.9 + 0.26 * longest)
    figure = Figure(figsize=(9.6, height * lines), layout="constrained")
    axes = list(figure.subplots(lines, columns, squeeze=False).flat)
    for panel, axis in zip(panels, axes, strict=False):
        _draw(axis, panel)
    for axis in axes[len(panels) :]:
        axis.set_axis_off()
    if panels and len(panels[0].heights) > 1:
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper right", frameon=False, ncols=3)
    return figure


def _draw(axis: Axes, panel: Panel) -> None:
    width = 0.8 / len(panel.heights)
    for number, (bar, heights) in enumerate(panel.heights.items()):
        places = [place + number * width for place in range(len(heights))]
        paint: Any = {"color": COLOURS[number % len(COLOURS)], "label": bar.replace("_", " ")}
        if panel.upright:
            axis.bar(places, heights, width, **paint)
        else:
            axis.barh(places, heights, width, **paint)
    middle = [place + width * (len(panel.heights) - 1) / 2 for place in range(len(panel.places))]
    axis.set_title(panel.title, loc="left", fontsize=9, fontweight="bold")
    named, measured = (axis.xaxis, axis.yaxis) if panel.upright else (axis.yaxis, axis.xaxis)
    named.set_ticks(middle, panel.places, rotation=45 if panel.upright else 0)
    measured.set_major_formatter(lambda value, _place: _short(value))
    if not any(height for heights in panel.heights.values() for height in heights):
        measured.set_ticks([0])
    least = max(LEAST, len(panel.places))  # or a single bar would fill the panel
    axis.set(**{"xlim" if panel.upright else "ylim": (-0.6, least - 0.2)})
    if not panel.upright:
        axis.invert_yaxis()


def _short(value: float) -> str:
    """Return a number as an axis says it."""
    for unit, name in UNITS:
        if abs(value) >= unit:
            return f"{value / unit:,.4g} {name}"
    return f"{value:,.6g}"


def _name(value: object) -> str:
    if value is None or value is pd.NA or value != value:  # noqa: PLR0124 how NaN is told
        return "(none)"
    return f"{value:%Y-%m}" if isinstance(value, date) else str(value)[:40]


def _float(value: object) -> float:
    return 0.0 if value is None or value is pd.NA else float(str(value))
