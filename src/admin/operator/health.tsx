import { Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { fetchData } from '../api/client'
import type { OperatorHealth } from '../api/schema'
import { Details } from '../ui/details'
import { formatBytes } from '../ui/format-bytes'
import { ProblemMessage } from '../ui/problem-message'
import { RelativeTime } from '../ui/relative-time'
import { Screen } from '../ui/screen'
import { StateTag } from '../ui/state-tag'
import classes from './health.module.css'
import { operatorApi } from './operator-api'

const REFRESH_INTERVAL_MS = 10_000

const CheckTag = ({ isOk }: { isOk: boolean }) =>
  isOk ? <StateTag label="Fine" tone="good" /> : <StateTag label="Problem" tone="bad" />

/** The state of the installation: its checks, its disk, its jobs, and what is damaged. */
export function Health() {
  const { data, error } = useQuery({
    queryKey: ['operator', 'health'],
    queryFn: () => fetchData(operatorApi.GET('/operator/health')),
    refetchInterval: REFRESH_INTERVAL_MS,
  })
  return (
    <Screen title="Health">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to take the focus */}
      <section className={classes.column} tabIndex={0} aria-label="Health of the installation">
        {error && <ProblemMessage error={error} />}
        {data && (
          <>
            <Details items={describeHealth(data)} />
            <Title order={2} mt="lg" mb="xs">
              Checks
            </Title>
            <CheckList health={data} />
          </>
        )}
      </section>
    </Screen>
  )
}

function describeHealth({
  status,
  version,
  timeZones,
  engine,
  uptimeSeconds,
  memoryBytes,
  disk,
  tenants,
  requests,
  jobs,
}: OperatorHealth) {
  const started = new Date(Date.now() - uptimeSeconds * 1_000).toISOString()
  return [
    ['Installation', <CheckTag key="status" isOk={status === 'ok'} />],
    ['Version', `${version}, on ${engine === 'sqlite' ? 'files' : 'PostgreSQL'}`],
    ['Time zones', `IANA ${timeZones.version}, ${timeZones.source}`],
    ['Started', <RelativeTime key="started" time={started} />],
    ['Memory', formatBytes(memoryBytes)],
    ['Disk', disk && `${formatBytes(disk.freeBytes)} free of ${formatBytes(disk.totalBytes)}`],
    [
      'Tenants',
      `${tenants.total.toLocaleString()}, of which ${tenants.suspended} are suspended; at most ${tenants.maxOpen} stay open`,
    ],
    ['Requests', describeRequests(requests)],
    ['Jobs', `${jobs.waiting} waiting, ${jobs.failing} of them for another attempt after a failure`],
  ] as const
}

function describeRequests({ total, errors, p95Seconds }: OperatorHealth['requests']) {
  const speed = p95Seconds === null ? '' : `; 95 % took at most ${(p95Seconds * 1_000).toLocaleString()} ms`
  return `${total.toLocaleString()} in the last minute, of which ${errors.toLocaleString()} failed${speed}`
}

const CheckList = ({ health: { checks, damaged } }: { health: OperatorHealth }) => (
  <ul className={classes.list}>
    {checks.map(({ check, ok, message }) => (
      <CheckRow key={check} isOk={ok} name={check} message={message} />
    ))}
    {damaged.map(({ tenant, reason }) => (
      <CheckRow key={`tenant ${tenant}`} isOk={false} name={`tenant ${tenant}`} message={reason} />
    ))}
  </ul>
)

const CheckRow = ({ isOk, name, message }: { isOk: boolean; name: string; message?: string }) => (
  <li className={classes.row}>
    <CheckTag isOk={isOk} />
    <span className={classes.name}>{name}</span>
    <span className={classes.message}>{message}</span>
  </li>
)
