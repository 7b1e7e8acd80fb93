import { type Static, t } from 'elysia'

/** What the operator decided for all tenants. */
export const Installation = t.Object({
  version: t.String(),
  hosts: t.Array(t.String(), { description: 'the hosts that the operator has given to the tenant' }),
  hostClaims: t.Union([t.Literal('off'), t.Literal('dns'), t.Literal('open')], {
    description: 'how the tenant gets the hosts of its websites (ATOLL_HOST_CLAIMS)',
  }),
  mail: t.Object({
    isSent: t.Boolean({ description: 'whether there is a mail server; without one, mail stays in the outbox' }),
    from: t.String({ description: 'the sender of mail' }),
  }),
  sessionDays: t.Number({ description: 'how long a session lasts without being used' }),
  accessTokenSeconds: t.Number({ description: 'how long an access token is valid' }),
  eventDays: t.Number({ description: 'how long events are kept' }),
})
export type Installation = Static<typeof Installation>
