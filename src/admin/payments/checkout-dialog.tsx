import { Button, Group, Modal, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { api, fetchData } from '../api/client'
import type { Checkout, Subscription } from '../api/schema'
import { CodeBlock } from '../ui/code-block'
import { ProblemMessage } from '../ui/problem-message'
import { refreshPayments } from './payment-queries'

/** How the customer goes on with a checkout: an address, a token, or nothing because it is free. */
export function CheckoutResult({ checkout }: { checkout: Checkout }) {
  if (checkout.checkoutUrl)
    return (
      <>
        <Text size="sm" mb="sm">
          Send this address to the customer. The subscription becomes active when they have paid.
        </Text>
        <CodeBlock label="Address of the checkout" code={checkout.checkoutUrl} />
      </>
    )
  if (checkout.clientToken)
    return (
      <>
        <Text size="sm" mb="sm">
          Your page gives this token to the script of the provider, where the customer pays.
        </Text>
        <CodeBlock label="Token of the checkout" code={checkout.clientToken} />
      </>
    )
  return <Text size="sm">It costs nothing, so the subscription is active now.</Text>
}

/** Starts the checkout of a pending subscription. */
export function CheckoutDialog({ subscription, onClose }: { subscription: Subscription; onClose: () => void }) {
  const starting = useMutation({
    mutationFn: () => fetchData(api.POST('/api/checkout', { body: { subscriptionId: subscription._id } as never })),
    onSettled: refreshPayments,
  })
  return (
    <Modal opened title="Start the checkout" onClose={onClose}>
      {starting.error && <ProblemMessage error={starting.error} />}
      {starting.data ? (
        <CheckoutResult checkout={starting.data} />
      ) : (
        <Text size="sm">The provider creates a page where the customer pays. Nothing is charged before that.</Text>
      )}
      <Group mt="md" justify="flex-end">
        <Button variant="default" onClick={onClose}>
          Close
        </Button>
        {!starting.data && (
          <Button loading={starting.isPending} onClick={() => starting.mutate()} data-autofocus>
            Start checkout
          </Button>
        )}
      </Group>
    </Modal>
  )
}
