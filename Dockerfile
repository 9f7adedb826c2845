# The image of `capsule sandbox --backend docker`: the program at /app, the workspace at /workspace.
# Build it with `docker compose build`; after the program was changed, build it again.
ARG BUILDER=rust:1.95-bookworm
ARG BASE=debian:bookworm-slim

FROM ${BUILDER} AS build
WORKDIR /src
COPY . .
RUN cargo build --release --locked --package capsule-cli && mkdir /out && cp target/release/capsule /out/

FROM ${BASE}
# What agents start besides: their interpreters, and git. An image of yours may name others, or none.
ARG PACKAGES="ca-certificates git nodejs npm python3 ripgrep"
RUN if [ -n "$PACKAGES" ]; then \
      apt-get update && apt-get install -y --no-install-recommends $PACKAGES && rm -rf /var/lib/apt/lists/*; \
    fi
COPY --from=build /out/capsule /app/capsule
# No accounts, and no /tmp but the private one of each container.
RUN rm -rf /etc/passwd /etc/group /etc/shadow /etc/gshadow /tmp
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/app \
    OLLAMA_HOST=http://host.docker.internal:11434
WORKDIR /workspace
ENTRYPOINT ["/app/capsule"]
CMD ["chat"]
