import { Skeleton, Table, Text } from '@mantine/core'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import type { Blueprint } from '../api/schema'
import { Chart } from '../ui/chart'
import { ProblemMessage } from '../ui/problem-message'
import { type ChartData, chartDataQuery } from './chart-data'
import { toChartHeight, toChartOption } from './chart-option'
import classes from './chart-view.module.css'
import type { NewChart } from './saved-chart'

const LOADING_HEIGHT_PX = 220

type ChartViewProps = { chart: NewChart; blueprint: Blueprint }

/** A chart of the entities of a blueprint, and its numbers as a table for those who cannot see it. */
export function ChartView({ chart, blueprint }: ChartViewProps) {
  const field = blueprint.fields.find(({ key }) => key === chart.groupBy)
  const { data, error, isPlaceholderData } = useQuery({
    ...chartDataQuery(chart, field),
    placeholderData: keepPreviousData,
  })
  if (error) return <ProblemMessage error={error} />
  if (!data || (isPlaceholderData && chart.kind !== 'number' && !data.points.length))
    return <Skeleton height={LOADING_HEIGHT_PX} animate={false} />
  if (chart.kind === 'number') return <p className={classes.number}>{data.total.exact}</p>
  if (!data.points.length)
    return (
      <Text c="dimmed" py="xl" ta="center">
        {chart.filters && Object.keys(chart.filters).length
          ? 'No entity matches these filters.'
          : `There are no ${blueprint.name.toLowerCase()} to draw yet.`}
      </Text>
    )
  return <DrawnChart chart={chart} data={data} />
}

function DrawnChart({ chart, data }: { chart: NewChart; data: ChartData }) {
  const option = useMemo(() => toChartOption(chart.kind, data), [chart.kind, data])
  return (
    <>
      <Chart label={chart.title} height={toChartHeight(chart.kind, data)} option={option} />
      <details className={classes.numbers}>
        <summary>Numbers</summary>
        <Table fz="sm" aria-label={`Numbers of ${chart.title}`}>
          <Table.Tbody>
            {data.points.map(({ label, exact }, n) => (
              <Table.Tr key={`${label} ${n}`}>
                <Table.Th scope="row" fw={400}>
                  {label}
                </Table.Th>
                <Table.Td ta="right">{exact}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </details>
    </>
  )
}
