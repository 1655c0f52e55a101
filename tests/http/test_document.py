"""The OpenAPI document by itself: that it is whole, and that it says which keys the server asks for."""

from collections.abc import Iterator
from dataclasses import fields

import pytest

from antiphon.http.access import AccessRules
from antiphon.http.app import HttpLimits, Services, create_app
from antiphon.http.document import answered, managed

OPEN = AccessRules()
GUARDED = AccessRules(("an-api-key",), admin_keys=("an-admin-key",))
ADMINISTERED = AccessRules(admin_keys=("an-admin-key",))


def document_under(rules):
    return create_app(Services(*[None] * len(fields(Services))), HttpLimits(0, 0, 0), rules).openapi()


def operations(document):
    return {(method, path): it for path, methods in document["paths"].items() for method, it in methods.items()}


def references(part) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"]
        for inner in part.values():
            yield from references(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from references(inner)


@pytest.mark.parametrize("rules", [OPEN, GUARDED, ADMINISTERED])
def test_every_reference_leads_somewhere_in_the_document(rules):
    document = document_under(rules)
    found = set(references(document))
    assert "#/components/schemas/Error" in found
    for reference in found:
        place = document
        for name in reference.removeprefix("#/").split("/"):
            place = place[name]


def test_every_operation_has_a_name_a_summary_and_a_success_with_a_description():
    listed = operations(document_under(OPEN)).values()
    assert len({it["operationId"] for it in listed}) == len(listed)
    for operation in listed:
        assert 0 < len(operation["summary"]) <= 120
        assert any(status.startswith("2") for status in operation["responses"])
        assert all("$ref" in it or it["description"] for it in operation["responses"].values())


def test_every_operation_says_what_it_refuses_and_promises_no_other_answer():
    for operation in operations(document_under(OPEN)).values():
        assert {"400", "403", "408", "413", "500", "503"} <= operation["responses"].keys()
        assert not {"default", "422", "401"} & operation["responses"].keys()


def test_every_answer_of_an_engine_declares_its_timing():
    listed = operations(document_under(OPEN))
    for (_, path), operation in listed.items():
        timed = "Server-Timing" in operation["responses"].get("200", {}).get("headers", {})
        assert timed == ("504" in operation["responses"]), path


def test_refusals_declare_the_headers_that_they_come_with():
    responses = document_under(GUARDED)["components"]["responses"]
    assert responses["Error503"]["headers"]["Retry-After"]["required"] is True
    assert responses["Error401"]["headers"]["WWW-Authenticate"]["required"] is True


def test_a_server_without_keys_asks_for_none():
    document = document_under(OPEN)
    assert document["components"]["securitySchemes"] == {}
    assert all(it["security"] == [] for it in operations(document).values())


def test_a_server_with_keys_says_where_which_is_wanted():
    document = document_under(GUARDED)
    listed = operations(document)
    assert document["components"]["securitySchemes"].keys() == {"ApiKey", "AdminKey"}
    assert listed["get", "/health"]["security"] == listed["get", "/health/ready"]["security"] == []
    assert listed["post", "/v1/audio/speech"]["security"] == [{"ApiKey": []}]
    assert listed["post", "/v1/models/unload"]["security"] == [{"AdminKey": []}]
    assert listed["get", "/v1/ui/packages"]["security"] == [{"AdminKey": []}]
    assert "401" in listed["post", "/v1/audio/speech"]["responses"]
    assert "401" not in listed["get", "/health"]["responses"]


def test_admin_keys_alone_are_wanted_by_management_alone():
    listed = operations(document_under(ADMINISTERED))
    assert listed["post", "/v1/audio/speech"]["security"] == []
    assert listed["post", "/v1/models/load"]["security"] == [{"AdminKey": []}]


def test_a_form_lists_its_parts_as_they_are_sent():
    listed = operations(document_under(OPEN))
    form = listed["post", "/v1/audio/transcriptions"]["requestBody"]["content"]["multipart/form-data"]["schema"]
    batch = listed["post", "/v1/batches/transcriptions"]["requestBody"]["content"]["multipart/form-data"]["schema"]
    assert form["required"] == ["model", "file"]
    assert "timestamp_granularities[]" in form["properties"]
    assert not {"options", "audio", "timestamp_granularities"} & form["properties"].keys()
    assert batch["properties"]["file"]["type"] == "array"


def test_the_form_of_a_batch_offers_nothing_that_a_batch_refuses_or_ignores():
    listed = operations(document_under(OPEN))
    batch = listed["post", "/v1/batches/transcriptions"]["requestBody"]["content"]["multipart/form-data"]["schema"]
    assert "diarized_json" not in batch["properties"]["response_format"]["enum"]
    assert not {"stream", "diarization_model"} & batch["properties"].keys()


def test_the_document_of_one_application_is_not_that_of_another():
    assert document_under(GUARDED) != document_under(OPEN)
    assert document_under(OPEN) == document_under(OPEN)


def test_what_a_route_answers_is_said_in_a_copy_of_its_own():
    assert answered(dict[str, int])["responses"]["200"]["content"].keys() == {"application/json"}
    assert managed(dict[str, int], errors=(404,))["responses"].keys() == {"200", "404"}
