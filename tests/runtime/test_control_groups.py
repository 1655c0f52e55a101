"""What is read of control groups, on trees of files like the kernel's."""

import pytest

from antiphon.runtime.control_groups import ControlGroups

GIB = 2**30
V1_UNLIMITED = 9223372036854771712


@pytest.fixture
def tree(tmp_path):
    """Makes a tree of files, and reads it as a process of these groups."""

    def make(told, **files):
        (tmp_path / "told").write_text("".join(f"{line}\n" for line in told))
        mounts = tmp_path / "mounts"
        mounts.mkdir()
        for path, text in files.items():
            file = mounts / path.replace("__", "/").replace("_dot_", ".")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{text}\n")
        return ControlGroups(tmp_path / "told", mounts)

    return make


def v2(group, limit="max", used=0, cpu="max 100000", cache=0):
    """The files of one group of v2."""
    prefix = f"{group}__" if group else ""
    return {
        f"{prefix}memory_dot_max": limit,
        f"{prefix}memory_dot_current": used,
        f"{prefix}memory_dot_stat": f"anon 5\ninactive_file {cache}",
        f"{prefix}cpu_dot_max": cpu,
    }


def test_the_limits_of_a_service_are_found_in_its_own_group(tree):
    groups = tree(["0::/system/antiphon"], **v2("system"), **v2("system__antiphon", 4 * GIB, GIB, "150000 100000"))

    assert groups.memory_limit_bytes() == 4 * GIB
    assert groups.memory_left_bytes() == 3 * GIB
    assert groups.processors() == 1.5


def test_a_limit_above_the_group_holds_if_it_leaves_less(tree):
    groups = tree(
        ["0::/system/antiphon"],
        **v2("system", 2 * GIB, 2 * GIB - 100, "50000 100000"),
        **v2("system__antiphon", 4 * GIB, GIB, "400000 100000"),
    )

    assert groups.memory_limit_bytes() == 2 * GIB
    assert groups.memory_left_bytes() == 100
    assert groups.processors() == 0.5


def test_page_cache_counts_as_free_and_more_use_than_allowed_as_nothing_left(tree):
    assert tree(["0::/"], **v2("", GIB, GIB, cache=700)).memory_left_bytes() == 700


def test_what_is_over_its_limit_has_nothing_left(tree):
    assert tree(["0::/"], **v2("", GIB, 2 * GIB)).memory_left_bytes() == 0


def test_without_limits_there_are_none(tree):
    groups = tree(["0::/a"], **v2("a"))

    assert (groups.memory_limit_bytes(), groups.memory_left_bytes(), groups.processors()) == (None, None, None)


def test_a_container_whose_group_is_mounted_as_the_root_is_limited(tree):
    assert tree(["0::/docker/abc"], **v2("", GIB, 0)).memory_limit_bytes() == GIB


def test_the_first_version_has_a_tree_for_each_controller(tree):
    files = {
        "memory__x__memory_dot_limit_in_bytes": GIB,
        "memory__x__memory_dot_usage_in_bytes": 300,
        "memory__x__memory_dot_stat": "inactive_file 5\ntotal_inactive_file 100",
        "cpu__y__cpu_dot_cfs_quota_us": 200_000,
        "cpu__y__cpu_dot_cfs_period_us": 100_000,
    }
    groups = tree(["4:memory:/x", "1:cpu,cpuacct:/y", "0::/"], **files)

    assert groups.memory_left_bytes() == GIB - 200
    assert groups.processors() == 2


def test_the_first_version_says_no_limit_as_a_large_number(tree):
    files = {
        "memory__memory_dot_limit_in_bytes": V1_UNLIMITED,
        "memory__memory_dot_usage_in_bytes": 300,
        "cpu__cpu_dot_cfs_quota_us": -1,
        "cpu__cpu_dot_cfs_period_us": 100_000,
    }
    groups = tree(["4:memory:/", "1:cpu:/"], **files)

    assert (groups.memory_limit_bytes(), groups.processors()) == (None, None)


def test_the_second_version_beside_the_first_has_a_mount_of_its_own(tree):
    groups = tree(["4:memory:/x", "0::/a"], **v2("unified__a", GIB, 0, "100000 100000"))

    assert groups.memory_limit_bytes() == GIB
    assert groups.processors() == 1


def test_where_nothing_tells_of_groups_there_are_no_limits(tmp_path):
    groups = ControlGroups(tmp_path / "none", tmp_path / "neither")

    assert (groups.memory_limit_bytes(), groups.memory_left_bytes(), groups.processors()) == (None, None, None)


def test_those_of_this_process_can_be_read():
    left = ControlGroups().memory_left_bytes()

    assert left is None or left > 0
