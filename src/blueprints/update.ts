import { and, eq } from 'drizzle-orm'
import type { Ctx } from '../accounts/context'
import { now, toIsoString } from '../core/clock'
import { assertIfMatch, etagOf } from '../core/etag'
import { notFound, Problem } from '../core/problem'
import type { IfMatch } from '../core/response-headers'
import { assertQuotaLeft } from '../limits/quota-check'
import type { Tx } from '../storage/port'
import { invalidate, writeInvalidating } from '../tenancy/cache'
import type { Tenant } from '../tenancy/tenants'
import { assertTargetsExist, getModel, toVersionedBlueprint } from './blueprints'
import { initialProgress } from './cutover'
import { validateDefinition } from './definition-validation'
import { type DryRunReport, entityStore } from './entity-store'
import { assignFieldNumbers, reserveFieldNumbers } from './field-numbers'
import { nextHistory } from './history'
import type { Model } from './model'
import { type BlueprintRow, compileModel, findAlterationRow, findBlueprintRow } from './model-loader'
import { mayReadField, rowScopeOf } from './permissions'
import {
  applyRenames,
  assertFormulaReferences,
  type ChangeError,
  diffDefinitions,
  type PendingChange,
  type SchemaDiff,
} from './schema-diff'
import type { BlueprintChange, BlueprintChangeProblem, Definition } from './shapes'
import { alterations, blueprints } from './tables'

const MAX_UPDATE_WAIT_MS = 20_000 // how long a request waits for the preparation, which then goes on

/**
 * Changes the fields in `input`, and returns the blueprint. When entities must be altered, the change comes into force
 * for all of them at one moment: within 20 s, or as soon as they are prepared (`isUnderWay`).
 * @throws 400, 403 QUOTA_EXCEEDED when it adds fields, 404, 409 with the problems of existing entities, 412 when stale
 */
export async function update(ctx: Ctx, key: string, input: BlueprintChange, options: IfMatch) {
  const intent = await resolveIntent(ctx, key, input, options)
  if (isLarger(intent.alteration.definition, intent.before.definition)) await assertQuotaLeft(ctx, 'storage')
  if (!intent.alteration.needsBackfill) {
    await applyImmediately(ctx, intent)
    return { ...(await toVersionedBlueprint(ctx, await getModel(ctx, key))), isUnderWay: false }
  }
  const { problems } = await surveyChange(ctx, intent)
  if (problems.length) throw toProblem(toChangeError(problems))
  const form = await startAlteration(ctx, intent)
  if (form) entityStore().resumeAlteration(ctx, key)
  const isUnderWay = !!form && !(await waitForCutover(ctx, key, form))
  return { ...(await toVersionedBlueprint(ctx, await getModel(ctx, key))), isUnderWay }
}

/** Returns what a change would do to the existing entities. @throws 400, 404, 412 when stale */
export async function dryRun(ctx: Ctx, key: string, input: BlueprintChange, options: IfMatch = {}) {
  const intent = await resolveIntent(ctx, key, input, options)
  return { dryRun: true as const, ...(await surveyChange(ctx, intent)) }
}

/** A requested change, and its effect on entities. The fields of its definition may contain `renamedFrom`. */
type Intent = { before: BlueprintRow; change: Omit<PendingChange, 'numbers'>; alteration: SchemaDiff }

async function resolveIntent(ctx: Ctx, key: string, input: BlueprintChange, { ifMatch }: IfMatch): Promise<Intent> {
  const { name, description, ...parts } = input
  let validated: Definition | undefined
  for (const until = performance.now() + MAX_UPDATE_WAIT_MS; ; ) {
    const before = (await findBlueprintRow(ctx, key)) ?? notFound('blueprint')
    assertIfMatch(ifMatch, etagOf(before.version, before.updated))
    const wanted: Definition = { ...applyRenames(before.definition, parts.fields), ...parts }
    const alteration = diffDefinitions(before.definition, wanted)
    // Validation may take a second, which a long wait must not repeat.
    if (!Bun.deepEquals(alteration.definition, validated))
      await validateDefinition(alteration.definition, before.definition)
    validated = alteration.definition
    const currentAlteration = await findAlterationRow(ctx, key)
    // During a preparation, only parts that do not concern entities may change.
    if (currentAlteration?.state !== 'preparing' || !concernsEntities(before.definition, alteration.definition)) {
      await assertFormulasStay(ctx, key, before.definition, input, alteration)
      return { before, change: { name, description, definition: wanted }, alteration }
    }
    if (performance.now() > until) throw changingProblem()
    entityStore().resumeAlteration(ctx, key)
    await Bun.sleep(MAX_POLL_INTERVAL_MS)
  }
}

const changingProblem = () =>
  new Problem(
    409,
    'BLUEPRINT_CHANGING',
    'A previous change is still being applied to the entities of this blueprint. Try again later.',
  )

const concernsEntities = (before: Definition, after: Definition) =>
  (['fields', 'computed', 'limitations'] as const).some(
    (part) => !Bun.deepEquals(before[part] ?? EMPTY_PARTS[part], after[part] ?? EMPTY_PARTS[part]),
  )
/** Whether entities may have more than before. Fewer fields make room, and rules take none. */
const isLarger = (after: Definition, before: Definition) =>
  JSON.stringify([after.fields, after.computed]).length > JSON.stringify([before.fields, before.computed]).length
const EMPTY_PARTS = { fields: [], computed: {}, limitations: [] }

/** @throws 400 when a formula that is kept refers to a removed field */
async function assertFormulasStay(
  ctx: Ctx,
  key: string,
  before: Definition,
  { computed }: BlueprintChange,
  { definition }: SchemaDiff,
) {
  if (computed || !before.computed) return
  const { formulas } = await getModel(ctx, key)
  assertFormulaReferences(
    before,
    definition,
    new Map(formulas.map(({ field, formula }) => [field.key, formula.referencedNames])),
  )
}

async function surveyChange(ctx: Ctx, { before, alteration }: Intent): Promise<DryRunReport> {
  const model = await getModel(ctx, before.key)
  const numbers = alteration.definition.fields.map(({ key }, index) => {
    const { from } = alteration.steps[index]!
    // No number has been reserved yet for fields that will be indexed again.
    return [key, (!alteration.reindexedKeys.has(key) && from && model.field.get(from)?.number) || -1 - index] as const
  })
  const next = await compileModel(ctx, before, alteration.definition, new Map(numbers), undefined, model.indexKeys)
  const { problems, ...survey } = await entityStore().surveyChange(ctx, model, next, alteration)
  return { ...survey, problems: problems.map((problem) => redactObstacle(ctx, model, alteration, problem)) }
}

/** Removes identifiers and values of entities that the editor may not read from a problem. */
function redactObstacle(
  { actor }: Ctx,
  model: Model,
  { steps }: SchemaDiff,
  obstacle: BlueprintChangeProblem,
): BlueprintChangeProblem {
  const { examples, duplicates, ...problem } = obstacle
  const was = model.field.get(steps.find(({ key }) => key === problem.field)?.from ?? '')
  const all = !!rowScopeOf(model, 'read', actor)?.all
  const mayReadValues = all && (!was || mayReadField(was, actor))
  return { ...problem, examples: all ? examples : [], ...(mayReadValues && duplicates && { duplicates }) }
}

/** Returns the error of a change that existing entities do not allow. */
export const toChangeError = (problems: BlueprintChangeProblem[]): ChangeError => {
  const message = problems.map(({ message }) => message).join(' ')
  return { code: problems[0]!.code, message: message.slice(0, 1_000), details: problems }
}

const CONFLICT_STATUS = 409
export const toProblem = ({ code, message, details }: ChangeError) =>
  new Problem(CONFLICT_STATUS, code, message, { details })

/** Applies a change that alters no entities. */
async function applyImmediately(ctx: Ctx, intent: Intent) {
  await writeInvalidating(ctx, 'blueprints', async (tx) => {
    const row = await getAlterationIfUnchanged(tx, intent)
    await saveDefinition(tx, intent)
    if (row?.state !== 'preparing') return
    // The prepared fields stay the same; the other parts must not be lost when the alteration comes into force.
    const { fields: _, computed: __, limitations: ___, ...rest } = intent.alteration.definition
    const { name = row.change.name, description = row.change.description } = intent.change
    const change = { ...row.change, name, description, definition: { ...row.change.definition, ...rest } }
    await tx.update(alterations).set({ change }).where(eq(alterations.blueprint, intent.before.key))
  })
}

/** Stores the definition, the name and the description, and assigns the numbers of fields. @throws 400 */
async function saveDefinition(tx: Tx, { before, change, alteration: { definition, steps } }: Intent) {
  const { name, description } = change
  const fields = { ...(name && { name }), ...(description !== undefined && { description }), definition }
  await assertTargetsExist(tx, before.key, definition, before.definition.fields)
  await tx
    .update(blueprints)
    .set({
      ...fields,
      ...(await nextHistory(tx, before, definition, steps)),
      version: before.version + 1,
      updated: toIsoString(now()),
    })
    .where(eq(blueprints.key, before.key))
  await assignFieldNumbers(tx, before.key, definition)
}

/** Returns the current alteration, if any. @throws 409 CONFLICT when the blueprint has changed since it was read */
async function getAlterationIfUnchanged(tx: Tx, { before }: Intent) {
  const { key, version } = before
  const unchanged = await tx
    .select({ key: blueprints.key })
    .from(blueprints)
    .where(and(eq(blueprints.key, key), eq(blueprints._id, before._id), eq(blueprints.version, version)))
    .get()
  if (!unchanged) throw new Problem(409, 'CONFLICT', 'The blueprint was changed by another request. Try again.')
  return tx.select().from(alterations).where(eq(alterations.blueprint, key)).get()
}

/** Starts an alteration and returns its number, or undefined when there are no entities and the change is in force. */
export const startAlteration = (tenant: Tenant, intent: Intent): Promise<number | undefined> =>
  writeInvalidating(tenant, 'blueprints', async (tx) => {
    const { before, change, alteration } = intent
    const { key, version } = before
    const row = await getAlterationIfUnchanged(tx, intent)
    if (row?.state === 'preparing') throw changingProblem()
    if (!(await entityStore().hasEntities(tx, key))) return void (await saveDefinition(tx, intent))
    if (await entityStore().isImporting(tx, key))
      throw new Problem(
        409,
        'IMPORT_RUNNING',
        'An import into this blueprint is running. Try again when it has finished.',
      )
    await assertTargetsExist(tx, key, alteration.definition, before.definition.fields)
    const form = version + 1
    const numbers = await reserveFieldNumbers(tx, key, form, alteration)
    const progress = await initialProgress(tx, key)
    const newAlteration = {
      form,
      state: 'preparing' as const,
      change: { ...change, numbers },
      ...progress,
      problem: null,
    }
    await tx.delete(alterations).where(eq(alterations.blueprint, key))
    await tx.insert(alterations).values({ blueprint: key, ...newAlteration, since: toIsoString(now()) })
    // With the new version, every process that writes knows the alteration.
    await tx.update(blueprints).set({ version: form }).where(eq(blueprints.key, key))
    return form
  })

const MAX_POLL_INTERVAL_MS = 100

/**
 * Returns whether an alteration comes into force in time, no matter which process prepares it.
 * @throws 409 when given up
 */
async function waitForCutover(tenant: Tenant, key: string, form: number): Promise<boolean> {
  const until = performance.now() + MAX_UPDATE_WAIT_MS
  for (let pause = 5; performance.now() < until; pause = Math.min(2 * pause, MAX_POLL_INTERVAL_MS)) {
    await Bun.sleep(pause)
    const { form: inForce } = (await findBlueprintRow(tenant, key)) ?? notFound('blueprint')
    if (inForce >= form) {
      // The database may show the change before this process drops the cached model.
      invalidate(tenant, 'blueprints')
      return true
    }
    const row = await findAlterationRow(tenant, key)
    if (row && row.form > form) break
    if (row?.form !== form) continue
    if (row.problem) throw toProblem(row.problem)
    entityStore().resumeAlteration(tenant, key)
  }
  return false
}
