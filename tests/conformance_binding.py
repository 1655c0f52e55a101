"""Two registrations that bind requests differently, and requests that show by which of them they were bound."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from antiphon.testing import ControlledCheckpoint
from conformance_client import OpenCall
from conformance_server import Model, Server

KINDS = ("run", "stream", "batch")


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, and what each registration makes of it: the terms that reach the engine, or the param of a 400."""

    text: str
    fields: Mapping[str, object]
    old: Mapping[str, object] | str
    new: Mapping[str, object] | str


ASKED = (
    Asked("plain", {}, {"options": {"tempo": 1}}, {"options": {"pitch": 2}}),
    Asked(
        "preset",
        {"voice": "narrator"},
        {"voice": "anna", "options": {"tempo": 1}},
        {"voice": "bert", "options": {"pitch": 2}},
    ),
    Asked("new option", {"options": {"pitch": 3}}, "options.pitch", {"options": {"pitch": 3}}),
    Asked("new voice", {"voice": "bert"}, "voice", {"voice": "bert", "options": {"pitch": 2}}),
    Asked("old option", {"options": {"tempo": 3}}, {"options": {"tempo": 3}}, "options.tempo"),
    Asked("old voice", {"voice": "anna"}, {"voice": "anna", "options": {"tempo": 1}}, "voice"),
)
"""Defaults, a preset that both have, and what only one of the registrations accepts."""


def rebindable(server: Server) -> tuple[Model, ControlledCheckpoint, Mapping[str, object]]:
    """A ready model, a replacement (revision `v2`) that binds every request of `ASKED` differently, and its fields."""
    model = server.unregistered_model(
        default_request_options={"tempo": 1}, voice_presets={"narrator": {"voice": "anna"}}
    )
    model.checkpoint.set("options", "tempo")
    model.checkpoint.set("voices", "anna")
    model.register().ok()
    replacement = model.replacement("v2")
    replacement.set("options", "pitch")
    replacement.set("voices", "bert")
    fields = {"default_request_options": {"pitch": 2}, "voice_presets": {"narrator": {"voice": "bert"}}}
    return model, replacement, {"path": str(replacement.path), **fields}


def ask(model: Model, kind: str) -> list[OpenCall]:
    """Start every request of `ASKED` as an offline run, a stream or a batch of its own."""
    calls = []
    for asked in ASKED:
        request = {"text": asked.text, **asked.fields}
        match kind:
            case "run":
                calls.append(model.open_infer(asked.text, request=request))
            case "stream":
                calls.append(model.open_stream(asked.text, request=request))
            case _:
                calls.append(model.open_batch(asked.text, requests=[request]))
    return calls


def assert_bound(calls: Sequence[OpenCall], checkpoint: ControlledCheckpoint, *, new: bool) -> None:
    """Assert that every request of `ASKED` was bound to the old or to the new registration, and ran in this folder."""
    for asked, call in zip(ASKED, calls, strict=True):
        wanted = asked.new if new else asked.old
        status, body = call.head().status, call.read()
        runs = checkpoint.events("run", asked.text)
        if isinstance(wanted, str):
            error = json.loads(body)["error"]
            assert (status, error["type"]) == (400, "invalid_request_error"), f"{asked.text}: {body!r}"
            assert error["param"].endswith(f".{wanted}"), f"{asked.text}: {error}"
            assert runs == [], f"{asked.text} ran"
        else:
            assert status == 200, f"{asked.text}: {body!r}"
            assert [run.terms for run in runs] == [wanted], asked.text
