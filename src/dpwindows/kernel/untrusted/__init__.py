"""What the kernel needs and no proof rests on.

Searches and `noise_scales` propose, and a check in `kernel.bounds` or `kernel.accounting` accepts what they propose or
not. `decoding` reads noisy numbers back.
"""
