import { prepareAnew } from '../blueprints/inforce'
import type { Model } from '../blueprints/model'
import { Busy } from '../storage/errors'
import type { Closing, Tx } from '../storage/port'
import { recall } from '../tenancy/memory'
import type { Tenant } from '../tenancy/tenants'
import { fitting, oneOf } from './conditions'
import { docOf, shownIn } from './wire'
import { termsOf } from './words'

const SLICE = 300 // entities looked at in one write
const TEXT = 1 << 18 // bytes read for their words, unless a single one is larger
const PATIENCE = 5_000 // ms that a search waits for the words of all entities

/**
 * Makes the words of a blueprint's entities ready to be searched. They are kept from its first search on, so that those
 * who never search pay nothing. @throws 503 when there are so many entities that it takes long; it goes on meanwhile
 */
export async function searchable(tenant: Tenant, model: Model): Promise<void> {
  const ready = recall(tenant, 'blueprints', `words ${model._id}`, () => isReady(tenant, model))
  if (!(ready instanceof Promise) || (await ready)) return
  const running = making.get(model) ?? make(tenant, model).finally(() => making.delete(model))
  making.set(model, running)
  running.catch(() => {}) // who waits hears of it
  const patience = Promise.withResolvers<never>()
  const timer = setTimeout(() => patience.reject(new Busy('The words of a blueprint are being read.')), PATIENCE)
  await Promise.race([running, patience.promise]).finally(() => clearTimeout(timer))
}

const making = new WeakMap<Model, Promise<void>>()

async function isReady({ db }: Tenant, { key }: Model) {
  const [row] = await db.ask('select 1 from search_progress where blueprint = ? and done >= upto', [key])
  return row ? true : undefined
}

/** Those that come later bring their words themselves. */
async function make({ write }: Tenant, model: Model) {
  await write(async (tx) => {
    const begun = await tx.ask(
      `insert into search_progress (blueprint, done, upto)
       select key, 0, coalesce((select max(seq) from entities where blueprint = ?), 0) from blueprints where _id = ?
       on conflict ("blueprint") do nothing returning upto`,
      [model.key, model._id],
    )
    // What is prepared for a change has no words yet.
    if (begun.length) await prepareAnew(tx, model.key)
  })
  for (let left = true; left; ) left = await write((tx) => slice(tx, model))
}

/** The words of some more entities, whoever made those before. */
async function slice(tx: Tx, model: Model): Promise<boolean> {
  const [state] = (await tx.ask(
    'select s.done, s.upto, b.form from search_progress s join blueprints b on b.key = s.blueprint where b._id = ?',
    [model._id],
  )) as number[][]
  // Whoever asks by another form than the one in force will find out, and ask again.
  if (!state || state[0]! >= state[1]! || state[2] !== model.form) return false
  // Of all blueprints: SQLite would sort all of one anew for each slice.
  const next =
    'select seq, blueprint, octet_length(shown) from entities where seq > ? and seq <= ? order by seq limit ?'
  const all = (await tx.ask(next, [state[0], state[1], SLICE])) as [number, string, number][]
  const some = fitting(all, TEXT, ([, blueprint, size]) => (blueprint === model.key ? size : 0))
  const own = some.filter(([, blueprint]) => blueprint === model.key).map(([seq]) => seq)
  if (own.length) await keepTermsOf(tx, model, own)
  const done = all.length === SLICE || some.length < all.length ? some.at(-1)![0] : state[1]
  await tx.ask('update search_progress set done = ? where blueprint = ?', [done, model.key])
  return true
}

async function keepTermsOf(tx: Tx, model: Model, entities: number[]) {
  const { sql, params } = oneOf('seq', entities)
  const found = (await tx.ask(`select seq, ${shownIn(model, '')} from entities where ${sql}`, params)) as [
    number,
    string,
  ][]
  const terms = found.map(([seq, shown]) => [seq, termsOf(model, JSON.parse(docOf(shown)))] as const)
  keepTerms(tx, terms)
}

/** Whether the words of a blueprint's entities are kept, as a part of a statement; its key is the value. */
export const IS_SEARCHED = '(select 1 from search_progress w where w.blueprint = ?)'

/** Replaces the words of entities, at the end of the transaction. */
export function keepTerms(tx: Tx, entities: (readonly [seq: number, terms: string])[]) {
  for (const [seq, terms] of entities) tx.lastly(closing, seq, { terms, fresh: false })
}

/** The words of entities that have none yet. */
export function addTerms(tx: Tx, entities: (readonly [seq: number, terms: string])[]) {
  for (const [seq, terms] of entities) tx.lastly(closing, seq, { terms, fresh: true })
}

/** At once, for the number of an entity may be the next one's. */
export function forgetTerms(tx: Tx, entities: number[]) {
  for (const seq of entities) tx.lastly(closing, seq, undefined)
  return tx.each(
    FORGET,
    entities.map((seq) => [seq]),
  )
}

const FORGET = 'delete from search_words where rowid = ?'

type Terms = { terms: string; fresh: boolean }

/** The words of a transaction all together: SQLite would write them to its pages at the end of each savepoint. */
const closing: Closing<number, Terms | undefined> = async ({ each }, entries) => {
  const come = entries.flatMap(([seq, terms]) => (terms ? [{ seq, ...terms }] : []))
  await each(
    FORGET,
    come.filter(({ fresh }) => !fresh).map(({ seq }) => [seq]),
  )
  await each(
    'insert into search_words (rowid, words) values (?, ?)',
    come.map(({ seq, terms }) => [seq, terms]),
  )
}
