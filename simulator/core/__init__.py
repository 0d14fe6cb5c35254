"""One core executes a stream: records decoded, memories, data; the device the host sees."""
