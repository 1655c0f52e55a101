"""The composition root: from a configuration to a runtime, its services and a listening server."""

import logging
import os
import socket
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from fastapi import FastAPI

from antiphon.admission.gate import Gate
from antiphon.audio.decode import DecodeLimits
from antiphon.config import ServerConfig, build_config, model_registration, usable_cores
from antiphon.http.access import AccessRules, local_names, network_names
from antiphon.http.app import HttpLimits, Services, create_app
from antiphon.http.held_bodies import BodyBudget
from antiphon.http.ledger import RequestLedger
from antiphon.http.server import HttpServer, address_of, listen, resolve
from antiphon.http.tls import tls_context
from antiphon.listeners.kinds import make_listener
from antiphon.listeners.side import SideListeners
from antiphon.observability.counts import Counts
from antiphon.observability.journal.gate import JournaledGate
from antiphon.observability.journal.journal import Journal
from antiphon.observability.journal.lines import JournalLines
from antiphon.observability.log import LogObserver
from antiphon.observability.metrics import Metrics
from antiphon.observability.observers import Observers
from antiphon.observability.records import RecordKeeper
from antiphon.packages import (
    InstalledModel,
    damaged_packages,
    default_models_root,
    installed_registrations,
    shipped_catalogue,
)
from antiphon.ports.clock import Clock
from antiphon.ports.host import SlotHost
from antiphon.ports.listener import HouseRules, NoLedger, PeerLimits, Served
from antiphon.runtime.api import BoundModel, ModelView
from antiphon.runtime.audit import audited_slots, check_slots
from antiphon.runtime.clock import LoopClock
from antiphon.runtime.codecs import ThreadCodec
from antiphon.runtime.descriptors import descriptor_limit
from antiphon.runtime.discovery import AdapterFinder
from antiphon.runtime.hosts.process import ProcessHost
from antiphon.runtime.hosts.thread import ThreadHost
from antiphon.runtime.inspection import Inspections, Inspector
from antiphon.runtime.isolation import isolated
from antiphon.runtime.line_file import LineFile
from antiphon.runtime.memory import SystemMemory
from antiphon.runtime.models import ModelRuntime
from antiphon.runtime.parallel import ParallelServerState
from antiphon.runtime.peaks import PEAKS_FILE, PeakMemory
from antiphon.runtime.process_codec import ProcessCodec
from antiphon.runtime.serial import ServerState
from antiphon.runtime.shutdown import Shutdown
from antiphon.runtime.signals import StopSource
from antiphon.runtime.supervisor import Supervisor
from antiphon.runtime.threads import with_threads
from antiphon.runtime.wiring import EngineLimits, ResidencyLimits, RuntimePorts
from antiphon.service.alignment import AlignmentService
from antiphon.service.completion import require_presets
from antiphon.service.models import ModelService
from antiphon.service.models_root import ModelsRoot
from antiphon.service.packages import PackageService
from antiphon.service.readings import readings
from antiphon.service.speech import SpeechService
from antiphon.service.tasks import TaskService
from antiphon.service.transcription import TranscriptionService
from antiphon.service.voice_library import VoiceLibrary
from antiphon.service.voices import VoiceService
from antiphon.vocabulary.errors import AntiphonError, ConfigError, InvalidRequest, ServerBusy
from antiphon.vocabulary.spec import Capability, DamagedModel, ModelSpec, Registration
from antiphon.vocabulary.states import Isolation
from antiphon.vocabulary.tasks import Task

log = logging.getLogger(__name__)

JOURNAL = "the journal"
"""What its file is called where something is wrong with it."""

_MIB = 1024 * 1024
_OPENAI_MODELS = {Task.ASR: ("whisper-1",), Task.TTS: ("tts-1", "tts-1-hd", "gpt-4o-mini-tts")}
"""What OpenAI's clients ask for unless told otherwise."""


@dataclass(frozen=True, slots=True)
class Callers:
    """Who can reach a listener, as far as it matters for the names that it may be called by; as in AccessRules."""

    local_names: frozenset[str] | None = None
    network_names: frozenset[str] | None = None

    @property
    def are_local(self) -> bool:
        """Whether only this machine can reach it."""
        return self.local_names is not None


ANYONE = Callers()
"""Whoever can reach a listener that browsers cannot, such as a Unix socket."""


@dataclass(frozen=True, slots=True)
class Assembly:
    """A server put together and not yet started."""

    config: ServerConfig
    runtime: ModelRuntime
    codec: ThreadCodec
    services: Services
    ledger: RequestLedger | None
    journal: Journal
    bodies: BodyBudget
    inspections: Inspections

    def kill_workers(self) -> None:
        """End whatever reads or decodes files for requests now, and begin no more of it."""
        self.codec.kill()
        self.inspections.kill()

    def app(self, callers: Callers = ANYONE) -> FastAPI:
        """The HTTP application over these services, for these callers."""
        config = self.config
        limits = HttpLimits(
            config.max_request_body_bytes,
            config.max_json_body_bytes,
            config.max_text_chars,
            config.allowed_audio_roots,
            config.voice_dir,
        )
        access = self.access(callers)
        return create_app(self.services, limits, access, config.speech_format, ledger=self.ledger, bodies=self.bodies)

    def access(self, callers: Callers = ANYONE) -> AccessRules:
        """What is asked of callers."""
        return access_rules(self.config, callers)

    async def close(self) -> None:
        """End the installs, let the admitted work end, and free the models."""
        await self.services.packages.close()
        await self.runtime.close()
        self.inspections.close()
        await self.codec.terminate()


def installed_config(models_root: Path | None, flags: dict[str, object], *, parallel_jobs: bool) -> ServerConfig:
    """The configuration of a server that was given none: every installed package.

    Under `--parallel-jobs` each has as many slots as there are cores, where the audit list allows: more bring nothing.
    Raises ConfigError when nothing is installed.
    """
    installed = installed_registrations(models_root or default_models_root())
    aliases = _openai_names(installed)
    models: list[dict[str, object]] = [
        {"id": it.id, "family": it.family, "task": str(it.task), "mode": str(it.mode), "path": str(it.path)}
        | {"aliases": aliases.get(it.id, [])}
        for it in installed
    ]
    if not models and not damaged_packages(models_root or default_models_root()):
        raise ConfigError("no model is installed; `antiphon models install --default` brings some")
    given = {name: value for name, value in flags.items() if value is not None}
    build = partial(
        build_config, source="the installed models", base=Path.cwd(), parallel_jobs=parallel_jobs, flags=given
    )
    config = build({"models": models})
    if not parallel_jobs:
        return config
    cores = usable_cores()
    for model, registration in zip(models, config.registrations(), strict=True):
        model["slots"] = min(cores, audited_slots(registration.spec))
    return build({"models": models})


def _openai_names(installed: Sequence[InstalledModel]) -> dict[str, list[str]]:
    """Which model answers to OpenAI's names of its task: the first by id, packages of the default set before others."""
    defaults = {package.id for package in shipped_catalogue().defaults()}
    taken = {it.id for it in installed}
    aliases: dict[str, list[str]] = {}
    for task, names in _OPENAI_MODELS.items():
        of_task = sorted((it.id for it in installed if it.task is task), key=lambda id_: (id_ not in defaults, id_))
        if of_task:
            aliases[of_task[0]] = [name for name in names if name not in taken]
    return aliases


def assemble(
    config: ServerConfig,
    finder: AdapterFinder,
    *,
    parallel_jobs: bool,
    max_slots_of: Callable[[ModelSpec], int] = audited_slots,
    source: str = "the configuration",
    logged_body_bytes: int = 0,
    observed: bool = True,
    damaged: Sequence[DamagedModel] | None = None,
) -> Assembly:
    """Put a server together. Every model is inspected, none is loaded; raises ConfigError for one that cannot be.

    With `damaged`, a list of installed models that are left out already, such a model is left out, too, and reported
    beside those: one damaged package does not keep the others from being served.

    `max_slots_of` stands for the audit list, which only its own validation goes past. `source` is what a fault in a
    field is told of. Of each body `logged_body_bytes` go into the log. `observed` False enters no request and counts
    nothing: the bench holds that against a server that does.
    """
    clock = LoopClock()
    codec, counts, journal = make_codec(config, clock), Counts(), Journal(clock)
    library = VoiceLibrary(config.voice_dir)
    inspections = Inspections(clock, finder.target)
    models_root = Path(config.models_root) if config.models_root else default_models_root()
    ports = RuntimePorts(
        clock,
        codec,
        Observers([RecordKeeper(), counts, journal, LogObserver()] if observed else [LogObserver()]),
        partial(_make_host, finder),
        SystemMemory(),
        config.busy_timeout_ms,
        _residency_limits(config),
        EngineLimits(
            run_s=config.run_timeout_ms / 1000,
            cancel_s=config.cancel_timeout_ms / 1000,
            load_s=config.load_timeout_ms / 1000,
            teardown_s=config.teardown_timeout_ms / 1000,
            reader_s=config.slow_reader_timeout_ms / 1000,
        ),
        max_slots_of=max_slots_of,
        check=partial(require_presets, library=library),
        make_gate=partial(JournaledGate, journal=journal) if observed else Gate,
        peaks=PeakMemory(models_root / PEAKS_FILE),
        inspect=inspections.inspect,
    )
    runtime = ParallelServerState(ports) if parallel_jobs else ServerState(ports)
    left_out = list(damaged or ())
    with Inspector(finder.target) as inspector:
        for index, asked in enumerate(config.registrations()):
            try:
                registration, capability = accepted(inspector, asked, library)
            except ServerBusy:  # no process could be started, which is no fault of the model
                raise
            except AntiphonError as fault:
                if damaged is None:
                    raise ConfigError(f"{source}: {_fault_of(index, asked.spec.id, fault)}") from fault
                left_out.append(DamagedModel(asked.spec.id, fault.message))
                continue
            if parallel_jobs:
                check_slots(registration.spec, max_slots_of)
            runtime.add(registration, capability)
    _report(left_out, runtime)
    services = Services(
        models=_model_service(runtime, config, left_out, parallel_jobs=parallel_jobs),
        speech=SpeechService(runtime, codec, config.max_text_chars, library),
        transcription=TranscriptionService(runtime, codec),
        alignment=AlignmentService(runtime, codec, config.max_text_chars),
        tasks=TaskService(runtime, codec, config.max_text_chars, library),
        voices=VoiceService(runtime, library),
        packages=PackageService(ModelsRoot(models_root), runtime),
        metrics=Metrics(counts, partial(readings, runtime), parallel=parallel_jobs),
        journal=journal,
        clock=clock,
    )
    ledger = RequestLedger(counts, logged_body_bytes) if observed else None
    return Assembly(config, runtime, codec, services, ledger, journal, body_budget(config), inspections)


def _make_host(finder: AdapterFinder, spec: ModelSpec, on_death: Callable[[], None]) -> SlotHost:
    adapter = finder.find(spec.family)  # an unknown family is refused here, and not by its worker
    if spec.isolation is Isolation.PROCESS:
        return ProcessHost(finder.target(spec.family), spec, on_death)
    return ThreadHost(adapter, spec)


def _residency_limits(config: ServerConfig) -> ResidencyLimits:
    return ResidencyLimits(
        max_loaded_models=config.max_loaded_models,
        idle_unload_s=config.idle_unload_ms / 1000,
        min_free_memory_bytes=config.min_free_memory_mb * _MIB,
        residency_wait_s=config.residency_wait_ms / 1000,
    )


def _fault_of(index: int, model_id: str, fault: AntiphonError) -> str:
    """Say where in the configuration the fault is, and which model has it."""
    if isinstance(fault, InvalidRequest):  # about a preset or a default: its message begins with the field
        return f"models[{index}].{fault.message}"
    named = f"model {model_id!r}: "
    if fault.message.startswith(named):  # the message names the field
        return f"models[{index}]: {fault.message}"
    return f"models[{index}].{fault.param or 'path'}: {named}{fault.message}"


def _report(left_out: Sequence[DamagedModel], runtime: ModelRuntime) -> None:
    for model in left_out:
        log.error("%s is not served: %s", model.id, model.reason)
    if left_out and not runtime.views():
        told = "; ".join(f"{model.id}: {model.reason}" for model in left_out)
        raise ConfigError(f"no installed model can be served: {told}; `antiphon doctor` says what to do")


def _model_service(
    runtime: ModelRuntime, config: ServerConfig, damaged: Sequence[DamagedModel], *, parallel_jobs: bool
) -> ModelService:
    parse = partial(
        model_registration,
        parallel_jobs=parallel_jobs,
        device=config.device,
        lazy_load=config.lazy_load,
        isolation=config.isolation,
        live=config.live_limits(),
    )
    return ModelService(runtime, parse, management=config.ui_management, damaged=damaged)


def make_codec(config: ServerConfig, clock: Clock) -> ThreadCodec:
    """What decodes and encodes under this configuration."""
    limits = DecodeLimits(max_seconds=config.max_audio_seconds)
    pending_bytes = config.max_pending_audio_mb * _MIB
    if config.isolation is Isolation.PROCESS:
        return ProcessCodec(limits, pending_bytes, usable_cores(), clock)
    return ThreadCodec(limits, pending_bytes, usable_cores())


def body_budget(config: ServerConfig) -> BodyBudget:
    """What all request bodies together may hold: uploads in temporary files take a quarter of the descriptors."""
    return BodyBudget(config.max_pending_body_mb * _MIB, descriptor_limit() // 4)


def accepted(
    inspector: Inspector, registration: Registration, library: VoiceLibrary
) -> tuple[Registration, Capability]:
    """A registration with the isolation and the threads that a start gives it, and what the model can do.

    Raises ConfigError as `fitted` does, InvalidRequest for presets and defaults.
    """
    fit, capability = fitted(inspector, registration)
    require_presets(BoundModel(fit, capability), library)
    return fit, capability


def fitted(inspector: Inspector, registration: Registration) -> tuple[Registration, Capability]:
    """The same without a look at presets and defaults; raises ConfigError as `inspect` does, and for threads."""
    capability = inspect(inspector, registration)
    return isolated(with_threads(registration, capability), capability), capability


def inspect(inspector: Inspector, registration: Registration) -> Capability:
    """Ask the adapter what the model can do; raises ConfigError where it is not for this task or mode."""
    spec = registration.spec
    capability = inspector.inspect(spec)
    if spec.task not in capability.tasks:
        raise ConfigError(f"model {spec.id!r}: task is {spec.task}, and it is for {', '.join(capability.tasks)}")
    if spec.mode not in capability.modes:
        raise ConfigError(f"model {spec.id!r}: mode is {spec.mode}, and it runs {', '.join(capability.modes)}")
    return capability


def access_rules(config: ServerConfig, callers: Callers) -> AccessRules:
    """What a listener asks of its callers."""
    return AccessRules(config.api_keys, config.origins(), callers.local_names, config.admin_keys, callers.network_names)


def bind_as_allowed(config: ServerConfig) -> tuple[socket.socket, Callers]:
    """Bind the default listener's socket; with it come those who can reach it.

    Raises ConfigError where that is not possible, or would let other machines in without a key.
    """
    # The key is checked before the socket listens: until then nobody can connect.
    address = resolve(config.host, config.port)
    names = local_names(config.host, address.host)
    if names is None and not config.api_keys and not config.insecure:
        raise ConfigError(
            f"host: {config.host} can be reached from other machines, and no API key is set;"
            " set one (--api-key), or say --insecure"
        )
    allowed = frozenset(config.allowed_hosts)
    if names is not None:
        return listen(address), Callers(local_names=names | allowed)
    return listen(address), Callers(network_names=None if config.api_keys else network_names(config.host) | allowed)


async def serve(assembly: Assembly, on_listening: Callable[[str], None], signals: StopSource | None = None) -> None:
    """Serve until told to stop, then drain: returns once all that was begun has ended, and every model is freed.

    Models that are not lazy load once it listens; `on_listening` is told its base URL.
    """
    config, clock = assembly.config, LoopClock()
    with ExitStack() as opened:
        tls = tls_context(config.tls_cert, config.tls_key) if config.tls_cert and config.tls_key else None
        bound, callers = bind_as_allowed(config)
        opened.callback(bound.close)
        rules = HouseRules(assembly.access().accepted_keys, config.insecure)
        side = SideListeners([make_listener(it.kind, it.options(), rules) for it in config.listeners])
        side.open()
        opened.callback(side.close)
        written = opened_journal(assembly, clock)
        supervisor = Supervisor(os.environ, clock)
        opened.callback(supervisor.close)

        def begun() -> None:
            supervisor.stopping()
            assembly.journal.end()

        shutdown = Shutdown(assembly.runtime, clock, config.drain_timeout_ms / 1000, assembly.kill_workers, begun)
        opened.callback(shutdown.close)
        if signals is not None:
            signals.tell(shutdown.ask)
        try:
            url = address_of(bound, secure=tls is not None)
            on_listening(url)
            if any(map(_hears, assembly.runtime.views())):
                await assembly.codec.start()
            await assembly.runtime.start()
            limits = peer_limits(config)
            order, ledger = shutdown.order, assembly.ledger or NoLedger()
            if config.listeners:  # an application of their own: it takes time to build
                side.start(Served(assembly.app(), limits, order, ledger), shutdown.begin)
            if not order.begun.is_set():
                supervisor.ready(f"answering at {url}, models: {len(config.models)}")
            try:
                await HttpServer(bound, Served(assembly.app(callers), limits, order, ledger), clock, tls).serve()
            finally:
                shutdown.begin()
                await side.join()
        finally:
            try:
                await assembly.close()
            finally:
                if written is not None:
                    await written.close()


def _hears(view: ModelView) -> bool:
    """Whether requests to a model bring audio."""
    return view.registration.spec.task is not Task.TTS or view.capability.clones


def opened_journal(assembly: Assembly, clock: Clock) -> JournalLines | None:
    """Begin the journal's file, if there is to be one; raises ConfigError where it cannot be written."""
    config = assembly.config
    if config.journal is None:
        return None
    file = LineFile(Path(config.journal), JOURNAL)
    file.open()
    lines = JournalLines(assembly.journal, file, clock, config.journal_max_mb * _MIB, config.max_loaded_models)
    lines.start()
    return lines


def peer_limits(config: ServerConfig) -> PeerLimits:
    """What the default listener grants its peers under this configuration.

    Connections take half of the descriptors at most. One more is refused with a reason; with the last descriptor gone,
    a connection could not even be accepted.
    """
    most_connections = descriptor_limit() // 2
    live = [config.live_limits(), *(it.live for it in config.registrations())]
    return PeerLimits(
        header_timeout_s=config.header_timeout_ms / 1000,
        body_timeout_s=config.body_timeout_ms / 1000,
        send_timeout_s=config.send_timeout_ms / 1000,
        keep_alive_s=config.keep_alive_ms / 1000,
        min_body_bytes_per_s=config.min_body_bytes_per_s,
        max_connections=min(config.max_connections or most_connections, most_connections),
        max_message_bytes=max(it.max_chunk_bytes for it in live),
    )
