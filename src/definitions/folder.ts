import { mkdir, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { BlueprintChange } from '../blueprints/shapes'
import { tryParseJson } from '../core/json'
import { badRequest, Problem } from '../core/problem'
import { parseWithShape } from '../core/shapes'
import { type BlueprintDefinition, formatDefinition } from './blueprint-definition'
import type { Definitions } from './plan'

const KIND_FOLDER = 'blueprints'
const VERSIONS_FILE = '.atoll.json'
/** The versions that were pulled or pushed, by target and name. */
type KnownVersions = Record<string, Record<string, string>>

/** Returns the definitions of a folder. @throws 400 INVALID_INPUT that names the file */
export async function readFolder(folder: string): Promise<Definitions> {
  const definitions: Definitions = new Map()
  for (const name of await listNames(folder)) {
    const file = fileOf(name)
    const value = tryParseJson(await Bun.file(join(folder, file)).text())
    if (value === undefined) badRequest({ path: file, message: `"${file}" is not JSON.` })
    const known = parseWithShape(BlueprintChange, value)
    if (!Bun.deepEquals(known, value))
      badRequest({ path: file, message: `"${file}" has a property that blueprints do not have. Check its spelling.` })
    if (known.name === undefined || !known.fields)
      badRequest({ path: file, message: `"${file}" needs a name and fields.` })
    definitions.set(name, value as BlueprintDefinition)
  }
  return definitions
}

/** Writes a file for each definition, and removes the files of others. @throws 502 for a name that is no key */
export async function writeFolder(folder: string, definitions: Definitions) {
  await mkdir(join(folder, KIND_FOLDER), { recursive: true })
  // Another server could send any name, and files must stay in the folder.
  for (const name of definitions.keys())
    if (/[/\\]/.test(name))
      throw new Problem(502, 'UNEXPECTED_ANSWER', `The server has sent "${name}", which is not the key of a blueprint.`)
  for (const [name, definition] of definitions) await writeFile(folder, fileOf(name), formatDefinition(definition))
  for (const name of await listNames(folder)) if (!definitions.has(name)) await rm(join(folder, fileOf(name)))
}

/** Returns the versions of a target that were last pulled or pushed, by name. */
export const readVersions = async (folder: string, target: string) =>
  new Map(Object.entries((await readAllVersions(folder))[target] ?? {}))

/** Keeps the versions of a target, and leaves those of other targets alone. */
export async function writeVersions(folder: string, target: string, versions: Map<string, string>) {
  const all = { ...(await readAllVersions(folder)), [target]: Object.fromEntries([...versions].sort()) }
  await writeFile(folder, VERSIONS_FILE, `${JSON.stringify(all, null, 2)}\n`)
}

async function readAllVersions(folder: string): Promise<KnownVersions> {
  const file = Bun.file(join(folder, VERSIONS_FILE))
  return (await file.exists()) ? ((tryParseJson(await file.text()) as KnownVersions | undefined) ?? {}) : {}
}

/** The path of a definition's file in its folder. */
export const fileOf = (name: string) => `${KIND_FOLDER}/${name}.json`

async function listNames(folder: string): Promise<string[]> {
  const files = await readdir(join(folder, KIND_FOLDER)).catch((error) => {
    if (error.code !== 'ENOENT') throw error
    return badRequest({ path: folder, message: `"${folder}" has no folder "${KIND_FOLDER}". Pull first.` })
  })
  return files
    .filter((file) => file.endsWith('.json'))
    .map((file) => file.slice(0, -'.json'.length))
    .sort()
}

async function writeFile(folder: string, file: string, text: string) {
  const draft = join(folder, `${file}.${process.pid}.tmp`)
  await Bun.write(draft, text)
  await rename(draft, join(folder, file))
}
