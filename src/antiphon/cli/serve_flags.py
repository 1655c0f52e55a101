"""The flags of `antiphon serve` that are fields of the configuration, each of which wins over the file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from antiphon.cli.environment import ADMIN_KEYS_VARIABLE, SERVER_KEYS_VARIABLE, take_keys

_PANEL = "Configuration (each wins over the file)"

Host = Annotated[str | None, typer.Option(help="127.0.0.1 by default.", rich_help_panel=_PANEL)]
Port = Annotated[int | None, typer.Option(help="8080 by default.", rich_help_panel=_PANEL)]
Device = Annotated[str | None, typer.Option(help="cpu, cuda or vulkan.", rich_help_panel=_PANEL)]
Isolation = Annotated[str | None, typer.Option(help="process (by default) or thread.", rich_help_panel=_PANEL)]
LazyLoad = Annotated[bool | None, typer.Option("--lazy-load/--eager-load", rich_help_panel=_PANEL)]
BusyTimeoutMs = Annotated[int | None, typer.Option(help="0 = no bound.", rich_help_panel=_PANEL)]
RunTimeoutMs = Annotated[int | None, typer.Option(help="0 = no limit.", rich_help_panel=_PANEL)]
CancelTimeoutMs = Annotated[int | None, typer.Option(help="0 = no limit.", rich_help_panel=_PANEL)]
LoadTimeoutMs = Annotated[int | None, typer.Option(help="0 = no limit.", rich_help_panel=_PANEL)]
TeardownTimeoutMs = Annotated[int | None, typer.Option(help="0 = no limit.", rich_help_panel=_PANEL)]
MaxTextChars = Annotated[int | None, typer.Option(rich_help_panel=_PANEL)]
SpeechFormat = Annotated[
    str | None,
    typer.Option(help="What speech is answered in, unless asked: wav by default.", rich_help_panel=_PANEL),
]
MaxAudioSeconds = Annotated[int | None, typer.Option(rich_help_panel=_PANEL)]
MaxRequestBodyBytes = Annotated[int | None, typer.Option(rich_help_panel=_PANEL)]
MaxPendingAudioMb = Annotated[int | None, typer.Option(rich_help_panel=_PANEL)]
MaxLoadedModels = Annotated[int | None, typer.Option(help="0 = no limit.", rich_help_panel=_PANEL)]
IdleUnloadMs = Annotated[int | None, typer.Option(help="0 = never.", rich_help_panel=_PANEL)]
MinFreeMemoryMb = Annotated[int | None, typer.Option(help="0 = not looked at.", rich_help_panel=_PANEL)]
ResidencyWaitMs = Annotated[int | None, typer.Option(help="0 = refuse at once.", rich_help_panel=_PANEL)]
UiManagement = Annotated[bool | None, typer.Option(help="Allow clients to manage.", rich_help_panel=_PANEL)]
ModelsRoot = Annotated[Path | None, typer.Option(rich_help_panel=_PANEL)]
VoiceDir = Annotated[
    Path | None, typer.Option(help="A folder of recordings, each a voice to imitate.", rich_help_panel=_PANEL)
]
AllowedAudioRoots = Annotated[list[Path] | None, typer.Option(rich_help_panel=_PANEL)]
ApiKey = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY",
        help="A key that clients must send; may be given several times. Other users of the machine can see flags: "
        f"better is the environment, {SERVER_KEYS_VARIABLE}=KEY,KEY, or a file.",
        rich_help_panel=_PANEL,
    ),
]
ApiKeysFile = Annotated[Path | None, typer.Option(help="One key a line.", rich_help_panel=_PANEL)]
AdminKeysFile = Annotated[
    Path | None,
    typer.Option(
        help=f"Keys that management asks for, one a line; or in the environment, {ADMIN_KEYS_VARIABLE}=KEY,KEY.",
        rich_help_panel=_PANEL,
    ),
]
Insecure = Annotated[
    bool | None,
    typer.Option("--insecure", help="Listen beyond this machine without a key.", rich_help_panel=_PANEL),
]
AllowedHosts = Annotated[
    list[str] | None,
    typer.Option(
        "--allowed-host",
        metavar="NAME",
        help="A host name that clients may call the server by; may be given several times.",
        rich_help_panel=_PANEL,
    ),
]
CorsOrigins = Annotated[
    str | None, typer.Option(help="Pages that may call: * or https://a.org,https://b.org.", rich_help_panel=_PANEL)
]
TlsCert = Annotated[Path | None, typer.Option(help="Serve HTTPS: the certificate.", rich_help_panel=_PANEL)]
TlsKey = Annotated[Path | None, typer.Option(help="Serve HTTPS: its private key.", rich_help_panel=_PANEL)]
MaxConnections = Annotated[int | None, typer.Option(help="0 = no limit.", rich_help_panel=_PANEL)]
DrainTimeoutMs = Annotated[
    int | None, typer.Option(help="How long a stop waits for work; 0 = no bound.", rich_help_panel=_PANEL)
]
Journal = Annotated[
    Path | None, typer.Option(help="Write what happens to the models to a file.", rich_help_panel=_PANEL)
]


def given_fields(params: Mapping[str, object]) -> dict[str, object]:
    """The fields of the configuration that the command's parameters and its environment set, as a file has them.

    None is not set. Keys of the environment are gone from it afterwards.
    """
    from antiphon.config import ServerConfig

    fields = {name: _as_in_a_file(value) for name, value in params.items() if name in ServerConfig.model_fields}
    of_environment = {"api_keys": take_keys(SERVER_KEYS_VARIABLE), "admin_keys": take_keys(ADMIN_KEYS_VARIABLE)}
    in_flags = _as_in_a_file(params["api_key"])
    return {**fields, **of_environment, **({"api_keys": in_flags} if in_flags else {})}


def _as_in_a_file(value: object) -> object:
    match value:
        case Path():
            return str(value)
        case list() | tuple():
            return [_as_in_a_file(it) for it in value] or None
        case _:
            return value
