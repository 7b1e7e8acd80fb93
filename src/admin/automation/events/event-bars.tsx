import { Tooltip, UnstyledButton } from '@mantine/core'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { DAY_MS, dayCountsQuery, type EventFilters } from './event-queries'
import classes from './events.module.css'

/** How many days are shown with a period. */
const PERIOD_DAYS: Record<string, number> = { 'last-day': 7, 'last-week': 7, 'last-year': 90, 'all-time': 90 }
const DEFAULT_DAYS = 30

const toDay = (moment: number) => new Date(moment).toISOString().slice(0, 10)
const dayFormat = new Intl.DateTimeFormat(undefined, {
  ...({ weekday: 'short', day: 'numeric', month: 'short', timeZone: 'UTC' } as const),
})

type EventBarsProps = { filters: EventFilters; onChange: (filters: EventFilters) => void }

/** How many events each day had, as bars. A click on one shows only the events of its day. */
export function EventBars({ filters, onChange }: EventBarsProps) {
  const days = PERIOD_DAYS[filters.period ?? ''] ?? DEFAULT_DAYS
  const today = Math.floor(Date.now() / DAY_MS) * DAY_MS
  const starts = Array.from({ length: days }, (_, n) => today - (days - 1 - n) * DAY_MS)
  const { data: counts } = useQuery({
    ...dayCountsQuery(filters, toDay(starts[0]!)),
    placeholderData: keepPreviousData,
  })
  const highest = Math.max(1, ...(counts?.values() ?? []))
  const choose = (start: number, isChosen: boolean) =>
    onChange(
      isChosen
        ? { from: undefined, to: undefined }
        : { from: toDay(start), to: toDay(start + DAY_MS), period: undefined },
    )
  return (
    <ul className={classes.bars} aria-label="Events of each day">
      {starts.map((start) => {
        const count = counts?.get(toDay(start)) ?? 0
        const isChosen = filters.from === toDay(start)
        const label = `${dayFormat.format(start)}: ${count.toLocaleString()} ${count === 1 ? 'event' : 'events'}`
        return (
          <li key={start}>
            <Tooltip label={label}>
              <UnstyledButton
                className={classes.bar}
                aria-label={label}
                aria-pressed={isChosen}
                onClick={() => choose(start, isChosen)}
              >
                <span style={{ height: `${(count / highest) * 100}%` }} />
              </UnstyledButton>
            </Tooltip>
          </li>
        )
      })}
    </ul>
  )
}
