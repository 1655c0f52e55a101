"""What a model's process takes is measured now and then, shown, and remembered for its next load."""

import asyncio

import pytest

from antiphon.runtime.footprints import SAMPLE_EVERY_S
from antiphon.runtime.wiring import ResidencyLimits
from antiphon.testing.sim import sim_spec
from antiphon.vocabulary.errors import InsufficientMemory
from virtual_stage import MIB, in_virtual_time

guarded = pytest.mark.parametrize("limits", [ResidencyLimits(min_free_memory_bytes=MIB)], ids=["1 MiB free"])


def shown(stage, model="a"):
    return next(it.resident_bytes for it in stage.runtime.status() if it.view.registration.spec.id == model)


@in_virtual_time
async def test_a_model_is_measured_after_its_load(stage):
    stage.model(megabytes=3)
    assert shown(stage) is None
    await stage.runtime.load("a")
    await stage.settled()
    assert shown(stage) == 3 * MIB


@in_virtual_time
async def test_the_status_shows_the_last_sample_without_a_measurement(stage):
    stage.model()
    await stage.runtime.load("a")
    await stage.settled()
    stage.world.used_bytes = 5 * MIB
    assert stage.runtime.status()[0].resident_bytes == MIB


@in_virtual_time
async def test_runs_measure_it_anew_but_not_all_of_them(stage):
    stage.model()
    await stage.runtime.load("a")
    await stage.settled()
    stage.world.used_bytes = 5 * MIB
    await stage.say("soon")
    await stage.settled()
    assert shown(stage) == MIB
    await asyncio.sleep(SAMPLE_EVERY_S)
    await stage.say("later")
    await stage.settled()
    assert shown(stage) == 5 * MIB


@in_virtual_time
async def test_a_model_that_is_not_loaded_takes_nothing_that_is_known(stage):
    stage.model()
    await stage.runtime.load("a")
    await stage.settled()
    await stage.runtime.unload("a")
    assert shown(stage) is None


@in_virtual_time
async def test_a_host_that_dies_while_it_is_measured_shows_nothing(stage):
    stage.model()
    await stage.runtime.load("a")
    stage.host().kill()
    await stage.settled()
    assert shown(stage) is None


@in_virtual_time
async def test_a_host_without_a_process_of_its_own_is_not_measured_in_one(stage):
    stage.like_threads()
    stage.model()
    stage.world.used_bytes = 5 * MIB
    await stage.runtime.load("a")
    await stage.settled()
    assert shown(stage) == MIB  # what the server's own process grew by


@guarded
@in_virtual_time
async def test_the_next_load_needs_what_the_last_was_seen_to_take(stage):
    stage.model(megabytes=1)
    stage.world.used_bytes = 20 * MIB
    await stage.runtime.load("a")
    await stage.settled()
    await stage.runtime.unload("a")
    assert (await stage.runtime.foresee_load("a")).needed_bytes == 20 * MIB
    stage.world.total_bytes = 20 * MIB
    with pytest.raises(InsufficientMemory):
        await stage.runtime.load("a")
    stage.world.total_bytes = 21 * MIB
    await stage.runtime.load("a")


@guarded
@in_virtual_time
async def test_what_an_adapter_says_counts_where_less_was_measured(stage):
    stage.model(megabytes=8)
    stage.world.used_bytes = MIB
    await stage.runtime.load("a")
    await stage.settled()
    await stage.runtime.unload("a")
    assert (await stage.runtime.foresee_load("a")).needed_bytes == 8 * MIB


@in_virtual_time
async def test_what_is_learned_is_of_one_configuration(stage):
    stage.model()
    stage.world.used_bytes = 20 * MIB
    await stage.runtime.load("a")
    await stage.settled()
    peaks = stage.runtime._ports.peaks
    assert peaks.of(sim_spec("a", 2)) == 20 * MIB
    assert peaks.of(sim_spec("a", 3)) == 0
