"""Decodes uploads for a server, one at a time: a thread decodes, another reads the orders. It keeps nothing."""

import logging
import os
import socket
from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import BinaryIO, assert_never

from antiphon.audio.blocks import AudioBlocks
from antiphon.audio.decode import open_audio
from antiphon.audio.limits import FIELD, DecodeLimits
from antiphon.runtime.codec_messages import Block, Decode, Order
from antiphon.runtime.hosts.crew import Crew
from antiphon.runtime.wire.faults import failed
from antiphon.runtime.wire.signals import Began, Cancel, Ended, Grant, Leave
from antiphon.runtime.wire.window import Window
from antiphon.vocabulary.audio import Pcm
from antiphon.vocabulary.errors import AntiphonError, InvalidRequest, TooLarge
from antiphon.worker.line import Line

log = logging.getLogger(__name__)


class CodecWorker:
    """Reads orders from a line, and the descriptor of each upload from `uploads`; `open_upload` is the decoder."""

    def __init__(
        self,
        line: Line[Order],
        uploads: socket.socket,
        open_upload: Callable[[BinaryIO, DecodeLimits], AudioBlocks] = open_audio,
    ) -> None:
        self._line = line
        self._uploads = uploads
        self._open = open_upload
        self._thread = Crew("decode")
        self._windows: dict[int, Window] = {}

    def serve(self) -> None:
        """Decode until the server closes the line; what is under way is not waited for."""
        for number, order, _ in self._line:
            match order:
                case Decode(limits):
                    self._windows = {number: Window()}
                    self._thread.post(partial(self._decode, number, self._receive(), limits, self._windows[number]))
                case Grant(count):
                    if number in self._windows:
                        self._windows[number].give(count)
                case Cancel() | Leave():
                    if number in self._windows:
                        self._windows[number].leave()
                case _:
                    assert_never(order)

    def _receive(self) -> BinaryIO:
        _, descriptors, _, _ = socket.recv_fds(self._uploads, 16, 1)
        return os.fdopen(descriptors[0], "rb")

    def _decode(self, number: int, upload: BinaryIO, limits: DecodeLimits, window: Window) -> None:
        self._line.send(number, Began())
        try:
            with upload, closing(self._open(upload, limits)) as audio:
                for block in audio.blocks:
                    if not window.take():
                        break
                    self._line.send(number, Block(), [Pcm.from_bytes(block.data, audio.rate, audio.channels)])
        except MemoryError:
            told = "the audio is too large: to decode it takes more memory than one upload may have"
            self._line.send(number, failed(TooLarge(told, param=FIELD)))
            os._exit(1)  # whatever holds the memory, the next upload is not to suffer from it
        except AntiphonError as error:
            self._line.send(number, failed(error))
        except Exception:
            log.exception("an upload cannot be decoded")
            self._line.send(number, failed(InvalidRequest("the audio could not be decoded", param=FIELD)))
        else:
            self._line.send(number, Ended())
