import { Text } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { keepPreviousData, queryOptions, useQuery } from '@tanstack/react-query'
import { api, fetchData } from '../../../api/client'
import { RelativeTime } from '../../../ui/relative-time'
import classes from './schedule.module.css'

const TYPING_PAUSE_MS = 300
const LOCAL_TIME_LENGTH = 'YYYY-MM-DDTHH:MM:SS'.length

/** The next times of a schedule, which the server finds: browsers have rules of zones of their own. */
const dueTimesQuery = (cron: string, timezone: string) =>
  queryOptions({
    queryKey: ['integrations', 'due-times', cron, timezone],
    queryFn: () => fetchData(api.GET('/api/integrations/due-times', { params: { query: { cron, timezone } } })),
    placeholderData: keepPreviousData,
    retry: false,
  })

// What the clocks of the zone show is written as a time in UTC, which every browser formats in the same way.
const format = new Intl.DateTimeFormat(undefined, {
  ...({ weekday: 'short', day: 'numeric', month: 'short', year: 'numeric' } as const),
  ...({ hour: '2-digit', minute: '2-digit', timeZone: 'UTC' } as const),
})

/** The next times of a schedule in its time zone. */
export function NextTimes({ cron, timezone }: { cron: string; timezone: string }) {
  const [typed] = useDebouncedValue(cron, TYPING_PAUSE_MS)
  const { data, error } = useQuery(dueTimesQuery(typed, timezone))
  if (error)
    return (
      <Text size="xs" c="dimmed">
        {error.message}
      </Text>
    )
  return (
    <ol className={classes.times} aria-label="Next times">
      {data?.times.map(({ due, local }) => (
        <li key={due}>
          <span>{format.format(new Date(`${local.slice(0, LOCAL_TIME_LENGTH)}Z`))}</span>
          <Text size="xs" c="dimmed" component="span">
            <RelativeTime time={due} />
          </Text>
        </li>
      ))}
    </ol>
  )
}
