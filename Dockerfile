# syntax=docker/dockerfile:1
# Two stages: the first makes the environment with the script that `make setup` runs, the second holds only what serving needs.
# Run:  docker run --read-only --tmpfs /tmp -v errata:/data -p 8000:8000 errata
FROM python:3.11-slim-bookworm AS environment
WORKDIR /opt/errata
ENV PIP_NO_CACHE_DIR=1
COPY pyproject.toml requirements.lock README.md ./
COPY app app
COPY scripts scripts
RUN ERRATA_LOCK=requirements.lock scripts/environment python3.11

FROM python:3.11-slim-bookworm
LABEL org.opencontainers.image.title="errata" \
      org.opencontainers.image.description="An error knowledge base for Python software, SGLang first"
RUN useradd --system --uid 10001 --home-dir /data --shell /usr/sbin/nologin errata \
 && install -d -o errata -g errata /data
WORKDIR /opt/errata
COPY --from=environment /opt/errata /opt/errata
COPY alembic.ini ./
COPY migrations migrations
COPY data data
COPY templates templates
ENV PATH=/opt/errata/.venv/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    ERRATA_CACHE_DIR=/data \
    ERRATA_DATABASE_URL=sqlite:////data/errata.db \
    HOST=0.0.0.0 \
    PORT=8000
USER 10001
VOLUME /data
EXPOSE 8000
# The first start mines the releases and installs the check engine into /data; until then the health check waits.
HEALTHCHECK --interval=30s --timeout=5s --start-period=15m --retries=3 CMD ["scripts/healthy"]
CMD ["scripts/start"]
