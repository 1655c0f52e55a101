"""`antiphon serve`: flags and a file become a running server."""

import asyncio
import logging
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from antiphon.cli.environment import ADMIN_KEYS_VARIABLE, SERVER_KEYS_VARIABLE
from antiphon.cli.faults import one_line_errors

if TYPE_CHECKING:
    from antiphon.bootstrap import Assembly

_FLAGS = "Configuration (each wins over the file)"
_LOGGED_BODY_BYTES = 2000


def serve(
    *,
    config: Annotated[
        Path | None, typer.Option(help="A .json or .toml file; without one, every installed model.")
    ] = None,
    parallel_jobs: Annotated[
        bool, typer.Option("--parallel-jobs", help="Several slots a model (experimental).")
    ] = False,
    family: Annotated[list[str] | None, typer.Option(metavar="MODULE:CLASS", help="One more model family.")] = None,
    host: Annotated[str | None, typer.Option(help="127.0.0.1 by default.", rich_help_panel=_FLAGS)] = None,
    port: Annotated[int | None, typer.Option(help="8080 by default.", rich_help_panel=_FLAGS)] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda or vulkan.", rich_help_panel=_FLAGS)] = None,
    isolation: Annotated[
        str | None, typer.Option(help="process (by default) or thread.", rich_help_panel=_FLAGS)
    ] = None,
    lazy_load: Annotated[bool | None, typer.Option("--lazy-load/--eager-load", rich_help_panel=_FLAGS)] = None,
    busy_timeout_ms: Annotated[int | None, typer.Option(help="0 = no bound.", rich_help_panel=_FLAGS)] = None,
    run_timeout_ms: Annotated[int | None, typer.Option(help="0 = no limit.", rich_help_panel=_FLAGS)] = None,
    load_timeout_ms: Annotated[int | None, typer.Option(help="0 = no limit.", rich_help_panel=_FLAGS)] = None,
    teardown_timeout_ms: Annotated[int | None, typer.Option(help="0 = no limit.", rich_help_panel=_FLAGS)] = None,
    max_text_chars: Annotated[int | None, typer.Option(rich_help_panel=_FLAGS)] = None,
    speech_format: Annotated[
        str | None,
        typer.Option(help="What speech is answered in, unless asked: wav by default.", rich_help_panel=_FLAGS),
    ] = None,
    max_audio_seconds: Annotated[int | None, typer.Option(rich_help_panel=_FLAGS)] = None,
    max_request_body_bytes: Annotated[int | None, typer.Option(rich_help_panel=_FLAGS)] = None,
    max_pending_audio_mb: Annotated[int | None, typer.Option(rich_help_panel=_FLAGS)] = None,
    max_loaded_models: Annotated[int | None, typer.Option(help="0 = no limit.", rich_help_panel=_FLAGS)] = None,
    idle_unload_ms: Annotated[int | None, typer.Option(help="0 = never.", rich_help_panel=_FLAGS)] = None,
    min_free_memory_mb: Annotated[int | None, typer.Option(help="0 = not looked at.", rich_help_panel=_FLAGS)] = None,
    residency_wait_ms: Annotated[int | None, typer.Option(help="0 = refuse at once.", rich_help_panel=_FLAGS)] = None,
    ui_management: Annotated[bool | None, typer.Option(help="Allow clients to manage.", rich_help_panel=_FLAGS)] = None,
    models_root: Annotated[Path | None, typer.Option(rich_help_panel=_FLAGS)] = None,
    voice_dir: Annotated[
        Path | None, typer.Option(help="A folder of recordings, each a voice to imitate.", rich_help_panel=_FLAGS)
    ] = None,
    allowed_audio_roots: Annotated[list[Path] | None, typer.Option(rich_help_panel=_FLAGS)] = None,
    api_key: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY",
            help="A key that clients must send; may be given several times. Other users of the machine can see flags: "
            f"better is the environment, {SERVER_KEYS_VARIABLE}=KEY,KEY, or a file.",
            rich_help_panel=_FLAGS,
        ),
    ] = None,
    api_keys_file: Annotated[Path | None, typer.Option(help="One key a line.", rich_help_panel=_FLAGS)] = None,
    admin_keys_file: Annotated[
        Path | None,
        typer.Option(
            help=f"Keys that management asks for, one a line; or in the environment, {ADMIN_KEYS_VARIABLE}=KEY,KEY.",
            rich_help_panel=_FLAGS,
        ),
    ] = None,
    insecure: Annotated[
        bool | None,
        typer.Option("--insecure", help="Listen beyond this machine without a key.", rich_help_panel=_FLAGS),
    ] = None,
    cors_origins: Annotated[
        str | None, typer.Option(help="Pages that may call: * or https://a.org,https://b.org.", rich_help_panel=_FLAGS)
    ] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="Serve HTTPS: the certificate.", rich_help_panel=_FLAGS)] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Serve HTTPS: its private key.", rich_help_panel=_FLAGS)] = None,
    max_connections: Annotated[int | None, typer.Option(help="0 = no limit.", rich_help_panel=_FLAGS)] = None,
    drain_timeout_ms: Annotated[
        int | None, typer.Option(help="How long a stop waits for work; 0 = no bound.", rich_help_panel=_FLAGS)
    ] = None,
    journal: Annotated[
        Path | None, typer.Option(help="Write what happens to the models to a file.", rich_help_panel=_FLAGS)
    ] = None,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
    log_format: Annotated[str, typer.Option(help="pretty, or json: one object a line.")] = "pretty",
    log_bodies: Annotated[
        bool, typer.Option("--log-bodies", help="Write the first 2,000 bytes of each body into the log.")
    ] = False,
) -> None:
    """Serve speech models over HTTP until Ctrl-C or SIGTERM."""
    from antiphon.runtime.permanent import permanent_imports

    with permanent_imports():
        from antiphon.bootstrap import assemble, installed_config
        from antiphon.bootstrap import serve as serve_assembly
        from antiphon.config import load_config
        from antiphon.config.wording import shown_path
        from antiphon.runtime.discovery import AdapterFinder
        from antiphon.runtime.parallel import STARTUP_NOTICE
        from antiphon.runtime.signals import StopSignals

    flags: dict[str, object] = {
        "host": host,
        "port": port,
        "device": device,
        "isolation": isolation,
        "lazy_load": lazy_load,
        "busy_timeout_ms": busy_timeout_ms,
        "run_timeout_ms": run_timeout_ms,
        "load_timeout_ms": load_timeout_ms,
        "teardown_timeout_ms": teardown_timeout_ms,
        "max_text_chars": max_text_chars,
        "speech_format": speech_format,
        "max_audio_seconds": max_audio_seconds,
        "max_request_body_bytes": max_request_body_bytes,
        "max_pending_audio_mb": max_pending_audio_mb,
        "max_loaded_models": max_loaded_models,
        "idle_unload_ms": idle_unload_ms,
        "min_free_memory_mb": min_free_memory_mb,
        "residency_wait_ms": residency_wait_ms,
        "ui_management": ui_management,
        "models_root": None if models_root is None else str(models_root),
        "voice_dir": None if voice_dir is None else str(voice_dir),
        "allowed_audio_roots": [str(root) for root in allowed_audio_roots] if allowed_audio_roots else None,
        "api_keys": keys_of_the_environment(SERVER_KEYS_VARIABLE, api_key),
        "admin_keys": keys_of_the_environment(ADMIN_KEYS_VARIABLE),
        "api_keys_file": None if api_keys_file is None else str(api_keys_file),
        "admin_keys_file": None if admin_keys_file is None else str(admin_keys_file),
        "insecure": insecure,
        "cors_origins": cors_origins,
        "tls_cert": None if tls_cert is None else str(tls_cert),
        "tls_key": None if tls_key is None else str(tls_key),
        "max_connections": max_connections,
        "drain_timeout_ms": drain_timeout_ms,
        "journal": None if journal is None else str(journal),
    }
    log_to_stderr(log_level, log_format)
    with StopSignals() as signals, one_line_errors():
        if config is None:
            settings = installed_config(models_root, flags, parallel_jobs=parallel_jobs)
        else:
            settings = load_config(config, parallel_jobs=parallel_jobs, overrides=flags)
        assembly = assemble(
            settings,
            AdapterFinder(family or ()),
            parallel_jobs=parallel_jobs,
            source="the installed models" if config is None else shown_path(config),
            logged_body_bytes=_LOGGED_BODY_BYTES if log_bodies else 0,
        )
        if parallel_jobs:
            typer.echo(STARTUP_NOTICE, err=True)  # rule.startup_notice

        def announce(url: str) -> None:
            typer.echo(f"antiphon is listening on {url}", err=True)
            if example := _curl_line(assembly, url):
                typer.echo(f"try:  {example}", err=True)

        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(serve_assembly(assembly, announce, signals))


def keys_of_the_environment(variable: str, in_flags: Sequence[str] | None = None) -> list[str] | None:
    """Take the variable's keys, unless flags bring some; it is gone afterwards: no engine's process inherits it."""
    from antiphon.config.keys import listed_keys

    keys = listed_keys(os.environ.pop(variable, ""))
    return list(in_flags or keys) or None


def loop_factory() -> "type[asyncio.AbstractEventLoop] | None":
    """The event loop that servers run on."""
    import uvloop

    return uvloop.Loop


def _curl_line(assembly: "Assembly", url: str) -> str | None:
    """A command that speaks, for a server that has a voice; a key is never shown."""
    key = " -H 'authorization: Bearer YOUR_KEY'" if assembly.config.api_keys else ""
    for view in assembly.runtime.views():
        spec = view.registration.spec
        if spec.task == "tts":
            body = f'{{"model": "{spec.id}", "input": "Hello from antiphon."}}'
            return f"curl {url}/v1/audio/speech{key} -d {shlex.quote(body)} -o hello.wav"
    return None


def log_to_stderr(level: str, form: str) -> None:
    """Write the log as the two flags say; raises BadParameter for what is neither."""
    from antiphon.observability.lines import FORMATS, log_lines

    if level.upper() not in logging.getLevelNamesMapping():
        raise typer.BadParameter(f"{level!r} is no level", param_hint="--log-level")
    if form not in FORMATS:
        raise typer.BadParameter(f"{form!r} is neither of {', '.join(FORMATS)}", param_hint="--log-format")
    log_lines(level.upper(), FORMATS[form]())
    logging.getLogger("python_multipart").setLevel(logging.ERROR)  # it warns of every malformed form, which we answer
    logging.getLogger("faster_whisper").setLevel(logging.WARNING)  # it tells of every request
