"""Frame sources and JPEG: the only importer of Pillow and PyAV."""
