import { type Static, t } from 'elysia'
import { time } from '../core/shapes'

const newTenantId = t.String({
  minLength: 1,
  maxLength: 63,
  description: 'the id of the new tenant: lower-case letters, digits and hyphens',
})

/** Which new tenant a tenant is copied to. */
export const TenantClone = t.Object({
  as: newTenantId,
  withoutSecrets: t.Optional(t.Boolean({ description: 'whether to leave out everything that is encrypted' })),
})

/** Which backup is restored. Without `as` it replaces the data of its tenant. */
export const TenantRestore = t.Object({
  backup: t.String({ minLength: 1, maxLength: 100, description: '`name` of a backup of the tenant' }),
  as: t.Optional(newTenantId),
  dropSecrets: t.Optional(
    t.Boolean({ description: 'whether to leave out secrets that are encrypted with keys of another installation' }),
  ),
})

const missingFiles = t.Array(t.String(), { description: 'the names of files whose content is missing or damaged' })

/** The contents of files that were brought to a tenant. */
const PlacedFiles = t.Object({ count: t.Number({ description: 'how many contents' }), missing: missingFiles })

/** A backup that was made. */
export const TenantBackup = t.Object({
  tenant: t.String(),
  place: t.String({ description: 'its address' }),
  created: time,
  bytes: t.Number({ description: 'its size in the target' }),
  ms: t.Number({ description: 'how long it took' }),
  encrypted: t.Boolean(),
  files: t.Object({
    count: t.Number({ description: 'how many contents of files it has' }),
    bytes: t.Number({ description: 'their size, which backups of the tenant share' }),
    added: t.Number({ description: 'how many of them no earlier backup had stored' }),
    mended: t.Optional(
      t.Number({ description: 'how many of them were torn or changed in the target, and were stored again' }),
    ),
    missing: missingFiles,
  }),
})

/** A backup in the target of ATOLL_BACKUP_TO. */
export const ListedBackup = t.Object({
  name: t.String({ description: 'the name of its folder, which `restore` takes' }),
  place: t.String({ description: 'its address' }),
  created: time,
  bytes: t.Number({ description: 'its size in the target' }),
  version: t.String({ description: 'the version of Atoll that made it' }),
  schemaVersion: t.Number(),
  rows: t.Number(),
  encrypted: t.Boolean(),
})
export type ListedBackup = Static<typeof ListedBackup>

/** The last backup of a tenant, and the last attempt if that failed. */
export const LastBackup = t.Object({
  created: t.Nullable({ ...time, description: 'when it was made; null before the first one' }),
  bytes: t.Nullable(t.Number({ description: 'its size in the target' })),
  problem: t.Nullable(t.String({ description: 'why the latest attempt failed; null after one that succeeded' })),
  failed: t.Nullable({ ...time, description: 'when the latest attempt failed' }),
})
export type LastBackup = Static<typeof LastBackup>

/** A restored tenant. */
export const RestoredTenant = t.Object({
  tenant: t.String(),
  place: t.String({ description: 'the address of the backup' }),
  created: { ...time, description: 'when the backup was made' },
  until: t.Optional({ ...time, description: 'the last writes that were restored from the log' }),
  rows: t.Number(),
  files: PlacedFiles,
  lostSecrets: t.Number({ description: 'how many secrets are left out' }),
  ms: t.Number({ description: 'how long it took' }),
  trash: t.Optional(t.String({ description: 'where the replaced files are now' })),
  outgoingHeld: t.Optional(
    t.Boolean({ description: 'true for a copy beside its origin, which does nothing outside until it is resumed' }),
  ),
})
export type RestoredTenant = Static<typeof RestoredTenant>

/** A tenant that is a copy of another one. */
export const ClonedTenant = t.Object({
  tenant: t.String({ description: 'the id of the new tenant' }),
  from: t.String(),
  files: PlacedFiles,
  lostSecrets: t.Number({ description: 'how many secrets no key decrypts' }),
  omittedSecrets: t.Array(t.String(), { description: 'what the secrets that were to be left out are for' }),
  ms: t.Number({ description: 'how long it took' }),
})
export type ClonedTenant = Static<typeof ClonedTenant>
