import { type Static, t } from 'elysia'
import { flag, id, time } from '../core/shapes'

export const Deployment = t.Object({
  _id: id,
  files: t.Number({ description: 'number of files' }),
  bytes: t.Number({ description: 'uncompressed size in bytes' }),
  spa: t.Boolean({ description: 'whether unknown paths serve `index.html`' }),
  created: time,
  by: t.String({ description: "ID of the user who deployed the site; `operator` for the server's command line" }),
  active: t.Boolean(),
  urls: t.Array(t.String(), { description: 'URLs of the site; empty unless the deployment is active' }),
})
export type Deployment = Static<typeof Deployment>

export const SiteUpload = t.Object({ spa: flag })

export const SiteRollback = t.Object({
  to: t.Optional(t.String({ description: 'deployment ID; defaults to the previous deployment' })),
})
