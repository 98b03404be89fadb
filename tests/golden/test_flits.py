"""Promise: frames come out of flits as they went in, damage is noticed, and small ones share flits."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from golden.dma.flits import CrcError, FlitFormat
from golden.dma.frames import Frame, Kind, frame_bytes

FRAMES = st.lists(
    st.builds(Frame, st.sampled_from(list(Kind)), st.integers(0, (1 << 32) - 1), st.binary(min_size=1, max_size=70)),
    max_size=12,
)


def crc_by_division(message: bytes) -> int:
    """Return CRC-32 by long division bit by bit, reflected, over 0x04C11DB7."""
    crc = 0xFFFFFFFF
    for byte in message:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0xEDB88320 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def test_the_bytes_of_a_frame_and_a_flit() -> None:
    frame = Frame(Kind.STATE, 0x01020304, b"abcde")
    wire = frame.to_bytes()
    assert wire == b"\x03\x00\x05\x00\x04\x03\x02\x01abcde\x00\x00\x00"
    assert len(wire) == frame_bytes(5) == 16
    (flit,) = FlitFormat(28).pack([frame], first=0x0506)
    assert flit[:-4] == wire + bytes(4) + b"\x06\x05\x00\x00"
    assert struct.unpack("<I", flit[-4:])[0] == crc_by_division(flit[:-4] + bytes(4))
    assert crc_by_division(b"123456789") == 0xCBF43926


@settings(max_examples=60, deadline=None)
@given(FRAMES, st.sampled_from([12, 16, 20, 72, 256]), st.sampled_from([0, 7, 65535]))
def test_what_is_packed_is_unpacked(frames: list[Frame], flit_bytes: int, first: int) -> None:
    form = FlitFormat(flit_bytes)
    flits = form.pack(frames, first=first)
    assert form.unpack(flits, first=first) == frames
    wire_bytes = sum(len(frame.to_bytes()) for frame in frames)
    assert len(flits) == -(-wire_bytes // form.payload_bytes) <= form.flits_alone(len(f.payload) for f in frames)
    assert all(len(flit) == flit_bytes for flit in flits)


def test_runs_of_frames_begin_with_a_flit() -> None:
    form = FlitFormat(32)
    frames = [Frame(Kind.RAW, 1, b"a"), Frame(Kind.STATE, 2, bytes(30))]
    flits = form.pack(frames[:1]) + form.pack(frames[1:], first=1)
    assert len(flits) == 3
    assert form.unpack(flits) == frames


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_burst_of_up_to_32_flipped_bits_is_noticed(data: st.DataObject) -> None:
    form = FlitFormat(data.draw(st.sampled_from([12, 72, 256])))
    flit = form.flit(data.draw(st.binary(max_size=form.payload_bytes)), 3)
    start = data.draw(st.integers(0, 8 * len(flit) - 1))
    pattern = data.draw(st.integers(1, (1 << min(32, 8 * len(flit) - start)) - 1))
    damaged = (int.from_bytes(flit, "little") ^ pattern << start).to_bytes(len(flit), "little")
    with pytest.raises(CrcError, match=r"^check sum must be "):
        form.payload(damaged, 3)


def test_lost_flits_and_frames_that_do_not_end_are_errors() -> None:
    form = FlitFormat(16)
    flits = form.pack([Frame(Kind.RAW, 1, bytes(range(1, 57)))])
    assert len(flits) == 8
    for missing in range(1, 8):
        with pytest.raises(CrcError, match=r"^frame at byte 0 must be of a known kind and end in time, it is not$"):
            form.unpack(flits[:-missing])
        with pytest.raises(CrcError, match=rf"^number of the flit must be 0, not {missing}$"):
            form.unpack(flits[missing:])
    for header in (b"\x09\x00\x01\x00", b"\x01\x00\x00\x00"):
        with pytest.raises(CrcError, match=r"^frame at byte 0 must be of a known kind"):
            form.unpack([form.flit(header, 0), form.flit(b"", 1)])
    with pytest.raises(CrcError, match=r"^flit must have 16 bytes, not 15$"):
        form.payload(flits[0][1:], 0)
    short = FlitFormat(12)
    with pytest.raises(CrcError, match=r"^frame at byte 0 must be "):
        short.unpack([short.flit(b"\x01\x00\x04\x00", 0)])
    assert form.unpack([]) == form.unpack([form.flit(b"", 0)]) == form.pack([]) == []


def test_states_and_tokens_share_flits() -> None:
    """A state of d 128 in fp32 is 520 bytes, so 528 in its frame, and a flit of 256 carries 248.

    16 states are 8,448 bytes, 34.1 flits: 35, where each by itself takes 3, 48 in all. A key and a value in 8 bits are
    264 bytes, 272 in their frame: 16 of them take 18 flits, not 32.
    """
    form = FlitFormat(256)
    assert frame_bytes(8 + 4 * 128) == 528
    for payload, packed, alone in ((520, 35, 48), (264, 18, 32)):
        frames = [Frame(Kind.STATE, number, bytes(payload)) for number in range(16)]
        assert (len(form.pack(frames)), form.flits_alone([payload] * 16)) == (packed, alone)


def test_bad_arguments() -> None:
    for wrong, message in (
        ({"kind": 0}, "0 is not a valid Kind"),
        ({"tag": 1 << 32}, "tag must be from 0 to 4294967295, not 4294967296"),
        ({"payload": b""}, "payload bytes must be from 1 to 65535, not 0"),
        ({"payload": bytes(65536)}, "payload bytes must be from 1 to 65535, not 65536"),
    ):
        with pytest.raises(ValueError, match=rf"^{message}$"):
            Frame(**({"kind": Kind.RAW, "tag": 0, "payload": b"a"} | wrong))
    for flit_bytes, message in ((8, "at least 12, not 8"), (18, "a multiple of 4, not 18")):
        with pytest.raises(ValueError, match=rf"^flit_bytes must be {message}$"):
            FlitFormat(flit_bytes)
    with pytest.raises(ValueError, match=r"^payload bytes must be from 0 to 4, not 5$"):
        FlitFormat(12).flit(bytes(5), 0)
    with pytest.raises(ValueError, match=r"^number must be from 0 to 65535, not 65536$"):
        FlitFormat(12).flit(b"", 65536)
