import { and, eq } from 'drizzle-orm'
import type { Ctx } from '../accounts/guard'
import { iso, now } from '../core/clock'
import { type Answer, etagOf, refuseStale } from '../core/etag'
import { missing, Problem } from '../core/problem'
import type { Tx } from '../storage/port'
import { waitsLong } from '../tenancy/caller'
import { changing } from '../tenancy/memory'
import type { Tenant } from '../tenancy/tenants'
import { type Alteration, alterationOf, type Change, carried, type Refusal, refuseMentions } from './alteration'
import { modelOf, refuseUnknownTargets, told } from './blueprints'
import { refuseSenseless } from './definition'
import { fromTheStart } from './inforce'
import { kept, type Survey } from './kept'
import { alterationRow, type BlueprintRow, modelFrom, rowOf } from './loading'
import type { Model } from './model'
import { number, reserve } from './numbers'
import { mayRead, reachOf } from './rules'
import type { BlueprintChange, Definition, Obstacle } from './shapes'
import { alterations, blueprints } from './tables'

const PATIENCE = 20_000 // ms that a caller waits for entities to be prepared; they are, all the same

/**
 * Changes what it mentions. Where entities have to be altered, it comes into force for all of them at one moment: within
 * some seconds, or else (202) as soon as they are prepared. @throws 400, 409 with what existing entities would not fit, 412
 */
export async function change(ctx: Ctx, key: string, input: BlueprintChange, answer: Answer) {
  const intent = await intended(ctx, key, input, answer)
  if (!intent.alteration.needed) {
    await changeNow(ctx, intent)
    return { status: 200 as const, body: await told(ctx, await modelOf(ctx, key), answer) }
  }
  const { problems } = await surveyed(ctx, intent)
  if (problems.length) throw refused(refusalOf(problems))
  const form = await begin(ctx, intent)
  if (form) kept.alter(ctx, key)
  const inForce = !form || (await comesIntoForce(ctx, key, form))
  return { status: inForce ? (200 as const) : (202 as const), body: await told(ctx, await modelOf(ctx, key), answer) }
}

/** What a change would do to the entities that are there. @throws 400, 412 */
export async function rehearse(ctx: Ctx, key: string, input: BlueprintChange, answer: Answer) {
  const intent = await intended(ctx, key, input, answer)
  return { dryRun: true as const, ...(await surveyed(ctx, intent)) }
}

/** What a caller wants, and what that means for entities. The definition may say what fields are renamed from. */
type Intent = { before: BlueprintRow; change: Omit<Change, 'numbers'>; alteration: Alteration }

async function intended(ctx: Ctx, key: string, input: BlueprintChange, answer: Answer): Promise<Intent> {
  const { name, description, ...parts } = input
  waitsLong(answer.request)
  for (const until = performance.now() + PATIENCE; ; ) {
    const before = (await rowOf(ctx, key)) ?? missing('blueprint')
    refuseStale(answer.request, etagOf(before.version, before.updated))
    const wanted: Definition = { ...carried(before.definition, parts.fields), ...parts }
    const alteration = alterationOf(before.definition, wanted)
    await refuseSenseless(alteration.definition)
    const underway = await alterationRow(ctx, key)
    // What is being prepared must stay what it was prepared for; the rest may change.
    if (underway?.state !== 'preparing' || !concernsEntities(before.definition, alteration.definition)) {
      await refuseLost(ctx, key, before.definition, input, alteration)
      return { before, change: { name, description, definition: wanted }, alteration }
    }
    if (performance.now() > until) throw busy()
    kept.alter(ctx, key)
    await Bun.sleep(LATER)
  }
}

const busy = () =>
  new Problem(
    409,
    'BLUEPRINT_CHANGING',
    'The entities of this blueprint are being altered. Try again when that is done.',
  )

const concernsEntities = (before: Definition, after: Definition) =>
  (['fields', 'computed', 'limitations'] as const).some(
    (part) => !Bun.deepEquals(before[part] ?? EMPTY[part], after[part] ?? EMPTY[part]),
  )
const EMPTY = { fields: [], computed: {}, limitations: [] }

/** Formulas that are kept must find what they are about. */
async function refuseLost(
  ctx: Ctx,
  key: string,
  before: Definition,
  { computed }: BlueprintChange,
  { definition }: Alteration,
) {
  if (computed || !before.computed) return
  const { formulas } = await modelOf(ctx, key)
  refuseMentions(before, definition, new Map(formulas.map(({ field, formula }) => [field.key, formula.names])))
}

async function surveyed(ctx: Ctx, { before, alteration }: Intent): Promise<Survey> {
  const model = await modelOf(ctx, before.key)
  const numbers = alteration.definition.fields.map(({ key }, index) => {
    const { from } = alteration.steps[index]!
    // None has been reserved for those that are to be found otherwise.
    return [key, (!alteration.fresh.has(key) && from && model.field.get(from)?.number) || -1 - index] as const
  })
  const next = await modelFrom(ctx, before, alteration.definition, new Map(numbers))
  const { problems, ...survey } = await kept.survey(ctx, model, next, alteration)
  return { ...survey, problems: problems.map((problem) => toldTo(ctx, model, alteration, problem)) }
}

/** Who may change a blueprint but not read its entities is told that some do not fit, not which, nor what is in them. */
function toldTo({ actor }: Ctx, model: Model, { steps }: Alteration, obstacle: Obstacle): Obstacle {
  const { examples, duplicates, ...problem } = obstacle
  const was = model.field.get(steps.find(({ key }) => key === problem.field)?.from ?? '')
  const all = !!reachOf(model, 'read', actor)?.all
  const seen = all && (!was || mayRead(was, actor))
  return { ...problem, examples: all ? examples : [], ...(seen && duplicates && { duplicates }) }
}

const refusalOf = (problems: Obstacle[]): Refusal => {
  const message = problems.map(({ message }) => message).join(' ')
  return { code: problems[0]!.code, message: message.slice(0, 1_000), details: problems }
}

const REFUSED = 409
const refused = ({ code, message, details }: Refusal) => new Problem(REFUSED, code, message, { details })

/** A change that no entity has to be altered for. */
async function changeNow(ctx: Ctx, intent: Intent) {
  await changing(ctx, 'blueprints', async (tx) => {
    const row = await alterationIn(tx, intent)
    await save(tx, intent)
    if (row?.state !== 'preparing') return
    // Its fields are as they were, so what is being prepared stays what it is; the rest must not be lost when it comes.
    const { fields: _, computed: __, limitations: ___, ...rest } = intent.alteration.definition
    const { name = row.change.name, description = row.change.description } = intent.change
    const change = { ...row.change, name, description, definition: { ...row.change.definition, ...rest } }
    await tx.update(alterations).set({ change }).where(eq(alterations.blueprint, intent.before.key))
  })
}

/** The change as far as it needs no entities, in a transaction. */
async function save(tx: Tx, { before, change, alteration: { definition } }: Intent) {
  const { name, description } = change
  const fields = { ...(name && { name }), ...(description !== undefined && { description }), definition }
  await refuseUnknownTargets(tx, before.key, definition, before.definition.fields)
  await tx
    .update(blueprints)
    .set({ ...fields, version: before.version + 1, updated: iso(now()) })
    .where(eq(blueprints.key, before.key))
  await number(tx, before.key, definition)
}

/** The alteration that is under way. @throws 409 when the blueprint is not as it was when the change was thought out */
async function alterationIn(tx: Tx, { before }: Intent) {
  const { key, version } = before
  const found = await tx
    .select({ key: blueprints.key })
    .from(blueprints)
    .where(and(eq(blueprints.key, key), eq(blueprints._id, before._id), eq(blueprints.version, version)))
    .get()
  if (!found) throw new Problem(409, 'CONFLICT', 'Somebody else changed this blueprint just now. Try again.')
  return tx.select().from(alterations).where(eq(alterations.blueprint, key)).get()
}

/** Begins to alter entities; answers nothing where there are none, and the change is in force. */
const begin = (ctx: Ctx, intent: Intent): Promise<number | undefined> =>
  changing(ctx, 'blueprints', async (tx) => {
    const { before, change, alteration } = intent
    const { key, version } = before
    const row = await alterationIn(tx, intent)
    if (row?.state === 'preparing') throw busy()
    if (!(await kept.any(tx, key))) return void (await save(tx, intent))
    if (await kept.importing(tx, key))
      throw new Problem(
        409,
        'IMPORT_RUNNING',
        'Entities of this blueprint are being imported. Try again when that is done.',
      )
    await refuseUnknownTargets(tx, key, alteration.definition, before.definition.fields)
    const form = version + 1
    const numbers = await reserve(tx, key, form, alteration.fresh)
    const at = await fromTheStart(tx, key)
    const begun = { form, state: 'preparing' as const, change: { ...change, numbers }, ...at, problem: null }
    await tx.delete(alterations).where(eq(alterations.blueprint, key))
    await tx.insert(alterations).values({ blueprint: key, ...begun, since: iso(now()) })
    // From now on, whoever writes knows of it.
    await tx.update(blueprints).set({ version: form }).where(eq(blueprints.key, key))
    return form
  })

const LATER = 100 // ms

/** Whether it does in time; whichever process prepares it. @throws 409 when it was given up */
async function comesIntoForce(tenant: Tenant, key: string, form: number): Promise<boolean> {
  const until = performance.now() + PATIENCE
  for (let pause = 5; performance.now() < until; pause = Math.min(2 * pause, LATER)) {
    await Bun.sleep(pause)
    const { form: inForce } = (await rowOf(tenant, key)) ?? missing('blueprint')
    if (inForce >= form) return true
    const row = await alterationRow(tenant, key)
    if (row && row.form > form) break
    if (row?.form !== form) continue
    if (row.problem) throw refused(row.problem)
    kept.alter(tenant, key)
  }
  return false
}
