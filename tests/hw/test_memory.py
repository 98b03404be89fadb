"""Promise: organisations, timings and rules are complete and possible, or refused with what was wanted and given."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest

from hw.memory.model_params import MemoryModelParams
from hw.memory.organisation import Organisation
from hw.memory.rules import activations_per_window, command_name, distance, rule_names, timing_rules
from hw.memory.timing import DramTiming, jedec_cycles
from hw.presets import DRAM_ORGANISATIONS, DRAM_TIMINGS

HBM3 = DRAM_ORGANISATIONS["hbm3-16gb"].spec
T5200 = DRAM_TIMINGS["hbm3-5200"].spec
CHOSEN = {"organisation": HBM3, "timing": T5200, "simulated_groups": 1, "simulated_rows": 8, "postponed_refreshes": 8}


def test_the_stack_multiplies_out() -> None:
    assert HBM3.capacity_bytes == 16 * 64 * 16384 * 1024
    assert (HBM3.ranks_per_channel, HBM3.groups_per_channel, HBM3.banks_per_channel) == (4, 16, 64)
    assert (HBM3.row_bytes, HBM3.column_bits, HBM3.bank_bytes) == (1024, 256, 16 << 20)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rows": 8192}, r"^capacity_bytes must be .* column_bytes = 8589934592, not 17179869184$"),
        ({"column_bytes": 64}, r"^column_bytes must be dq_bits \* burst_length / 8 = 32, not 64$"),
        ({"dq_bits": 33}, r"^column_bytes must be dq_bits \* burst_length / 8 = 33, not 32$"),
        ({"banks": 0}, r"^banks must be at least 1, not 0$"),
    ],
)
def test_organisations_that_do_not_multiply_out_are_refused(changes: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(HBM3, **changes)


def test_organisations_take_integers() -> None:
    with pytest.raises(TypeError, match=r"^ranks must be an integer, not 2\.0$"):
        replace(HBM3, ranks=2.0)


def test_groups_are_numbered_once_each() -> None:
    addresses = [HBM3.group_address(group) for group in range(16)]
    assert len(set(addresses)) == 16
    assert [HBM3.group_index(*address) for address in addresses] == list(range(16))
    assert HBM3.group_address(5) == (0, 1, 1)
    with pytest.raises(ValueError, match=r"^group must be from 0 to 15, not 16$"):
        HBM3.group_address(16)
    with pytest.raises(ValueError, match=r"^rank must be from 0 to 1, not 2$"):
        HBM3.group_index(0, 2, 0)


@pytest.mark.parametrize("cls", [DramTiming, Organisation])
def test_every_number_must_be_given(cls: type[DramTiming] | type[Organisation]) -> None:
    numbers = asdict(T5200 if cls is DramTiming else HBM3)
    assert cls.from_mapping(numbers) in (T5200, HBM3)
    for name in numbers:
        rest = {key: value for key, value in numbers.items() if key != name}
        with pytest.raises(ValueError, match=rf"^{cls.__name__} must have {name}, not only "):
            cls.from_mapping(rest)
    with pytest.raises(ValueError, match=rf"^{cls.__name__} must have no n_new, old; it has "):
        cls.from_mapping(numbers | {"n_new": 1, "old": 2})
    with pytest.raises(ValueError, match=r"not only nothing$"):
        cls.from_mapping({})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_rp": 0}, "n_rp must be at least 1, not 0"),
        ({"n_rc": 44}, "n_rc must be at least 45, not 44"),
        ({"n_ccdl": 1}, "n_ccdl must be at least 2, not 1"),
        ({"n_ccds": 1}, "n_ccds must be at least 2, not 1"),
        ({"n_bl": 4}, "n_ccds must be at least 4, not 2"),
        ({"n_ccdab": 3}, "n_ccdab must be at least 4, not 3"),
        ({"n_rtw": 14}, "n_rtw must be at least 15, not 14"),
        ({"n_rtw": 3}, "n_rtw must be at least 15, not 3"),
        ({"n_refi": 456}, "n_refi must be at least 457, not 456"),
        ({"n_faw": 1}, "n_faw must be at least 2, not 1"),
        ({"n_rrdl": 1}, "n_rrdl must be at least 2, not 1"),
        ({"n_wtrl": 7}, "n_wtrl must be at least 8, not 7"),
        ({"n_rtpl": 5}, "n_rtpl must be at least 6, not 5"),
        ({"n_rfc": 62}, "n_rfc must be at least 63, not 62"),
        ({"clock_ns": 0.0}, "clock_ns must be finite and above 0, not 0.0"),
        ({"clock_ns": float("nan")}, "clock_ns must be finite and above 0, not nan"),
    ],
)
def test_impossible_timings_are_refused(changes: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        replace(T5200, **changes)


def test_timings_take_numbers() -> None:
    with pytest.raises(TypeError, match=r"^n_rp must be an integer, not 19\.5$"):
        replace(T5200, n_rp=19.5)
    with pytest.raises(TypeError, match=r"^clock_ns must be a number, not 'fast'$"):
        replace(T5200, clock_ns="fast")


def test_cycles_are_rounded_as_jedec_does() -> None:
    assert jedec_cycles(350, T5200.clock_ns) == T5200.n_rfc == 456
    assert (jedec_cycles(10, 1.0), jedec_cycles(10.02, 1.0), jedec_cycles(10.03, 1.0)) == (10, 10, 11)
    with pytest.raises(ValueError, match=r"^time_ns and clock_ns must be above 0, not 0 and 1$"):
        jedec_cycles(0, 1)


def test_presets_differ_where_they_say() -> None:
    assert [timing.spec.n_ccdab for timing in DRAM_TIMINGS.values()] == [6, 4, 6, 4, 8]
    assert DRAM_TIMINGS["hbm3-5200-pam"].spec == T5200
    sources = DRAM_TIMINGS["hbm3-5200-pam"].fields
    assert {name for name, value in sources.items() if value.source.startswith("arXiv:2602.11521")} == {
        "n_rp",
        "n_rcdrd",
        "n_rcdwr",
        "n_ras",
        "n_rrdl",
        "n_ccds",
        "n_ccdl",
        "n_wr",
        "n_refi",
        "n_faw",
    }
    assert [deviation.field for deviation in DRAM_TIMINGS["hbm3-5200-pam"].deviations] == ["n_bl", "n_rtw", "n_rc"]


@pytest.mark.parametrize(
    ("before", "after", "level", "cycles"),
    [
        ("ACTAB", "MACAB", "bank", 19),
        ("MACAB", "MACAB", "bank", 6),
        ("MACAB", "PREAB", "bank", 8),
        ("PREAB", "ACTAB", "bank", 19),
        ("ACTAB", "PREAB", "bank", 45),
        ("ACTAB", "ACTAB", "bank", 63),
        ("PREAB", "REFAB", "bank", 19),
        ("REFAB", "ACTAB", "bank", 456),
        ("WR", "PREAB", "bank", 6 + 2 + 21),
        ("WR", "MACAB", "bank", 6 + 2 + 11),
        ("WR", "RD", "rank", 6 + 2 + 8),
        ("RD", "WR", "pseudochannel", 17),
        ("ACT", "ACT", "bankgroup", 4),
        ("ACT", "ACT", "rank", 2),
        ("ACT", "ACT", "channel", 2),
        ("MACAB", "BROADCAST", "channel", 1),
    ],
)
def test_distances_of_attaccs_controller(before: str, after: str, level: str, cycles: int) -> None:
    """The all-bank ones as papers print them for AttAcc at 5.2 Gb/s; the others summed by hand."""
    assert distance(T5200, before, after, level) == cycles


def test_rules_are_named_once_and_never_shorter_than_a_cycle() -> None:
    names = rule_names(T5200)
    assert len(names) == len(set(names))
    assert all(rule.cycles >= 1 for rule in timing_rules(T5200))


def test_unknown_commands_and_levels_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^command must be one of ACT, .*, not 'REF'$"):
        distance(T5200, "REF", "ACT")
    with pytest.raises(ValueError, match=r"^level must be one of bank, .*, not 'die'$"):
        distance(T5200, "ACT", "ACT", "die")
    with pytest.raises(ValueError, match=r"^scope must be one of BANK, SAME_BANK, ALL_BANK, not 'RANK'$"):
        command_name("ACT", "RANK")


def test_all_banks_activate_four_times_what_single_banks_may() -> None:
    assert activations_per_window(HBM3, T5200, 16) == (16, 4)
    assert activations_per_window(HBM3, T5200, 4) == (4, 4)
    assert activations_per_window(HBM3, replace(T5200, n_rrds=20, n_rrdl=20), 1) == (1, 2)
    with pytest.raises(ValueError, match=r"^banks must be from 1 to 16, not 17$"):
        activations_per_window(HBM3, T5200, 17)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"simulated_groups": 17}, "simulated_groups must be from 1 to 16, not 17"),
        ({"simulated_rows": 0}, "simulated_rows must be from 1 to 16384, not 0"),
        ({"postponed_refreshes": 65}, "postponed_refreshes must be from 0 to 64, not 65"),
        ({"timing": replace(T5200, n_cl=1)}, "timing.n_cl must be at least 2, not 1"),
    ],
)
def test_models_that_make_no_sense_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        MemoryModelParams(**(CHOSEN | changes))
    with pytest.raises(TypeError, match=r"^timing must be of type DramTiming, not 3$"):
        MemoryModelParams(**(CHOSEN | {"timing": 3}))
    assert MemoryModelParams(**CHOSEN).simulated_banks == 4
