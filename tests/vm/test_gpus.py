# SPDX-License-Identifier: Apache-2.0
"""GPUs in the sandbox of the unit: a stand-in for NVIDIA's library, and a PCI bus of files beside the rest of /sys."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from berth import LIGHT, Berth, cpus_of

SOURCE = Path(__file__).parents[1] / "unit" / "topology" / "fake_nvml.cpp"
GPU = "0000:3b:00.0"
SYS = "/run/berth-test-gpus/sys"
NVML = "/run/berth-test-gpus/nvml"
UNIT = "berth-test-be1.service"
SERVICE, OTHER_SERVICE = "berth-test-ls1.service", "berth-test-ls2.service"
GPU_CPUS = set(range(4, 8))  # of the second socket
DROP_IN = f"""[Service]
Environment=FAKE_NVML={NVML} LD_LIBRARY_PATH=/run/berth-test-gpus/lib
ExecStart=
ExecStart=/usr/sbin/berthd --sys-root {SYS}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the stand-in."""
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("no compiler for the stand-in")
    made = tmp_path_factory.mktemp("nvml") / "lib"
    made.mkdir()
    subprocess.run(
        [compiler, "-std=c++20", "-shared", "-fPIC", "-static-libstdc++", "-static-libgcc", "-o", made / "libnvidia-ml.so.1", SOURCE],
        check=True,
    )
    return made


@pytest.fixture
def gpu_berth(berth: Berth, library: Path) -> Iterator[Berth]:
    """A berth whose host has one GPU."""
    guest = berth.guest
    guest.push(library, "/run/berth-test-gpus/lib")
    device = {"class": "0x030200", "vendor": "0x10de", "device": "0x2330", "local_cpulist": "4-7"}
    said = {"name": "NVIDIA H100", "total": str(80 << 30), "used": str(2 << 30), "util": "40", "compute": ""}
    guest.run(
        f"mkdir -p {SYS}/bus/pci/devices/{GPU} {NVML}/{GPU}; cd {SYS}/bus/pci/devices/{GPU}; ln -sfn /nowhere/nvidia driver; "
        + "".join(f"echo {text} > {name}; " for name, text in device.items())
        + f"cd {NVML}/{GPU}; "
        + "".join(f"printf %s '{text}' > {name}; " for name, text in said.items())
        + f"for f in /sys/*; do [ $f = /sys/bus ] || ln -sfn $f {SYS}/; done"
    )
    berth.add_unit_drop_in(DROP_IN)
    yield berth
    guest.run("systemctl stop berthd.service; rm -rf /run/berth-test-gpus /dev/nvidia0", check=False)


def say(berth: Berth, name: str, text: str) -> None:
    """What the stand-in says of the GPU."""
    berth.guest.write_file(f"{NVML}/{GPU}/{name}", text)


def admit(berth: Berth, name: str) -> int:
    request = {"schema": "berth.request/1", "id": name, "class": "best-effort", "vcpus": 1, "gpus": 1}
    berth.guest.write_file("/run/berth-test-gpus/request.json", json.dumps(request))
    return berth.guest.run("berthctl admit --request /run/berth-test-gpus/request.json", check=False).returncode


def test_admitted_work_with_a_gpu_is_pinned_on_its_numa_node(gpu_berth: Berth) -> None:
    guest = gpu_berth.guest
    gpu_berth.start("enforce")
    guest.poll(lambda: gpu_berth.json("status")["gpus"][0]["healthy"], 60, what="the driver's first answer")
    request = {"schema": "berth.request/1", "id": SERVICE, "vcpus": 2, "gpus": 1}
    guest.write_file("/run/berth-test-gpus/request.json", json.dumps(request))
    told = json.loads(guest.run("berthctl admit --request /run/berth-test-gpus/request.json --json").stdout)["fitting"][0]
    assert told["gpus"] == [GPU]
    assert cpus_of(told["cpus"]) <= GPU_CPUS
    # Another one comes first, and leaves the promised vCPUs free.
    gpu_berth.start_unit(OTHER_SERVICE, LIGHT)
    gpu_berth.wait_pinned(OTHER_SERVICE)
    assert not cpus_of(gpu_berth.cpuset(OTHER_SERVICE)) & cpus_of(told["cpus"])
    gpu_berth.start_unit(SERVICE, LIGHT)
    gpu_berth.wait_pinned(SERVICE)
    assert gpu_berth.cpuset(SERVICE) == told["cpus"]
    gpu_berth.stop()
    assert set(gpu_berth.cpusets(SERVICE, OTHER_SERVICE).values()) == {""}


def test_a_gpu_is_shown_with_who_holds_it(gpu_berth: Berth) -> None:
    gpu_berth.start_unit(UNIT)
    pid = gpu_berth.guest.run(f"systemctl show -P MainPID {UNIT}").stdout.strip()
    gpu_berth.start()
    gpu_berth.guest.poll(lambda: gpu_berth.json("status")["gpus"][0]["healthy"], 60, what="the driver's first answer")
    assert gpu_berth.json("status")["gpus"][0]["holder"] is None
    say(gpu_berth, "compute", pid)
    holder = f"system.slice/{UNIT}"
    gpu_berth.guest.poll(lambda: gpu_berth.json("status")["gpus"][0]["holder"] == holder, 60, what="the holder")
    gpu = gpu_berth.json("snapshot")["topology"]["gpus"][0]
    assert gpu == {
        "id": GPU, "vendor": "nvidia", "model": "NVIDIA H100", "numa": 1, "memory_bytes": 80 << 30, "memory_used_bytes": 2 << 30,
        "utilisation": 0.4, "healthy": True, "holder": holder, "other_processes": 0,
    }  # fmt: skip
    assert gpu_berth.workloads()[holder]["gpus"] == [GPU]
    shown = gpu_berth.guest.run("berthctl status").stdout
    assert re.search(rf"{GPU}  NVIDIA H100, NUMA node 1, 2.0 GiB of 80.0 GiB in use, 40 % busy\n +held by {re.escape(holder)}\n", shown), shown
    assert GPU in gpu_berth.guest.run("berthctl list").stdout
    assert f"has processes on GPU {GPU}" in gpu_berth.guest.run(f"berthctl explain {holder}").stdout
    assert f'berth_gpu_workloads{{gpu="{GPU}",vendor="nvidia",model="NVIDIA H100"}} 1\n' in gpu_berth.guest.run("berthctl metrics").stdout
    assert admit(gpu_berth, "train") == 3
    gpu_berth.stop_unit(UNIT)
    say(gpu_berth, "compute", "")
    gpu_berth.guest.poll(lambda: admit(gpu_berth, "train") == 0, 60, what="the GPU to be free")
    # A place that is held outlives berthd.
    gpu_berth.guest.run("berthctl admit --cancel train")


def test_a_lost_gpu_is_unhealthy_until_it_returns(gpu_berth: Berth) -> None:
    gpu_berth.start()
    gpu_berth.guest.poll(lambda: gpu_berth.json("status")["gpus"][0]["healthy"], 60, what="the driver's first answer")
    say(gpu_berth, "handle", "15")
    gpu_berth.guest.poll(lambda: not gpu_berth.json("status")["gpus"][0]["healthy"], 60, what="the GPU to be lost")
    assert "unhealthy: NVML: GPU is lost" in gpu_berth.guest.run("berthctl status").stdout
    assert admit(gpu_berth, "other") == 3
    gpu_berth.guest.run(f"rm {NVML}/{GPU}/handle")
    gpu_berth.guest.poll(lambda: gpu_berth.json("status")["gpus"][0]["healthy"], 60, what="the GPU to return")
    said = gpu_berth.journal(GPU).splitlines()
    assert said == [f"GPU {GPU} (NVIDIA H100) is unhealthy: NVML: GPU is lost", f"GPU {GPU} (NVIDIA H100) is healthy again"]


def test_a_driver_that_hangs_does_not_keep_it_from_stopping(gpu_berth: Berth) -> None:
    gpu_berth.guest.write_file(f"{NVML}/hang", "")
    gpu_berth.start()
    ticks = gpu_berth.json("status")["tick"]["count"]
    gpu_berth.guest.poll(lambda: gpu_berth.json("status")["tick"]["count"] > ticks + 2, 60, what="ticks beside the driver")
    gpu_berth.stop()
    result = gpu_berth.guest.run("systemctl show -P Result berthd.service").stdout.strip()
    assert result == "success"


def test_the_sandbox_shows_it_nvidia_s_devices_and_no_others(gpu_berth: Berth) -> None:
    # With another device's number: what the guest's kernel has no driver for cannot be opened anyway.
    gpu_berth.guest.run("mknod /dev/nvidia0 c 1 3")
    gpu_berth.start()
    seen = gpu_berth.guest.run(f"nsenter -t {gpu_berth.pid()} -m ls /dev").stdout.split()
    assert "nvidia0" in seen
    assert not [device for device in seen if device.startswith(("vd", "sd", "kvm", "mem", "nvidiactl"))], seen
