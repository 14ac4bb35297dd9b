# syntax=docker/dockerfile:1
# Two stages: one with a compiler, one with nothing but the binary and the roots that TLS trusts.

FROM rust:1.95-slim-bookworm AS build
WORKDIR /src
COPY . .
# The caches outlive a build and are no part of the image.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --release --locked --package paceline-cli --bin paceline \
    && cp target/release/paceline /usr/local/bin/paceline

FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --home-dir /nonexistent --shell /usr/sbin/nologin paceline
COPY --from=build /usr/local/bin/paceline /usr/local/bin/paceline
USER 10001
# A TERM is enough: paceline finishes what is on the wire, hands the rest back, and ends.
STOPSIGNAL SIGTERM
ENTRYPOINT ["paceline"]
CMD ["--help"]
