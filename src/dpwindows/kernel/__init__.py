"""The trusted kernel: exact integers in, noisy integers out, within a proved budget."""
