"""Files of every format that was ever published, and what they say; later versions must read them."""
