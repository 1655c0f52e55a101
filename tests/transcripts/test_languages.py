"""API-04: any usual spelling of a language is understood, and what is none is refused by name."""

import re

import pytest

from antiphon.vocabulary.errors import InvalidRequest
from antiphon.vocabulary.languages import base_language, language_name

WHISPER_CODES = re.findall(
    r"\w+",
    "af am ar as az ba be bg bn bo br bs ca cs cy da de el en es et eu fa fi fo fr gl gu ha haw he hi hr ht hu hy id "
    "is it ja jw ka kk km kn ko la lb ln lo lt lv mg mi mk ml mn mr ms mt my ne nl nn no oc pa pl ps pt ro ru sa sd "
    "si sk sl sn so sq sr su sv sw ta te tg th tk tl tr tt uk ur uz vi yi yo yue zh",
)


@pytest.mark.parametrize("tag", [None, "", "  ", "auto", "AUTO", " Auto "])
def test_no_language_or_auto_asks_for_detection(tag: str | None) -> None:
    assert base_language(tag) is None


@pytest.mark.parametrize("tag", ["en", "EN", " en ", "en-US", "en_GB", "en-x-private", "English", "english", "eng"])
def test_every_spelling_of_english_is_en(tag: str) -> None:
    assert base_language(tag) == "en"


@pytest.mark.parametrize(
    ("tag", "code"),
    [
        ("iw", "he"),
        ("iw-IL", "he"),
        ("in", "id"),
        ("ji", "yi"),
        ("mo", "ro"),
        ("jv", "jw"),
        ("nb-NO", "no"),
        ("fil", "tl"),
        ("castilian", "es"),
        ("es-419", "es"),
        ("Haitian Creole", "ht"),
        ("haitian_creole", "ht"),
        ("mandarin", "zh"),
        ("cmn", "zh"),
        ("zh_Hant_TW", "zh"),
        ("cantonese", "yue"),
        ("zh-yue", "yue"),
        ("ger", "de"),
        ("deu", "de"),
    ],
)
def test_an_alias_or_a_region_leads_to_the_base_code(tag: str, code: str) -> None:
    assert base_language(tag) == code


@pytest.mark.parametrize("code", WHISPER_CODES)
def test_every_code_of_whisper_is_its_own_base_and_its_name_leads_back(code: str) -> None:
    assert base_language(code) == code
    assert language_name(code) != code
    assert base_language(language_name(code)) == code


@pytest.mark.parametrize(
    "tag", ["xx", "??", "zz-ZZ", "../en", "en-", "en--US", "e", "engl", "en.UTF-8", "en\0", "日本語"]
)
def test_an_unknown_language_is_refused_with_its_name(tag: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        base_language(tag)
    assert caught.value.param == "language"
    assert repr(tag) in caught.value.message


def test_a_refusal_stays_short_and_on_one_line() -> None:
    with pytest.raises(InvalidRequest) as caught:
        base_language("x\n" * 100_000)
    assert len(caught.value.message) < 250
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("code", "name"), [("en", "english"), ("EN", "english"), ("ht", "haitian creole"), ("xx", "xx")]
)
def test_a_code_is_named_in_english(code: str, name: str) -> None:
    assert language_name(code) == name
