"""The numbers of several servers on one page."""

from prometheus_client.parser import text_string_to_metric_families

from antiphon.observability.labelled import labelled

PAGE = """\
# HELP a_total Things.
# TYPE a_total counter
a_total{model="tts"} %d
# HELP b_seconds Times.
# TYPE b_seconds histogram
b_seconds_bucket{le="1.0"} 2.0
b_seconds_bucket{le="+Inf"} 3.0
b_seconds_count 3.0
b_seconds_sum 4.5
"""


def test_every_sample_says_whose_it_is_and_keeps_its_value():
    content, content_type = labelled({"x": PAGE % 1, "y": PAGE % 2})
    families = {it.name: it for it in text_string_to_metric_families(content.decode())}
    counted = {it.labels["replica"]: (it.labels["model"], it.value) for it in families["a"].samples}
    assert counted == {"x": ("tts", 1.0), "y": ("tts", 2.0)}
    buckets = [(it.labels["replica"], it.value) for it in families["b_seconds"].samples if it.labels.get("le") == "1.0"]
    assert buckets == [("x", 2.0), ("y", 2.0)]
    assert content_type.startswith("text/plain")


def test_a_family_is_described_once():
    content, _ = labelled({"x": PAGE % 1, "y": PAGE % 2})
    assert content.count(b"# TYPE a_total counter") == 1


def test_no_server_is_an_empty_page():
    assert labelled({})[0] == b""
