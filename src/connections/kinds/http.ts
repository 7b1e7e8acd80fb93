import { t } from 'elysia'
import { HOP_BY_HOP_HEADERS } from '../../core/hop-by-hop'
import { textMatching, webAddress, withMessage } from '../../core/shapes'
import { defineKind, NotConnected, originOf } from './connection-kind'
import { probe } from './probe'

/** Returns the configured headers of each request, without hop-by-hop headers and `content-length`. */
export function buildHeaders({ headers }: { headers?: Record<string, string> }): Headers {
  const result = new Headers(headers)
  for (const name of [...HOP_BY_HOP_HEADERS, 'content-length']) result.delete(name)
  return result
}

const HEADER_NAME_MESSAGE = 'This is not the name of a header: use letters, digits and - (100 characters at most).'

/** Any HTTP server. Its headers are sent with each request. */
export const http = defineKind({
  metadata: t.Object({ url: webAddress({ maxLength: 2_000, description: 'the base URL' }) }),
  authentication: t.Object({
    headers: t.Optional(
      t.Record(
        textMatching("^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$", HEADER_NAME_MESSAGE),
        textMatching('^[\\t\\x20-\\x7e]*$', 'Write the value of a header in ASCII, without control characters.', {
          maxLength: 8_000,
        }),
        { maxProperties: 50, additionalProperties: false, ...withMessage(HEADER_NAME_MESSAGE) },
      ),
    ),
  }),
  serverOf: ({ url }) => originOf(url),
  async check({ tenant, metadata: { url }, authentication }) {
    const headers = buildHeaders(authentication)
    try {
      return await probe(tenant, url, { method: 'HEAD', headers })
    } catch (error) {
      // Some servers do not support HEAD.
      if (error instanceof NotConnected) return probe(tenant, url, { headers })
      throw error
    }
  },
})
