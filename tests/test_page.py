"""The page in a real Chromium: everything that a visitor does, without errors, layout jumps or a
request to elsewhere; and its numbers are the library's. Speed is measured by benchmarks/page.py."""

import base64
import json
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from playwright.sync_api import expect

import transduce
from benchmarks.page import served
from transduce.families import AdvectionDiffusionReaction
from transduce.metrics import relative_l2
from transduce.random_fields import generator_for

REFUSED = "Failed to load resource: the server responded with a status of 400"
SHIFTS = """() => new Promise((told) => {
  const entries = [];
  new PerformanceObserver((list) => entries.push(...list.getEntries()))
    .observe({ type: "layout-shift", buffered: true });
  const named = ({ node, previousRect: from, currentRect: to }) =>
    `${node?.id || node?.className || node?.nodeName}: ${JSON.stringify([from, to])}`;
  setTimeout(() => told(entries.filter((entry) => !entry.hadRecentInput)
    .flatMap((entry) => entry.sources.map(named))), 100);
})"""


@pytest.fixture(scope="module")
def url():
    with served() as url:
        yield url


@pytest.fixture
def visit(browser, url):
    """Opens the page as a visitor with these means; in the end, nothing has jumped, failed or been
    asked of another origin."""
    visits, errors, strangers, expected = [], [], [], []

    def visit(tab="", refusals=0, **means):
        context = browser.new_context(
            **({"viewport": {"width": 1280, "height": 900}, "reduced_motion": "reduce"} | means)
        )
        context.add_init_script("Math.random = () => 0.35;")
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on(
            "console",
            lambda said: errors.append(said.text) if said.type in ("error", "warning") else None,
        )
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on(
            "request",
            lambda asked: (
                None if asked.url.startswith((url, "blob:")) else strangers.append(asked.url)
            ),
        )
        page.goto(f"{url}/{tab}")
        visits.append(page)
        expected.append(refusals)
        return page

    yield visit
    for page in visits:
        assert page.evaluate(SHIFTS) == []
        page.context.close()
    assert [error for error in errors if REFUSED not in error] == [] and len(errors) == sum(
        expected
    )
    assert strangers == []


def stat(page, name, of="curves"):
    return page.locator(f'#{of}-stats [data-stat="{name}"]')


def settled(page, act, path="adr/predict", until=lambda asked: True):
    """The last question that an action led to, and its answer, once the page asks nothing any more
    and the question is the one that is meant. Questions of before the action do not count."""
    asked, waiting = [], []

    def started(request):
        waiting.append(request)
        if request.url.endswith(path):
            asked.append(request)

    def ended(request):
        if request in waiting:
            waiting.remove(request)

    def idle(meant):
        quiet, patience = 0, 20 / 0.06
        while quiet < 3 and patience > 0:
            count, patience = len(asked), patience - 1
            page.wait_for_timeout(60)
            quiet = quiet + 1 if len(asked) == count and not waiting and meant() else 0

    listeners = {"request": started, "requestfinished": ended, "requestfailed": ended}
    for event, listener in listeners.items():
        page.on(event, listener)
    idle(lambda: True)
    asked.clear()
    with page.expect_request(f"**/{path}"):
        act()
    idle(lambda: asked and until(asked[-1].post_data_json))
    for event, listener in listeners.items():
        page.remove_listener(event, listener)
    return asked[-1].post_data_json, asked[-1].response().json()


def drag(page, canvas, *points):
    """A stroke through points of the unit square of a canvas."""
    page.locator(canvas).scroll_into_view_if_needed()
    box = page.locator(canvas).bounding_box()
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in points]
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*place, steps=8)
    page.mouse.up()


def library(asked):
    """What the library answers to a question of the tab of curves, strangers apart: prediction,
    band and truth."""
    length_scale, k, t = (float(asked["hidden"][name]) for name in ("length_scale", "k", "t"))
    family, seed = (
        AdvectionDiffusionReaction(length_scale=length_scale, k_max=k, t=t),
        asked["hidden"]["seed"],
    )
    operator = replace(family.sample_operator(generator_for("test", 0, seed)), k=k)
    pairs = family.sample_pairs(operator, 100, generator_for("test", 1, seed))
    v = torch.tensor([float(value) for value in asked["v"]])[None]
    return *transduce.Transducer.from_pretrained("adr").regress(pairs[asked["examples"]]).predict(
        v, band=0.9
    ), operator(v)


def shown_percent(value):
    return f"{float(f'{100 * value:.2g}'):g} %"


def holds(page, asked):
    """The numbers on the page are the library's."""
    u_hat, low, high, truth = library(asked)
    expect(stat(page, "error")).to_have_text(shown_percent(float(relative_l2(u_hat, truth))))
    expect(stat(page, "inside")).to_have_text(
        shown_percent(float(((low <= truth) & (truth <= high)).double().mean()))
    )
    return True


def test_it_opens_with_a_prediction(visit):
    page = visit()
    page.wait_for_selector("#curves-stats[data-first]")
    assert float(page.locator("#curves-stats").get_attribute("data-first")) < 10_000
    asked, _ = settled(page, page.locator("#shape-hill").click)
    assert asked["examples"] == list(range(30)) and holds(page, asked)
    expect(page.locator("#said")).to_have_text(re.compile("Error .* %, .* ms"))


def test_the_curve_follows_the_pointer(visit):
    page = visit()
    page.wait_for_selector("#curves-stats[data-first]")
    before, _ = settled(page, page.locator("#shape-wave").click)
    asked, _ = settled(page, lambda: drag(page, "#before", (0.5, 0.5), (0.5, 0.3)))
    change = np.subtract(asked["v"], before["v"])
    assert change.argmax() in range(38, 53) and change.max() > 0.8 and holds(page, asked)
    asked, _ = settled(page, lambda: drag(page, "#before", (0.1, 0.7), (0.5, 0.65), (0.97, 0.6)))
    assert np.allclose(asked["v"][10:91], np.linspace(-1.48, -0.9, 81), atol=0.15) and holds(
        page, asked
    )
    expect(stat(page, "rate")).to_have_text(re.compile(r"^\d+$"))


def test_examples_come_and_go(visit):
    page = visit()
    page.wait_for_selector("#curves-stats[data-first]")
    asked, _ = settled(page, lambda: page.locator("#n").fill("5"))
    assert asked["examples"] == [0, 1, 2, 3, 4] and holds(page, asked)
    expect(page.locator("#n-value")).to_have_text("5")
    asked, _ = settled(page, page.locator("#remove").click)
    assert asked["examples"] == [0, 1, 2, 3] and holds(page, asked)
    asked, _ = settled(page, page.locator(".cell").nth(40).click)
    assert asked["examples"] == [0, 1, 2, 3, 40] and holds(page, asked)
    asked, _ = settled(page, page.locator("#add").click)
    assert asked["examples"] == [0, 1, 2, 3, 40, 4]
    asked, _ = settled(page, lambda: page.locator("#n").fill("100"))
    assert sorted(asked["examples"]) == list(range(100)) and page.locator("#add").is_disabled()
    asked, _ = settled(page, lambda: page.locator("#n").fill("1"))
    assert asked["examples"] == [0] and holds(page, asked) and page.locator("#remove").is_disabled()


def test_a_click_shows_the_influence_of_an_example(visit):
    page = visit()
    page.wait_for_selector("#curves-stats[data-first]")
    page.wait_for_function(
        "() => [...document.querySelectorAll('.cell i')].some((bar) => bar.style.transform === "
        "'scaleY(1)')"
    )
    asked, answer = settled(page, page.locator(".cell").nth(7).click, "adr/influence")
    assert asked["chosen"] == 7 and len(answer["influence"]) == 30 and answer["without"] is not None
    order = np.argsort(-np.abs(answer["influence"])).tolist()
    expect(page.locator("#examples-message")).to_contain_text(
        f"Example 8 is number {order.index(7) + 1} of 30"
    )
    settled(
        page, lambda: page.locator("#after").click(position={"x": 250, "y": 150}), "adr/influence"
    )
    expect(page.locator(".cell.chosen")).to_have_count(1)
    page.locator(".cell.chosen").focus()
    asked, _ = settled(page, lambda: page.keyboard.press("Delete"))
    assert len(asked["examples"]) == 29 and holds(page, asked)


def test_a_stranger_is_slipped_in_and_found(visit):
    page = visit(refusals=1)
    page.wait_for_selector("#curves-stats[data-first]")
    settled(page, lambda: page.locator("#n").fill("50"))
    honest = stat(page, "error").text_content()
    asked, answer = settled(page, page.locator("#spoil").click)
    assert asked["strangers"] == [17] and shown_percent(answer["error"]) != honest
    page.locator("#outliers").click()
    expect(page.locator("#examples-message")).to_contain_text("Example 18 does not belong")
    expect(page.locator(".cell.outlier")).to_have_attribute(
        "aria-label", re.compile("example 18, an outlier")
    )
    asked, answer = settled(page, page.locator("#remove").click)
    assert 17 not in asked["examples"] and holds(page, asked)
    settled(page, lambda: page.locator("#n").fill("9"))
    page.locator("#outliers").click()
    expect(page.locator("#examples-message")).to_have_text(
        "9 examples; expected at least 10 to tell which do not belong. Give more."
    )


def test_the_hidden_operator_is_set_by_sliders_and_drawn_anew(visit):
    page = visit()
    page.wait_for_selector("#curves-stats[data-first]")
    for slider, value, name, expected in (
        ("#length", "2", "length_scale", 0.1),
        ("#k", "0.3", "k", 0.3),
        ("#t", "0.5", "t", 0.5),
    ):
        asked, _ = settled(
            page,
            lambda slider=slider, value=value: page.locator(slider).fill(value),
            until=lambda asked, name=name, expected=expected: asked["hidden"][name] == expected,
        )
        assert asked["hidden"][name] == expected
    assert holds(page, asked)
    asked, _ = settled(
        page, page.locator("#renew").click, until=lambda asked: asked["hidden"]["seed"] == 2
    )
    assert asked["hidden"] == {"seed": 2, "length_scale": 0.1, "k": 0.3, "t": 0.5} and holds(
        page, asked
    )
    page.locator("#t").fill("1.25")
    expect(page.locator("#operator-message")).to_contain_text("Beyond its training")


def test_a_fluid_is_stirred(visit):
    page = visit("#/flow")
    page.wait_for_selector("#flow-stats[data-answers]")
    asked, answer = settled(
        page,
        lambda: page.locator("#flow-t").fill("2"),
        "burgers/predict",
        lambda asked: asked["fluid"]["t"] == 2,
    )
    assert asked["fluid"]["t"] == 2
    expect(stat(page, "error", "flow")).to_have_text(shown_percent(answer["error"]))
    expect(page.locator('[data-flow="t"]')).to_have_text("2 s later")
    stirred, answer = settled(
        page, lambda: drag(page, "#flow-before", (0.3, 0.5), (0.7, 0.5)), "burgers/predict"
    )
    moved = np.frombuffer(base64.b64decode(stirred["v"]["data"]), "<f4").reshape(2, 64, 64)
    assert stirred["v"] != asked["v"] and moved[0, 32, 32] > 0 and answer["error"] < 0.1
    page.locator("#flow-reveal").click()
    expect(stat(page, "viscosity", "flow")).to_have_text(f"{answer['viscosity']:.3g}")
    painted = (
        "(id) => new Set(document.getElementById(id).getContext('2d').getImageData(0, "
        "0, 200, 200).data).size"
    )
    assert all(
        page.evaluate(painted, f"flow-{name}") > 50 for name in ("before", "predicted", "true")
    )


def test_drawings_are_told_apart(visit):
    page = visit("#/drawings")
    expect(page.locator(".class")).to_have_count(10)
    page.locator("#pad").focus()
    asked, answer = settled(page, lambda: page.keyboard.press("3"), "images/classify")
    best = answer["classes"][int(np.argmax(answer["p"]))]
    expect(page.locator(".class.best .name")).to_have_text("3")
    assert best == "3" and len(asked["names"]) == 50
    page.locator("#afresh").click()
    expect(page.locator(".class")).to_have_count(0)
    for name, ways in (
        ("bar", [(0.5, 0.2, 0.5, 0.8), (0.4, 0.25, 0.42, 0.85)]),
        ("dash", [(0.2, 0.5, 0.8, 0.5), (0.25, 0.4, 0.85, 0.42)]),
    ):
        for x, y, to_x, to_y in ways:
            drag(page, "#pad", (x, y), (to_x, to_y))
            page.locator("#name").fill(name)
            page.locator("#keep").click()
    expect(page.locator(".thumb")).to_have_count(4)
    settled(page, lambda: drag(page, "#pad", (0.6, 0.2), (0.58, 0.75)), "images/classify")
    expect(page.locator(".class.best .name")).to_have_text("bar")
    page.locator("#keep").click()
    expect(page.locator(".thumb")).to_have_count(5)


DROP = """([name, bytes]) => {
  const data = new DataTransfer();
  data.items.add(new File([Uint8Array.from(bytes)], name));
  const options = { dataTransfer: data, bubbles: true, cancelable: true };
  document.getElementById("drop").dispatchEvent(new DragEvent("drop", options));
}"""


def test_a_file_is_dropped_and_answered_and_a_bad_one_told_why(visit, url, tmp_path):
    page = visit("#/data", refusals=1)
    page.wait_for_timeout(200)
    page.evaluate(DROP, ["holiday.npz", list(b"not an archive")])
    expect(page.locator("#data-message")).to_contain_text(
        "holiday.npz: the body of 14 bytes cannot be read as npz"
    )
    expect(page.locator("#save-npz")).to_have_attribute("aria-disabled", "true")
    page.evaluate(DROP, ["sample.csv", list(page.request.get(f"{url}/sample.csv").body())])
    expect(page.locator("#data-message")).to_contain_text(
        "3 answers of shape 101 by general, from 20 pairs. Expected error "
    )
    expect(page.locator("#query-value")).to_have_text("1 of 3")
    with page.expect_download() as download:
        page.locator("#save-npz").click()
    download.value.save_as(tmp_path / "u.npz")
    task = AdvectionDiffusionReaction().sample_task(20, 3, generator_for("test", 0))
    O = transduce.regress(task.examples.v.numpy(), task.examples.u.numpy())
    expected = O(task.queries.v.numpy())
    np.testing.assert_allclose(np.load(tmp_path / "u.npz")["u"], expected, atol=1e-3)
    page.locator("#model").select_option("adr-softmax")
    expect(page.locator("#data-message")).to_contain_text("by adr-softmax")


def test_light_and_dark(visit):
    paper = "() => getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)[0]"
    page = visit(color_scheme="dark")
    assert page.evaluate(paper) < 60
    page.locator("#theme").click()
    assert page.evaluate(paper) > 200
    expect(page.locator("#theme")).to_have_text("Dark")
    assert visit(color_scheme="light").evaluate(paper) > 200


def test_a_phone_shows_it_all_and_a_finger_draws(visit):
    page = visit(viewport={"width": 375, "height": 812}, has_touch=True, is_mobile=True)
    page.wait_for_selector("#curves-stats[data-first]")
    before, _ = settled(page, page.locator("#shape-hill").tap)
    page.locator("#before").scroll_into_view_if_needed()
    box = page.locator("#before").bounding_box()
    finger = page.context.new_cdp_session(page)

    def swipe():
        for kind, down in (
            ("touchStart", 0.3),
            ("touchMove", 0.5),
            ("touchMove", 0.7),
            ("touchEnd", None),
        ):
            touches = (
                []
                if down is None
                else [{"x": box["x"] + box["width"] / 2, "y": box["y"] + down * box["height"]}]
            )
            finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": touches})

    asked, _ = settled(page, swipe)
    assert min(asked["v"]) < -0.8 < 0 < max(before["v"]) and holds(page, asked)
    for tab in ("curves", "flow", "drawings", "data"):
        page.locator(f"#tab-{tab}").tap()
        page.wait_for_timeout(100)
        assert page.evaluate("() => document.documentElement.scrollWidth") <= 375
        assert page.locator(f"#{tab} h1").is_visible()


def test_everything_is_in_reach_of_the_keyboard(visit):
    page = visit()
    page.wait_for_selector("#curves-stats[data-first]")
    page.locator("#before").focus()
    before, _ = settled(page, lambda: page.keyboard.press("ArrowUp"))
    asked, _ = settled(
        page, lambda: [page.keyboard.press(key) for key in ("ArrowRight", "ArrowRight", "PageUp")]
    )
    assert np.subtract(asked["v"], before["v"]).argmax() in range(65, 75) and holds(page, asked)
    expect(page.locator("#before")).to_have_attribute("aria-valuetext", re.compile("point 7 of 9"))
    page.locator("#n").focus()
    asked, _ = settled(page, lambda: page.keyboard.press("ArrowLeft"))
    assert len(asked["examples"]) == 29
    page.locator(".cell").first.focus()
    page.keyboard.press("ArrowRight")
    settled(page, lambda: page.keyboard.press("Enter"), "adr/influence")
    expect(page.locator(".cell").nth(1)).to_have_class(re.compile("chosen"))
    page.locator("#tab-curves").focus()
    page.keyboard.press("End")
    expect(page.locator("#tab-data")).to_be_focused()
    expect(page.locator("#data")).to_be_visible()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#curves")).to_be_visible()
    controls = "button, input, select, a, canvas:not([aria-hidden])"
    unnamed = f"""() => [...document.querySelectorAll("{controls}")]
      .filter((one) => !(one.ariaLabel || one.textContent.trim()
        || one.closest("label") || one.closest("[aria-label]"))).map((one) => one.outerHTML)"""
    assert json.dumps(page.evaluate(unnamed)) == "[]"
