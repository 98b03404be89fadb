"""What memories are made of and what their commands must obey; nothing here loads Amaranth."""
