# The binary, the C library that it needs, and nothing else: no shell, no package manager, no root.
# For another processor nothing is emulated: docker buildx build --platform linux/amd64,linux/arm64 .
FROM --platform=$BUILDPLATFORM node:22-bookworm-slim AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
COPY test/description/package.json test/description/
RUN npm ci
COPY . .
ARG TARGETARCH
# The time of the commit makes the same image of the same source: --build-arg SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
ARG SOURCE_DATE_EPOCH=0
RUN npm run release -- --platforms "linux-$(echo "$TARGETARCH" | sed s/amd64/x64/)" \
  && mkdir -p /image/usr/local/bin /image/usr/share/doc/atoll /image/etc \
  && cp dist/binaries/linux-*/atoll /image/usr/local/bin/ \
  && cp LICENSE dist/release/THIRD_PARTY_LICENSES.txt dist/release/atoll-*.cdx.json /image/usr/share/doc/atoll/ \
  && echo 'atoll:x:65532:65532::/var/lib/atoll:/sbin/nologin' >/image/etc/passwd \
  && echo 'atoll:x:65532:' >/image/etc/group \
  && mkdir /data && chmod 700 /data

FROM debian:bookworm-slim AS system

FROM scratch
COPY --from=system /usr/lib/*-linux-gnu/ld-linux-*.so.* /lib64/
COPY --from=system /usr/lib/*-linux-gnu/ld-linux-*.so.* /usr/lib/*-linux-gnu/libc.so.6 /usr/lib/*-linux-gnu/libm.so.6 \
  /usr/lib/*-linux-gnu/libdl.so.2 /usr/lib/*-linux-gnu/libpthread.so.0 /lib/
COPY --from=build /image/ /
COPY --from=build --chown=65532:65532 /data/ /var/lib/atoll/
USER 65532:65532
WORKDIR /var/lib/atoll
VOLUME /var/lib/atoll
ENV ATOLL_HOST=0.0.0.0 ATOLL_TENANTS=/var/lib/atoll/tenants
EXPOSE 3000
ENTRYPOINT ["/usr/local/bin/atoll"]
CMD ["serve"]
