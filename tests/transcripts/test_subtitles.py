"""API-07 and AUD-13: SubRip and WebVTT, whole files compared."""

from antiphon.transcripts.srt import srt
from antiphon.transcripts.vtt import vtt
from antiphon.vocabulary.tasks import Segment

RATE = 10_000
SEGMENTS = (Segment(" Hello", 9_995, 599_996), Segment("there", 35_999_999, 36_615_000))


def test_srt_numbers_its_cues_and_writes_a_comma() -> None:
    assert srt(SEGMENTS, RATE) == (
        "1\n00:00:01,000 --> 00:01:00,000\nHello\n\n2\n01:00:00,000 --> 01:01:01,500\nthere\n\n"
    )


def test_vtt_begins_with_its_header_and_writes_a_dot() -> None:
    assert vtt(SEGMENTS, RATE) == (
        "WEBVTT\n\n00:00:01.000 --> 00:01:00.000\nHello\n\n01:00:00.000 --> 01:01:01.500\nthere\n\n"
    )


def test_silence_is_an_empty_srt_file() -> None:
    assert srt((), RATE) == ""


def test_silence_is_a_vtt_file_with_only_its_header() -> None:
    assert vtt((), RATE) == "WEBVTT\n\n"


def test_a_segment_without_text_makes_no_cue_and_takes_no_number() -> None:
    segments = (Segment(" \n", 0, RATE), Segment("spoken", RATE, 2 * RATE))
    assert srt(segments, RATE) == "1\n00:00:01,000 --> 00:00:02,000\nspoken\n\n"
    assert vtt(segments, RATE) == "WEBVTT\n\n00:00:01.000 --> 00:00:02.000\nspoken\n\n"


def test_text_cannot_end_its_srt_cue_or_forge_another() -> None:
    text = "one\n\n2\n00:00:05,000 --> 00:00:06,000\ntwo"
    assert srt((Segment(text, 0, RATE),), RATE) == (
        "1\n00:00:00,000 --> 00:00:01,000\none 2 00:00:05,000 -> 00:00:06,000 two\n\n"
    )


def test_text_cannot_end_its_vtt_cue_or_write_markup() -> None:
    text = "<b>A & B</b>\r\n\r\n00:05.000 --> 00:06.000\0"
    assert vtt((Segment(text, 0, RATE),), RATE) == (
        "WEBVTT\n\n00:00:00.000 --> 00:00:01.000\n&lt;b&gt;A &amp; B&lt;/b&gt; 00:05.000 --&gt; 00:06.000\ufffd\n\n"
    )


def test_an_end_before_its_start_makes_a_cue_of_no_length() -> None:
    assert "00:00:02,000 --> 00:00:02,000" in srt((Segment("x", 2 * RATE, RATE),), RATE)
