import { type Static, t } from 'elysia'
import { flag, id, time } from '../core/shapes'

export const Deployment = t.Object({
  _id: id,
  files: t.Number({ description: 'how many files it has' }),
  bytes: t.Number({ description: 'the bytes of its files, uncompressed' }),
  spa: t.Boolean({ description: 'whether unknown paths lead to `index.html`' }),
  created: time,
  by: t.String({ description: 'the id of the user who deployed it; `operator` for the command line of the server' }),
  active: t.Boolean(),
  urls: t.Array(t.String(), { description: 'where the site can be seen; empty unless it is active' }),
})
export type Deployment = Static<typeof Deployment>

export const SiteUpload = t.Object({ spa: flag })

export const SiteRollback = t.Object({
  to: t.Optional(t.String({ description: 'the id of a deployment; default: the one that was active before' })),
})
