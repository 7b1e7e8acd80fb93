import { count, countDistinct, gte } from 'drizzle-orm'
import { DAY, iso, now } from '../../core/clock'
import type { Ctx } from '../guard'
import { sessions, users } from '../tables'

const PERIODS = { lastDay: DAY, lastWeek: 7 * DAY, lastMonth: 30 * DAY }

/** How many users there are, with which roles; how many came, and used a session, of late. */
export async function stats({ db }: Ctx) {
  const lists = await db.select({ roles: users.roles, count: count() }).from(users).groupBy(users.roles)
  const roles: Record<string, number> = {}
  for (const { roles: list, count } of lists) for (const role of list) roles[role] = (roles[role] ?? 0) + count
  const total = lists.reduce((sum, { count }) => sum + count, 0)
  const registered = await each((since) => db.$count(users, gte(users.created, since)))
  const active = await each(async (since) => {
    const used = db.select({ count: countDistinct(sessions.user) }).from(sessions)
    return (await used.where(gte(sessions.used, since)))[0]!.count
  })
  return { total, roles, registered, active }
}

async function each(counted: (since: string) => Promise<number>) {
  const [time, counts] = [now(), {} as Record<keyof typeof PERIODS, number>]
  for (const [period, ms] of Object.entries(PERIODS))
    counts[period as keyof typeof PERIODS] = await counted(iso(time - ms))
  return counts
}
