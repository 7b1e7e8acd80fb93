import { useQuery } from '@tanstack/react-query'
import { userStatsQuery } from '../people/user-queries'
import { FigureGroup, FigureRow } from './figure-row'

/** How many users there are, and how many were active lately. */
export function PeopleFigures() {
  const { data, error } = useQuery(userStatsQuery)
  if (error) return null
  const { total = 0, active, registered } = data ?? {}
  return (
    <FigureGroup title="People">
      <FigureRow
        to="/people/users"
        value={active?.lastWeek.toLocaleString()}
        label={`active this week, of ${total.toLocaleString()} ${total === 1 ? 'user' : 'users'}`}
        note={registered?.lastMonth ? `+${registered.lastMonth.toLocaleString()} in 30 days` : ''}
      />
    </FigureGroup>
  )
}
