import type { Actor } from '../accounts/actors'
import type { Model } from '../blueprints/model'
import { mayRead } from '../blueprints/rules'
import { iso } from '../core/clock'
import type { Doc } from './document'

/** How the caller wants entities: flat or wrapped, whole or in part. */
export type Form = { flat: boolean; select?: string[] }

/** What everybody is told of an entity beside its properties. */
export type System = {
  _id: string
  identifier: string
  created: number
  updated: number
  user: string | null
  workspace: string | null
}

/** The system properties as they are shown: JSON without its braces, kept with the entity so that reading copies it. */
export const headOf = ({ _id, identifier, created, updated, user, workspace }: System) =>
  JSON.stringify({ _id, identifier, created: iso(created), updated: iso(updated), user, workspace }).slice(1, -1)

/**
 * Makes the JSON of entities for a caller from their `head` and `doc`. Where every property may be shown, both are copied
 * as text, unparsed: the properties into `metadata` and, in the flat shape, beside it once more.
 */
export function writer(model: Model, actor: Actor | undefined, { flat, select }: Form) {
  const hidden = model.guarded ? model.fields.filter((field) => !mayRead(field, actor)).map(({ key }) => key) : []
  if (select) return (head: string, doc: string) => JSON.stringify(selected(head, without(doc, hidden), flat, select))
  if (hidden.length) return (head: string, doc: string) => whole(head, JSON.stringify(without(doc, hidden)), flat)
  return (head: string, doc: string) => whole(head, doc, flat)
}

const whole = (head: string, doc: string, flat: boolean) =>
  flat && doc !== '{}' ? `{${head},"metadata":${doc},${doc.slice(1)}` : `{${head},"metadata":${doc}}`

function without(doc: string, hidden: string[]): Doc {
  const visible = JSON.parse(doc) as Doc
  for (const key of hidden) delete visible[key]
  return visible
}

function selected(head: string, doc: Doc, flat: boolean, select: string[]) {
  const pick = (from: Doc, also: string[] = []) =>
    Object.fromEntries(Object.entries(from).filter(([key]) => select.includes(key) || also.includes(key)))
  const metadata = select.includes('metadata') ? doc : pick(doc)
  return { ...pick(JSON.parse(`{${head}}`), ['_id', 'identifier']), metadata, ...(flat && metadata) }
}
