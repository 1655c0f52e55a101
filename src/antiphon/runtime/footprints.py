"""What the models' processes take in memory, sampled now and then; no reader ever waits for a measurement."""

from antiphon.ports.clock import Clock
from antiphon.runtime.owned import OwnedTasks, log_unheard
from antiphon.runtime.peaks import PeakMemory
from antiphon.runtime.pool import Pool
from antiphon.runtime.resident import Resident
from antiphon.vocabulary.spec import Capability, ModelSpec

SAMPLE_EVERY_S = 5.0
"""How often a model that is used is measured at most, in seconds."""


class Footprints:
    """Measures models that run in processes of their own: only those can be told apart, and can be killed."""

    def __init__(self, clock: Clock, tasks: OwnedTasks, peaks: PeakMemory) -> None:
        self._clock = clock
        self._tasks = tasks
        self._peaks = peaks

    def needed_bytes(self, spec: ModelSpec, capability: Capability) -> int:
        """What a load will need, about: what its adapter says, or what it took at most where that was more."""
        return max(capability.weight_bytes, self._peaks.of(spec))

    def sample(self, resident: Resident) -> None:
        """Measure a model soon, unless that was done a moment ago."""
        pool, now = resident.pool, self._clock.now()
        if pool is None or not pool.host.killable or now < resident.next_sample:
            return
        resident.next_sample = now + SAMPLE_EVERY_S
        self._tasks.start(self._measure(resident, pool)).add_done_callback(log_unheard)

    async def _measure(self, resident: Resident, pool: Pool) -> None:
        spec = resident.entry.registration.spec
        used_bytes = await pool.host.resident_bytes()
        if used_bytes is not None and resident.pool is pool:
            resident.used_bytes = used_bytes
            self._peaks.learn(spec, used_bytes)
