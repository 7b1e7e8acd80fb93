import { Cron } from 'croner'
import { type Static, t } from 'elysia'
import { now } from '../../../core/clock'
import { textMatching } from '../../../core/shapes'
import type { TriggerKind } from './trigger'

const NO_CRON = 'This is not a cron expression. Write five parts, such as 0 9 * * MON.'

const shape = t.Object({
  cron: textMatching('^\\S+(\\s+\\S+){4,5}$', NO_CRON, {
    maxLength: 200,
    description: 'minute, hour, day, month, day of the week; or second before these',
  }),
  timezone: t.Optional(
    t.String({ minLength: 1, maxLength: 64, description: 'such as Europe/Lisbon; UTC unless told' }),
  ),
})

/** A time, which comes again and again. */
export const schedule: TriggerKind<typeof shape> = {
  shape,
  flaws(given) {
    try {
      new Date(now()).toLocaleString('en', { timeZone: given.timezone })
    } catch {
      return [
        { path: '/timezone', message: `There is no time zone "${given.timezone}". Try one such as Europe/Lisbon.` },
      ]
    }
    try {
      const never = [{ path: '/cron', message: 'This schedule never comes due. Check its day and month.' }]
      return dueAfter(given, now()) === undefined ? never : []
    } catch (error) {
      return [
        {
          path: '/cron',
          message: `${NO_CRON} (${(error as Error).message.replace(/^\w+: /, '').replace(/\.$/, '')}.)`,
        },
      ]
    }
  },
}

type Times = Static<typeof shape>

/**
 * The next moment (ms) after another one, by the clocks of the time zone: a time that they leave out comes as much later
 * as they are put forward; one that they show twice comes once, unless the schedule is for every hour.
 */
export const dueAfter = ({ cron, timezone = 'UTC' }: Times, moment: number): number | undefined =>
  new Cron(cron, { timezone, paused: true }).nextRun(new Date(moment))?.getTime()
