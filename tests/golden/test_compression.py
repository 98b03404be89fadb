"""Promise: what is compressed errs by at most 1/128 of its block's largest number, and nothing is compressed twice."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from golden.dma.compression import RAW_SCALE, BlockCompression, BlockRecord
from golden.dma.frames import Frame, Kind, compress, decompress
from golden.formats import BF16, FP8_E4M3, FP16, FloatFormat
from golden.samples import load_layers
from tests.helpers.data import full_tensors

FORMATS = pytest.mark.parametrize("fmt", [FP16, BF16], ids=lambda fmt: fmt.name)


def numbers_of(fmt: FloatFormat, codes: np.ndarray) -> np.ndarray:
    """Return what finite codes stand for; differences and products of two of them are exact in float64 here."""
    return fmt.from_codes(codes).astype(np.float64)


def oracle(fmt: FloatFormat, codes: list[int]) -> tuple[int, list[int]]:
    """Return scale and codes of a finite block by its definition, in integers without bounds and in fractions."""
    smallest = Fraction(float(fmt.from_codes(np.array([1], np.uint16)).astype(np.float64)[0]))
    integers = [abs(Fraction(value)) / smallest for value in numbers_of(fmt, np.array(codes, np.uint16)).tolist()]
    scale = max(0, int(max(integers)).bit_length() - 7)
    # Python rounds a fraction to the nearest integer, ties to even.
    return scale, [
        (code >> 15) << 7 | min(127, round(value / 2**scale)) for code, value in zip(codes, integers, strict=True)
    ]


def through(fmt: FloatFormat, codes: np.ndarray, block: int) -> np.ndarray:
    compression = BlockCompression(fmt=fmt, block=block)
    return compression.decode(compression.encode(codes))


def finite(fmt: FloatFormat) -> np.ndarray:
    codes = np.arange(1 << 16, dtype=np.uint16)
    return codes[(codes & 0x7FFF) < fmt.inf_code]


@FORMATS
def test_a_number_alone_errs_by_no_more_than_a_128th(fmt: FloatFormat) -> None:
    """All finite codes, a block each; exact rational arithmetic."""
    codes = finite(fmt)
    back = through(fmt, codes, 1)
    before, after = numbers_of(fmt, codes), numbers_of(fmt, back)
    assert np.all(np.abs(after - before) * 128 <= np.abs(before))
    assert np.array_equal(codes >> 15, back >> 15)


@FORMATS
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_the_bound_holds_beside_anything(fmt: FloatFormat, data: st.DataObject) -> None:
    block = data.draw(st.integers(1, 40))
    spread = data.draw(st.integers(1, fmt.inf_code))
    codes = data.draw(st.lists(st.sampled_from(finite(fmt)[:: max(1, spread // 512)].tolist()), max_size=100))
    array = np.array(codes, np.uint16)
    records = BlockCompression(fmt=fmt, block=block).encode(array)
    back = BlockCompression(fmt=fmt, block=block).decode(records)
    for record, start in zip(records, range(0, len(codes), block), strict=True):
        assert (record.scale, list(record.codes)) == oracle(fmt, codes[start : start + block])
        before, after = (numbers_of(fmt, part[start : start + block]) for part in (array, back))
        assert np.all(np.abs(before - after) * 128 <= np.abs(before).max())
    # A second time nothing is lost.
    assert np.array_equal(through(fmt, back, block), back)


def test_a_hand_count() -> None:
    """117 = 0x5750 and 0.01 in fp16: N = 117 * 2^24, of 31 bits, k = 24: a step is 1, and 0.01 is none."""
    numbers = FP16.to_codes(np.array([117.0, 0.01, -1.5, 0.5, -0.0, 2.5]))
    (record,) = BlockCompression(fmt=FP16).encode(numbers)
    assert record == BlockRecord(24, (117, 0, 0x80 | 2, 0, 0x80, 2))
    assert FP16.from_codes(BlockCompression(fmt=FP16).decode([record])).tolist() == [117, 0, -2, 0, 0, 2]
    assert record.wire_bytes == 7
    # The largest saturates instead of needing an eighth bit.
    assert BlockCompression(fmt=FP16).encode(FP16.to_codes(np.array([127.9])))[0].codes == (127,)
    # In a block of its own 0.01 keeps 7 bits: 0.01 * 2^13 = 81.9.
    alone = BlockCompression(fmt=FP16, block=1).encode(numbers[1:2])
    assert alone == [BlockRecord(24 - 13, (82,))]


@FORMATS
def test_small_numbers_are_exact(fmt: FloatFormat) -> None:
    codes = np.concatenate([np.arange(128), 0x8000 + np.arange(128)]).astype(np.uint16)
    assert np.array_equal(through(fmt, codes, 256), codes)
    assert BlockCompression(fmt=fmt, block=256).encode(codes)[0].scale == 0


@FORMATS
def test_extremes_and_scales(fmt: FloatFormat) -> None:
    compression = BlockCompression(fmt=fmt)
    largest = np.array([fmt.inf_code - 1, fmt.sign_mask | (fmt.inf_code - 1)], np.uint16)
    (record,) = compression.encode(largest)
    assert record.scale == compression.max_scale == {"fp16": 33, "bf16": 254}[fmt.name]
    assert record.codes == (127, 255)
    assert compression.encode(np.zeros(0, np.uint16)) == []
    assert compression.decode([]).size == 0


@FORMATS
@pytest.mark.parametrize("sign", [0, 0x8000])
def test_infinities_and_nans_go_as_they_are(fmt: FloatFormat, sign: int) -> None:
    codes = np.full(70, fmt.one_code, np.uint16)
    codes[40] = sign | fmt.inf_code
    codes[69] = sign | fmt.inf_code | 5
    records = BlockCompression(fmt=fmt).encode(codes)
    assert [record.scale == RAW_SCALE for record in records] == [False, True, True]
    assert np.array_equal(BlockCompression(fmt=fmt).decode(records), codes)
    assert [record.wire_bytes for record in records] == [33, 65, 13]


def test_bytes_on_the_wire() -> None:
    compression = BlockCompression(fmt=FP16)
    assert [compression.wire_bytes(count) for count in (0, 1, 32, 33, 256)] == [0, 2, 33, 35, 264]
    # Key and value of a token at head dimension 128: 512 bytes become 264.
    assert 512 / compression.wire_bytes(256) == pytest.approx(1.939, abs=5e-4)


def test_frames_are_compressed_once() -> None:
    compression = BlockCompression(fmt=FP16)
    codes = FP16.to_codes(np.linspace(-3, 3, 70))
    codes[50] = FP16.inf_code
    raw = Frame(Kind.RAW, 5, codes.astype("<u2").tobytes())
    small = compress(raw, compression)
    assert (small.kind, small.tag, len(small.payload)) == (Kind.COMPRESSED, 5, 33 + 65 + 7)
    back = decompress(small, compression, 70)
    assert back.payload == through(FP16, codes, 32).astype("<u2").tobytes()
    with pytest.raises(ValueError, match=r"^frame must be RAW with whole 16-bit numbers, not COMPRESSED of 105 bytes$"):
        compress(small, compression)
    with pytest.raises(ValueError, match=r"^frame must be COMPRESSED, not RAW$"):
        decompress(back, compression, 70)
    with pytest.raises(ValueError, match=r"^frame must be RAW with whole 16-bit numbers, not RAW of 3 bytes$"):
        compress(Frame(Kind.RAW, 0, b"abc"), compression)
    for wrong in (0, 69, 71, 64, 200):
        with pytest.raises(ValueError, match=rf"^payload must hold {wrong} numbers, its 105 bytes do not$"):
            decompress(small, compression, wrong)


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match=r"^fmt must be fp16 or bf16, not 'fp8_e4m3'$"):
        BlockCompression(fmt=FP8_E4M3)
    with pytest.raises(ValueError, match=r"^block must be at least 1, not 0$"):
        BlockCompression(fmt=FP16, block=0)
    compression = BlockCompression(fmt=FP16)
    with pytest.raises(ValueError, match=r"^scale must be from 0 to 33 or 255, not \[34\]$"):
        compression.decode([BlockRecord(34, (1,))])
    with pytest.raises(ValueError, match=r"^codes must be from 0 to 255, not 256 to 256$"):
        compression.decode([BlockRecord(0, (256,))])
    with pytest.raises(ValueError, match=r"^codes must be a vector, not of shape \(1, 1\)$"):
        compression.encode(np.zeros((1, 1), np.uint16))
    with pytest.raises(TypeError, match=r"^codes must be integers, not float64$"):
        compression.encode(np.zeros(1))


def relative_rms(values: np.ndarray, block: int) -> float:
    """Return the rms error of compressed keys or values over their rms; blocks lie within a head."""
    codes = FP16.to_codes(values.ravel())
    before, after = (FP16.from_codes(part).astype(np.float64) for part in (codes, through(FP16, codes, block)))
    return float(np.sqrt(np.mean((after - before) ** 2) / np.mean(before**2)))


def test_real_keys_and_values_keep_two_digits() -> None:
    """The bound's step is at most M / 64 and its error uniform, so rms M / (64 * sqrt(12)) at most for any block."""
    for layer in load_layers():
        for values in (layer.k, layer.v):
            errors = [relative_rms(values, block) for block in (8, 32)]
            largest = np.abs(values.astype(np.float64)).max()
            rms = np.sqrt(np.mean(values.astype(np.float64) ** 2))
            assert 0 < errors[0] < errors[1] < largest / rms / (64 * 12**0.5)


def test_a_longer_block_costs_accuracy_on_whole_tensors() -> None:
    with np.load(full_tensors()) as tensors:
        values = tensors["k0"][:64]
        errors = [relative_rms(values, block) for block in (8, 16, 32)]
    assert errors == sorted(errors)
    assert errors[2] < 0.02
