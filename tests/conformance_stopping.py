"""What holds of the models of a server that was stopped. How the server was told to stop is a test's matter."""

from conformance_server import Model


def assert_destroyed_after_use(*models: Model) -> None:
    """Each pool that was ever built was destroyed whole, the last one after all that ran in it."""
    for model in models:
        for checkpoint in model.checkpoints:
            steps = [event.step for event in checkpoint.events()]
            assert steps.count("closed") == steps.count("load")
            assert steps.count("session_closed") == steps.count("open") + steps.count("clone")
            last_pool = steps[_last_index(steps, "open") + 1 :]
            gone = last_pool[last_pool.index("destroy") :] if "destroy" in last_pool else []
            assert not {"run", "ran", "prepare"} & set(gone)


def _last_index(steps: list[str], step: str) -> int:
    return len(steps) - 1 - steps[::-1].index(step) if step in steps else -1
