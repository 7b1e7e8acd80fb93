import { type Static, t } from 'elysia'
import { HOUR_MS, MINUTE_MS, now, toIsoString } from '../../core/clock'
import { badRequest } from '../../core/problem'
import { textMatching } from '../../core/shapes'
import { createFixedZone, findTimeZone, type TimeZone, UTC, unknownTimeZoneMessage } from '../../core/time-zone'
import { listFieldErrors } from '../../core/validation'
import { findNextCronTime } from './cron-times'
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
    const { timezone } = trigger
    if (timezone !== undefined && !findZone(timezone))
      return [{ path: '/timezone', message: unknownTimeZoneMessage(timezone) }]
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
export const findNextDue = ({ cron, timezone }: Schedule, moment: number): number | undefined =>
  findNextCronTime(cron, (timezone === undefined ? undefined : findZone(timezone)) ?? UTC, moment)

const DUE_TIMES_SHOWN = 5

/** Returns the next times of a schedule, also as its clocks show them. @throws 400 for an invalid schedule */
export function listDueTimes(fields: Schedule): { due: string; local: string }[] {
  const errors = [...listFieldErrors(shape, fields), ...(schedule.validate?.(fields) ?? [])]
  if (errors.length) badRequest(...errors.map(({ path, message }) => ({ path: path.slice(1), message })))
  const zone = (fields.timezone === undefined ? undefined : findZone(fields.timezone)) ?? UTC
  const times: { due: string; local: string }[] = []
  let due = findNextDue(fields, now())
  for (; due !== undefined && times.length < DUE_TIMES_SHOWN; due = findNextDue(fields, due))
    times.push({ due: toIsoString(due), local: zone.format(due) })
  return times
}

/** Returns a zone by its IANA name, or by an offset such as +02:00, which earlier versions took as well. */
function findZone(name: string): TimeZone | undefined {
  const [, sign, hours, minutes] = /^([+-])([01]\d|2[0-3]):([0-5]\d)$/.exec(name) ?? []
  if (!sign) return findTimeZone(name)
  return createFixedZone(name, Number(`${sign}1`) * (Number(hours) * HOUR_MS + Number(minutes) * MINUTE_MS))
}
