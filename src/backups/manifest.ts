import { type Static, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { tryParseJson } from '../core/json'
import { Problem } from '../core/problem'

export const MANIFEST_NAME = 'manifest.json'
const FORMAT = 1

const Digest = { bytes: Type.Integer({ minimum: 0 }), sha256: Type.String({ pattern: '^[0-9a-f]{64}$' }) }
const FILE_NAME = '^[a-z][a-z0-9.]*$'

/** A file of a backup as it is stored, and its content without compression and encryption. */
export const BackupFile = Type.Object({
  name: Type.String({ pattern: FILE_NAME }),
  ...Digest,
  content: Type.Object(Digest),
})
export type BackupFile = Static<typeof BackupFile>

/** The description of a backup, which is written after its files: a folder without one is no backup. */
export const Manifest = Type.Object({
  format: Type.Integer({ minimum: 1 }),
  /** A tenant, or what tenants share: the registry, and the keys where the backup is encrypted. */
  kind: Type.Union([Type.Literal('tenant'), Type.Literal('installation')]),
  /** The id of the tenant; empty for an installation. */
  tenant: Type.String(),
  /** Its identity, and those that its data had before restores. */
  uids: Type.Optional(Type.Array(Type.String())),
  /** When the copy began, and until when it has all writes. */
  created: Type.String(),
  complete: Type.String(),
  /** The version of Atoll that made it. */
  version: Type.String(),
  schemaVersion: Type.Integer({ minimum: 1 }),
  /** `sqlite`: a database file. `rows`: lines of JSON that any engine can take. */
  content: Type.Union([Type.Literal('sqlite'), Type.Literal('rows')]),
  encryption: Type.Union([Type.Literal('none'), Type.Literal('age')]),
  /** Fingerprints of the keys that decrypt the secrets in the data. */
  keys: Type.Array(Type.String()),
  files: Type.Array(BackupFile, { minItems: 1 }),
  /** The contents of files, which are stored beside the backups of the tenant: their number and size in bytes. */
  contents: Type.Optional(Type.Object({ count: Type.Integer({ minimum: 0 }), bytes: Type.Integer({ minimum: 0 }) })),
  /** The number of rows by table. */
  rows: Type.Record(Type.String(), Type.Integer({ minimum: 0 })),
  /** Where the copy is in the log that is shipped: it goes on after this place of this generation. */
  log: Type.Optional(
    Type.Object({
      generation: Type.String(),
      /** The last segment that was stored before the copy began. */
      segment: Type.Integer({ minimum: 0 }),
      log: Type.String(),
      offset: Type.Integer({ minimum: 0 }),
    }),
  ),
  /** The libraries that could read the copy. */
  readBy: Type.Array(Type.String()),
})
export type Manifest = Static<typeof Manifest>

/** Completes a manifest with its format. */
export const createManifest = (manifest: Omit<Manifest, 'format'>): Manifest => ({ format: FORMAT, ...manifest })

/**
 * Returns the manifest in a text.
 * @throws 409 BACKUP_DAMAGED for anything else, BACKUP_TOO_NEW for a format of a later version
 */
export function parseManifest(text: string, address: string): Manifest {
  const value = tryParseJson(text)
  const format = (value as { format?: unknown } | undefined)?.format
  if (typeof format === 'number' && format > FORMAT)
    throw new Problem(409, 'BACKUP_TOO_NEW', `${address} was made by a newer version of Atoll. Upgrade Atoll first.`)
  if (Value.Check(Manifest, value)) return value
  throw new Problem(409, 'BACKUP_DAMAGED', `${address} has no valid manifest, so the backup is not complete.`)
}
