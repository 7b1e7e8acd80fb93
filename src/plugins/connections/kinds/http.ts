import { t } from 'elysia'
import { textMatching, webAddress, withMessage } from '../../../core/shapes'
import { greet } from './asking'
import { kind, NotConnected } from './kind'

/** About the way there (RFC 9110 §7.6.1), which is our business. */
const OURS = ['connection', 'content-length', 'host', 'keep-alive', 'te', 'trailer', 'transfer-encoding', 'upgrade']

/** The headers that come with each request to such a server. */
export function headersOf({ headers }: { headers?: Record<string, string> }): Headers {
  const sent = new Headers(headers)
  for (const name of OURS) sent.delete(name)
  return sent
}

const HEADER_NAME = 'This is not the name of a header: use letters, digits and - (100 characters at most).'

/** Any server. Its headers come with each request that is sent to it. */
export const http = kind({
  metadata: t.Object({ url: webAddress({ maxLength: 2_000, description: 'where it is, or what paths are below' }) }),
  authentication: t.Object({
    headers: t.Optional(
      t.Record(
        textMatching("^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$", HEADER_NAME),
        textMatching('^[\\t\\x20-\\x7e]*$', 'Write the value of a header in ASCII, without control characters.', {
          maxLength: 8_000,
        }),
        { maxProperties: 50, additionalProperties: false, ...withMessage(HEADER_NAME) },
      ),
    ),
  }),
  async check({ tenant, metadata: { url }, authentication }) {
    const headers = headersOf(authentication)
    try {
      return await greet(tenant, url, { method: 'HEAD', headers })
    } catch (error) {
      // Some know no HEAD.
      if (error instanceof NotConnected) return greet(tenant, url, { headers })
      throw error
    }
  },
})
