"""The camera daemon: source, resize, encode, send, obeying the box's advice."""
