import { Select, Text, TextInput } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { IconSearch } from '@tabler/icons-react'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import type { LogLine } from '../api/schema'
import { EmptyState } from '../ui/empty-state'
import { ProblemMessage } from '../ui/problem-message'
import { Screen } from '../ui/screen'
import { StateTag } from '../ui/state-tag'
import classes from './log.module.css'
import { operatorApi } from './operator-api'

const REFRESH_INTERVAL_MS = 5_000
const TYPING_PAUSE_MS = 300
const LEVELS = ['debug', 'info', 'warn', 'error'] as const
type Level = (typeof LEVELS)[number]
const TONES = { debug: 'neutral', info: 'neutral', warn: 'warning', error: 'bad' } as const
const isLevel = (text?: string): text is Level => LEVELS.some((level) => level === text)

const time = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium', dateStyle: 'short' })

/** The latest lines of the server's log, from a level on. */
export function Log() {
  const navigate = useNavigate()
  const { level, q } = useSearch({ strict: false }) as { level?: string; q?: string }
  const [text] = useDebouncedValue(q, TYPING_PAUSE_MS)
  const query = { limit: 500, ...(isLevel(level) && { level }), ...(text && { q: text }) }
  const { data, error } = useQuery({
    queryKey: ['operator', 'log', query],
    queryFn: async () => (await operatorApi.GET('/operator/logs', { params: { query } })).data ?? [],
    refetchInterval: REFRESH_INTERVAL_MS,
    placeholderData: keepPreviousData,
  })
  const search = (change: Record<string, string | undefined>) =>
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
            onChange={(next) => search({ level: next ?? undefined })}
          />
          <TextInput
            size="xs"
            aria-label="Search the log"
            placeholder="Search"
            leftSection={<IconSearch size={14} />}
            value={q ?? ''}
            onChange={(event) => search({ q: event.currentTarget.value || undefined })}
          />
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
            <Line key={`${line.time}-${index}`} line={line} />
          ))}
        </ol>
      </div>
    </Screen>
  )
}

/** Returns what a line says, without its time and level. */
function toSentence(text: string): string {
  const { level: _, time: __, method, route, status, ms, message, event, what, ...rest } = JSON.parse(text)
  const request = method && [method, route, status, ms !== undefined && `${ms} ms`].filter(Boolean).join(' ')
  const others = Object.entries(rest).map(([name, value]) => `${name}=${JSON.stringify(value)}`)
  return [event, what, request, message, ...others].filter(Boolean).join('  ')
}

const Line = ({ line }: { line: LogLine }) => (
  <li className={classes.line}>
    <time className={classes.time} dateTime={line.time}>
      {time.format(Date.parse(line.time))}
    </time>
    <span className={classes.level}>
      <StateTag label={line.level} tone={isLevel(line.level) ? TONES[line.level] : 'neutral'} />
    </span>
    <span className={classes.text}>{toSentence(line.text)}</span>
  </li>
)
