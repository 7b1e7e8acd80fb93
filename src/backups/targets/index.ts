import { badRequest } from '../../core/problem'
import type { StorePatience } from '../../storage/object-store/store-connection'
import type { BackupTarget } from './backup-target'
import { createFolderTarget } from './folder'
import { createS3Target } from './s3'
import { explainFailures } from './target-failure'

/** Returns the target of an address: a folder, or `s3://bucket/prefix`. @throws 400 INVALID_INPUT for other addresses */
export function openTarget(address: string, patience: StorePatience = {}): BackupTarget {
  const [, scheme] = /^([a-z][a-z0-9+.-]+):\/\//i.exec(address) ?? []
  if (!scheme) return explainFailures(createFolderTarget(address))
  if (/^s3:\/\/[^/\s]+/.test(address)) return explainFailures(createS3Target(address, patience))
  return badRequest({
    path: '--to',
    message: `"${address}" is neither a folder nor an address such as s3://bucket/prefix.`,
  })
}
