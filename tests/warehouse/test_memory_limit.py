"""The memory that DuckDB may use on a machine or in a container."""

from pathlib import Path

import psutil
import pytest

from pipelines.warehouse.memory_limit import MemoryLimit, machine_memory

MACHINE = psutil.virtual_memory().total
V1 = "5:cpu,cpuacct:/other\n4:memory:/docker/ab12\n0::/\n"
V2 = "0::/system.slice/sync.service\n"
# What the files say, and the limit that follows.
CGROUPS = {
    "none": ({}, MACHINE),
    "version 1": ({"proc/self/cgroup": V1, "memory/docker/ab12/memory.limit_in_bytes": "9"}, 9),
    "version 1, mounted as root": (
        {"proc/self/cgroup": V1, "memory/memory.limit_in_bytes": "8"},
        8,
    ),
    "version 1, no limit": (
        {"proc/self/cgroup": V1, "memory/memory.limit_in_bytes": "9223372036854771712"},
        MACHINE,
    ),
    "version 2": (
        {"proc/self/cgroup": V2, "system.slice/sync.service/memory.max": "7\n"},
        7,
    ),
    "version 2, of a group around it": (
        {
            "proc/self/cgroup": V2,
            "system.slice/sync.service/memory.max": "max\n",
            "system.slice/memory.max": "6\n",
        },
        6,
    ),
    "version 2, in a container": ({"proc/self/cgroup": "0::/\n", "memory.max": "5\n"}, 5),
}


@pytest.mark.parametrize(("files", "expected"), CGROUPS.values(), ids=CGROUPS)
def test_a_container_has_the_memory_that_its_groups_allow(
    tmp_path: Path, files: dict[str, str], expected: int
) -> None:
    for name, text in files.items():
        file = tmp_path / (name if name.startswith("proc") else f"sys/fs/cgroup/{name}")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert machine_memory(tmp_path) == expected


def test_a_limit_that_nobody_set_grows_up_to_half_of_the_memory() -> None:
    most = 900_000_000
    assert MemoryLimit("128MB", most).larger() == MemoryLimit("512MB", most)
    assert MemoryLimit("512MB", most).larger() == MemoryLimit("900MB", most)
    assert MemoryLimit("900MB", most).larger() is None
    assert MemoryLimit.of("128MB").larger() is None
