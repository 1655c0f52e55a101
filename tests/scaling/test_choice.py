"""Which replica a request goes to."""

from antiphon.scaling.choice import RECENT_S, Residency, Seat, Underway

LOADED, UNLOADED = Residency(loaded=True, slots=1), Residency(loaded=False, slots=1)


class Now:
    def __init__(self):
        self.time = 0.0

    def __call__(self):
        return self.time


def seats(**models):
    return [Seat(name, it) for name, it in models.items()]


def test_the_one_that_has_the_model_goes_first():
    at = seats(a={"tts": UNLOADED}, b={"tts": LOADED}, c={"tts": UNLOADED})
    assert Underway().best_first("tts", at)[0] == "b"


def test_one_with_a_free_slot_goes_before_one_that_has_the_model_and_none():
    underway = Underway()
    underway.begin("b", "tts")
    assert underway.best_first("tts", seats(a={"tts": UNLOADED}, b={"tts": LOADED})) == ["a", "b"]


def test_where_no_slot_is_free_those_that_have_the_model_go_by_the_requests_for_each_slot():
    now, wide = Now(), Residency(loaded=True, slots=4)
    underway = Underway(now)
    for replica, requests in {"a": 1, "b": 2, "c": 5}.items():
        for _ in range(requests):
            underway.begin(replica, "tts")
    now.time = RECENT_S
    at = seats(a={"tts": UNLOADED}, b={"tts": LOADED}, c={"tts": wide})
    assert underway.best_first("tts", at) == ["c", "b", "a"]


def test_requests_for_other_models_decide_only_among_equals():
    underway = Underway()
    underway.begin("a", "asr")
    models = {"tts": LOADED, "asr": LOADED}
    assert underway.best_first("tts", seats(a=models, b=models)) == ["b", "a"]
    assert underway.best_first("tts", seats(a=models, b={"tts": UNLOADED}))[0] == "a"


def test_a_model_is_loaded_where_fewer_models_are():
    at = seats(a={"tts": UNLOADED, "asr": LOADED}, b={"tts": UNLOADED, "asr": UNLOADED})
    assert Underway().best_first("tts", at) == ["b", "a"]


def test_a_request_that_names_no_model_goes_where_the_fewest_are():
    underway = Underway()
    underway.begin("a", "tts")
    assert underway.best_first("", seats(a={"tts": LOADED}, b={"tts": LOADED})) == ["b", "a"]


def test_a_model_counts_as_loaded_where_it_was_asked_for_a_moment_ago():
    now = Now()
    underway, at = Underway(now), seats(a={"tts": UNLOADED}, b={"tts": UNLOADED})
    underway.begin("b", "tts")
    underway.end("b", "tts")
    assert underway.best_first("tts", at)[0] == "b"
    now.time = RECENT_S
    assert underway.best_first("tts", at)[0] == "a"


def test_two_that_come_at_once_see_each_other():
    underway, at = Underway(), seats(a={"tts": LOADED}, b={"tts": LOADED})
    first, second = underway.claim("tts"), underway.claim("tts")
    assert [first.choose(at)[0], second.choose(at)[0]] == ["a", "b"]


def test_a_claim_that_is_closed_is_nowhere():
    underway, at = Underway(), seats(a={"tts": LOADED}, b={"tts": LOADED})
    claim = underway.claim("tts")
    claim.choose(at)
    claim.close()
    claim.close()
    assert underway.best_first("tts", at) == ["a", "b"]


def test_a_claim_that_settles_elsewhere_has_left_where_it_was():
    underway, at = Underway(), seats(a={"tts": LOADED}, b={"tts": LOADED})
    claim = underway.claim("tts")
    claim.choose(at)
    claim.settle("b")
    assert underway.best_first("tts", at) == ["a", "b"]
    assert underway.claim("tts").choose(at)[0] == "a"
