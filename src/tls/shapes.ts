import { type Static, t } from 'elysia'
import { time } from '../core/shapes'

/** A certificate of a host, or one that is still to be ordered. */
export const Certificate = t.Object({
  host: t.String(),
  tenant: t.Nullable(t.String({ description: 'the id of the tenant; null for a host of the installation' })),
  source: t.Union([t.Literal('file'), t.Literal('acme')], { description: 'a file of ATOLL_TLS_CERT, or ATOLL_ACME' }),
  state: t.Union([t.Literal('pending'), t.Literal('issued'), t.Literal('failing')], {
    description:
      'pending: it is ordered soon; issued: it is served; failing: the last order failed, and an earlier certificate is served as long as there is one',
  }),
  issuer: t.Nullable(t.String()),
  issued: t.Nullable(time),
  expires: t.Nullable(time),
  attempted: t.Nullable({ ...time, description: 'when it was last ordered' }),
  next: t.Nullable({ ...time, description: 'when it is ordered next; null for a file' }),
  failures: t.Number({ description: 'how many orders have failed since the last certificate' }),
  problem: t.Nullable(t.String({ description: 'why the last order failed, or the files cannot be used' })),
})
export type Certificate = Static<typeof Certificate>
