"""The HTTP application: the routes over the services, in one envelope."""

from dataclasses import dataclass

from fastapi import FastAPI

from antiphon import __version__
from antiphon.http.access import AccessRules, install_access
from antiphon.http.audio_requests import AudioRequests
from antiphon.http.base_url import JoinBaseUrl
from antiphon.http.bodies import DrainUnreadBodies
from antiphon.http.document import complete
from antiphon.http.envelope import install
from antiphon.http.fields import VoiceSources
from antiphon.http.held_bodies import BodyBudget, HoldBodies
from antiphon.http.keys import KeyRing, ManagementDoor
from antiphon.http.ledger import RequestLedger
from antiphon.http.routes.alignments import add_alignment_routes
from antiphon.http.routes.events import add_events_route
from antiphon.http.routes.health import add_health_routes
from antiphon.http.routes.live import add_live_routes
from antiphon.http.routes.management import add_management_routes
from antiphon.http.routes.metrics import add_metrics_route
from antiphon.http.routes.models import add_model_routes
from antiphon.http.routes.packages import add_package_routes
from antiphon.http.routes.page import add_page_routes
from antiphon.http.routes.realtime import add_realtime_routes
from antiphon.http.routes.speech import add_speech_routes
from antiphon.http.routes.tasks import TaskSources, add_task_routes
from antiphon.http.routes.transcriptions import add_transcription_routes
from antiphon.http.routes.voices import add_voice_routes
from antiphon.observability.journal.journal import Journal
from antiphon.observability.metrics import Metrics
from antiphon.ports.clock import Clock
from antiphon.ports.codec import AudioFormat
from antiphon.service.alignment import AlignmentService
from antiphon.service.models import ModelService
from antiphon.service.packages import PackageService
from antiphon.service.speech import SpeechService
from antiphon.service.tasks import TaskService
from antiphon.service.transcription import TranscriptionService
from antiphon.service.voices import VoiceService

_TEXT_BODY_SLACK_BYTES = 8 * 1024 * 1024
"""For the other fields; among them may be the recording of a voice."""

_BYTES_PER_CHARACTER = 12
"""The most that JSON takes for a character: a surrogate pair of escapes."""


@dataclass(frozen=True, slots=True)
class Services:
    """The use cases that the routes call, and the numbers and events that they show."""

    models: ModelService
    speech: SpeechService
    transcription: TranscriptionService
    alignment: AlignmentService
    tasks: TaskService
    voices: VoiceService
    packages: PackageService
    metrics: Metrics
    journal: Journal
    clock: Clock


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """What a request may bring. Units: bytes of a whole body, characters of a text to be spoken.

    `max_json_body_bytes` is for bodies of JSON, which are in memory as a whole, and more than once while they are read.
    """

    max_request_body_bytes: int
    max_json_body_bytes: int
    max_text_chars: int
    allowed_audio_roots: tuple[str, ...] = ()
    voice_dir: str | None = None


_OPEN = AccessRules()


def create_app(
    services: Services,
    limits: HttpLimits,
    access: AccessRules = _OPEN,
    speech_format: AudioFormat = AudioFormat.WAV,
    *,
    ledger: RequestLedger | None = None,
    bodies: BodyBudget | None = None,
) -> FastAPI:
    """Build the application. It owns nothing: whoever made the services starts and closes their runtime.

    `speech_format` is what speech is answered in where a request does not say. Its requests are entered in `ledger`,
    and their bodies count against the budget `bodies`, if there are these.
    """
    app = FastAPI(
        title="antiphon",
        version=__version__,
        description="A self-hosted speech server.",
        docs_url=None,  # /docs and /redoc are pages of ours
        redoc_url=None,
        redirect_slashes=False,  # a redirect is built from the Host header, which may be anything
    )
    body_bytes, roots = limits.max_request_body_bytes, limits.allowed_audio_roots
    json_bytes = min(body_bytes, limits.max_json_body_bytes)
    text_bytes = min(json_bytes, limits.max_text_chars * _BYTES_PER_CHARACTER + _TEXT_BODY_SLACK_BYTES)
    # On the application's own router: an included one is matched in a second round. What is asked most comes first.
    voices = VoiceSources(services.voices, roots if limits.voice_dir is None else (*roots, limits.voice_dir))
    add_speech_routes(app.router, services.speech, text_bytes, voices, speech_format)
    add_transcription_routes(app.router, services.transcription, AudioRequests(body_bytes, json_bytes, roots))
    add_alignment_routes(app.router, services.alignment, body_bytes)
    add_live_routes(app.router, services.transcription)
    add_realtime_routes(app.router, services.transcription)
    add_task_routes(app.router, services.tasks, json_bytes, TaskSources(roots, voices))
    add_health_routes(app.router, services.models, KeyRing(access.accepted_keys))
    add_model_routes(app.router, services.models, services.journal)
    add_voice_routes(app.router, services.voices)
    door = ManagementDoor(services.models, KeyRing(access.admin_keys), KeyRing(access.api_keys))
    add_management_routes(app.router, services.models, door)
    add_package_routes(app.router, services.models, services.packages, door)
    add_metrics_route(app.router, services.metrics)
    add_events_route(app.router, services.journal, services.clock)
    add_page_routes(app.router)
    complete(app, access)
    install(app)
    if bodies is not None:
        app.add_middleware(HoldBodies, budget=bodies)
    app.add_middleware(JoinBaseUrl)
    install_access(app, access)
    if ledger is not None:
        app.add_middleware(ledger.around)  # around all that answers
    app.add_middleware(
        DrainUnreadBodies, limit_bytes=body_bytes
    )  # outermost: it sees every refusal, and answers nothing
    return app
