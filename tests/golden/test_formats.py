from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from golden.formats import BF16, FORMATS, FP8_E4M3, FP16, FP32
from tests.helpers.exact import decode, round_to

SMALL = [FP16, BF16, FP8_E4M3]
by_name = pytest.mark.parametrize("fmt", FORMATS.values(), ids=lambda fmt: fmt.name)
small_by_name = pytest.mark.parametrize("fmt", SMALL, ids=lambda fmt: fmt.name)


def all_codes(fmt):
    return np.arange(1 << fmt.bits, dtype=fmt.code_dtype)


@small_by_name
def test_every_code_decodes_to_its_definition(fmt):
    with np.errstate(invalid="ignore"):  # signalling NaNs
        numbers = fmt.from_codes(all_codes(fmt)).astype(np.float64)
    expected = np.array([float(decode(fmt, code)) for code in range(1 << fmt.bits)])
    np.testing.assert_array_equal(numbers, expected)


@small_by_name
@pytest.mark.parametrize("through", [np.float32, np.float64])
def test_every_code_round_trips(fmt, through):
    codes = all_codes(fmt)
    numbers = fmt.from_codes(codes)
    with np.errstate(invalid="ignore"):  # signalling NaNs
        wide = numbers.astype(through)
    expected = np.where(np.isnan(wide), fmt.nan_code, codes)
    np.testing.assert_array_equal(fmt.to_codes(numbers), expected)
    np.testing.assert_array_equal(fmt.to_codes(wide), expected)


@small_by_name
def test_ties_go_to_even_and_neighbours_of_ties_do_not(fmt):
    """Between every two neighbouring finite codes: the middle goes to the even one, a float64 step beside it not."""
    top = int(fmt.to_codes(fmt.max_finite))
    low = np.arange(0, top, dtype=fmt.code_dtype)
    middle = (fmt.from_codes(low).astype(np.float64) + fmt.from_codes(low + 1).astype(np.float64)) / 2
    np.testing.assert_array_equal(fmt.to_codes(middle), low + (low & 1))
    np.testing.assert_array_equal(fmt.to_codes(np.nextafter(middle, 0)), low)
    np.testing.assert_array_equal(fmt.to_codes(np.nextafter(middle, np.inf)), low + 1)
    np.testing.assert_array_equal(fmt.to_codes(-middle), (low + (low & 1)) | fmt.sign_mask)


@by_name
@settings(derandomize=True, deadline=None, max_examples=300)
@given(value=st.floats(-400, 400) | st.floats(-1e-4, 1e-4) | st.floats(-1e-30, 1e-30))
def test_rounding_equals_exact_fractions(fmt, value):
    assert decode(fmt, int(fmt.to_codes(value))) == round_to(fmt, Fraction(value))


@by_name
def test_overflow(fmt):
    finite = fmt.max_finite
    ulp = finite - float(fmt.from_codes(fmt.to_codes(finite) - 1))
    over = [np.inf, 2.0**200, finite + ulp]
    code = fmt.inf_code if fmt.has_infinity else fmt.nan_code
    np.testing.assert_array_equal(fmt.to_codes(over), [code] * 3)
    negative = code | fmt.sign_mask if fmt.has_infinity else code
    np.testing.assert_array_equal(fmt.to_codes(np.negative(over)), [negative] * 3)
    assert fmt.to_codes(finite + 0.49 * ulp) == fmt.to_codes(finite)
    # Half a step above: the even neighbour. It is the first code beyond the range except in E4M3, whose 448 is even.
    assert fmt.to_codes(finite + 0.5 * ulp) == (code if fmt.has_infinity else fmt.to_codes(finite))


@by_name
def test_every_nan_has_one_code(fmt):
    payloads = np.array([0x7FC00000, 0xFFC00000, 0x7F800001, 0xFFFFFFFF, 0x7FC12345], np.uint32).view(np.float32)
    np.testing.assert_array_equal(fmt.to_codes(payloads), [fmt.nan_code] * 5)
    with np.errstate(invalid="ignore"):  # signalling NaNs
        wide = payloads.astype(np.float64)
    np.testing.assert_array_equal(fmt.to_codes(wide), [fmt.nan_code] * 5)
    assert np.isnan(float(fmt.from_codes(fmt.nan_code)))


@by_name
def test_zeros_keep_their_sign(fmt):
    np.testing.assert_array_equal(fmt.to_codes([0.0, -0.0, 1e-200, -1e-200]), [0, fmt.sign_mask, 0, fmt.sign_mask])


@pytest.mark.parametrize(
    ("fmt", "bits", "bias", "max_finite", "min_normal", "one", "nan"),
    [
        (FP32, 32, 127, 3.4028234663852886e38, 2.0**-126, 0x3F800000, 0x7FC00000),
        (FP16, 16, 15, 65504.0, 2.0**-14, 0x3C00, 0x7E00),
        (BF16, 16, 127, 3.3895313892515355e38, 2.0**-126, 0x3F80, 0x7FC0),
        (FP8_E4M3, 8, 7, 448.0, 2.0**-6, 0x38, 0x7F),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_facts_of_the_formats(fmt, bits, bias, max_finite, min_normal, one, nan):
    """The numbers of IEEE 754 table 3.5, of bfloat16 and of the OFP8 table for E4M3."""
    assert (fmt.bits, fmt.bytes, fmt.bias) == (bits, bits // 8, bias)
    assert (fmt.max_finite, fmt.min_normal) == (max_finite, min_normal)
    assert (fmt.one_code, fmt.nan_code) == (one, nan)
    assert fmt.to_codes(1.0) == one
    assert fmt.max_finite == float(ml_dtypes.finfo(fmt.dtype).max)
    assert fmt.min_normal == float(ml_dtypes.finfo(fmt.dtype).smallest_normal)


def test_e4m3_table():
    assert FP8_E4M3.from_codes(0x01) == 2.0**-9  # smallest subnormal
    assert FP8_E4M3.from_codes(0x07) == 0.875 * 2.0**-6  # largest subnormal
    assert FP8_E4M3.from_codes(0x78) == 256.0  # the all-ones exponent holds numbers
    assert np.isnan(FP8_E4M3.from_codes([0x7F, 0xFF]).astype(np.float32)).all()
    with pytest.raises(ValueError, match=r"^Format must have an infinity, fp8_e4m3 has none$"):
        _ = FP8_E4M3.inf_code


@by_name
def test_shapes_are_kept(fmt):
    for shape in [(), (0,), (2, 0), (3, 1, 2)]:
        codes = fmt.to_codes(np.ones(shape))
        assert (codes.shape, codes.dtype) == (shape, fmt.code_dtype)
        numbers = fmt.from_codes(codes)
        assert (numbers.shape, numbers.dtype) == (shape, fmt.dtype)
    assert fmt.from_codes([]).shape == (0,)
    assert fmt.to_codes(1) == fmt.one_code  # an int is a number too


def test_codes_are_checked():
    with pytest.raises(ValueError, match=r"^codes must be from 0 to 65535, not from 3 to 70000$"):
        FP16.from_codes([3, 70000])
    with pytest.raises(ValueError, match=r"^codes must be from 0 to 255, not from -1 to -1$"):
        FP8_E4M3.from_codes(-1)
    with pytest.raises(TypeError, match=r"^codes must be integers, not float64$"):
        FP16.from_codes([1.5])
