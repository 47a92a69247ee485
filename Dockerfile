# edgebox for x86-64 and for aarch64 servers, with or without an NVIDIA GPU; Jetson boards have
# Dockerfile.jetson. docs/how-to/docker.md says how to run it.
#
#   docker build -t edgebox .                                   CUDA and cuDNN inside
#   docker build -t edgebox --build-arg REQUIREMENTS=cpu .      for CPUs only, 2.3 GB smaller
#   docker build -t edgebox-camera --build-arg REQUIREMENTS=camera --target camera .
#
# REQUIREMENTS   which locks of requirements/ are installed: cpu or cuda, camera, or several: "cpu camera onvif"
# PYTHON_IMAGE   the base image; name it with its digest to pin it: python:3.11-slim-bookworm@sha256:...
ARG PYTHON_IMAGE=python:3.11-slim-bookworm

FROM ${PYTHON_IMAGE} AS wheel
WORKDIR /src
COPY . .
# The page is built here too: Node comes as a Python package, with the build's requirements.
RUN --mount=type=cache,target=/root/.cache/pip \
    pip wheel --no-deps --wheel-dir /wheels .

# Apart from the code, so that a change of the code is a layer of a few megabytes.
FROM ${PYTHON_IMAGE} AS dependencies
ARG REQUIREMENTS=cuda
COPY requirements /requirements
RUN --mount=type=cache,target=/root/.cache/pip \
    python -m venv /opt/edgebox \
    && for name in ${REQUIREMENTS}; do set -- "$@" --requirement "/requirements/${name}.txt"; done \
    && /opt/edgebox/bin/pip install --require-hashes "$@"

FROM ${PYTHON_IMAGE} AS camera
RUN groupadd --gid 10001 edgebox \
    && useradd --uid 10001 --gid 10001 --no-create-home --shell /usr/sbin/nologin edgebox \
    && install --directory --owner edgebox --group edgebox /data
COPY --from=dependencies /opt/edgebox /opt/edgebox
RUN --mount=type=bind,from=wheel,source=/wheels,target=/wheels \
    /opt/edgebox/bin/pip install --no-index --no-deps --no-cache-dir /wheels/edgebox-*.whl
ENV PATH=/opt/edgebox/bin:$PATH \
    HOME=/data \
    XDG_DATA_HOME=/data \
    CUDA_CACHE_PATH=/data/cuda-cache \
    ORT_DISABLE_TELEMETRY=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
LABEL org.opencontainers.image.title="edgebox" \
    org.opencontainers.image.description="An edge inference server: cameras stream frames with deadlines, the box answers each one in time" \
    org.opencontainers.image.licenses="Apache-2.0"
USER 10001:10001
WORKDIR /data
VOLUME /data
STOPSIGNAL SIGTERM
ENTRYPOINT ["edgebox"]
# A camera has no port, hence no health check.
CMD ["camera", "--help"]

FROM camera AS box
EXPOSE 8787
# Alive, not ready: measuring a new machine takes a while and is no reason for a restart.
HEALTHCHECK --interval=15s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-m", "edgebox.healthcheck"]
CMD ["serve", "--host", "0.0.0.0"]
