import { requireStorable } from '../core/body'
import { tryParseJson } from '../core/json'
import { badRequest, type FieldError, Problem } from '../core/problem'
import { parseWithShape } from '../core/shapes'
import { canonicalize, formatJson } from './definition-text'
import { kindNames, kinds } from './kinds'
import type { Definition, DefinitionKind, KindName } from './kinds/definition-kind'
import { toFileStems, toLabel } from './labels'
import { toPlaceholders, toVariable, withoutSecrets } from './secrets'

/** Texts by path, such as `blueprints/books.json`. */
export type DefinitionFiles = Record<string, string>

/** A resource of a file, or of a tenant: references are labels, and secrets are placeholders in a file, values in a tenant. */
export type LabeledResource = { kind: KindName; label: string; name: string | null; definition: Definition }
export type FileResource = LabeledResource & { path: string }

/** Returns the text that says which resource is meant, in `.atoll.json` and in messages: `blueprints/books`. */
export const toResourcePath = ({ kind, label }: Pick<LabeledResource, 'kind' | 'label'>) =>
  `${kinds[kind].folder}/${label}`

/** Returns the files of resources. The same resources have the same files. */
export function formatFiles(resources: LabeledResource[]): DefinitionFiles {
  const files: DefinitionFiles = {}
  const variables = new Set<string>()
  for (const kindName of kindNames) {
    const ofKind = resources.filter(({ kind }) => kind === kindName).sort((a, b) => (a.label < b.label ? -1 : 1))
    const stems = toFileStems(ofKind.map(({ label }) => label))
    for (const resource of ofKind)
      Object.assign(
        files,
        formatResource(resource, `${kinds[kindName].folder}/${stems.get(resource.label)}`, variables),
      )
  }
  return files
}

/** Returns the files of one resource, for messages. */
export const formatOne = (resource: LabeledResource): string =>
  Object.values(formatResource(resource, toResourcePath(resource), new Set())).join('\n')

function formatResource(
  { kind: kindName, label, name, definition }: LabeledResource,
  path: string,
  variables: Set<string>,
) {
  const kind = kinds[kindName]
  const shown = toPlaceholders(kindName, kind, label, definition, variables)
  const stated = { ...shown, ...(name !== label && { [kind.nameKey]: name }) }
  if (!kind.source) return { [`${path}.json`]: formatJson(stated) }
  const { [kind.source.key]: source, ...others } = stated
  return {
    ...(Object.keys(others).length && { [`${path}.json`]: formatJson(others) }),
    [`${path}.${kind.source.extension}`]: source as string,
  }
}

/** Returns the resources of files, by kind and label. @throws 400 INVALID_INPUT that names each wrong file */
export function parseFiles(files: DefinitionFiles): FileResource[] {
  const errors: FieldError[] = []
  const resources: FileResource[] = []
  for (const [stemPath, texts] of groupByStem(files, errors))
    try {
      resources.push(parseResource(stemPath, texts))
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      errors.push(...toFileErrors(error, Object.values(texts)[0]!.path))
    }
  errors.push(...listSharedNames(resources))
  if (errors.length) badRequest(...errors)
  return resources.sort((a, b) => kindNames.indexOf(a.kind) - kindNames.indexOf(b.kind) || (a.label < b.label ? -1 : 1))
}

type Texts = { json?: { path: string; text: string }; source?: { path: string; text: string } }

function groupByStem(files: DefinitionFiles, errors: FieldError[]): Map<string, Texts> {
  const groups = new Map<string, Texts>()
  for (const [path, text] of Object.entries(files)) {
    const part = partOf(path)
    if (!part) errors.push({ path, message: `"${path}" is not the file of a definition.` })
    else {
      const stemPath = path.slice(0, path.lastIndexOf('.'))
      groups.set(stemPath, { ...groups.get(stemPath), [part]: { path, text } })
    }
  }
  return groups
}

/** Returns which part of a definition a file is, or undefined for a file that is none. */
export function partOf(path: string): 'json' | 'source' | undefined {
  const [, folder, extension] = /^([^/]+)\/[^/]+\.(\w+)$/.exec(path) ?? []
  const kind = Object.values(kinds).find((each) => each.folder === folder)
  if (!kind) return
  if (extension === 'json') return 'json'
  return extension === kind.source?.extension ? 'source' : undefined
}

function parseResource(stemPath: string, { json, source }: Texts): FileResource {
  const [folder, stem = ''] = stemPath.split('/')
  const kindName = kindNames.find((name) => kinds[name].folder === folder)!
  const kind = kinds[kindName]
  const { path } = (json ?? source)!
  const label = toLabel(stem) ?? badRequest({ path, message: `"${path}" is not percent-encoded as it should be.` })
  if (kind.source && !source)
    badRequest({ path, message: `"${path}" needs a file "${stemPath}.${kind.source.extension}" beside it.` })
  const parsed = json ? tryParseJson(json.text) : {}
  if (parsed === null || typeof parsed !== 'object' || Array.isArray(parsed))
    return badRequest({ path, message: `"${path}" is not a JSON object.` })
  const { [kind.nameKey]: name = label, ...stated } = parsed as Definition
  const definition = { ...stated, ...(kind.source && { [kind.source.key]: source!.text }) }
  const named = { ...definition, [kind.nameKey]: name }
  // JSON within a file was a mere text when the request was checked.
  requireStorable({ [label]: named })
  assertValid(kind, path, named)
  kind.mapSecrets?.(definition, (secretPath, text) => toVariable(path, secretPath, text))
  return { kind: kindName, label, name: name as string | null, definition: canonicalize(kind, definition), path }
}

/** Secrets are placeholders, which the shape of a secret may not allow, so they are checked when they are known. */
function assertValid(kind: DefinitionKind, path: string, input: Definition) {
  const visible = withoutSecrets(kind, input)
  const known = parseWithShape(kind.shape, visible)
  if (!Bun.deepEquals(known, visible))
    badRequest({ path, message: `"${path}" has a property that its kind does not have. Check its spelling.` })
}

function toFileErrors({ message, more }: Problem, file: string): FieldError[] {
  const details = Array.isArray(more.details) ? (more.details as FieldError[]) : [{ path: '', message }]
  return details.map(({ path, message }) => ({
    path: path === file ? file : `${file}${path}`,
    message: message.includes(file) ? message : `"${file}": ${message}`,
  }))
}

function listSharedNames(resources: FileResource[]): FieldError[] {
  const seen = new Map<string, FileResource>()
  return resources.flatMap((resource) => {
    const key = `${resource.kind} ${resource.name}`
    const other = seen.get(key)
    seen.set(key, resource)
    if (!other || kinds[resource.kind].sharesNames) return []
    return [
      { path: resource.path, message: `"${other.path}" and "${resource.path}" are both named "${resource.name}".` },
    ]
  })
}
