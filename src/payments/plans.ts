import { eq } from 'drizzle-orm'
import type { Ctx, OpenCtx } from '../accounts/guard'
import { settingsOf } from '../accounts/settings'
import { iso, now } from '../core/clock'
import type { Answer } from '../core/etag'
import { type Flaw, invalid, missing } from '../core/problem'
import { asked } from '../core/shapes'
import { answerPage, type Listing, paged, pageOf } from '../storage/lists'
import type { Db } from '../storage/port'
import { callerOf } from './billable'
import { currencyOf, decimalFrom, minorOf } from './money'
import type { NewPlan, Plan as Told } from './shapes'
import { type Plan, plans } from './tables'

const { _id, name, isActive, sortOrder, monthlyPrice, yearlyPrice, created, updated } = plans
const sortable = { _id, name, isActive, sortOrder, monthlyPrice, yearlyPrice, created, updated }
const BY_ORDER = 'sortOrder,monthlyPrice'

type Filters = Listing & { isActive?: string }

/** A page of all plans, in their order. */
export async function list({ db }: Ctx, query: Filters, answer: Answer): Promise<Told[]> {
  return read(db, query, asked(query, 'isActive'), answer, shownToAdmins)
}

/** What anybody may subscribe to. Others than active ones are shown to admins who ask for them, and to nobody else. */
export async function listPublic(ctx: OpenCtx, query: Filters, answer: Answer): Promise<Told[]> {
  const active = asked(query, 'isActive') ?? true
  if (!active && !(await callerOf(answer.request))?.privileged) return []
  return read(ctx.db, query, active, answer, shown)
}

async function read(db: Db, query: Filters, active: boolean | undefined, answer: Answer, show: (plan: Plan) => Told) {
  const page = pageOf(query, sortable, BY_ORDER)
  const where = active === undefined ? undefined : eq(isActive, active)
  const rows = await paged(page, db.select().from(plans).where(where))
  return answerPage(answer, page, rows.map(show), () => db.$count(plans, where))
}

/** One plan; others than active ones are there for admins only. @throws 404 PLAN_NOT_FOUND */
export async function get({ db, actor }: Ctx, id: string): Promise<Told> {
  const plan = await found(db, id)
  if (actor.privileged) return shownToAdmins(plan)
  return plan.isActive ? shown(plan) : missing('plan')
}

/** A new plan. @throws 400 without a name, or without a price where nobody says one later */
export async function create(ctx: Ctx, input: NewPlan): Promise<Told> {
  const { defaultCurrency: currency } = await settingsOf(ctx, 'payments-configuration')
  const time = iso(now())
  const blank: Plan = {
    ...{ _id: Bun.randomUUIDv7(), name: '', description: '', monthlyPrice: null, yearlyPrice: null, currency },
    ...{ dynamic: false, isActive: true, features: [], sortOrder: 0, limits: {}, metadata: {}, externalIds: {} },
    ...{ created: time, updated: time },
  }
  const plan = changed(blank, input)
  await ctx.write((tx) => tx.insert(plans).values(plan))
  return shownToAdmins(plan)
}

/** Changes what it mentions; who has subscribed keeps the price that they have. @throws 400, 404 */
export const change = (ctx: Ctx, id: string, input: NewPlan): Promise<Told> =>
  ctx.write(async (tx) => {
    const plan = changed(await found(tx, id), input)
    await tx.update(plans).set(plan).where(eq(_id, id))
    return shownToAdmins(plan)
  })

/** Nobody can subscribe to it any more; who has, goes on. @throws 404 */
export const remove = (ctx: Ctx, id: string): Promise<Told> => change(ctx, id, { isActive: false })

/** A plan. @throws 404 PLAN_NOT_FOUND */
export const found = async (db: Pick<Db, 'select'>, id: string): Promise<Plan> =>
  (!id.includes('\0') && (await db.select().from(plans).where(eq(_id, id)).get())) || missing('plan')

/** What was sent upon what there is, judged as a whole. @throws 400 */
function changed(before: Plan, { monthlyPrice, yearlyPrice, currency: sent, ...input }: NewPlan): Plan {
  const flaws: Flaw[] = []
  const currency = sent === undefined ? before.currency : currencyOf(sent)
  if (!currency)
    return invalid({ path: '/currency', message: `"${sent}" is no currency of ISO 4217, such as USD or EUR.` })
  const after = { ...before, ...input, currency, updated: iso(now()) }
  const priced = (path: 'monthlyPrice' | 'yearlyPrice', price: number | null | undefined) => {
    const known = before[path] === null ? null : decimalFrom(before[path], before.currency)
    const decimal = price === undefined ? known : price
    const minor = decimal === null ? null : minorOf(decimal, currency)
    if (minor === undefined) flaws.push({ path: `/${path}`, message: `${path} is too much.` })
    if (minor === 0 && decimal! > 0)
      flaws.push({ path: `/${path}`, message: `${path} is less than the smallest amount of ${currency}.` })
    if (minor === null && !after.dynamic)
      flaws.push({ path: `/${path}`, message: `A plan needs a ${path}, unless it is dynamic.` })
    return minor ?? null
  }
  const prices = { monthlyPrice: priced('monthlyPrice', monthlyPrice), yearlyPrice: priced('yearlyPrice', yearlyPrice) }
  if (!after.name) flaws.push({ path: '/name', message: 'A plan needs a name.' })
  if (flaws.length) invalid(...flaws)
  return { ...after, ...prices }
}

const decimalOrNull = (minor: number | null, currency: string) => (minor === null ? null : decimalFrom(minor, currency))

export const shownToAdmins = ({ monthlyPrice, yearlyPrice, ...plan }: Plan): Told => ({
  ...plan,
  monthlyPrice: decimalOrNull(monthlyPrice, plan.currency),
  yearlyPrice: decimalOrNull(yearlyPrice, plan.currency),
})

/** Without how providers call it. */
function shown(plan: Plan): Told {
  const { externalIds: _, ...told } = shownToAdmins(plan)
  return told
}
