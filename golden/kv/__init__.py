"""Where the KV cache lies: one logical address, a block table, and the physical addresses of each memory."""
