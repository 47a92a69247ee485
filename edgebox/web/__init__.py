"""Camera stream, REST, page socket: the only importer of aiohttp.web."""
