# SPDX-License-Identifier: Apache-2.0
"""Interrupts of devices beside services that own their vCPUs: `interference.interrupts`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from berth import LIGHT, Berth, cpus_of

LS1, LS2 = (f"berth-test-{name}.service" for name in ("ls1", "ls2"))
MOVE = 'interference.interrupts = "move"'
# For the shell: number, vCPUs and driver of each interrupt that a driver handles.
MASKS = 'for i in /proc/irq/*/*/; do n=${i#/proc/irq/}; n=${n%%/*}; echo $n $(cat /proc/irq/$n/smp_affinity_list) $(basename "$i"); done'
# In this guest all of its network card, and no queue of its disk, which the kernel places itself.
NETWORK = "virtio0-"
# irqbalance's own answer about the CPUs that it keeps interrupts off, as a number.
BANNED = (
    "import glob, socket; s = socket.socket(socket.AF_UNIX); s.settimeout(60); s.connect(glob.glob('/run/irqbalance/*.sock')[0]); "
    "s.sendall(b'setup'); print(int(s.recv(65536).decode().split('BANNED ')[1].replace(',', ''), 16))"
)


def masks(berth: Berth) -> dict[int, tuple[str, str]]:
    lines = (line.split() for line in berth.guest.run(MASKS).stdout.splitlines())
    return {int(number): (cpus, driver) for number, cpus, driver in lines}


def put(berth: Berth, *settings: tuple[int, str]) -> None:
    berth.guest.run("; ".join(f"echo {cpus} > /proc/irq/{number}/smp_affinity_list" for number, cpus in settings))


def owned(berth: Berth) -> set[int]:
    return set().union(*map(cpus_of, berth.cpusets(LS1, LS2).values()))


def text(cpus: set[int]) -> str:
    return ",".join(map(str, sorted(cpus)))


def wait_mask(berth: Berth, number: int, wanted: set[int]) -> None:
    berth.guest.poll(lambda: cpus_of(masks(berth)[number][0]) == wanted, 90, what=lambda: f"{wanted} of interrupt {number}: {masks(berth)[number]}")


def arrived(berth: Berth, numbers: list[int], cpus: set[int]) -> int:
    """Interrupts of these numbers so far, on these vCPUs."""
    lines = (line.split() for line in berth.guest.run("cat /proc/interrupts").stdout.splitlines()[1:])
    return sum(int(words[1 + cpu]) for words in lines if words[0].rstrip(":") in map(str, numbers) for cpu in cpus)


def of_traffic(berth: Berth, numbers: list[int], cpus: set[int]) -> tuple[int, int]:
    """Interrupts while 8 MiB leave the guest: on these vCPUs, and on all."""
    before = arrived(berth, numbers, cpus), arrived(berth, numbers, set(range(8)))
    berth.guest.run("head -c 8388608 /dev/zero | tr '\\0' x")
    return arrived(berth, numbers, cpus) - before[0], arrived(berth, numbers, set(range(8))) - before[1]


@pytest.fixture
def network(berth: Berth) -> Iterator[list[int]]:
    """Numbers of the network card's interrupts. After the test, all are where they were before."""
    before = masks(berth)
    yield [number for number, (_, driver) in before.items() if driver.startswith(NETWORK)]
    berth.stop()
    changed = [(number, was[0]) for number, was in before.items() if masks(berth)[number] != was]
    if changed:
        put(berth, *changed)


@pytest.fixture
def pinned(berth: Berth, network: list[int]) -> set[int]:
    """vCPUs that services own, and on which the network card's interrupts are alone."""
    berth.start_units(dict.fromkeys((LS1, LS2), LIGHT))
    berth.start("enforce")
    berth.wait_pinned(LS1, LS2)
    cpus = owned(berth)
    put(berth, *((number, text(cpus)) for number in network))
    return cpus


def test_traffic_leaves_owned_vcpus_and_a_stop_puts_all_back(berth: Berth, network: list[int], pinned: set[int]) -> None:
    before = masks(berth)
    there, all_of_them = of_traffic(berth, network, pinned)
    assert there > 0.9 * all_of_them > 90
    assert berth.configure("enforce", MOVE).returncode == 0
    for number in network:
        berth.guest.poll(lambda n=number: not cpus_of(masks(berth)[n][0]) & owned(berth), 60, what=f"interrupt {number} to leave")
    # One takes the new vCPUs when it comes next.
    of_traffic(berth, network, pinned)
    now_there, now_all = of_traffic(berth, network, owned(berth))
    print(f"network interrupts on owned vCPUs: {there} of {all_of_them} before, {now_there} of {now_all} after")
    assert now_there == 0 < now_all
    report = berth.json("status")["interrupts"]
    assert report["moved"] >= len(network)
    # The disk's queues are managed, and those on owned vCPUs stay.
    assert report["refused"] >= len(owned(berth))
    assert report["problem"] is None and report["irqbalance"] == "absent"
    failures = [entry for entry in berth.logged("interrupts") if entry["result"] == "failed"]
    assert failures == []
    berth.stop()
    assert masks(berth) == before


def test_a_kill_puts_all_back(berth: Berth, network: list[int], pinned: set[int]) -> None:
    before = masks(berth)
    berth.configure("enforce", MOVE)
    wait_left(berth, network)
    berth.add_unit_drop_in("[Service]\nRestart=no\n")
    berth.kill()
    berth.guest.poll(lambda: masks(berth) == before, 60, what=lambda: f"{before}, and not {masks(berth)}")


def wait_left(berth: Berth, numbers: list[int]) -> None:
    def there() -> list[int]:
        now, cpus = masks(berth), owned(berth)
        return [number for number in numbers if cpus_of(now[number][0]) & cpus]

    berth.guest.poll(lambda: not there(), 60, what=lambda: f"interrupts to leave: {there()}")


def test_observe_mode_and_the_other_setting_put_all_back(berth: Berth, network: list[int], pinned: set[int]) -> None:
    before = masks(berth)
    for mode, extra in (("enforce", ""), ("observe", MOVE)):
        berth.configure("enforce", MOVE)
        wait_left(berth, network)
        berth.configure(mode, extra)
        berth.guest.poll(lambda: masks(berth) == before, 60, what=lambda: f"{before}, and not {masks(berth)}")


def test_an_offline_vcpu_and_a_foreign_change_are_respected(berth: Berth, network: list[int], pinned: set[int]) -> None:
    berth.configure("enforce", MOVE)
    wait_left(berth, network)
    theirs = text({min(owned(berth))})
    put(berth, (network[0], theirs))
    berth.guest.poll(lambda: berth.json("status")["interrupts"]["others"] == 1, 90, what="the change to be seen")
    away = max(set(range(1, 8)) - owned(berth))
    berth.guest.run(f"echo 0 > /sys/devices/system/cpu/cpu{away}/online")
    try:
        berth.wait_ticks(3)
        wait_left(berth, network[1:])
        assert masks(berth)[network[0]][0] == theirs
    finally:
        berth.guest.run(f"echo 1 > /sys/devices/system/cpu/cpu{away}/online")
    berth.stop()
    assert masks(berth)[network[0]][0] == theirs


@pytest.fixture
def irqbalance(berth: Berth, network: list[int]) -> Iterator[None]:
    berth.guest.run("systemctl start irqbalance.service")
    berth.guest.poll("test -S /run/irqbalance/*.sock", 60, what="irqbalance's socket")
    yield
    berth.stop()
    berth.guest.run("systemctl stop irqbalance.service")


def banned(berth: Berth) -> set[int]:
    mask = int(berth.guest.run(["python3", "-c", BANNED]).stdout)
    return {cpu for cpu in range(8) if mask >> cpu & 1}


def tell_irqbalance(berth: Berth, cpus: str) -> None:
    words = f"import glob, socket; s = socket.socket(socket.AF_UNIX); s.connect(glob.glob('/run/irqbalance/*.sock')[0]); s.sendall(b'settings cpus {cpus}')"
    berth.guest.run(["python3", "-c", words])
    berth.guest.poll(lambda: banned(berth) == cpus_of(cpus), 120, what=f"irqbalance to keep off {cpus}")


@pytest.mark.usefixtures("irqbalance")
def test_irqbalance_keeps_off_owned_vcpus_and_gets_its_own_banned_cpus_back(berth: Berth, network: list[int]) -> None:
    tell_irqbalance(berth, "7")
    berth.start_units(dict.fromkeys((LS1, LS2), LIGHT))
    berth.start("enforce", MOVE)
    berth.wait_pinned(LS1, LS2)
    berth.guest.poll(lambda: banned(berth) == owned(berth) | {7}, 180, what=lambda: f"{owned(berth)} and 7 to be banned: {banned(berth)}")
    berth.guest.poll(lambda: berth.json("status")["interrupts"]["irqbalance"] == "told", 60, what="status to say so")
    wait_left(berth, network)
    berth.stop()
    berth.guest.poll(lambda: banned(berth) == {7}, 180, what=lambda: f"7 alone to be banned: {banned(berth)}")


@pytest.mark.usefixtures("irqbalance")
def test_after_a_kill_irqbalance_gets_its_own_banned_cpus_back(berth: Berth) -> None:
    berth.start_units(dict.fromkeys((LS1, LS2), LIGHT))
    berth.start("enforce", MOVE)
    berth.wait_pinned(LS1, LS2)
    berth.guest.poll(lambda: banned(berth) == owned(berth), 180, what=lambda: f"{owned(berth)} to be banned: {banned(berth)}")
    berth.add_unit_drop_in("[Service]\nRestart=no\n")
    berth.kill()
    berth.guest.poll(lambda: banned(berth) == set(), 180, what=lambda: f"none to be banned: {banned(berth)}")


def test_it_may_write_interrupts_and_no_sysctl(berth: Berth) -> None:
    berth.start()

    def can_write(file: str) -> bool:
        """The value that it has, as berthd's own mount namespace has the file."""
        probe = f"value=$(cat {file}) && echo $value > {file}"
        return berth.guest.run(f"nsenter -m -t {berth.pid()} sh -c '{probe}'", check=False).returncode == 0

    assert can_write("/run/berth/irq/9/smp_affinity_list")
    assert not can_write("/proc/sys/vm/swappiness") and not can_write("/proc/irq/9/smp_affinity_list")
