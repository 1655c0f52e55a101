"""Decodes and encodes for a server, one file at a time: a thread works, another reads the orders. It keeps nothing."""

import logging
import os
import socket
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import BinaryIO, TypeAlias, assert_never

from antiphon.audio.blocks import AudioBlocks
from antiphon.audio.compressed import Piece, blocks_in, encoded_pieces
from antiphon.audio.decode import open_audio
from antiphon.audio.limits import FIELD, DecodeLimits
from antiphon.runtime.codec_messages import Block, Decode, Encode, Order, Written
from antiphon.runtime.hosts.crew import Crew
from antiphon.runtime.wire.coding import Message
from antiphon.runtime.wire.faults import failed
from antiphon.runtime.wire.signals import Began, Cancel, Ended, Grant, Leave
from antiphon.runtime.wire.window import Window
from antiphon.vocabulary.audio import Pcm
from antiphon.vocabulary.errors import AntiphonError, EngineError, InsufficientMemory, InvalidRequest, TooLarge
from antiphon.worker.line import Line

log = logging.getLogger(__name__)

_Answers: TypeAlias = Generator[tuple[Message, Sequence[Pcm]], None, None]


def encode_file(samples: BinaryIO, order: Encode) -> Generator[Piece, None, None]:
    """Encode a file of samples."""
    return encoded_pieces(blocks_in(samples, order.channels), order.audio_format, order.rate, order.channels)


class CodecWorker:
    """Reads orders from a line, and the descriptor of each file from `files`.

    `open_upload` is the decoder, `encode` the encoder.
    """

    def __init__(
        self,
        line: Line[Order],
        files: socket.socket,
        open_upload: Callable[[BinaryIO, DecodeLimits], AudioBlocks] = open_audio,
        encode: Callable[[BinaryIO, Encode], Generator[Piece, None, None]] = encode_file,
    ) -> None:
        self._line = line
        self._files = files
        self._open = open_upload
        self._encode = encode
        self._thread = Crew("codec")
        self._windows: dict[int, Window] = {}

    def serve(self) -> None:
        """Work until the server closes the line; what is under way is not waited for."""
        for number, order, _ in self._line:
            match order:
                case Decode(limits):
                    self._begin(number, self._decoding(limits))
                case Encode():
                    self._begin(number, self._encoding(order))
                case Grant(count):
                    if number in self._windows:
                        self._windows[number].give(count)
                case Cancel() | Leave():
                    if number in self._windows:
                        self._windows[number].leave()
                case _:
                    assert_never(order)

    def _begin(self, number: int, work: "_Work") -> None:
        window = Window()
        self._windows = {number: window}
        _, descriptors, _, _ = socket.recv_fds(self._files, 16, 1)
        self._thread.post(partial(self._do, number, work, os.fdopen(descriptors[0], "rb"), window))

    def _do(self, number: int, work: "_Work", file: BinaryIO, window: Window) -> None:
        self._line.send(number, Began())
        try:
            with file, closing(work.answers(file)) as answers:
                for message, sounds in answers:
                    if not window.take():
                        break
                    self._line.send(number, message, sounds)
        except MemoryError:
            self._line.send(number, failed(work.too_large))
            os._exit(1)  # whatever holds the memory, the next file is not to suffer from it
        except AntiphonError as error:
            self._line.send(number, failed(error))
        except Exception:
            log.exception("a file cannot be worked on")
            self._line.send(number, failed(work.fault))
        else:
            self._line.send(number, Ended())

    def _decoding(self, limits: DecodeLimits) -> "_Work":
        def answers(upload: BinaryIO) -> _Answers:
            with closing(self._open(upload, limits)) as audio:
                for block in audio.blocks:
                    yield Block(), [Pcm.from_bytes(block.data, audio.rate, audio.channels)]

        told = "the audio is too large: to decode it takes more memory than one upload may have"
        fault = InvalidRequest("the audio could not be decoded", param=FIELD)
        return _Work(answers, TooLarge(told, param=FIELD), fault)

    def _encoding(self, order: Encode) -> "_Work":
        def answers(samples: BinaryIO) -> _Answers:
            with closing(self._encode(samples, order)) as pieces:
                for offset, data in pieces:
                    yield Written(offset, data), []

        too_large = InsufficientMemory("to encode the audio takes more memory than one answer may have")
        return _Work(answers, too_large, EngineError("the audio could not be encoded"))


@dataclass(frozen=True, slots=True)
class _Work:
    """What is to be told of a file, and what where there is no memory for it or the library fails."""

    answers: Callable[[BinaryIO], _Answers]
    too_large: AntiphonError
    fault: AntiphonError
