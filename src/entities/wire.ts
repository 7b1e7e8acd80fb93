import type { Actor } from '../accounts/actors'
import { isAltering, type Model } from '../blueprints/model'
import { mayRead } from '../blueprints/rules'
import { iso } from '../core/clock'
import type { Doc } from './document'
import type { Related } from './related'

/** How the caller wants entities: flat or wrapped, whole or in part, with what else in the place of references. */
export type Form = { flat: boolean; select?: string[]; related?: Related }

export const FLAT: Form = { flat: true }

/** Characters; a page of large entities ends here, and a link leads on. */
export const PAGE = 16 << 20

/** JSON that is made already, to stand where a value would. */
export class Made {
  constructor(readonly json: string) {}
}

/** What everybody is told of an entity beside its properties. */
export type System = {
  _id: string
  identifier: string
  created: number
  updated: number
  user: string | null
  workspace: string | null
}

const PROPERTIES = ',"metadata":'

/** What is kept of an entity to be shown: the wrapped form as JSON without its braces, so that reading copies it. */
export const shownOf = ({ _id, identifier, created, updated, user, workspace }: System, doc: string) =>
  JSON.stringify({ _id, identifier, created: iso(created), updated: iso(updated), user, workspace }).slice(1, -1) +
  PROPERTIES +
  doc

/** The JSON of the properties in that. Inside of a text a quote has a backslash before it, so the first is the right one. */
export const docOf = (shown: string) => shown.slice(shown.indexOf(PROPERTIES) + PROPERTIES.length)

/** What is not a property in that. */
export function systemOf(shown: string): System {
  const { created, updated, ...rest } = JSON.parse(`{${shown.slice(0, shown.indexOf(PROPERTIES))}}`)
  return { ...rest, created: Date.parse(created), updated: Date.parse(updated) }
}

/**
 * Where that is read: in the row `e`, unless the row is named otherwise. While entities are altered, some have it in
 * another column than others.
 */
export const shownIn = (model: Model, row = 'e.') =>
  isAltering(model) ? `case when ${row}form = ${model.form} then ${row}altered else ${row}shown end` : `${row}shown`

/** The same for whoever does not know the blueprint. */
export const shownInForce = (row = '') =>
  `case when ${row}form = (select b.form from blueprints b where b.key = ${row}blueprint) then ${row}altered else ${row}shown end`

/**
 * Makes the JSON of entities for a caller from what is kept of them. Where every property may be shown, it is copied as
 * text, unparsed; in the flat shape the properties stand beside `metadata` once more. `fill` may put what is made already
 * in the place of values, and answers what else is to be shown.
 */
export function writer(
  model: Model,
  actor: Actor | undefined,
  { flat, select }: Form,
  fill?: (entity: Entity) => Record<string, Made>,
) {
  const hidden = model.guarded ? model.fields.filter((field) => !mayRead(field, actor)).map(({ key }) => key) : []
  if (fill)
    return (shown: string) => {
      const entity = parsed(shown, hidden)
      const more = fill(entity)
      return jsonOf({ ...(select ? selected(entity, flat, select) : whole(entity, flat)), ...more })
    }
  if (select) return (shown: string) => JSON.stringify(selected(parsed(shown, hidden), flat, select))
  if (hidden.length) return (shown: string) => JSON.stringify(whole(parsed(shown, hidden), flat))
  return flat ? flattened : (shown: string) => `{${shown}}`
}

function flattened(shown: string) {
  const doc = docOf(shown)
  return doc === '{}' ? `{${shown}}` : `{${shown},${doc.slice(1)}`
}

export type Entity = Doc & { metadata: Doc }

export function parsed(shown: string, hidden: string[] = []): Entity {
  const entity = JSON.parse(`{${shown}}`) as Entity
  for (const key of hidden) delete entity.metadata[key]
  return entity
}

const whole = (entity: Entity, flat: boolean) => (flat ? { ...entity, ...entity.metadata } : entity)

function selected({ metadata: doc, ...system }: Entity, flat: boolean, select: string[]) {
  const pick = (from: Doc, also: string[] = []) =>
    Object.fromEntries(Object.entries(from).filter(([key]) => select.includes(key) || also.includes(key)))
  const metadata = select.includes('metadata') ? doc : pick(doc)
  return { ...pick(system, ['_id', 'identifier']), metadata, ...(flat && metadata) }
}

/** The JSON of an entity in which some values are made already. */
function jsonOf(entity: Doc): string {
  let json = ''
  for (const [key, value] of Object.entries(entity)) {
    const made = value instanceof Made ? value.json : key === 'metadata' ? jsonOf(value as Doc) : JSON.stringify(value)
    json += `${json && ','}${JSON.stringify(key)}:${made}`
  }
  return `{${json}}`
}
