import { type FieldError, Problem } from '../core/problem'
import { type DefinitionFiles, parseFiles } from './definition-files'
import { readFolder, readVersions, writeFolder, writeVersions } from './folder'
import { kinds } from './kinds'
import type { ChangeReport } from './push'
import { toVariable } from './secrets'
import type { DefinitionTarget, DiffReport, PushReport } from './target'
import type { Versions } from './tenant-definitions'

export type FolderOptions = {
  prune?: boolean
  pruneData?: boolean
  /** Returns the value of a placeholder. */
  readSecret?: (name: string) => string | undefined
}

/** Writes the definitions of a tenant as files. Returns how many files there are in each folder. */
export async function pullFolder(target: DefinitionTarget, folder: string): Promise<Record<string, number>> {
  const { files, versions } = await target.read()
  await writeFolder(folder, files)
  await writeVersions(folder, target.id, versions)
  const counts = Object.values(kinds).map(({ folder }) => [
    folder,
    Object.keys(versions).filter((path) => path.startsWith(`${folder}/`)).length,
  ])
  return Object.fromEntries(counts)
}

/** Returns what a push of the folder would change. @throws as the diff of the API does */
export async function diffFolder(
  target: DefinitionTarget,
  folder: string,
  options: FolderOptions = {},
): Promise<DiffReport> {
  return target.diff(await readInput(target, folder, options))
}

/**
 * Makes a tenant's definitions those of the folder, and keeps their versions, also when a change fails. Returns the
 * changes that were made.
 * @throws as the push of the API does
 */
export async function pushFolder(target: DefinitionTarget, folder: string, options: FolderOptions = {}) {
  const { pruneData } = options
  const changes: ChangeReport[] = []
  for (;;) {
    const input = { ...(await readInput(target, folder, options)), ...(pruneData && { pruneData }) }
    const pushed = await target.push(input).catch(async (error) => {
      if (!(error instanceof Problem)) throw error
      const { errors, versions } = (error.more.details ?? {}) as {
        errors?: FieldError[]
        versions?: PushReport['versions']
      }
      if (!versions) throw error
      await mergeVersions(folder, target.id, versions)
      throw new Problem(error.status, error.code, error.message, { cause: error, ...(errors && { details: errors }) })
    })
    await mergeVersions(folder, target.id, pushed.versions)
    changes.push(...pushed.changes)
    if (!pushed.remaining) return { changes }
  }
}

async function readInput(target: DefinitionTarget, folder: string, { prune, readSecret }: FolderOptions) {
  const files = await readFolder(folder)
  const secrets = readSecret ? readSecrets(files, readSecret) : {}
  return { files, secrets, versions: await readVersions(folder, target.id), ...(prune && { prune }) }
}

/** Only placeholders where a file has a secret are read: a server must not be able to ask for any variable. */
function readSecrets(files: DefinitionFiles, read: (name: string) => string | undefined): Record<string, string> {
  const secrets: Record<string, string> = {}
  for (const { kind, definition, path } of parseFiles(files))
    kinds[kind].mapSecrets?.(definition, (secretPath, text) => {
      const name = toVariable(path, secretPath, text)
      const value = read(name)
      if (value) secrets[name] = value
      return text
    })
  return secrets
}

async function mergeVersions(folder: string, target: string, changed: PushReport['versions']) {
  const merged = Object.entries({ ...(await readVersions(folder, target)), ...changed })
  const known = merged.filter(([, version]) => version !== null)
  await writeVersions(folder, target, Object.fromEntries(known) as Versions)
}
