"""A sound on its way to an answer, through a process that encodes it. The server's own library is not asked.

The samples are ours and cannot lie; what the process makes of them is believed only as far as their length allows.
"""

from collections.abc import Sequence
from contextlib import closing
from typing import BinaryIO

from antiphon.audio.compressed import Piece
from antiphon.audio.encode import AnswerFile
from antiphon.ports.codec import AudioFormat, Encoded
from antiphon.runtime.codec_messages import Answer, Encode, Written
from antiphon.runtime.file_worker import STALL_LIMIT_S, FileOrder, FileWorker
from antiphon.runtime.owned import AbandonedError
from antiphon.vocabulary.audio import BYTES_PER_SAMPLE, Pcm
from antiphon.vocabulary.errors import AntiphonError, EngineError, ShuttingDown, WorkerDied
from antiphon.vocabulary.tasks import Cancellation

_MAX_GROWTH = 4
_MAX_HEADERS_BYTES = 64 * 1024
"""No encoding is as large as this and so many times its samples; at the lowest rates it is larger than they are."""


async def encode_in(
    worker: FileWorker, samples: BinaryIO, pcm: Pcm, audio_format: AudioFormat, cancellation: Cancellation
) -> Encoded:
    """Encode a sound whose samples lie in a file as well; the file's position afterwards is anywhere.

    A sound may take as long as it sounds, and a stall more. A cancellation ends it at the next piece, by raising
    AbandonedError. Raises WorkerDied where the process ends or takes too long, EngineError where it fails.
    """
    order = Encode(audio_format, pcm.rate, pcm.channels)
    limit_s = STALL_LIMIT_S + pcm.duration_s
    max_bytes = _MAX_HEADERS_BYTES + _MAX_GROWTH * BYTES_PER_SAMPLE * len(pcm.samples)
    async with worker.working(samples, FileOrder(order, _piece_of, limit_s, cancellation)) as pieces:
        try:
            with closing(AnswerFile(pcm, audio_format)) as answer:
                async for piece in pieces:
                    if not 0 <= piece.offset <= max_bytes - len(piece.data):
                        raise EngineError("a codec worker made more of a sound than there can be")
                    answer.write(piece)
                if cancellation:
                    raise AbandonedError
                return answer.finish()
        except WorkerDied as death:
            raise _fault(worker, pieces.too_late) from death


def _fault(worker: FileWorker, too_late: bool) -> AntiphonError:
    if worker.ending:
        return ShuttingDown()
    return WorkerDied("the process that encodes audio " + ("took too long" if too_late else "has ended"))


def _piece_of(answer: Answer, _: Sequence[Pcm]) -> Piece:
    if not isinstance(answer, Written):
        raise EngineError("a codec worker gave an answer to another question")
    return Piece(answer.offset, answer.data)
