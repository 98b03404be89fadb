"""Studies: each answers one question with rows; tables and figures are drawn from the rows."""
