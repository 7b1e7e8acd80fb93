/** Headers that describe one connection (RFC 9110 §7.6.1). A proxy never passes them on. */
export const HOP_BY_HOP_HEADERS: readonly string[] = [
  ...['connection', 'keep-alive', 'proxy-authenticate', 'proxy-authorization', 'proxy-connection', 'te', 'trailer'],
  ...['transfer-encoding', 'upgrade', 'expect', 'host'],
]
