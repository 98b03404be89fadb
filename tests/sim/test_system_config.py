"""Systems from files: a user's own memory, and every way a description can be wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from sim.calibration import parse_factors
from sim.decode import decode_step
from sim.errors import ConfigError
from sim.model_config import load_model
from sim.step import StepRequest
from sim.system_config import load_system

if TYPE_CHECKING:
    from pathlib import Path

OWN = """
name = "mine"
base = "pam"
description = "pam with drives four times as fast"
source = "my own"

[[tiers]]
name = "ssd-pim"

[tiers.values]
"page.page_read_s" = { value = 7.5e-6, unit = "s", source = "data sheet of my flash" }
"""


def load(tmp_path: Path, text: str) -> Any:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return load_system(str(path))


def test_own_memory_over_a_base(tmp_path: Path) -> None:
    mine = load(tmp_path, OWN)
    assert (mine.name, mine.tiers[0].name) == ("mine", "hbm-pim")
    values = dict(mine.values())
    assert values["tiers.ssd-pim.page.page_read_s"].source == "data sheet of my flash"
    assert values["tiers.ssd-pim.page.page_bytes"].source.startswith("taken from pam: ")
    request = StepRequest(context=2048, batch=256)
    model = load_model("opt-175b")
    mine_s, pam_s = (decode_step(system, model, request).total_s for system in (mine, load_system("pam")))
    # Now the bus limits: 6.83 us a page, four of them 27.3 us, and the cap of 18 GB/s a drive
    assert 0.9 < mine_s / pam_s < 1.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("= 1", "mine.toml: system file must be TOML: "),
        ("", "mine.toml: gpu must be a table, not None"),
        (OWN.replace('"pam"', '"pan"'), "mine.toml: base must be a known name, not 'pan'; nearest: pam"),
        (OWN + "[speed]\n", "mine.toml: key must be a known name, not 'speed'; "),
        (
            OWN.replace('"ssd-pim"', '"sdd-pim"'),
            "mine.toml: tier must be a known name, not 'sdd-pim'; nearest: ssd-pim",
        ),
        (
            OWN.replace("page.page_read_s", "page.page_read_us"),
            "tier ssd-pim: values: key must be a known name, not 'page.page_read_us'; nearest: page.page_read_s",
        ),
        (
            OWN.replace('unit = "s"', 'unit = "us"'),
            "mine.toml: tier ssd-pim: values: page.page_read_s.unit must be s, not 'us'",
        ),
        (OWN.replace("7.5e-6", "0"), "tier ssd-pim: values: page.page_read_s.value must be a number above "),
        (
            OWN.replace("7.5e-6", "nan"),
            "tier ssd-pim: values: page.page_read_s.value must be a number above ",
        ),
        (OWN.replace("7.5e-6", "true"), "mine.toml: tier ssd-pim: values: page.page_read_s.value must be a number "),
        (
            OWN.replace('{ value = 7.5e-6, unit = "s", source = "data sheet of my flash" }', "7.5e-6"),
            "mine.toml: tier ssd-pim: values: page.page_read_s must be a table of value, unit and source, not 7.5e-06",
        ),
        (
            OWN.replace("data sheet of my flash", ""),
            "mine.toml: tier ssd-pim: values: page.page_read_s: source of a preset value must say something, not ''",
        ),
        (
            OWN.replace('description = "pam with drives four times as fast"', "description = 1"),
            "mine.toml: description must be a text, ",
        ),
        (
            OWN + '[[tiers]]\nname = "hbm-pim"\ncount = { value = 8, unit = "1", source = "x" }\n',
            "mine.toml: count of tier hbm-pim must be gpu.count * gpu.stacks_per_gpu = 40, not 8",
        ),
        (
            OWN + '[[tiers]]\nname = "ddr-pim"\ncount = { value = 1.5, unit = "1", source = "x" }\n',
            "mine.toml: tier ddr-pim: count.value must be a whole number, not 1.5",
        ),
        (
            OWN + '[[tiers]]\nname = "ddr-pim"\npath = []\n',
            "tier ddr-pim: path must be a list of links, not ",
        ),
        (
            OWN + '[[tiers]]\nname = "ddr-pim"\npath = ["pci"]\n',
            "mine.toml: tier ddr-pim: path must be a known name, not 'pci'; nearest: pcie",
        ),
        (
            OWN + '[[tiers]]\nname = "ddr-pim"\ndevice = "ddr5-pim"\n',
            "mine.toml: tier ddr-pim: device must be a known name, not 'ddr5-pim'; nearest: ddr4-pim",
        ),
        (
            OWN + '[[tiers]]\nname = "ddr-pim"\nshared_with_gpu = true\n',
            "mine.toml: shared_with_gpu must be true in exactly one tier",
        ),
        (
            OWN + '[links.pcie]\nlatency = "pcie_latency"\n',
            "mine.toml: links.pcie: latency must be a known name, not 'pcie_latency'; nearest: pcie_latency_s",
        ),
        ('base = "pam"\ntiers = 3\n', "mine.toml: tiers must be a list of tables, not 3"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    assert message in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.toml: system file must be readable: No such file or directory"):
        load_system(str(tmp_path / "none.toml"))
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match=r"binary\.toml: system file must be UTF-8 text, it is not"):
        load_system(str(binary))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x", "c.toml: file must be TOML: "),
        (
            "[a]\nvalue = 1\n",
            "c.toml: a must have the keys bounds, command, default, fitted_to, source, unit, value, not ",
        ),
        (
            '[a]\nvalue = 2\ndefault = 1\nunit = "1"\nbounds = [0, 1]\nsource = "s"\nfitted_to = "f"\ncommand = "c"\n',
            "c.toml: a.value must be from 0 to 1, not 2",
        ),
        (
            '[a]\nvalue = 1\ndefault = -1\nunit = "1"\nbounds = [0, 1]\nsource = "s"\nfitted_to = "f"\ncommand = "c"\n',
            "c.toml: a.default must be from 0 to 1, not -1",
        ),
    ],
)
def test_calibration_out_of_bounds(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_factors(text, where="c.toml")
    assert str(caught.value).startswith(message)
