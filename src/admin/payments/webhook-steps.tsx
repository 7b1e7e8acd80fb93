import { Anchor, Text, Title } from '@mantine/core'
import { getNamedTenant } from '../api/session'
import { CodeBlock } from '../ui/code-block'
import classes from './payments.module.css'
import type { ProviderDescription } from './providers/provider-kind'

/** The address at which a provider reports events to this tenant. */
function toWebhookAddress(kind: string): string {
  const tenant = getNamedTenant()
  return `${location.origin}/api/payments/webhooks/${kind}${tenant ? `?tenant=${encodeURIComponent(tenant)}` : ''}`
}

/** The address and the events that have to be registered at a provider. */
export function WebhookSteps({ kind, provider }: { kind: string; provider: ProviderDescription }) {
  return (
    <section className={classes.section}>
      <Title order={3}>Webhook</Title>
      <Text size="sm" mb="xs">
        Register this address{' '}
        <Anchor href={provider.webhookPage} target="_blank" rel="noreferrer" size="sm" underline="always">
          at {provider.label}
        </Anchor>{' '}
        for the events below, and then enter the secret that you get into the form.
      </Text>
      <CodeBlock label="Address" code={toWebhookAddress(kind)} />
      <ul className={classes.events} aria-label="Events">
        {provider.webhookEvents.map((name) => (
          <li key={name}>{name}</li>
        ))}
      </ul>
    </section>
  )
}
