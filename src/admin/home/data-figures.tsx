import { queryOptions, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { api, fetchData } from '../api/client'
import type { Blueprint } from '../api/schema'
import { entityEstimateQuery, formatEstimate } from '../data/entity-queries'
import { addUp, fillDays, firstDayShown } from './daily-values'
import { FigureGroup, FigureRow } from './figure-row'
import classes from './figure-row.module.css'

const MAX_BLUEPRINTS_SHOWN = 10

/** How many entities were created on each of the last days. */
const dailyEntitiesQuery = (key: string, since: string) =>
  queryOptions({
    queryKey: ['entities', key, 'daily', since],
    queryFn: async () => {
      const query = { x: 'created', interval: 'day' as const, 'created[$gte]': since }
      const answer = api.GET('/api/blueprints/{key}/charts/{type}', {
        params: { path: { key, type: 'line' }, query: query as never },
      })
      const { xAxis, series } = await fetchData(answer)
      return fillDays(xAxis.data.map((day, n) => [String(day), Number(series[0]?.data[n] ?? 0)] as const))
    },
    staleTime: 60_000,
  })

/** How many entities each blueprint has, and how many were added lately. */
export const DataFigures = ({ blueprints }: { blueprints: Blueprint[] }) => (
  <FigureGroup title="Data">
    {blueprints.slice(0, MAX_BLUEPRINTS_SHOWN).map(({ key, name }) => (
      <BlueprintFigure key={key} blueprint={key} name={name} />
    ))}
    {blueprints.length > MAX_BLUEPRINTS_SHOWN && (
      <p className={classes.hint}>
        <Link to="/data" className={classes.link}>
          All {blueprints.length} blueprints
        </Link>
      </p>
    )}
  </FigureGroup>
)

function BlueprintFigure({ blueprint, name }: { blueprint: string; name: string }) {
  const count = useQuery(entityEstimateQuery(blueprint, {}))
  const { data: daily } = useQuery(dailyEntitiesQuery(blueprint, firstDayShown()))
  // Who may see a blueprint may not have to read its entities.
  if (count.error) return null
  const created = addUp(daily ?? [])
  return (
    <FigureRow
      to={`/data/${blueprint}`}
      value={count.data && formatEstimate(count.data)}
      label={name}
      note={created ? `+${created.toLocaleString()} in 30 days` : ''}
      trend={daily}
    />
  )
}
