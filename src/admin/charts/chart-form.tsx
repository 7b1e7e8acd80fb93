import { SegmentedControl, Select, Stack, Text, TextInput } from '@mantine/core'
import type { Blueprint } from '../api/schema'
import { type ChartSearch, WEEKDAY } from './chart-address'
import { isDateField } from './chart-data'
import { CHART_INTERVALS, CHART_KINDS, listGroupingFields, listSummableFields } from './chart-words'
import type { NewChart } from './saved-chart'

const COUNT = ''
const GROUP_COUNTS = ['5', '10', '20', '50']
const PERIOD_COUNTS = ['7', '12', '30', '90']

type ChartFormProps = {
  blueprint: Blueprint
  chart: NewChart
  title: string
  /** Changes some words of the address. */
  onChange: (change: ChartSearch) => void
  onTitle: (title: string) => void
}

/** The choices that make a chart. Each has an answer already, so that the chart can be seen at once. */
export function ChartForm({ blueprint, chart, title, onChange, onTitle }: ChartFormProps) {
  const { kind, sum = COUNT, groupBy = '', interval = '', limit } = chart
  const groupField = blueprint.fields.find(({ key }) => key === groupBy)
  const isDate = isDateField(groupBy, groupField)
  const counts = isDate ? PERIOD_COUNTS : GROUP_COUNTS
  return (
    <Stack gap="sm">
      <SegmentedControl
        aria-label="Kind of chart"
        size="xs"
        fullWidth
        data={CHART_KINDS}
        value={kind}
        onChange={($kind) => onChange({ $kind })}
      />
      <Select
        label="What"
        data={[
          { value: COUNT, label: `Number of ${blueprint.name.toLowerCase()}` },
          ...listSummableFields(blueprint.fields).map(({ value, label }) => ({ value, label: `Sum of ${label}` })),
        ]}
        value={sum}
        allowDeselect={false}
        onChange={($sum) => onChange({ $sum: $sum ?? COUNT })}
      />
      {kind !== 'number' && (
        <Select
          label="Grouped by"
          data={listGroupingFields(blueprint.fields)}
          value={groupBy}
          allowDeselect={false}
          searchable
          onChange={($x) => onChange({ $x: $x ?? '', $interval: '', $show: '' })}
        />
      )}
      {kind !== 'number' && isDate && (
        <Select
          label="Each"
          data={CHART_INTERVALS}
          value={interval}
          allowDeselect={false}
          onChange={($interval) => onChange({ $interval: $interval || WEEKDAY })}
        />
      )}
      {kind !== 'number' && groupField?.type !== 'time' && (!isDate || interval) && (
        <Select
          label="Show"
          data={[
            { value: '0', label: 'All groups' },
            ...counts.map((value) => ({ value, label: isDate ? `The last ${value}` : `The largest ${value}` })),
          ]}
          value={String(limit ?? 0)}
          allowDeselect={false}
          onChange={($show) => onChange({ $show: $show ?? '' })}
        />
      )}
      <TextInput
        label="Title"
        placeholder={chart.title}
        value={title}
        onChange={(event) => onTitle(event.currentTarget.value)}
      />
      <Text size="xs" c="dimmed">
        All administrators see the chart on the dashboard at Home.
      </Text>
    </Stack>
  )
}
