import { Cron } from 'croner'
import { type Static, t } from 'elysia'
import { now } from '../../core/clock'
import { textMatching } from '../../core/shapes'
import type { TriggerKind } from './trigger-kind'

const INVALID_CRON_MESSAGE = 'This is not a cron expression. Write five parts, such as 0 9 * * MON.'

const shape = t.Object({
  cron: textMatching('^\\S+(\\s+\\S+){4,5}$', INVALID_CRON_MESSAGE, {
    maxLength: 200,
    description: 'minute, hour, day, month, day of the week; or second before these',
  }),
  timezone: t.Optional(t.String({ minLength: 1, maxLength: 64, description: 'such as Europe/Lisbon; default: UTC' })),
})

/** A recurring time. */
export const schedule: TriggerKind<typeof shape> = {
  shape,
  validate(trigger) {
    try {
      new Date(now()).toLocaleString('en', { timeZone: trigger.timezone })
    } catch {
      return [
        { path: '/timezone', message: `There is no time zone "${trigger.timezone}". Try one such as Europe/Lisbon.` },
      ]
    }
    try {
      const neverDue = [{ path: '/cron', message: 'This schedule never comes due. Check its day and month.' }]
      return findNextDue(trigger, now()) === undefined ? neverDue : []
    } catch (error) {
      return [
        {
          path: '/cron',
          message: `${INVALID_CRON_MESSAGE} (${(error as Error).message.replace(/^\w+: /, '').replace(/\.$/, '')}.)`,
        },
      ]
    }
  },
}

type Schedule = Static<typeof shape>

/**
 * Returns the next due time (ms) after `moment` in the time zone. A local time that daylight saving skips is shifted by
 * as much as the clocks go forward. One that occurs twice is due once, unless the schedule is for every hour.
 */
export const findNextDue = ({ cron, timezone = 'UTC' }: Schedule, moment: number): number | undefined =>
  new Cron(cron, { timezone, paused: true }).nextRun(new Date(moment))?.getTime()
