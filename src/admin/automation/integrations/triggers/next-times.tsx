import { Text } from '@mantine/core'
import { Cron } from 'croner'
import { RelativeTime } from '../../../ui/relative-time'
import classes from './schedule.module.css'

const TIMES_SHOWN = 5

/** Returns the next times of a schedule, or why there are none. */
function findNextTimes(cron: string, timezone: string): Date[] | string {
  try {
    const times = new Cron(cron, { timezone, paused: true }).nextRuns(TIMES_SHOWN)
    return times.length ? times : 'This schedule never comes due.'
  } catch {
    return 'This is not a schedule yet.'
  }
}

/** The next times of a schedule in its time zone. */
export function NextTimes({ cron, timezone }: { cron: string; timezone: string }) {
  const times = findNextTimes(cron, timezone)
  if (typeof times === 'string')
    return (
      <Text size="xs" c="dimmed">
        {times}
      </Text>
    )
  const format = new Intl.DateTimeFormat(undefined, {
    ...({ weekday: 'short', day: 'numeric', month: 'short', year: 'numeric' } as const),
    ...({ hour: '2-digit', minute: '2-digit', timeZone: timezone } as const),
  })
  return (
    <ol className={classes.times} aria-label="Next times">
      {times.map((time) => (
        <li key={time.getTime()}>
          <span>{format.format(time)}</span>
          <Text size="xs" c="dimmed" component="span">
            <RelativeTime time={time.toISOString()} />
          </Text>
        </li>
      ))}
    </ol>
  )
}
