import { useQuery } from '@tanstack/react-query'
import { api, fetchData } from '../api/client'
import type { AiUsageTotal } from '../api/schema'
import { formatMoney } from '../ui/money'
import { addUp, fillDays, firstDayShown } from './daily-values'
import { EmptyHint, FigureGroup, FigureRow } from './figure-row'

const compact = new Intl.NumberFormat(undefined, { notation: 'compact', maximumFractionDigits: 1 })

/** How many tokens the models used lately, and what they cost. */
export function AiFigures() {
  const from = firstDayShown()
  const { data, error } = useQuery({
    queryKey: ['ai', 'usage', 'daily', from],
    queryFn: async () =>
      (await fetchData(api.GET('/api/ai/usage', { params: { query: { groupBy: 'day', from } } }))) as AiUsageTotal[],
  })
  if (error) return null
  const dailyOf = (measure: (total: AiUsageTotal) => number) =>
    fillDays((data ?? []).map((total) => [total.day ?? '', measure(total)] as const))
  const [tokens, costs] = [dailyOf(({ totalTokens }) => totalTokens), dailyOf(({ cost }) => cost)]
  const [requests, cost] = [addUp((data ?? []).map(({ count }) => count)), addUp(costs)]
  return (
    <FigureGroup title="AI">
      {data?.length === 0 ? (
        <EmptyHint text="No model was used in the last 30 days." action="Create an agent" to="/ai/agents" />
      ) : (
        <FigureRow
          to="/ai/usage"
          value={data && compact.format(addUp(tokens))}
          label="tokens in 30 days"
          note={data && `${requests.toLocaleString()} ${requests === 1 ? 'request' : 'requests'}`}
          trend={tokens}
        />
      )}
      {cost > 0 && <FigureRow to="/ai/usage" value={formatMoney(cost)} label="cost in 30 days" trend={costs} />}
    </FigureGroup>
  )
}
