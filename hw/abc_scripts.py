"""Scripts that abc runs on the logic of a unit; pinned, because their choice moves an area by a quarter.

``area`` was chosen on seven blocks in sg13g2 (truncated multiplier as a heap of full adders, 128-entry table, 11-bit
multiplier, two linear-segment exponentials, fp32 adder, fp16 multiplier); gate equivalents, delays as they fall:

=========================================  ====  =====  =====  =====  =====  ======  ======
script                                     heap  table  mul11  lin16  lin32  fadd32  fmul16
=========================================  ====  =====  =====  =====  =====  ======  ======
default of ``abc -liberty`` (sizes gates)   513    371    971   1535   1801    1869    1404
default, no buffers and no sizing           503    341    958   1470   1744    1708    1367
``&nf`` behind the default's passes         472    321    899   1396   1661    1590    1285
``map -a`` behind them                      462    313    905   1355   1640    1593    1288
``amap -m`` behind them                     426    304    825   1185   1436    1328    1146
``amap -m -A 20 -F 20`` behind them         419    304    809   1177   1433    1322    1122
resubstitution before it                    418    293    806   1176   1404    1290    1119
four rounds of map, unmap, resubstitute     411    291    795   1134   1384    1270    1110
two rounds behind 4-input LUTs (``area``)   422    294    774   1116   1357    1237    1083
=========================================  ====  =====  =====  =====  =====  ======  ======

``&deepsyn`` gained 3 % more, and ran from 3 seconds to more than 5 minutes. Ripple adders instead of Yosys's
Brent-Kung ones changed nothing within 1.5 %: the passes find them anyway. The script is the same for every library.
"""

from __future__ import annotations

__all__ = ["SCRIPTS"]

_CLEAN = ("strash", "&get -n", "&fraig -x", "&put", "scorr")
_RESUBSTITUTE = (
    "balance -l",
    "resub -K 6 -l",
    "rewrite -l",
    "resub -K 6 -N 2 -l",
    "refactor -l",
    "resub -K 8 -l",
    "balance -l",
    "resub -K 8 -N 2 -l",
    "rewrite -l",
    "resub -K 10 -l",
    "rewrite -z -l",
    "resub -K 10 -N 2 -l",
    "balance -l",
    "resub -K 12 -l",
    "refactor -z -l",
    "resub -K 12 -N 2 -l",
    "rewrite -z -l",
    "balance -l",
)
_MAP_AREA = ("dch -f", "amap -m -A 20 -F 20")
_SIZE = ("buffer -N 16", "upsize", "dnsize")
_THROUGH_LUTS = ("dch -f", "if -K 4 -a", "mfs2 -a -e", "strash")

_SIZE = ("buffer -N 16", "upsize", "dnsize")
_SMALL = (*_CLEAN, *_RESUBSTITUTE, *_THROUGH_LUTS, *_RESUBSTITUTE, *(*_MAP_AREA, "strash", *_RESUBSTITUTE) * 2)
_FLATTER = ("if -g -K 6", "strash")

SCRIPTS: dict[str, tuple[str, ...]] = {
    "area": (*_SMALL, *(*_MAP_AREA, "strash") * 2, *_MAP_AREA, "topo"),
    "quick": ("strash", "ifraig", "scorr", "dc2", *_MAP_AREA, "topo", *_SIZE),
    "sized": (*_SMALL, *_MAP_AREA, "topo", *_SIZE),
    "flatter": (*_CLEAN, *_RESUBSTITUTE, *_FLATTER, *_RESUBSTITUTE, *_MAP_AREA, "topo", *_SIZE),
    "delay": (*_CLEAN, "dc2", "if -x -K 6", "strash", "&get -n", "&dch -f", "&nf", "&put", "topo", *_SIZE),
}
"""Commands by name. ``area`` gives the smallest unit, its delay as it falls: nets with hundreds of loads, such as the
enable of a pipeline, stay as they are. ``quick`` takes a third of the time, buffers nets of more than 16 loads, sizes
gates on the longest paths and ends 2 to 8 % larger: for whole units with registers. The others spend area on delay,
for :mod:`hw.pipelining`: ``sized`` by larger gates, ``flatter`` and ``delay`` by logic of fewer levels."""
