"""One folder with everything for many machines: made once, checked byte by byte, used without a network."""
