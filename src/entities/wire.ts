import type { Actor } from '../accounts/actors'
import type { Model } from '../blueprints/model'
import { mayRead } from '../blueprints/rules'
import { iso } from '../core/clock'
import type { Doc } from './document'

/** The columns of an entity's row as it is read, in the order of `Row`. */
export const COLUMNS = 'e._id, e.identifier, e."user", e.workspace, e.doc, e.version, e.created, e.updated'

export type Row = [
  _id: string,
  identifier: string,
  user: string | null,
  workspace: string | null,
  doc: string,
  version: number,
  created: number,
  updated: number,
]

/** How the caller wants entities: flat or wrapped, whole or in part. */
export type Form = { flat: boolean; select?: string[] }

const text = (value: string | null) => (value === null ? 'null' : JSON.stringify(value))

/**
 * Makes the JSON of entities for a caller. Where every property may be shown, the stored JSON is copied as text,
 * unparsed: into `metadata` and, in the flat shape, beside it once more.
 */
export function writer(model: Model, actor: Actor | undefined, { flat, select }: Form): (row: Row) => string {
  const hidden = model.guarded ? model.fields.filter((field) => !mayRead(field, actor)).map(({ key }) => key) : []
  if (select) return (row) => JSON.stringify(selected(row, without(row[4], hidden), flat, select))
  if (hidden.length) return (row) => whole(row, JSON.stringify(without(row[4], hidden)), flat)
  return (row) => whole(row, row[4], flat)
}

function whole([_id, identifier, user, workspace, , , created, updated]: Row, doc: string, flat: boolean): string {
  const head = `{"_id":"${_id}","identifier":${text(identifier)},"created":"${iso(created)}","updated":"${iso(updated)}","user":${text(user)},"workspace":${text(workspace)},"metadata":${doc}`
  return flat && doc !== '{}' ? `${head},${doc.slice(1)}` : `${head}}`
}

function without(doc: string, hidden: string[]): Doc {
  const visible = JSON.parse(doc) as Doc
  for (const key of hidden) delete visible[key]
  return visible
}

function selected(
  [_id, identifier, user, workspace, , , created, updated]: Row,
  doc: Doc,
  flat: boolean,
  select: string[],
) {
  const metadata = Object.fromEntries(Object.entries(doc).filter(([key]) => select.includes(key)))
  const system = { _id, identifier, created: iso(created), updated: iso(updated), user, workspace }
  const wanted = Object.entries(system).filter(([key]) => select.includes(key) || key === '_id' || key === 'identifier')
  return { ...Object.fromEntries(wanted), metadata, ...(flat && metadata) }
}
