import { mkdir, readdir, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { tryParseJson } from '../core/json'
import { badRequest, Problem } from '../core/problem'
import { type DefinitionFiles, partOf } from './definition-files'
import { kinds } from './kinds'
import type { Versions } from './tenant-definitions'

const VERSIONS_FILE = '.atoll.json'
/** The versions that were pulled or pushed, by target. */
type KnownVersions = Record<string, Versions>

/** Returns the files of definitions in a folder. @throws 400 INVALID_INPUT for a folder that has none */
export async function readFolder(folder: string): Promise<DefinitionFiles> {
  const paths = await listFiles(folder)
  if (!paths) return badRequest({ path: folder, message: `"${folder}" has no definitions. Pull first.` })
  return Object.fromEntries(
    await Promise.all(paths.map(async (path) => [path, await Bun.file(join(folder, path)).text()])),
  )
}

/** Writes the files of definitions, and removes others of their kinds. @throws 502 for a path that leads elsewhere */
export async function writeFolder(folder: string, files: DefinitionFiles) {
  // Another server could send any path, and files must stay in the folder.
  for (const path of Object.keys(files))
    if (!partOf(path) || /[\\\0]/.test(path))
      throw new Problem(
        502,
        'UNEXPECTED_ANSWER',
        `The server has sent "${path}", which is not the file of a definition.`,
      )
  await mkdir(folder, { recursive: true })
  const old = (await listFiles(folder)) ?? []
  // Files that differ only by capitals may be one file here, so the old ones go first.
  for (const path of old) if (!(path in files)) await rm(join(folder, path))
  for (const [path, text] of Object.entries(files)) await writeFile(folder, path, text)
}

/** Returns the versions of a target that were last pulled or pushed. */
export const readVersions = async (folder: string, target: string): Promise<Versions> =>
  (await readAllVersions(folder))[target] ?? {}

/** Keeps the versions of a target, and leaves those of other targets alone. */
export async function writeVersions(folder: string, target: string, versions: Versions) {
  const sorted = Object.fromEntries(Object.entries(versions).sort(([a], [b]) => (a < b ? -1 : 1)))
  const all = { ...(await readAllVersions(folder)), [target]: sorted }
  await writeFile(folder, VERSIONS_FILE, `${JSON.stringify(all, null, 2)}\n`)
}

async function readAllVersions(folder: string): Promise<KnownVersions> {
  const file = Bun.file(join(folder, VERSIONS_FILE))
  return (await file.exists()) ? ((tryParseJson(await file.text()) as KnownVersions | undefined) ?? {}) : {}
}

/** Returns the paths of the files of definitions, or undefined when no kind has a folder. */
async function listFiles(folder: string): Promise<string[] | undefined> {
  const lists = await Promise.all(Object.values(kinds).map((kind) => listKindFiles(folder, kind.folder)))
  const found = lists.filter((list) => list !== undefined)
  return found.length ? found.flat() : undefined
}

async function listKindFiles(folder: string, kindFolder: string): Promise<string[] | undefined> {
  const names = await readdir(join(folder, kindFolder)).catch((error) => {
    if (error.code !== 'ENOENT') throw error
    return undefined
  })
  return names
    ?.map((name) => `${kindFolder}/${name}`)
    .filter(partOf)
    .sort()
}

async function writeFile(folder: string, path: string, text: string) {
  const file = Bun.file(join(folder, path))
  // An unchanged file keeps its time, so that nothing that watches it does work.
  if ((await file.exists()) && (await file.text()) === text) return
  await mkdir(join(folder, dirname(path)), { recursive: true })
  const draft = join(folder, `${path}.${process.pid}.tmp`)
  await Bun.write(draft, text)
  await rename(draft, join(folder, path))
}
