import type { DefinitionDiffResult } from '../../api/schema'
import { getNamedTenant } from '../../api/session'
import type { ChosenFile } from '../../ui/chosen-files'
import type { CodeLanguage } from '../../ui/code-mirror'

/** Texts by path, such as `blueprints/books.json`, and the versions of definitions that were last pulled. */
export type DefinitionFolder = { files: Record<string, string>; versions: Record<string, string> }
export type DefinitionChange = DefinitionDiffResult['changes'][number]

/** Where the files of each kind are. Some have a source beside the JSON. */
const folders: Record<DefinitionChange['kind'], { folder: string; source?: 'ts' | 'tsx' }> = {
  blueprint: { folder: 'blueprints' },
  connection: { folder: 'connections' },
  lambda: { folder: 'lambdas', source: 'ts' },
  plugin: { folder: 'plugins' },
  integration: { folder: 'integrations' },
  agent: { folder: 'agents' },
  block: { folder: 'blocks' },
  component: { folder: 'components', source: 'tsx' },
  plan: { folder: 'plans' },
  coupon: { folder: 'coupons' },
  configuration: { folder: 'configurations' },
  mail: { folder: 'mail' },
}
const VERSIONS_FILE = '.atoll.json'

/** The name under which `atoll pull --url` keeps the versions of this tenant. */
const targetName = () => `${location.origin} ${getNamedTenant() ?? ''}`.trim()

/** Returns a zip of a folder as `atoll pull` writes it. */
export async function packFolder({ files, versions }: DefinitionFolder): Promise<Uint8Array<ArrayBuffer>> {
  const { strToU8, zipSync } = await import('fflate')
  const known = `${JSON.stringify({ [targetName()]: versions }, null, 2)}\n`
  const texts = Object.entries({ [VERSIONS_FILE]: known, ...files })
  return zipSync(Object.fromEntries(texts.map(([path, text]) => [path, strToU8(text)]))) as Uint8Array<ArrayBuffer>
}

/** Returns the definitions of the highest folder that has any. Other files are left out. @throws when there are none */
export async function readFolder(chosen: ChosenFile[]): Promise<DefinitionFolder> {
  const tops = chosen.flatMap(({ path }) => splitPath(path)?.top ?? [])
  const [top] = tops.toSorted((one, other) => one.split('/').length - other.split('/').length)
  if (top === undefined)
    throw new Error('There are no definitions. Choose a folder that "atoll pull" has written, or a zip of one.')
  const files: DefinitionFolder['files'] = {}
  for (const { path, content } of chosen) {
    const split = splitPath(path)
    if (split?.top === top) files[split.path] = await content.text()
  }
  const known = chosen.find(({ path }) => path === `${top}${VERSIONS_FILE}`)
  return { files, versions: known ? readVersions(await known.content.text()) : {} }
}

function readVersions(text: string): DefinitionFolder['versions'] {
  try {
    return JSON.parse(text)[targetName()] ?? {}
  } catch {
    throw new Error(`The file ${VERSIONS_FILE} is not JSON. Pull again, or remove it.`)
  }
}

/** Returns where the file of a definition is, or undefined for another file. */
function splitPath(path: string): { top: string; path: string } | undefined {
  const [, top = '', folder, name, extension] = /^(.*\/)?([^/]+)\/([^/]+)\.(\w+)$/.exec(path) ?? []
  const kind = Object.values(folders).find((each) => each.folder === folder)
  if (!kind || (extension !== 'json' && extension !== kind.source)) return
  return { top, path: `${folder}/${name}.${extension}` }
}

export type TextPair = { path: string; language: CodeLanguage; before: string; after: string }

/** Returns the texts of a thing on both sides; a text that a side does not have is empty there. Equal ones are left out. */
export function pairTexts(
  change: DefinitionChange,
  before: DefinitionFolder['files'],
  after: DefinitionFolder['files'],
): TextPair[] {
  const [old, next] = [findTexts(change, before), findTexts(change, after)]
  return [...new Set([...old.keys(), ...next.keys()])].flatMap((extension) => {
    const [from, to] = [old.get(extension), next.get(extension)]
    if (from?.text === to?.text) return []
    const path = (to ?? from)!.path
    return [{ path, language: languages[extension], before: from?.text ?? '', after: to?.text ?? '' }]
  })
}

type Extension = 'json' | 'ts' | 'tsx'
const languages: Record<Extension, CodeLanguage> = { json: 'json', ts: 'typescript', tsx: 'tsx' }

/** Returns the texts of a thing by their extensions. */
function findTexts({ kind, name }: DefinitionChange, files: DefinitionFolder['files']) {
  const texts = new Map<Extension, { path: string; text: string }>()
  const beginning = `${folders[kind].folder}/`
  for (const [path, text] of Object.entries(files)) {
    const dot = path.lastIndexOf('.')
    if (path.startsWith(beginning) && toLabel(path.slice(beginning.length, dot)) === name)
      texts.set(path.slice(dot + 1) as Extension, { path, text })
  }
  return texts
}

function toLabel(stem: string): string {
  try {
    return decodeURIComponent(stem.normalize('NFC'))
  } catch {
    return stem
  }
}
