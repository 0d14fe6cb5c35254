"""Running compiled modules: native scalar programs, and the host program over a device."""
