import { type Static, t } from 'elysia'
import { time } from '../core/shapes'

/** A certificate of a host, or one that is still to be ordered. */
export const Certificate = t.Object({
  host: t.String(),
  tenant: t.Nullable(t.String({ description: 'tenant ID; null for a host of the installation' })),
  source: t.Union([t.Literal('file'), t.Literal('acme')], {
    description: 'certificate source: ATOLL_TLS_CERT or ACME',
  }),
  state: t.Union([t.Literal('pending'), t.Literal('issued'), t.Literal('failing')], {
    description:
      'pending: will be ordered soon; issued: in use; failing: the last order failed, and any earlier certificate stays in use',
  }),
  issuer: t.Nullable(t.String()),
  issued: t.Nullable(time),
  expires: t.Nullable(time),
  attempted: t.Nullable({ ...time, description: 'time of the last order' }),
  next: t.Nullable({ ...time, description: 'time of the next order; null for a file' }),
  failures: t.Number({ description: 'number of failed orders since the last certificate' }),
  problem: t.Nullable(t.String({ description: 'reason why the last order failed, or why the files are unusable' })),
})
export type Certificate = Static<typeof Certificate>
