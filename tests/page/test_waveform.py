"""The picture of a sound: its peaks, its position, its keys, its colours."""

import pytest
from playwright.sync_api import expect

from accessibility import grave_faults
from browser import visit
from page_waits import read_until
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
  const { width, height, clientWidth } = canvas;
  const copy = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
  copy.drawImage(canvas, 0, 0);
  const { data } = copy.getImageData(0, 0, width, height);
  const heights = Array(width).fill(0);
  for (let n = 3; n < data.length; n += 4) if (data[n]) heights[((n - 3) / 4) % width] += 1;
  const middle = Math.floor(height / 2) * width * 4;
  const colour = (x) => Array.from(data.slice(middle + 4 * x, middle + 4 * x + 3));
  return { width, fitting: Math.round(2 * clientWidth), height, heights, first: colour(0), last: colour(width - 1) };
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

    def is_right(shown):
        quarter = shown["width"] // 4
        loud, silent = shown["heights"][10 : quarter - 10], shown["heights"][quarter + 10 : 2 * quarter - 10]
        return shown["width"] == shown["fitting"] and min(loud) > shown["height"] * 0.8 and set(silent) == {1}

    read_until(page, DRAWN, is_right, "a loud quarter and a silent one")


def test_a_sound_of_hours_is_drawn_as_one_of_seconds(page, slider):
    page.evaluate(DRAW, 3 * 3600)

    read_until(page, DRAWN, lambda it: min(it["heights"]) > it["height"] * 0.8, "a loud sound")
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

    slider.click()

    expect(slider).to_have_attribute("aria-valuenow", "10")
    read_until(page, DRAWN, lambda it: it["first"] != it["last"], "two colours")


def test_no_place_is_chosen_where_that_is_not_allowed(page, slider):
    page.evaluate(DRAW, 20)
    slider.evaluate("it => { it.isSeekable = false; }")
    slider.click(force=True)  # as it is disabled, Playwright would wait

    expect(slider).to_have_attribute("aria-disabled", "true")
    expect(slider).to_have_attribute("aria-valuenow", "0")


def test_the_colours_are_those_of_the_theme_and_the_size_that_of_the_window(page, slider):
    page.evaluate(DRAW, 1)
    before = read_until(page, DRAWN, lambda it: it["width"] == it["fitting"], "a picture as wide as its place")

    page.emulate_media(color_scheme="dark")
    page.set_viewport_size({"width": 500, "height": 900})

    def is_dark_and_small(shown):
        return shown["last"] != before["last"] and shown["fitting"] == shown["width"] < before["width"]

    read_until(page, DRAWN, is_dark_and_small, "a smaller picture in other colours")
    page.get_by_role("button", name="Theme: system").click()
    read_until(page, DRAWN, lambda it: it["last"] == before["last"], "the colours of before")
    assert grave_faults(page) == []
