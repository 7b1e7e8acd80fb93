import { t } from 'elysia'
import { greet } from './asking'
import { kind, NotConnected } from './kind'

/** Any server. Its headers come with each request that is sent to it. */
export const http = kind({
  metadata: t.Object({
    url: t.String({ pattern: '^https?://', maxLength: 2_000, description: 'where it is, or what paths are below' }),
  }),
  authentication: t.Object({
    headers: t.Optional(
      t.Record(
        t.String({ pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$" }),
        t.String({ pattern: '^[\\t\\x20-\\x7e]*$', maxLength: 8_000 }),
        { maxProperties: 50, additionalProperties: false },
      ),
    ),
  }),
  async check({ metadata: { url }, authentication: { headers } }) {
    try {
      return await greet(url, { method: 'HEAD', headers })
    } catch (error) {
      // Some know no HEAD.
      if (error instanceof NotConnected) return greet(url, { headers })
      throw error
    }
  },
})
