import { count, countDistinct, gte } from 'drizzle-orm'
import { DAY_MS, now, toIsoString } from '../../core/clock'
import type { Ctx } from '../context'
import { sessions, users } from '../tables'

const PERIODS_MS = { lastDay: DAY_MS, lastWeek: 7 * DAY_MS, lastMonth: 30 * DAY_MS }

/**
 * Returns the number of users, in total and by role, and how many registered or used a session within a day, a week and
 * a month.
 */
export async function getUserStats({ db }: Ctx) {
  const lists = await db.select({ roles: users.roles, count: count() }).from(users).groupBy(users.roles)
  const roles: Record<string, number> = {}
  for (const { roles: list, count } of lists) for (const role of list) roles[role] = (roles[role] ?? 0) + count
  const total = lists.reduce((sum, { count }) => sum + count, 0)
  const registered = await countByPeriod((since) => db.$count(users, gte(users.created, since)))
  const active = await countByPeriod(async (since) => {
    const used = db.select({ count: countDistinct(sessions.user) }).from(sessions)
    return (await used.where(gte(sessions.used, since)))[0]!.count
  })
  return { total, roles, registered, active }
}

async function countByPeriod(countSince: (since: string) => Promise<number>) {
  const [time, counts] = [now(), {} as Record<keyof typeof PERIODS_MS, number>]
  for (const [period, ms] of Object.entries(PERIODS_MS))
    counts[period as keyof typeof PERIODS_MS] = await countSince(toIsoString(time - ms))
  return counts
}
