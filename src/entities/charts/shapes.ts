import { t } from 'elysia'

const name = t.Union([t.String(), t.Number(), t.Boolean()], {
  description:
    'the value itself; the day of the week (Sunday is 0) or the hour as a number; the first day of an interval',
})
const amount = t.Union([t.Number(), t.String()], { description: 'exact; text where no number says it exactly' })
const options = t.Record(t.String(), t.Unknown())

export const Count = t.Object({ count: t.Number() })

export const Sum = t.Object({
  sum: amount,
  groups: t.Optional(t.Array(t.Object({ group: name, sum: amount }), { description: 'where groupBy is given' })),
})

export const AxesChart = t.Object(
  {
    tooltip: options,
    toolbox: options,
    xAxis: t.Object({ type: t.Literal('category'), data: t.Array(name) }),
    yAxis: options,
    series: t.Array(
      t.Object({ type: t.String(), name: t.String(), areaStyle: t.Optional(options), data: t.Array(amount) }),
    ),
  },
  { description: 'options of ECharts' },
)

export const PieChart = t.Object(
  {
    tooltip: options,
    series: t.Array(
      t.Object({
        type: t.Literal('pie'),
        name: t.String(),
        data: t.Array(t.Object({ name, value: amount, label: t.Optional(options), tooltip: t.Optional(options) })),
      }),
    ),
  },
  { description: 'options of ECharts' },
)
