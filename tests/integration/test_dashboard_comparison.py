"""The chart that compares tools or callers: its lines are those that were chosen, they differ without any
colour, and tables have the same values."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from xml.etree import ElementTree

import pytest
from support import logged_dashboard
from support.call_records import timed_call as call
from support.dashboard_browser import HOSTILE, Browser
from support.pages_read import Elements

from fastrpc.dashboard import charts, counting
from fastrpc.dashboard.charts import Chart, ChartLine
from fastrpc.guard.audit.log import AuditLog

pytest_plugins = ["support.guard_database", "support.dashboard"]
folder, dashboard = logged_dashboard.counting_folder, logged_dashboard.dashboard
Visit = Callable[..., Browser]
SVG = "{http://www.w3.org/2000/svg}"
CALLS = {("order", "ada#1"): 40, ("order", "bob#2"): 20, ("look", "ada#1"): 30, ("wipe", "eve#3"): 5}
"""How many calls of a tool a caller has made."""


@pytest.fixture
def browser(visit: Visit, log: AuditLog) -> Browser:
    for (tool, actor), count in CALLS.items():
        for number in range(count):
            log.append(call(tool, actor, "error" if number % 5 == 0 else "ok"))
    assert log.flush()
    return visit("vera", "viewer")


def rows(page: str) -> dict[str, list[str]]:
    """Return the cells of the table beside the chart, by the name of the line."""
    body = page.partition("<figcaption>")[2].partition("<tbody>")[2].partition("</tbody>")[0]
    found = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in body.split("</tr>")]
    return {re.sub(r"<[^>]+>", "", row[0])[2:]: row[1:] for row in found if row}


def sums_over_time(page: str) -> list[float]:
    """Return the sum of each column of the table over time."""
    body = page.rpartition("<tbody>")[2]
    found = [re.findall(r"<td>([^<]*)</td>", row) for row in body.split("</tr>")]
    return [
        sum(float(each.replace(",", "")) for each in column)
        for column in zip(*filter(None, found), strict=True)
    ]


def checked(page: str) -> list[str]:
    return [
        unescape(str(each["name"]))
        for tag, each in Elements(page).found
        if tag == "input" and each.get("type") == "checkbox" and "checked" in each
    ]


def picture(browser: Browser, page: str, theme: str = "light") -> ElementTree.Element:
    source = re.search(r'<img src="/dashboard(/comparison\.svg[^"]+)"', page)
    assert source is not None
    answer = browser.get(unescape(source[1]).replace("theme=light", f"theme={theme}"))
    assert answer.headers["content-type"].startswith("image/svg+xml")
    return ElementTree.fromstring(answer.text)


def test_the_lines_are_the_tools_that_were_chosen_or_those_with_the_most_calls(browser: Browser) -> None:
    page = browser.get("/comparison").text
    assert {name: int(cells[2]) for name, cells in rows(page).items()} == {"order": 60, "look": 30, "wipe": 5}
    assert checked(page) == ["with:order", "with:look", "with:wipe"]
    page = browser.get("/comparison?with:wipe=yes&with:look=yes").text
    assert list(rows(page)) == ["wipe", "look"]
    assert sorted(checked(page)) == ["with:look", "with:wipe"]
    image = picture(browser, page)
    texts = [each.text for each in image.iter(f"{SVG}text")]
    assert texts[-2:] == ["wipe", "look"]


def test_callers_are_compared_and_a_filter_takes_the_calls_of_one_tool_or_caller(browser: Browser) -> None:
    page = browser.get("/comparison?by=caller").text
    assert {name: int(cells[2]) for name, cells in rows(page).items()} == {
        "ada#1": 70,
        "bob#2": 20,
        "eve#3": 5,
    }
    page = browser.get("/comparison?by=caller&tool=order").text
    assert {name: int(cells[2]) for name, cells in rows(page).items()} == {"ada#1": 40, "bob#2": 20}
    page = browser.get("/comparison?by=tool&caller=ada%231").text
    assert {name: int(cells[2]) for name, cells in rows(page).items()} == {"order": 40, "look": 30}


@pytest.mark.parametrize(("measure", "share"), [("calls", 1.0), ("errors", 0.2)])
def test_the_tables_and_the_label_have_the_values_of_the_chart(
    browser: Browser, measure: str, share: float
) -> None:
    page = browser.get(f"/comparison?span=day&measure={measure}").text
    step = counting.SPANS["day"].step
    for found, count in zip(sums_over_time(page), (60, 30, 5), strict=True):
        assert found * step >= count * share * 0.99  # the last slot is shorter than the others
    label = picture(browser, page).attrib["aria-label"]
    alt = re.search(r'<img [^>]*alt="([^"]+)"', page)
    assert alt is not None
    assert unescape(alt[1]) == label
    for name, cells in rows(page).items():
        assert f"{name}: highest {cells[0]}, latest {cells[1]}" in label


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_six_lines_at_most_are_drawn_and_each_differs_without_colour(
    browser: Browser, log: AuditLog, theme: str
) -> None:
    names = [f"tool{number}" for number in range(8)]
    for name in names:
        log.append(call(name, "ada#1"))
        log.append(call(name, "ada#1"))
    assert log.flush()
    page = browser.get("/comparison?" + "&".join(f"with:{name}=yes" for name in names)).text
    assert "Only the first 6 are shown." in page
    assert list(rows(page)) == names[:6]
    signs = re.findall(r'<span aria-hidden="true">(.)</span>', page)
    assert len(set(signs)) == 6
    image = picture(browser, page, theme)
    height = re.search(r'<img [^>]*height="(\d+)"', page)
    assert height is not None
    assert image.attrib["height"] == height[1]
    drawn = [each for each in image.iter(f"{SVG}line") if "stroke-dasharray" in each.attrib]
    assert len({each.attrib["stroke-dasharray"] for each in drawn}) == 6
    marks = {each.attrib["d"] for each in image.iter(f"{SVG}path") if "transform" in each.attrib}
    assert marks == set(charts.MARKS) - {""}
    names_at = [(each.attrib["x"], each.attrib["y"]) for each in list(image.iter(f"{SVG}text"))[-6:]]
    assert len(set(names_at)) == 6


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour (WCAG 2.2)."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_line_contrasts_with_the_ground_as_wcag_wants_of_graphics(theme: str) -> None:
    ground = luminance(charts.COLOURS[theme]["card"])
    for stroke in charts.STROKES[theme]:
        darker, lighter = sorted((luminance(stroke), ground))
        assert (lighter + 0.05) / (darker + 0.05) >= 3.0, stroke
    assert len(charts.STROKES[theme]) == len(charts.MARKS) == len(charts.SIGNS) == charts.MOST_LINES


@pytest.mark.parametrize("values", [[], [None] * 60, [1.0], [None, 2.0, None], [0.0] * 60])
def test_a_line_of_any_values_is_drawn(values: list[float | None]) -> None:
    for count in range(charts.MOST_LINES + 1):
        lines = [ChartLine(f"line {number}", values) for number in range(count)]
        found = Chart("label", lines, ["00:00"] * len(values) or ["00:00"], "light", "rtl")
        assert len(found.lines) == count


def test_no_text_of_a_caller_becomes_an_element_and_a_choice_keeps_the_boxes(
    browser: Browser, log: AuditLog
) -> None:
    log.append(call(HOSTILE, HOSTILE))
    log.append(call("p\u0430ypal\u202e", "ada#1"))
    assert log.flush()
    for by in ("tool", "caller"):
        page = browser.get(f"/comparison?by={by}").text
        assert "<script>alert" not in page
        assert "<img src=x" not in page
        assert not [
            name for _, attributes in Elements(page).found for name in attributes if name.startswith("on")
        ]
        assert "alert" in picture(browser, page).attrib["aria-label"]
    page = browser.get("/comparison").text
    assert "<mark>\\u202e</mark>" in page
    fields = dict.fromkeys(checked(page)[:2], "yes")
    answer = browser.send("/choose?back=/dashboard/comparison", language="ar", by="tool", **fields)
    page = browser.get(answer.headers["location"].removeprefix("/dashboard")).text
    assert 'lang="ar"' in page
    assert sorted(checked(page)) == sorted(fields)


@pytest.mark.parametrize(
    "query", ["by=x&measure=y&span=z", "with:=yes", "with:none=yes", "by=caller&by=tool"]
)
def test_a_choice_that_does_not_exist_is_no_error(browser: Browser, query: str) -> None:
    assert browser.get(f"/comparison?{query}").status_code == 200
    assert browser.get(f"/comparison.svg?{query}").status_code == 200


def test_without_calls_the_page_says_so(visit: Visit, folder: str) -> None:
    browser = visit()
    assert browser.get("/comparison").status_code == 404
    AuditLog(folder).close()
    answer = browser.get("/comparison")
    assert (answer.status_code, "<img" in answer.text) == (200, False)
    assert browser.get("/comparison.svg").status_code == 200
