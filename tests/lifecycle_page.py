"""Writes docs/lifecycle.md from the transition table: `python tests/lifecycle_page.py > docs/lifecycle.md`."""

from antiphon.residency.lifecycle import TRANSITIONS, diagram

_MEANING = {
    "load": "a load begins, under an admitted request or an exclusive lease",
    "publish": "the whole pool is built and becomes usable",
    "adopt": "a pool that was built beside the first becomes usable, although the first was unloaded meanwhile",
    "fail": "nothing usable was built; the registration stays",
    "retire": "the pool is out of use, its memory is yet to be freed",
    "destroy": "the pool's sessions and weights are gone",
    "reconfigure": "an exclusive lease begins to replace the registration of a loaded model",
    "preserve": "the working pool stays: the replacement was refused before anything changed, or needs no other pool",
}


def page() -> str:
    """The whole page."""
    rows = [f"| {before} | {step} | {after} | {_MEANING[step]} |" for (before, step), after in TRANSITIONS.items()]
    return "\n".join(
        [
            "# A model's lifecycle",
            "",
            "Generated from `antiphon.residency.lifecycle.TRANSITIONS`; a test compares. To write it anew:",
            "`python tests/lifecycle_page.py > docs/lifecycle.md`.",
            "",
            "```mermaid",
            diagram(),
            "```",
            "",
            "| state | step | next | the step |",
            "| --- | --- | --- | --- |",
            *rows,
            "",
            "When a model's worker process dies, `retire` and `destroy` are taken at once: its memory is gone already.",
            "",
            "Any other step raises `InvariantError` and leaves the state as it was.",
            "",
            "A server that stops is no state of a model: work that was accepted takes the same steps as ever, then",
            "each model is retired and freed. What happens to requests meanwhile is in [api.md](api.md#errors).",
            "",
        ]
    )


if __name__ == "__main__":
    print(page(), end="")
