import { comingOf, type Model } from '../blueprints/model'
import type { Caller } from '../blueprints/rules'
import { now } from '../core/clock'
import type { Tx } from '../storage/port'
import { IS_LOGGED, keep } from './changes/log'
import type { Known } from './computed'
import { inPortions, oneOf } from './conditions'
import { dispatch } from './dispatch'
import type { Complete } from './document'
import { type IndexRow, type Keys, keysOf, rowsOf } from './keys'
import { refuseExcess } from './limits'
import {
  type Observed,
  Outdated,
  refuseDangling,
  refuseDuplicates,
  refuseLarge,
  refuseOutdated,
  refuseUsurper,
  type Sight,
} from './refusals'
import { INSERT_ROW, type Shown } from './rows'
import { addTerms, IS_SEARCHED } from './search'
import { shownOf } from './wire'
import { termsOf } from './words'

const COLUMNS = '_id, blueprint, identifier, "user", workspace, shown, keys, version, created, updated, form'
// The entity goes in only while its blueprint is the one that it was checked against.
const INSERT = `insert into entities (${COLUMNS}) select ?, key, ?, ?, ?, ?, ?, 1, ?, ?, ? from blueprints
  where key = ? and _id = ? and version = ? returning seq, ${IS_SEARCHED}, ${IS_LOGGED}`
const INSERT_MANY = `insert into entities (${COLUMNS}) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

/** What is written while a change of its blueprint is being prepared has to be prepared for it. */
const formOf = (model: Model) => (comingOf(model) ? -1 : null)

/** An entity that is to be, and who makes it. */
export type Draft = Known & { doc: Complete; keys: Keys; by: Caller | undefined }

export const drafted = (model: Model, known: Known, doc: Complete, by: Caller | undefined): Draft => ({
  ...known,
  doc,
  keys: keysOf(model, doc),
  by,
})

/** Adds an entity with its rows of the index. @throws Outdated, Conflict, 403 LIMIT_REACHED, 409 UNIQUE_VIOLATION, 400 */
export const insert = async (tx: Tx, model: Model, draft: Draft, sight: Sight): Promise<Shown> =>
  (await insertOne(tx, model, draft, sight)).row

/** The same, with its number. */
export async function insertOne(tx: Tx, model: Model, draft: Draft, sight: Sight): Promise<Added> {
  const ready = readied(model, draft)
  const { doc, keys, by } = draft
  await refuseUsurper(tx, model, draft)
  await refuseExcess(tx, model, draft, keys, by)
  await refuseDuplicates(tx, model, keys, by)
  await refuseDangling(tx, model, doc, {}, sight)
  const [added] = await add(tx, model, [ready])
  return added!
}

export type Added = { seq: number; row: Shown }

/** An entity as it goes in, with its rows of the index. */
export type Ready = { time: number; shown: string; draft: Draft; index: IndexRow[] }

/** @throws 400 for an entity that is too large */
export function readied(model: Model, draft: Draft, time = now()): Ready {
  const { _id, identifier, user, workspace, doc, keys } = draft
  const [text, index] = [JSON.stringify(doc), rowsOf(model, keys)]
  refuseLarge(text)
  const shown = shownOf({ _id, identifier, user, workspace, created: time, updated: time }, text)
  return { time, shown, draft, index }
}

/** Adds what nothing stands in the way of. @throws Outdated, Conflict */
export async function add(tx: Tx, model: Model, all: Ready[]): Promise<Added[]> {
  const [one, ...more] = all
  const { seqs, searched, logged } = await (one && !more.length ? keepOne(tx, model, one) : keepAll(tx, model, all))
  const index = all.flatMap(({ time, index }, n) => index.map((row) => [...row, time, seqs[n]]))
  await tx.each(INSERT_ROW, more.length ? byField(index) : index)
  if (searched)
    addTerms(
      tx,
      all.map(({ draft }, n) => [seqs[n]!, termsOf(model, draft.doc)]),
    )
  if (logged)
    await keep(
      tx,
      model.key,
      all.map(({ shown, draft }) => ({ after: { shown, keys: JSON.stringify(draft.keys) } })),
    )
  if (model.dispatchers?.create) {
    const actor = all[0]?.draft.by
    const told = all.map(({ draft }) => ({ ...draft, version: 1 }))
    await dispatch(tx, { tenant: model.tenant, actor }, 'create', model.key, told)
  }
  return all.map(({ time, shown, draft: { user, workspace } }, n) => ({
    seq: seqs[n]!,
    row: [shown, user, workspace, 1, time],
  }))
}

/** Rows of several entities field by field, for those of one are beside each other in the index. */
const byField = (rows: unknown[][]) =>
  [...Map.groupBy(rows, ([field, path]) => (path ? `${field}.${path}` : field)).values()].flat()

type Numbered = Observed & { seqs: number[] }

async function keepOne(tx: Tx, model: Model, { time, shown, draft }: Ready): Promise<Numbered> {
  const { _id, identifier, user, workspace, keys } = draft
  const row = [_id, identifier, user, workspace, shown, JSON.stringify(keys), time, time, formOf(model)]
  const [found] = await tx.ask(INSERT, [...row, model.key, model._id, model.version, model.key, model.key])
  if (!found) throw new Outdated()
  const [seq, searched, logged] = found
  return { seqs: [seq as number], searched: !!searched, logged: !!logged }
}

/** In a few statements, however many they are; their numbers are read afterwards, for engines differ in how they tell them. */
async function keepAll(tx: Tx, model: Model, all: Ready[]): Promise<Numbered> {
  const observed = await refuseOutdated(tx, model)
  const form = formOf(model)
  await tx.each(
    INSERT_MANY,
    all.map(({ time, shown, draft: { _id, identifier, user, workspace, keys } }) => {
      const texts = [_id, model.key, identifier, user, workspace, shown, JSON.stringify(keys)]
      return [...texts, 1, time, time, form]
    }),
  )
  const numbers = new Map<unknown, number>()
  for (const some of inPortions(all.map(({ draft }) => draft._id))) {
    const { sql, params } = oneOf('_id', some)
    const found = await tx.ask(`select _id, seq from entities where ${sql}`, params)
    for (const [_id, seq] of found) numbers.set(_id, seq as number)
  }
  return { ...observed, seqs: all.map(({ draft }) => numbers.get(draft._id)!) }
}
