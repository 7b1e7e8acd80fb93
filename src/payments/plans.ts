import { eq } from 'drizzle-orm'
import type { Ctx, PublicCtx } from '../accounts/context'
import { now, toIsoString } from '../core/clock'
import { badRequest, type FieldError, notFound, Problem, summarizeErrors } from '../core/problem'
import type { ListPage } from '../core/response-headers'
import { parseFlag } from '../core/shapes'
import { getSettings } from '../platform/settings/tenant-settings'
import { applyPage, type ListQuery, parsePage, toListPage } from '../storage/pagination'
import type { Db } from '../storage/port'
import { findAmountFlaw, findConnectedKind } from './amounts'
import { findActor } from './billable-entity'
import { fromMinorUnits, parseCurrency, toMinorUnits } from './money'
import { paymentsSettings } from './payments-settings'
import type { NewPlan, Plan as PlanResponse } from './shapes'
import { type Plan, type ProviderKind, plans } from './tables'

const { _id, name, isActive, sortOrder, monthlyPrice, yearlyPrice, created, updated } = plans
const sortable = { _id, name, isActive, sortOrder, monthlyPrice, yearlyPrice, created, updated }
const DEFAULT_SORT = 'sortOrder,monthlyPrice'

type Filters = ListQuery & { isActive?: string }

/** Returns a page of all plans, in their sort order. */
export const list = async ({ db }: Ctx, query: Filters) =>
  listPlans(db, query, parseFlag(query, 'isActive'), toAdminPlan)

/** Returns a page of the active plans, for guests too. Only admins get archived ones, with `isActive=false`. */
export async function listPublic(ctx: PublicCtx, query: Filters, request: Request): Promise<ListPage<PlanResponse>> {
  const active = parseFlag(query, 'isActive') ?? true
  if (!active && !(await findActor(request))?.privileged) return { items: [] }
  return listPlans(ctx.db, query, active, toPublicPlan)
}

async function listPlans(
  db: Db,
  query: Filters,
  active: boolean | undefined,
  toResponse: (plan: Plan) => PlanResponse,
) {
  const page = parsePage(query, sortable, DEFAULT_SORT)
  const where = active === undefined ? undefined : eq(isActive, active)
  const rows = await applyPage(page, db.select().from(plans).where(where))
  return toListPage(page, rows.map(toResponse), () => db.$count(plans, where))
}

/** Returns a plan. @throws 404 PLAN_NOT_FOUND, also for an archived plan unless the caller is an admin */
export async function get({ db, actor }: Ctx, id: string): Promise<PlanResponse> {
  const plan = await getPlan(db, id)
  if (actor.privileged) return toAdminPlan(plan)
  return plan.isActive ? toPublicPlan(plan) : notFound('plan')
}

/** Creates a plan. @throws 400 INVALID_AMOUNT, or without a name, or without a price unless the plan is dynamic */
export async function create(ctx: Ctx, input: NewPlan): Promise<PlanResponse> {
  const plan = applyChanges(await createBlank(ctx), input, await findConnectedKind(ctx))
  await ctx.write((tx) => tx.insert(plans).values(plan))
  return toAdminPlan(plan)
}

async function createBlank(ctx: Ctx): Promise<Plan> {
  const { defaultCurrency: currency } = await getSettings(ctx, paymentsSettings)
  const time = toIsoString(now())
  return {
    ...{ _id: Bun.randomUUIDv7(), name: '', description: '', monthlyPrice: null, yearlyPrice: null, currency },
    ...{ dynamic: false, isActive: true, features: [], sortOrder: 0, limits: {}, metadata: {}, externalIds: {} },
    ...{ created: time, updated: time },
  }
}

/**
 * Checks a plan as it would be created or, with an id, changed, apart from what its provider can charge.
 * @throws 400, 404 PLAN_NOT_FOUND
 */
export async function validate(ctx: Ctx, input: NewPlan, id?: string) {
  applyChanges(id ? await getPlan(ctx.db, id) : await createBlank(ctx), input, null)
}

/** Changes the given fields. Existing subscriptions keep their prices. @throws 400, 404 PLAN_NOT_FOUND */
export async function change(ctx: Ctx, id: string, input: NewPlan): Promise<PlanResponse> {
  const kind = await findConnectedKind(ctx)
  return ctx.write(async (tx) => {
    const plan = applyChanges(await getPlan(tx, id), input, kind)
    await tx.update(plans).set(plan).where(eq(_id, id))
    return toAdminPlan(plan)
  })
}

/** Archives a plan: it accepts no new subscriptions, and existing ones continue. @throws 404 PLAN_NOT_FOUND */
export const remove = (ctx: Ctx, id: string): Promise<PlanResponse> => change(ctx, id, { isActive: false })

/** Returns the row of a plan. @throws 404 PLAN_NOT_FOUND */
export const getPlan = async (db: Pick<Db, 'select'>, id: string): Promise<Plan> =>
  (await db.select().from(plans).where(eq(_id, id)).get()) ?? notFound('plan')

/** Returns the plan with the input applied. The result is validated as a whole. @throws 400 */
function applyChanges(
  before: Plan,
  { monthlyPrice, yearlyPrice, currency: sent, ...input }: NewPlan,
  kind: ProviderKind | null,
): Plan {
  const flaws: FieldError[] = []
  const amountFlaws: FieldError[] = []
  const currency = sent === undefined ? before.currency : parseCurrency(sent)
  if (!currency)
    return badRequest({ path: '/currency', message: `"${sent}" is not an ISO 4217 currency such as USD or EUR.` })
  const after = { ...before, ...input, currency, updated: toIsoString(now()) }
  const parsePrice = (path: 'monthlyPrice' | 'yearlyPrice', price: number | null | undefined) => {
    const current = before[path] === null ? null : fromMinorUnits(before[path], before.currency)
    const decimal = price === undefined ? current : price
    const minor = decimal === null ? null : toMinorUnits(decimal, currency)
    if (minor === undefined) flaws.push({ path: `/${path}`, message: `${path} is too large.` })
    // What was stored before and comes back unchanged passes, whatever is connected now.
    const isUnchanged = decimal === current && currency === before.currency
    const flaw =
      minor === undefined || decimal === null || isUnchanged ? undefined : findAmountFlaw(decimal, currency, kind)
    if (flaw) amountFlaws.push({ path: `/${path}`, message: flaw })
    if (minor === null && !after.dynamic)
      flaws.push({ path: `/${path}`, message: `${path} is required unless the plan is dynamic.` })
    return minor ?? null
  }
  const prices = {
    monthlyPrice: parsePrice('monthlyPrice', monthlyPrice),
    yearlyPrice: parsePrice('yearlyPrice', yearlyPrice),
  }
  if (!after.name) flaws.push({ path: '/name', message: 'name is required.' })
  if (flaws.length) badRequest(...flaws)
  if (amountFlaws.length)
    throw new Problem(400, 'INVALID_AMOUNT', summarizeErrors(amountFlaws), { details: amountFlaws })
  return { ...after, ...prices }
}

const decimalOrNull = (minor: number | null, currency: string) =>
  minor === null ? null : fromMinorUnits(minor, currency)

export const toAdminPlan = ({ monthlyPrice, yearlyPrice, ...plan }: Plan): PlanResponse => ({
  ...plan,
  monthlyPrice: decimalOrNull(monthlyPrice, plan.currency),
  yearlyPrice: decimalOrNull(yearlyPrice, plan.currency),
})

/** Serializes a plan without its ids at providers. */
function toPublicPlan(plan: Plan): PlanResponse {
  const { externalIds: _, ...publicFields } = toAdminPlan(plan)
  return publicFields
}
