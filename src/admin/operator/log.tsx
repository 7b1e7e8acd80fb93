import { Select, Text } from '@mantine/core'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { fetchData } from '../api/client'
import type { LogLine } from '../api/schema'
import { EmptyState } from '../ui/empty-state'
import { ProblemMessage } from '../ui/problem-message'
import { Screen } from '../ui/screen'
import { SearchBox } from '../ui/search-box'
import { StateTag } from '../ui/state-tag'
import classes from './log.module.css'
import { operatorApi } from './operator-api'

const REFRESH_INTERVAL_MS = 5_000
const MAX_LINES = 500
const LEVELS = ['debug', 'info', 'warn', 'error'] as const
type Level = (typeof LEVELS)[number]
const TONES = { debug: 'neutral', info: 'neutral', warn: 'warning', error: 'bad' } as const
const isLevel = (text?: string): text is Level => LEVELS.some((level) => level === text)

const timeFormat = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium', dateStyle: 'short' })

/** The latest lines of the server's log, of a level and those above it. */
export function Log() {
  const navigate = useNavigate()
  const { level, q } = useSearch({ strict: false }) as { level?: string; q?: string }
  const query = { limit: MAX_LINES, ...(isLevel(level) && { level }), ...(q && { q }) }
  const { data, error } = useQuery({
    queryKey: ['operator', 'log', query],
    queryFn: () => fetchData(operatorApi.GET('/operator/logs', { params: { query } })),
    refetchInterval: REFRESH_INTERVAL_MS,
    placeholderData: keepPreviousData,
  })
  const changeSearch = (change: Record<string, string | undefined>) =>
    navigate({ to: '/operator/log', search: { level, q, ...change } as never, replace: true })
  return (
    <Screen
      title="Log"
      actions={
        <>
          <Select
            size="xs"
            w={120}
            aria-label="Level"
            placeholder="Every level"
            clearable
            data={LEVELS.map((value) => ({ value, label: value === 'error' ? 'Errors' : `From ${value}` }))}
            value={isLevel(level) ? level : null}
            onChange={(next) => changeSearch({ level: next ?? undefined })}
          />
          <SearchBox label="Search the log" value={q} onSearch={(words) => changeSearch({ q: words || undefined })} />
        </>
      }
    >
      <div className={classes.column}>
        <Text size="sm" c="dimmed" px="md" pb="xs">
          The latest lines of this server, kept in memory. The level that is logged is the setting ATOLL_LOG_LEVEL.
        </Text>
        {error && <ProblemMessage error={error} />}
        {data?.length === 0 && <EmptyState text="No line matches." />}
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to take the focus */}
        <ol className={classes.lines} tabIndex={0} aria-label="Lines of the log">
          {data?.map((line, index) => (
            <LogRow key={`${line.time}-${index}`} line={line} />
          ))}
        </ol>
      </div>
    </Screen>
  )
}

/** Returns what a line says, without its time and level. */
function formatLine(text: string): string {
  const { level: _, time: __, method, route, status, ms, message, event, what, ...rest } = JSON.parse(text)
  const request = method && [method, route, status, ms !== undefined && `${ms} ms`].filter(Boolean).join(' ')
  const others = Object.entries(rest).map(([name, value]) => `${name}=${JSON.stringify(value)}`)
  return [event, what, request, message, ...others].filter(Boolean).join('  ')
}

const LogRow = ({ line }: { line: LogLine }) => (
  <li className={classes.line}>
    <time className={classes.time} dateTime={line.time}>
      {timeFormat.format(Date.parse(line.time))}
    </time>
    <span className={classes.level}>
      <StateTag label={line.level} tone={isLevel(line.level) ? TONES[line.level] : 'neutral'} />
    </span>
    <span className={classes.text}>{formatLine(line.text)}</span>
  </li>
)
