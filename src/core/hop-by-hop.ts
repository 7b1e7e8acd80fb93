/** Headers about one connection, not about what it carries (RFC 9110 §7.6.1). They never pass from one side to another. */
export const HOP_BY_HOP_HEADERS: readonly string[] = [
  ...['connection', 'keep-alive', 'proxy-authenticate', 'proxy-authorization', 'proxy-connection', 'te', 'trailer'],
  ...['transfer-encoding', 'upgrade', 'expect', 'host'],
]
