import { Anchor, Group, Progress, Stack, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { ProblemMessage } from '../../ui/problem-message'
import { formatCost } from '../playground/message'
import { usersQuery } from '../user-names'
import { type Budget, budgetsQuery } from './usage-queries'

const WARNING_SHARE = 0.8
const SCOPE_WORDS = { tenant: 'Everybody together', workspace: 'Each workspace', user: 'Each user' }

const formatAmount = (amount: number, unit: Budget['unit']) =>
  unit === 'tokens' ? `${amount.toLocaleString()} tokens` : `${formatCost(amount)} in cost`

function BudgetBar({ budget, name }: { budget: Budget; name?: string }) {
  const { scope, period, unit, limit, used } = budget
  const share = limit ? used / limit : 1
  const color = share >= 1 ? 'red' : share >= WARNING_SHARE ? 'yellow' : undefined
  const label = `${SCOPE_WORDS[scope]}, a ${period}`
  return (
    <div>
      <Group justify="space-between" gap="xs">
        <Text size="sm">{label}</Text>
        <Text size="sm" c="dimmed">
          {name && `${name}: `}
          {formatAmount(used, unit)} of {formatAmount(limit, unit)}
        </Text>
      </Group>
      <Progress value={Math.min(100, share * 100)} color={color} aria-label={label} size="sm" mt={2} />
    </div>
  )
}

/** The budgets of the tenant, and how much of each is used up by whoever used the most. */
export function Budgets() {
  const { data: budgets, error } = useQuery(budgetsQuery)
  const users = useQuery(usersQuery)
  if (error) return <ProblemMessage error={error} />
  return (
    <Stack gap="xs" maw={560}>
      <Group gap="sm">
        <Title order={2}>Budgets</Title>
        <Anchor component={Link} to="/content/configurations/ai-configuration" size="xs">
          Change budgets and prices
        </Anchor>
      </Group>
      {budgets?.length === 0 && (
        <Text size="sm" c="dimmed">
          There are no budgets, so nothing limits what agents may use.
        </Text>
      )}
      {budgets?.map((budget) => (
        <BudgetBar
          key={JSON.stringify([budget.scope, budget.period, budget.unit])}
          budget={budget}
          name={budget.subject && (users.data?.get(budget.subject) ?? budget.subject.slice(0, 8))}
        />
      ))}
    </Stack>
  )
}
