import { Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { formatMoney } from '../ui/money'
import { statisticsQuery } from './payment-queries'
import classes from './payments.module.css'

/** What subscriptions bring in a month, and how many there are, in one line. */
export function RevenueLine() {
  const { data } = useQuery(statisticsQuery)
  if (!data || Object.values(data.countByStatus).every((count) => count === 0)) return null
  const { active, trialing, past_due, pending, canceled, expired } = data.countByStatus
  const counts = [
    [active, 'active'],
    [trialing, 'in trial'],
    [past_due, 'overdue'],
    [pending, 'pending'],
    [canceled + expired, 'ended'],
  ] as const
  const revenue = data.monthlyRevenue.map(({ amount, currency }) => formatMoney(amount, currency)).join(' + ')
  return (
    <div className={classes.revenue} role="status" aria-label="Revenue">
      {revenue && (
        <span>
          <strong>{revenue}</strong> a month
        </span>
      )}
      {counts
        .filter(([count]) => count > 0)
        .map(([count, word]) => (
          <Text key={word} span size="sm" c="dimmed">
            {count.toLocaleString()} {word}
          </Text>
        ))}
    </div>
  )
}
