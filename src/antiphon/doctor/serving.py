"""What `antiphon serve` would make of a configuration, short of serving it: models, files, listeners, the address."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from antiphon.bootstrap import JOURNAL, accepted, bind_as_allowed, installed_config
from antiphon.config import ServerConfig, load_config
from antiphon.doctor.diagnosis import Diagnosis, fail, ok, warn
from antiphon.http.tls import tls_context
from antiphon.listeners.kinds import make_listener
from antiphon.ports.listener import HouseRules
from antiphon.runtime.audit import audited_slots, check_slots
from antiphon.runtime.inspection import Inspector
from antiphon.runtime.line_file import LineFile
from antiphon.service.voice_library import VoiceLibrary
from antiphon.status.errors import NoServer, Refused
from antiphon.status.source import StatusSource
from antiphon.vocabulary.errors import AntiphonError
from antiphon.vocabulary.spec import Registration

_ASK_TIMEOUT_S = 5.0
_EVERY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 (it is asked, and not bound)


def configured(
    file: Path | None,
    models_root: Path | None,
    api_keys: Sequence[str] | None,
    admin_keys: Sequence[str] | None = None,
    *,
    parallel_jobs: bool,
) -> tuple[Diagnosis, ServerConfig | None]:
    """What a server would be started with: the file, or all installed models where there is none.

    The keys are those of the environment, None for a variable that is not set.
    """
    flags: dict[str, object] = {"models_root": None if models_root is None else str(models_root)}
    flags |= {
        name: None if keys is None else list(keys)
        for name, keys in (("api_keys", api_keys), ("admin_keys", admin_keys))
    }
    try:
        if file is None:
            config = installed_config(models_root, flags, parallel_jobs=parallel_jobs)
        else:
            config = load_config(file, parallel_jobs=parallel_jobs, overrides=flags)
    except AntiphonError as error:
        advice = "install models, or name a file (--config)" if file is None else "mend the file: docs/configuration.md"
        return fail("configuration", error.message, advice), None
    source = "no file: every installed model" if file is None else str(file)
    return ok("configuration", f"{source}; models: {len(config.models)}"), config


def model(
    asked: Registration, inspector: Inspector, library: VoiceLibrary, *, parallel_jobs: bool
) -> tuple[Diagnosis, int]:
    """Whether it could be loaded, as far as its files and the audit list tell, and what it needs of the memory."""
    subject = f"model {asked.spec.id}"
    try:
        registration, capability = accepted(inspector, asked, library)
        spec = registration.spec
        if parallel_jobs:
            check_slots(spec)
    except AntiphonError as error:
        return fail(subject, error.message, "mend the model's fields, or its files"), 0
    slots = f"{spec.slots} of {audited_slots(spec)} audited slots" if parallel_jobs else "one session"
    threads = "threads auto" if spec.auto_threads else f"{spec.threads} threads a call"
    said = f"{spec.family}, {spec.task}, {spec.mode}, {slots}, {threads}, in a {spec.isolation} of its own"
    return ok(subject, said), 0 if registration.lazy else capability.weight_bytes


def journal(config: ServerConfig) -> Iterator[Diagnosis]:
    """Whether the journal could be begun, if there is to be one; it is not."""
    if config.journal is None:
        return
    try:
        LineFile(Path(config.journal), JOURNAL).try_out()
    except AntiphonError as error:
        yield fail("journal", error.message, "let the server's user write the folder, or name another file")
    else:
        yield ok("journal", f"{config.journal} can be written")


def listeners(config: ServerConfig) -> Iterator[Diagnosis]:
    """Whether each of the listeners beside the default one can be made; none is opened."""
    rules = HouseRules(config.api_keys, config.insecure)
    for listener in config.listeners:
        subject = f"listener {listener.kind}"
        try:
            make_listener(listener.kind, listener.options(), rules)
        except AntiphonError as error:
            yield fail(subject, error.message, "mend its options, or install its extra: docs/listeners.md")
        else:
            yield ok(subject, "its options are in order")


def address(config: ServerConfig) -> Diagnosis:
    """Whether the default listener could listen there now; a server that serves there already is in order."""
    try:
        if config.tls_cert and config.tls_key:
            tls_context(config.tls_cert, config.tls_key)
    except AntiphonError as error:
        return fail("address", error.message, "mend tls_cert and tls_key: docs/security.md")
    try:
        bound, callers = bind_as_allowed(config)
    except AntiphonError as error:
        if config.port and _is_served(config):
            return ok("address", f"{config.host} port {config.port}: a server answers there already")
        return fail("address", error.message, "free the port, name another one, or set a key")
    with bound:
        return _reach(config, bound.getsockname()[1], is_local=callers.are_local)


def _reach(config: ServerConfig, port: int, *, is_local: bool) -> Diagnosis:
    said = f"{config.host} port {port} is free"
    if is_local or config.api_keys:
        return ok("address", f"{said}; {'this machine alone reaches it' if is_local else 'a key is asked for'}")
    return warn("address", f"{said}; whoever reaches it may use it", "set a key: docs/security.md")


def _is_served(config: ServerConfig) -> bool:
    host = _EVERY_ADDRESS.get(config.host, config.host)
    scheme = "https" if config.tls_cert else "http"
    url = f"{scheme}://[{host}]:{config.port}" if ":" in host else f"{scheme}://{host}:{config.port}"
    try:
        return b'"status"' in StatusSource(url, None, _ASK_TIMEOUT_S).get("/health")
    except (NoServer, Refused):
        return False
