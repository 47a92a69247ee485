"""Frame sources and JPEG: the only importer of Pillow, simplejpeg and PyAV."""
