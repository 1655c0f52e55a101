"""A process that loads a model as a worker does, and says which top-level modules it then has: `facts` asks it."""

import json
import sys
from collections.abc import Mapping

from antiphon.runtime.discovery import AdapterFinder
from antiphon.vocabulary.spec import ModelSpec
from antiphon.vocabulary.tasks import Task


def loaded_modules(told: Mapping[str, object]) -> list[str]:
    """Load the model, open a session, and name the modules."""
    families, load_options, session_options = told["families"], told["load_options"], told["session_options"]
    assert isinstance(families, list)
    assert isinstance(load_options, dict)
    assert isinstance(session_options, dict)
    spec = ModelSpec(
        id="libraries",
        family=str(told["family"]),
        path=str(told["path"]),
        task=Task(str(told["task"])),
        load_options=load_options,
        session_options=session_options,
    )
    model = AdapterFinder(families).find(spec.family).load(spec)
    session = model.open_session()
    names = sorted({name.partition(".")[0] for name in sys.modules})
    if session is not None:
        session.close()
    model.close()
    return names


if __name__ == "__main__":
    sys.stdout.write(f"modules {' '.join(loaded_modules(json.loads(sys.argv[1])))}\n")
    sys.stdout.flush()
