"""hw.exp_search: the command from search to synthesis."""

from __future__ import annotations

import pytest

from hw.exp_search import main


def test_search_and_synthesis(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("NEARKV_BUILD", str(tmp_path))
    main(["compact16-0.1", "--fits", "1"])
    first = capsys.readouterr().out.splitlines()
    assert first[0] == "   674.1 counted   84.90 % correctly rounded"
    assert first[-2].startswith("CompactShape(frac_bits=11, ")
    assert " GE of " in first[-1]
    main(["compact16-0.1", "--fits", "1"])
    assert capsys.readouterr().out.splitlines() == first


def test_bounds_of_ones_own(tmp_path, monkeypatch):
    monkeypatch.setenv("NEARKV_BUILD", str(tmp_path))
    with pytest.raises(ValueError, match="the start must meet the bounds"):
        main(["compact16-0.1", "--share", "0.9"])


def test_unknown_target(capsys):
    with pytest.raises(SystemExit):
        main(["compact16-50"])
    assert "invalid choice: 'compact16-50'" in capsys.readouterr().err
