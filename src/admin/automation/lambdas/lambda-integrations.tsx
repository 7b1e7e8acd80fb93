import { Anchor, Group, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { IntegrationSentence } from '../integrations/integration-sentence'
import { lambdaIntegrationsQuery } from './lambda-queries'

const NEW_KINDS = [
  ['webhook', 'At a webhook'],
  ['schedule', 'On a schedule'],
  ['event', 'When something happens'],
] as const

/** The integrations that run a lambda, and how to add one. */
export function LambdaIntegrations({ id }: { id: string }) {
  const { data: integrations = [] } = useQuery(lambdaIntegrationsQuery(id))
  return (
    <section aria-label="Integrations that run it">
      <Text size="sm" fw={500} mb={4}>
        Integrations that run it
      </Text>
      {integrations.map((integration) => (
        <Anchor
          key={integration._id}
          component={Link}
          to={`/automation/integrations/${integration._id}`}
          size="sm"
          display="block"
          mb={4}
        >
          <IntegrationSentence integration={integration} />
        </Anchor>
      ))}
      <Group gap="sm">
        <Text size="sm" c="dimmed">
          Run it:
        </Text>
        {NEW_KINDS.map(([kind, label]) => (
          <Anchor
            key={kind}
            component={Link}
            to="/automation/integrations/new"
            search={{ trigger: kind, target: 'lambda', lambda: id } as never}
            size="sm"
          >
            {label}
          </Anchor>
        ))}
      </Group>
    </section>
  )
}
