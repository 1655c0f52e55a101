"""A registration as the fields that register it again: the way back from `schema`. It validates nothing."""

from collections.abc import Mapping

from antiphon.vocabulary.spec import LiveLimits, Registration
from antiphon.vocabulary.terms import NATURAL_SPEED, LibraryVoice, Reference, Terms, VoiceFile


def written_fields(registration: Registration, *, parallel_jobs: bool) -> dict[str, object]:
    """The fields of the model's configuration, complete: `model_registration` makes an equal registration of them.

    What is open (None, or empty) is left out; so are `threads` and `isolation` where the server decides, and `slots`
    without `parallel_jobs`, where that field is refused.
    """
    spec = registration.spec
    fields = {
        "id": spec.id,
        "family": spec.family,
        "path": spec.path,
        "task": spec.task,
        "mode": spec.mode,
        "slots": spec.slots if parallel_jobs else None,
        "lazy": registration.lazy,
        "pinned": registration.pinned,
        "aliases": list(registration.aliases),
        "busy_timeout_ms": registration.busy_timeout_ms,
        "run_timeout_ms": registration.run_timeout_ms,
        "cancel_timeout_ms": registration.cancel_timeout_ms,
        "load_timeout_ms": registration.load_timeout_ms,
        "teardown_timeout_ms": registration.teardown_timeout_ms,
        "threads": spec.threads_setting if registration.threads_asked else None,
        "isolation": spec.isolation if registration.isolation_asked else None,
        "load_options": dict(spec.load_options),
        "session_options": dict(spec.session_options),
        "voice_presets": {name: _preset(terms) for name, terms in registration.voice_presets.items()},
        "default_voice_preset": registration.default_voice_preset,
        "default_request_options": _request_defaults(registration.default_request_options),
        "live_ingest": _live(registration.live),
    }
    return _said(fields)


def _preset(terms: Terms) -> dict[str, object]:
    fields = {
        "voice": terms.voice,
        "voice_ref": _voice_ref(terms.reference),
        "reference_text": terms.reference_text,
        "language": terms.language,
        "seed": terms.seed,
        "options": dict(terms.options),
    }
    # None is the natural speed, which is something else than no speed at all.
    speed = {"speed": terms.named["speed"] or NATURAL_SPEED} if "speed" in terms.named else {}
    return {**_said(fields), **speed}


def _request_defaults(terms: Terms) -> dict[str, object]:
    return {**terms.options, **_said({"language": terms.language, "seed": terms.seed})}


def _voice_ref(reference: Reference | None) -> str | dict[str, str] | None:
    match reference:
        case LibraryVoice(name):
            return name
        case VoiceFile(path):
            return {"path": path}
        case _:  # a preset has no recording in memory
            return None


def _live(limits: LiveLimits) -> dict[str, object]:
    return {
        "idle_timeout_ms": round(limits.idle_timeout_s * 1000),
        "total_timeout_ms": round(limits.total_timeout_s * 1000),
        "max_body_bytes": limits.max_body_bytes,
        "max_chunk_bytes": limits.max_chunk_bytes,
        "send_timeout_ms": round(limits.send_timeout_s * 1000),
    }


def _said(fields: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in fields.items() if value not in (None, [], {})}
