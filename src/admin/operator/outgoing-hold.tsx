import { Button, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import type { OperatorTenant } from '../api/schema'
import { confirmAction } from '../ui/confirmation'
import { showProblem } from '../ui/notices'
import { PanelSection } from '../ui/panel-section'
import { RelativeTime } from '../ui/relative-time'
import { operatorApi, refetchOperator } from './operator-api'

type OutgoingHoldProps = { tenant: Pick<OperatorTenant, 'id' | 'status'>; heldSince: string }

/** What a copy of a tenant does not do outside, and how the operator lets it. */
export function OutgoingHold({ tenant: { id, status }, heldSince }: OutgoingHoldProps) {
  const resume = useMutation({
    mutationFn: () =>
      operatorApi.POST('/operator/tenants/{id}/resume', { params: { path: { id }, query: { outgoing: true } } }),
    onSuccess: refetchOperator,
    onError: showProblem,
  })
  const confirmAndResume = async () => {
    const jobs =
      'Its webhooks, schedules and integrations resume within a minute, including those that its origin also has.'
    const text = status === 'suspended' ? `${jobs} It is also no longer suspended.` : jobs
    if (await confirmAction({ title: `Let the tenant ${id} act outside?`, text, action: 'Let it act outside' }))
      resume.mutate()
  }
  return (
    <PanelSection
      title="Held copy"
      action={
        <Button variant="default" onClick={confirmAndResume} loading={resume.isPending}>
          Let it act outside…
        </Button>
      }
    >
      <Text size="sm" c="dimmed">
        It was copied <RelativeTime time={heldSince} />, and does nothing outside: webhooks and integrations wait, mails
        are not sent, and payment providers are not called.
      </Text>
    </PanelSection>
  )
}
