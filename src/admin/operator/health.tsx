import { Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
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

/** How the installation is: its checks, its disk, its jobs, and what is damaged. */
export function Health() {
  const { data, error } = useQuery({
    queryKey: ['operator', 'health'],
    queryFn: async () => (await operatorApi.GET('/operator/health')).data,
    refetchInterval: REFRESH_INTERVAL_MS,
  })
  return (
    <Screen title="Health">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to take the focus */}
      <section className={classes.column} tabIndex={0} aria-label="Health of the installation">
        {error && <ProblemMessage error={error} />}
        {data && (
          <>
            <Details
              items={[
                ['Installation', <CheckTag key="status" isOk={data.status === 'ok'} />],
                ['Version', `${data.version}, on ${data.engine === 'sqlite' ? 'files' : 'PostgreSQL'}`],
                [
                  'Started',
                  <RelativeTime key="started" time={new Date(Date.now() - data.uptimeSeconds * 1_000).toISOString()} />,
                ],
                ['Memory', formatBytes(data.memoryBytes)],
                [
                  'Disk',
                  data.disk && `${formatBytes(data.disk.freeBytes)} free of ${formatBytes(data.disk.totalBytes)}`,
                ],
                [
                  'Tenants',
                  `${data.tenants.total.toLocaleString()}, of which ${data.tenants.suspended} are suspended; at most ${data.tenants.maxOpen} stay open`,
                ],
                ['Jobs', `${data.jobs.waiting} wait, of which ${data.jobs.failing} failed and are tried again`],
              ]}
            />
            <Title order={2} mt="lg" mb="xs">
              Checks
            </Title>
            <ul className={classes.list}>
              {data.checks.map(({ check, ok, message }) => (
                <li key={check} className={classes.row}>
                  <CheckTag isOk={ok} />
                  <span className={classes.name}>{check}</span>
                  <span className={classes.message}>{message}</span>
                </li>
              ))}
              {data.damaged.map(({ tenant, reason }) => (
                <li key={tenant} className={classes.row}>
                  <CheckTag isOk={false} />
                  <span className={classes.name}>tenant {tenant}</span>
                  <span className={classes.message}>{reason}</span>
                </li>
              ))}
            </ul>
          </>
        )}
      </section>
    </Screen>
  )
}
