import { SegmentedControl, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useMemo } from 'react'
import { Chart } from '../../ui/chart'
import { EmptyState } from '../../ui/empty-state'
import { ProblemMessage } from '../../ui/problem-message'
import { Screen } from '../../ui/screen'
import { agentsQuery, toAgentName } from '../ai-queries'
import { usersQuery } from '../user-names'
import { Budgets } from './budgets'
import classes from './usage.module.css'
import { sumByGrouping, toUsageOption } from './usage-chart'
import { listSteps, type PeriodKey, periods, type UsageGrouping, type UsageUnit, usageQuery } from './usage-queries'
import { UsageTable } from './usage-table'

type UsageSearch = { period?: PeriodKey; by?: UsageGrouping; unit?: UsageUnit }

const CHART_HEIGHT_PX = 260
const GROUPINGS = [
  { value: 'integration', label: 'Agents' },
  { value: 'user', label: 'Users' },
  { value: 'model', label: 'Models' },
]
const NAMELESS = { integration: 'Without an agent', user: 'Without a user', model: 'Unknown model' }

function useNameOf(grouping: UsageGrouping) {
  const agents = useQuery(agentsQuery)
  const users = useQuery(usersQuery)
  return useMemo(() => {
    const names: Record<UsageGrouping, Map<string, string> | undefined> = {
      integration: new Map(agents.data?.map((agent) => [agent._id, toAgentName(agent)])),
      user: users.data,
      model: undefined,
    }
    const shorten = (key: string) => (grouping === 'model' ? key : `${key.slice(0, 8)}, deleted`)
    return (key: string) => (key ? (names[grouping]?.get(key) ?? shorten(key)) : NAMELESS[grouping])
  }, [agents.data, users.data, grouping])
}

/** What the models of a period took, over time and by agent, user or model. */
export function Usage() {
  const navigate = useNavigate()
  const search: UsageSearch = useSearch({ strict: false })
  const { period = '30', by = 'integration', unit = 'tokens' } = search
  const change = (part: UsageSearch) => navigate({ to: '.', search: { ...search, ...part } as never, replace: true })
  const { data: totals, error } = useQuery(usageQuery(period, by))
  const nameOf = useNameOf(by)
  const rows = useMemo(() => sumByGrouping(totals ?? [], by, nameOf), [totals, by, nameOf])
  const option = useMemo(
    () => toUsageOption({ totals: totals ?? [], rows, steps: listSteps(period), grouping: by, unit }),
    [totals, rows, period, by, unit],
  )
  const groupBy = `${periods[period].step},${by}`
  return (
    <Screen
      title="Usage"
      request={{ method: 'GET', path: '/api/ai/usage', query: { groupBy, from: listSteps(period)[0]! } }}
      toolbar={
        <>
          <SegmentedControl
            size="xs"
            aria-label="Period"
            data={Object.entries(periods).map(([value, { label }]) => ({ value, label }))}
            value={period}
            onChange={(value) => change({ period: value as PeriodKey })}
          />
          <SegmentedControl
            size="xs"
            aria-label="Grouped by"
            data={GROUPINGS}
            value={by}
            onChange={(value) => change({ by: value as UsageGrouping })}
          />
          <SegmentedControl
            size="xs"
            aria-label="Unit"
            data={[
              { value: 'tokens', label: 'Tokens' },
              { value: 'cost', label: 'Cost' },
            ]}
            value={unit}
            onChange={(value) => change({ unit: value as UsageUnit })}
          />
        </>
      }
    >
      <div className={classes.page}>
        {error && <ProblemMessage error={error} />}
        {totals?.length === 0 && (
          <EmptyState
            text="No model was used in this period."
            action={{ label: 'Open the playground', to: '/ai/playground' }}
          />
        )}
        {!!totals?.length && (
          <>
            {unit === 'cost' && rows.every(({ cost }) => cost === 0) ? (
              <Text c="dimmed" size="sm" py="xl" ta="center">
                No model has a price, so nothing costs anything.
              </Text>
            ) : (
              <Chart label={`${unit} by ${periods[period].step}`} height={CHART_HEIGHT_PX} option={option} />
            )}
            <UsageTable rows={rows} label={GROUPINGS.find(({ value }) => value === by)!.label} />
          </>
        )}
        <Budgets />
      </div>
    </Screen>
  )
}
