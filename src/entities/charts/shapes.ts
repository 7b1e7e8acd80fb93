import { t } from 'elysia'

export const ChartGroupName = t.Union([t.String(), t.Number(), t.Boolean()], {
  description:
    'value of the group: for intervals, the weekday (Sunday is 0) or hour as a number, the first day, a quarter such as 2029-Q1, or an hour with its offset such as 2029-01-31T09:00:00+01:00',
})
export const NumberOrText = t.Union([t.Number(), t.String()], {
  description: 'exact; a string where a number would lose precision',
})
const OptionsShape = t.Record(t.String(), t.Unknown())

export const Count = t.Object({ count: t.Number() })

export const Sum = t.Object({
  sum: NumberOrText,
  groups: t.Optional(
    t.Array(t.Object({ group: ChartGroupName, sum: NumberOrText }), { description: 'only with groupBy' }),
  ),
})

export const AxesChart = t.Object(
  {
    tooltip: OptionsShape,
    toolbox: OptionsShape,
    xAxis: t.Object({ type: t.Literal('category'), data: t.Array(ChartGroupName) }),
    yAxis: OptionsShape,
    series: t.Array(
      t.Object({
        type: t.String(),
        name: t.String(),
        areaStyle: t.Optional(OptionsShape),
        data: t.Array(NumberOrText),
      }),
    ),
  },
  { description: 'The options of a chart for ECharts' },
)

export const PieChart = t.Object(
  {
    tooltip: OptionsShape,
    series: t.Array(
      t.Object({
        type: t.Literal('pie'),
        name: t.String(),
        data: t.Array(
          t.Object({
            name: ChartGroupName,
            value: NumberOrText,
            label: t.Optional(OptionsShape),
            tooltip: t.Optional(OptionsShape),
          }),
        ),
      }),
    ),
  },
  { description: 'The options of a chart for ECharts' },
)
