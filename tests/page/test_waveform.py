"""The picture of a sound: its peaks, its position, its keys, its colours."""

import pytest
from playwright.sync_api import expect

from accessibility import grave_faults
from browser import visit
from server_process import running_server

DRAW = """async seconds => {
  const { Waveform } = await import("/page/studio/waveform.js");
  const waveform = new Waveform("A tone");
  document.querySelector("main").replaceChildren(waveform);
  waveform.begin(8000);
  waveform.addEventListener("seek", (event) => { waveform.position = event.detail; });
  const tone = Float32Array.from({ length: 8000 }, (_, n) => 0.5 * Math.sin(n / 5));
  const sounds = [[tone], [new Float32Array(8000)]];
  for (let second = 0; second < seconds; second += 1) waveform.extend(sounds[second % 2]);
}"""
DRAWN = """async () => {
  await new Promise(requestAnimationFrame);
  await new Promise(requestAnimationFrame);
  const canvas = document.querySelector("antiphon-waveform canvas");
  const { width, height } = canvas;
  const copy = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
  copy.drawImage(canvas, 0, 0);
  const { data } = copy.getImageData(0, 0, width, height);
  const heights = Array(width).fill(0);
  for (let n = 3; n < data.length; n += 4) if (data[n]) heights[((n - 3) / 4) % width] += 1;
  const middle = Math.floor(height / 2) * width * 4;
  const colour = (x) => Array.from(data.slice(middle + 4 * x, middle + 4 * x + 3));
  return { width, height, heights, first: colour(0), last: colour(width - 1) };
}"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with running_server(tmp_path_factory.mktemp("server"), {"models": []}) as it:
        yield it


@pytest.fixture(scope="module")
def page(browser, server):
    with visit(browser, server.url, device_scale_factor=2) as it:
        yield it


@pytest.fixture
def slider(page):
    return page.get_by_role("slider", name="A tone")


def test_every_pixel_of_the_screen_shows_its_own_stretch_of_the_sound(page, slider):
    page.evaluate(DRAW, 4)

    shown = page.evaluate(DRAWN)

    assert shown["width"] == round(2 * slider.locator("canvas").bounding_box()["width"])
    quarter = shown["width"] // 4
    loud, silent = shown["heights"][10 : quarter - 10], shown["heights"][quarter + 10 : 2 * quarter - 10]
    assert min(loud) > shown["height"] * 0.8
    assert set(silent) == {1}


def test_a_sound_of_hours_is_drawn_as_one_of_seconds(page, slider):
    page.evaluate(DRAW, 3 * 3600)

    shown = page.evaluate(DRAWN)

    assert min(shown["heights"]) > shown["height"] * 0.8
    expect(slider).to_have_attribute("aria-valuetext", "0:00 of 3:00:00")


@pytest.mark.parametrize(
    ("key", "where"), [("ArrowRight", 6), ("ArrowLeft", 4), ("PageUp", 15), ("End", 20), ("Home", 0)]
)
def test_keys_choose_a_place(page, slider, key, where):
    page.evaluate(DRAW, 20)
    slider.evaluate("it => { it.position = 5; }")

    slider.focus()
    page.keyboard.press(key)

    expect(slider).to_have_attribute("aria-valuenow", str(where))
    expect(slider).to_have_attribute("aria-valuetext", f"0:{where:02} of 0:20")


def test_the_pointer_chooses_a_place_and_what_is_before_it_has_another_colour(page, slider):
    page.evaluate(DRAW, 20)
    box = slider.bounding_box()

    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 10)

    expect(slider).to_have_attribute("aria-valuenow", "10")
    shown = page.evaluate(DRAWN)
    assert shown["first"] != shown["last"]


def test_no_place_is_chosen_where_that_is_not_allowed(page, slider):
    page.evaluate(DRAW, 20)
    slider.evaluate("it => { it.isSeekable = false; }")
    box = slider.bounding_box()

    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 10)

    expect(slider).to_have_attribute("aria-valuenow", "0")
    expect(slider).to_have_attribute("aria-disabled", "true")


def test_the_colours_are_those_of_the_theme_and_the_size_that_of_the_window(page, slider):
    page.evaluate(DRAW, 1)
    before = page.evaluate(DRAWN)

    page.emulate_media(color_scheme="dark")
    page.set_viewport_size({"width": 500, "height": 900})

    canvas = slider.locator("canvas")
    expect(canvas).to_have_js_property("width", round(2 * canvas.bounding_box()["width"]))
    after = page.evaluate(DRAWN)
    assert after["last"] != before["last"]
    assert after["width"] < before["width"]
    page.get_by_role("button", name="Theme: system").click()
    assert page.evaluate(DRAWN)["last"] == before["last"]
    assert grave_faults(page) == []
