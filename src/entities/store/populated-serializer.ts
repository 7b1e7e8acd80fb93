import type { Actor } from '../../accounts/actors'
import type { Model } from '../../blueprints/model'
import { listHiddenKeys } from '../../blueprints/permissions'
import { BoundedMap } from '../../core/bounded-map'
import type { Doc } from './doc'
import {
  extractDocumentJson,
  extractHeaderJson,
  joinJson,
  parseEntity,
  type ResponseShape,
  shapeEntity,
} from './serializer'

/** JSON that replaces the value of a property, which is one of the system or of the document. */
export type Replacement = { key: string; value: unknown; json: string; isOfSystem: boolean }

/**
 * Returns a function that turns an entity of `packEntity` into the JSON of a response in which values are replaced, and to
 * which properties (`more`, by key as JSON) are added. Where it can, it puts the JSON into the text of the entity.
 */
export function createPopulatedSerializer(model: Model, actor: Actor | undefined, shape: ResponseShape) {
  const hidden = listHiddenKeys(model, actor)
  const isWhole = !shape.select && !hidden.length
  return (shown: string, replacements: Replacement[], more: [key: string, json: string][]): string => {
    const texts = isWhole && !more.some(([key]) => shown.includes(toName(key))) && replaceInTexts(shown, replacements)
    if (!texts) return replaceParsed(parseEntity(shown, hidden), shape, replacements, more)
    const json = joinJson(texts.header, texts.doc, shape.flat)
    return more.length ? `${json.slice(0, -1)},${toMembers(more)}}` : json
  }
}

type Property = Pick<Replacement, 'key' | 'isOfSystem'>

/** Returns the values of properties of an entity of `packEntity`. Texts of a document without objects take no parsing. */
export function readValues(shown: string, properties: Property[]): unknown[] {
  const doc = extractDocumentJson(shown)
  const texts = doc.lastIndexOf('{') ? [] : properties.flatMap((property) => findText(doc, property) ?? [])
  if (texts.length === properties.length) return texts
  const entity = parseEntity(shown)
  return properties.map(({ key, isOfSystem }) => (isOfSystem ? entity : entity.metadata)[key])
}

function findText(doc: string, { key, isOfSystem }: Property): string | undefined {
  const name = `${toName(key)}"`
  const at = isOfSystem ? -1 : doc.indexOf(name)
  if (at < 0) return
  const text = doc.slice(at + name.length, doc.indexOf('"', at + name.length))
  return text.includes('\\') ? undefined : text
}

/** Returns the JSON of the system properties and of the document, or undefined when a value is not found for sure. */
function replaceInTexts(shown: string, replacements: Replacement[]) {
  const header = replaceIn(
    extractHeaderJson(shown),
    replacements.filter(({ isOfSystem }) => isOfSystem),
  )
  const doc = replaceIn(
    extractDocumentJson(shown),
    replacements.filter(({ isOfSystem }) => !isOfSystem),
  )
  return header === undefined || doc === undefined ? undefined : { header, doc }
}

/**
 * Replaces members of a JSON object, all of which it has, unless objects within have members of the same name later on: the
 * first of two with the same value may be one of those. None is within a string, where quotes are escaped.
 */
function replaceIn(text: string, replacements: Replacement[]): string | undefined {
  const places: { at: number; end: number; json: string }[] = []
  for (const { key, value, json } of replacements) {
    const name = toName(key)
    const member = name + JSON.stringify(value)
    const at = text.indexOf(member)
    const end = at + member.length
    if (at < 0 || text.includes(name, end)) return
    places.push({ at: at + name.length, end, json })
  }
  places.sort((one, other) => one.at - other.at)
  let [replaced, copied] = ['', 0]
  for (const { at, end, json } of places) {
    replaced += text.slice(copied, at) + json
    copied = end
  }
  return replaced + text.slice(copied)
}

/** A JSON text in the place of a value. */
class RawJson {
  constructor(readonly json: string) {}
}

function replaceParsed(
  entity: ReturnType<typeof parseEntity>,
  shape: ResponseShape,
  replacements: Replacement[],
  more: [key: string, json: string][],
): string {
  for (const { key, json, isOfSystem } of replacements) {
    const properties: Doc = isOfSystem ? entity : entity.metadata
    if (key in properties) properties[key] = new RawJson(json)
  }
  const added = Object.fromEntries(more.map(([key, json]) => [key, new RawJson(json)]))
  return toJson({ ...shapeEntity(entity, shape), ...added })
}

/** Returns the JSON of an entity that contains `RawJson` values. */
function toJson(entity: Doc): string {
  const members = Object.entries(entity).map(([key, value]): [string, string] => [
    key,
    value instanceof RawJson ? value.json : key === 'metadata' ? toJson(value as Doc) : JSON.stringify(value),
  ])
  return `{${toMembers(members)}}`
}

const MAX_NAMES = 1_000
const names = new BoundedMap<string, string>(MAX_NAMES)

/** Returns a key as it begins a member of a JSON object. */
function toName(key: string): string {
  const name = names.get(key) ?? `${JSON.stringify(key)}:`
  names.set(key, name)
  return name
}

const toMembers = (members: [key: string, json: string][]) => members.map(([key, json]) => toName(key) + json).join(',')
