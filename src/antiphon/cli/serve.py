"""`antiphon serve`: its flags, and how it logs. What a server is made of, and how it runs, `serving` knows."""

import logging
from pathlib import Path
from typing import Annotated

import typer

from antiphon.cli import serve_flags as flags
from antiphon.runtime.permanent import permanent_imports

_LOGGED_BODY_BYTES = 2000

_Config = Annotated[Path | None, typer.Option(help="A .json or .toml file; without one, every installed model.")]
_ParallelJobs = Annotated[bool, typer.Option("--parallel-jobs", help="Several slots a model (experimental).")]
_Families = Annotated[list[str] | None, typer.Option(metavar="MODULE:CLASS", help="One more model family.")]
_LogBodies = Annotated[
    bool, typer.Option("--log-bodies", help="Write the first 2,000 bytes of each body into the log.")
]


def serve(
    context: typer.Context,
    *,
    config: _Config = None,
    parallel_jobs: _ParallelJobs = False,
    family: _Families = None,
    host: flags.Host = None,
    port: flags.Port = None,
    device: flags.Device = None,
    isolation: flags.Isolation = None,
    lazy_load: flags.LazyLoad = None,
    busy_timeout_ms: flags.BusyTimeoutMs = None,
    run_timeout_ms: flags.RunTimeoutMs = None,
    cancel_timeout_ms: flags.CancelTimeoutMs = None,
    load_timeout_ms: flags.LoadTimeoutMs = None,
    teardown_timeout_ms: flags.TeardownTimeoutMs = None,
    max_text_chars: flags.MaxTextChars = None,
    speech_format: flags.SpeechFormat = None,
    max_audio_seconds: flags.MaxAudioSeconds = None,
    max_request_body_bytes: flags.MaxRequestBodyBytes = None,
    max_pending_audio_mb: flags.MaxPendingAudioMb = None,
    max_loaded_models: flags.MaxLoadedModels = None,
    idle_unload_ms: flags.IdleUnloadMs = None,
    min_free_memory_mb: flags.MinFreeMemoryMb = None,
    residency_wait_ms: flags.ResidencyWaitMs = None,
    ui_management: flags.UiManagement = None,
    models_root: flags.ModelsRoot = None,
    voice_dir: flags.VoiceDir = None,
    allowed_audio_roots: flags.AllowedAudioRoots = None,
    api_key: flags.ApiKey = None,
    api_keys_file: flags.ApiKeysFile = None,
    admin_keys_file: flags.AdminKeysFile = None,
    insecure: flags.Insecure = None,
    allowed_hosts: flags.AllowedHosts = None,
    cors_origins: flags.CorsOrigins = None,
    tls_cert: flags.TlsCert = None,
    tls_key: flags.TlsKey = None,
    max_connections: flags.MaxConnections = None,
    drain_timeout_ms: flags.DrainTimeoutMs = None,
    journal: flags.Journal = None,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
    log_format: Annotated[str, typer.Option(help="pretty, or json: one object a line.")] = "pretty",
    log_bodies: _LogBodies = False,
) -> None:
    """Serve speech models over HTTP until Ctrl-C, SIGTERM or SIGHUP."""
    with permanent_imports():
        from antiphon.cli.serving import Order, run

    fields = flags.given_fields(context.params)
    log_to_stderr(log_level, log_format)
    logged_body_bytes = _LOGGED_BODY_BYTES if log_bodies else 0
    run(Order(config, models_root, fields, tuple(family or ()), parallel_jobs, logged_body_bytes))


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
