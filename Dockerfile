# edgebox for x86-64, with or without an NVIDIA GPU. docs/how-to/docker.md says how to run it.
#
#   docker build -t edgebox .                          CUDA and cuDNN inside
#   docker build -t edgebox --build-arg EXTRAS=mqtt .  for CPUs only, 1.3 GB less to download

FROM python:3.11-slim-bookworm AS builder
ARG EXTRAS=cuda,mqtt
WORKDIR /src
COPY . .
# The page is built here too: Node comes as a Python package, with the build's requirements.
RUN --mount=type=cache,target=/root/.cache/pip \
    pip wheel --no-deps --wheel-dir /wheels .
RUN --mount=type=cache,target=/root/.cache/pip \
    python -m venv /opt/edgebox \
    && /opt/edgebox/bin/pip install "$(ls /wheels/edgebox-*.whl)${EXTRAS:+[$EXTRAS]}"

FROM python:3.11-slim-bookworm
RUN groupadd --gid 10001 edgebox \
    && useradd --uid 10001 --gid 10001 --no-create-home --shell /usr/sbin/nologin edgebox \
    && install --directory --owner edgebox --group edgebox /data
COPY --from=builder /opt/edgebox /opt/edgebox
ENV PATH=/opt/edgebox/bin:$PATH \
    HOME=/data \
    XDG_DATA_HOME=/data \
    CUDA_CACHE_PATH=/data/cuda-cache \
    ORT_DISABLE_TELEMETRY=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8787
STOPSIGNAL SIGTERM
# Alive, not ready: measuring a new machine takes a while and is no reason for a restart.
HEALTHCHECK --interval=15s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8787/healthz', timeout=4)"]
ENTRYPOINT ["edgebox"]
CMD ["serve", "--host", "0.0.0.0"]
