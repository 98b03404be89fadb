"""Reading of system descriptions: TOML files with a value, a unit and a source for every number."""

from __future__ import annotations

import math
import tomllib
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from hw.presets import MEMORY_PRESETS, Deviation, Value
from sim.calibration import factors
from sim.collectives import load_collectives
from sim.errors import ConfigError, UnknownNameError
from sim.links import Link
from sim.provenance import Part
from sim.system import Gpu, System, Tier

if TYPE_CHECKING:
    from collections.abc import Iterable
    from importlib.resources.abc import Traversable

    from sim.collectives import Collectives

__all__ = ["load_system", "system_names"]

_GPU_KEYS = ("count", "peak_flops", "stacks_per_gpu", "allreduce_bytes_per_s", "reserved_bytes")
_POWER_KEYS = ("idle_w", "board_w")
"""Keys of the GPUs without which their energy is not known."""

_TOP_KEYS = {"name", "base", "description", "source", "gpu", "links", "tiers", "deviations"}
_TIER_KEYS = {"name", "device", "count", "path", "shared_with_gpu", "values"}


def _preset_dir() -> Traversable:
    """Return the folder of the system presets."""
    return resources.files("sim") / "presets" / "systems"


def system_names() -> list[str]:
    """Return the names of all system presets, sorted."""
    return sorted(entry.name.removesuffix(".toml") for entry in _preset_dir().iterdir() if entry.name.endswith(".toml"))


def load_system(name: str) -> System:
    """Return a system preset, or the system that a TOML file describes.

    Parameters
    ----------
    name : str
        Name of a preset, or path of a file that ends in ``.toml``.

    Raises
    ------
    ConfigError
        If there is no such preset, the file can't be read, or a key is missing, unknown or unusable.
    """
    table, inherited = _read(name)
    where = f"system {name}"
    _check_keys(where, table, _TOP_KEYS)
    gpu = _table(where, table, "gpu")
    _check_keys(f"{where}: gpu", gpu, {*_GPU_KEYS, *_POWER_KEYS, "collectives"})
    keys = (*_GPU_KEYS, *(key for key in _POWER_KEYS if key in gpu))
    values = {key: _value(f"{where}: gpu", gpu, key, inherited, f"gpu.{key}") for key in keys}
    links: dict[str, Link] = {}
    link_values: dict[str, Value] = {}
    link_tables = _table(where, table, "links")
    for key in link_tables:
        links[key], link_values[key] = _link(where, _table(f"{where}: links", link_tables, key), key, inherited)
    base = next(iter(inherited.values()), "")
    tiers = tuple(_tier(where, entry, links, inherited, base) for entry in _entries(where, table, "tiers"))
    if sum(tier.shared_with_gpu for tier in tiers) != 1:
        raise ConfigError(f"{where}: shared_with_gpu must be true in exactly one tier")
    system = System(
        name=_text(where, table, "name"),
        description=_text(where, table, "description"),
        source=_text(where, table, "source"),
        gpu=Gpu(**values, collectives=_collectives(where, gpu)),
        links=links,
        link_values=link_values,
        tiers=tiers,
        deviations=tuple(
            _deviation(where, entry)
            for entry in (_entries(where, table, "deviations") if "deviations" in table else ())
        ),
    )
    stacks = system.gpu.count.integer * system.gpu.stacks_per_gpu.integer
    if system.gpu_tier.count.integer != stacks:
        raise ConfigError(
            f"{where}: count of tier {system.gpu_tier.name} must be gpu.count * gpu.stacks_per_gpu = {stacks}, "
            f"not {system.gpu_tier.count.integer}"
        )
    return system


def _read(name: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the table of a system merged over its base, and the base of every number that was taken from one."""
    if name.endswith(".toml"):
        try:
            text = Path(name).read_text(encoding="utf-8-sig")
        except UnicodeDecodeError:
            raise ConfigError(f"{name}: system file must be UTF-8 text, it is not") from None
        except OSError as error:
            raise ConfigError(f"{name}: system file must be readable: {error.strerror}") from None
    elif name in system_names():
        text = (_preset_dir() / f"{name}.toml").read_text(encoding="utf-8")
    else:
        raise UnknownNameError("system", name, system_names(), " or the path of a .toml file")
    try:
        own = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{name}: system file must be TOML: {error}") from None
    base_name = own.pop("base", None)
    if base_name is None:
        return own, {}
    if base_name not in system_names():
        raise UnknownNameError(f"{name}: base", str(base_name), system_names())
    base, inherited = _read(cast("str", base_name))
    known = [entry["name"] for entry in base["tiers"]]
    for entry in _entries(name, own, "tiers") if "tiers" in own else ():
        if _text(f"{name}: tiers", entry, "name") not in known:
            raise UnknownNameError(f"{name}: tier", entry["name"], known)
    return _merge(base, own, "", inherited, cast("str", base_name)), inherited


def _merge(base: dict[str, Any], own: dict[str, Any], path: str, inherited: dict[str, str], name: str) -> Any:
    """Return ``own`` laid over ``base``, tiers by name; numbers that only the base has go into ``inherited``."""
    result: dict[str, Any] = {}
    for key in [*base, *(key for key in own if key not in base)]:
        where = f"{path}{key}"
        if key == "tiers" and key in own:
            mine = {entry["name"]: entry for entry in own[key]}
            result[key] = [
                _merge(entry, mine.get(entry["name"], {}), f"tiers.{entry['name']}.", inherited, name)
                for entry in base[key]
            ]
        elif key not in own:
            result[key] = base[key]
            _mark(base[key], where, inherited, name)
        elif isinstance(own[key], dict) and isinstance(base.get(key), dict) and "value" not in own[key]:
            result[key] = _merge(base[key], own[key], f"{where}.", inherited, name)
        else:
            result[key] = own[key]
    return result


def _mark(entry: Any, where: str, inherited: dict[str, str], name: str) -> None:
    """Note every number below ``entry`` as taken from system ``name``."""
    if isinstance(entry, dict):
        table = cast("dict[str, Any]", entry)
        if "value" in table:
            inherited.setdefault(where, name)
        else:
            for key, below in table.items():
                _mark(below, f"{where}.{key}", inherited, name)


def _value(where: str, table: dict[str, Any], key: str, inherited: dict[str, str], path: str) -> Value:
    """Return one number, its source saying so where it comes from the base."""
    entry: Any = table.get(key)
    if not isinstance(entry, dict) or set(cast("dict[str, Any]", entry)) != {"value", "unit", "source"}:
        raise ConfigError(f"{where}: {key} must be a table of value, unit and source, not {entry!r}")
    value = cast("dict[str, Any]", entry)["value"]
    if isinstance(value, bool) or not isinstance(value, int | float) or not (math.isfinite(value) and value > 0):
        raise ConfigError(f"{where}: {key}.value must be a number above zero, not {value!r}")
    source = str(cast("Any", entry["source"]))
    if path in inherited:
        source = f"taken from {inherited[path]}: {source}"
    unit = str(cast("Any", entry["unit"]))
    if unit in ("1", "bytes") and value != int(value):
        raise ConfigError(f"{where}: {key}.value must be a whole number, not {value!r}")
    try:
        return Value(value, unit, source)
    except ValueError as error:
        raise ConfigError(f"{where}: {key}: {error}") from None


def _collectives(where: str, gpu: dict[str, Any]) -> Collectives:
    """Return how the GPUs exchange: over NVLink unless the description says otherwise."""
    where = f"{where}: gpu"
    name = _text(where, gpu, "collectives") if "collectives" in gpu else Gpu.collectives.name
    return load_collectives(name, f"{where}: collectives")


def _link(where: str, table: dict[str, Any], name: str, inherited: dict[str, str]) -> tuple[Link, Value]:
    """Return one link and its rate."""
    where = f"{where}: links.{name}"
    _check_keys(where, table, {"bytes_per_s", "latency"})
    rate = _value(where, table, "bytes_per_s", inherited, f"links.{name}.bytes_per_s")
    parts = [Part(f"{name} rate", "literature", rate.source)]
    latency = _text(where, table, "latency")
    if latency == "none":
        return Link(name, rate.number, 0.0, tuple(parts)), rate
    if latency not in factors():
        raise UnknownNameError(f"{where}: latency", latency, [*factors(), "none"])
    parts.append(factors()[latency].part)
    return Link(name, rate.number, factors()[latency].value, tuple(parts)), rate


def _tier(where: str, table: dict[str, Any], links: dict[str, Link], inherited: dict[str, str], base: str) -> Tier:
    """Return one tier; ``base`` is the system that the description builds on, if any."""
    name = _text(f"{where}: tiers", table, "name")
    where = f"{where}: tier {name}"
    _check_keys(where, table, _TIER_KEYS)
    device_name = _text(where, table, "device")
    if device_name not in MEMORY_PRESETS:
        raise UnknownNameError(f"{where}: device", device_name, MEMORY_PRESETS)
    device = MEMORY_PRESETS[device_name]
    changes = _table(where, table, "values") if "values" in table else {}
    _check_keys(f"{where}: values", changes, {key for key, _ in device.values()})
    known = dict(device.values())
    values = {key: _value(f"{where}: values", changes, key, {}, "") for key in changes}
    for key, value in values.items():
        if value.unit != known[key].unit:
            raise ConfigError(f"{where}: values: {key}.unit must be {known[key].unit}, not {value.unit!r}")
    if base:
        # What the description leaves to its base says so, number by number.
        kept = {key: value for key, value in known.items() if key not in values}
        values |= {key: replace(value, source=f"taken from {base}: {value.source}") for key, value in kept.items()}
    device = device.with_values(values)
    path: Any = table.get("path")
    if not isinstance(path, list) or not path:
        raise ConfigError(f"{where}: path must be a list of links, not {path!r}")
    for link in cast("list[Any]", path):
        if link not in links:
            raise UnknownNameError(f"{where}: path", str(link), links)
    return Tier(
        name=name,
        device=device,
        count=_value(where, table, "count", inherited, f"tiers.{name}.count"),
        path=tuple(links[link] for link in cast("list[str]", path)),
        shared_with_gpu=table.get("shared_with_gpu") is True,
    )


def _deviation(where: str, table: dict[str, Any]) -> Deviation:
    """Return one deviation."""
    return Deviation(*(_text(f"{where}: deviations", table, key) for key in ("field", "printed", "used", "reason")))


def _table(where: str, table: dict[str, Any], key: str) -> dict[str, Any]:
    """Return the table under ``key``."""
    entry: Any = table.get(key)
    if not isinstance(entry, dict):
        raise ConfigError(f"{where}: {key} must be a table, not {entry!r}")
    return cast("dict[str, Any]", entry)


def _entries(where: str, table: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """Return the tables under ``key``, at least one."""
    entries: Any = table.get(key)
    found = cast("list[Any]", entries) if isinstance(entries, list) else []
    if not found or not all(isinstance(entry, dict) for entry in found):
        raise ConfigError(f"{where}: {key} must be a list of tables, not {entries!r}")
    return found


def _text(where: str, table: dict[str, Any], key: str) -> str:
    """Return the text under ``key``."""
    entry: Any = table.get(key)
    if not isinstance(entry, str) or not entry:
        raise ConfigError(f"{where}: {key} must be a text, not {entry!r}")
    return entry


def _check_keys(where: str, table: dict[str, Any], known: Iterable[str]) -> None:
    """Raise if ``table`` has a key that nothing reads."""
    for key in table:
        if key not in known:
            raise UnknownNameError(f"{where}: key", key, known)
