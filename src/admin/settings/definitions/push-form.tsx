import { Alert, Button, Group, PasswordInput, Progress, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { queryClient } from '../../api/queries'
import type { DefinitionDiffResult } from '../../api/schema'
import { confirmAction } from '../../ui/confirmation'
import { PanelSection } from '../../ui/panel-section'
import { countEntities, isDestructive } from './change-list'
import type { DefinitionChange, DefinitionFolder } from './definition-folder'
import { type PushProgress, pushDefinitions } from './definition-push'

type PushFormProps = {
  folder: DefinitionFolder
  plan: DefinitionDiffResult
  prune: boolean
  pruneData: boolean
  /** The values of missing secrets by their names, which outlive a change of the options. */
  secrets: Record<string, string>
  onSecretsChange: (secrets: Record<string, string>) => void
  onDone: (changes: DefinitionChange[]) => void
  onFail: (error: unknown) => void
}

/** Asks for missing secrets, and pushes. */
export function PushForm(props: PushFormProps) {
  const { folder, plan, prune, pruneData, secrets, onSecretsChange, onDone, onFail } = props
  const [progress, setProgress] = useState<PushProgress>()
  const losses = plan.changes.filter(isDestructive)
  const action = `Push ${plan.changes.length} ${plan.changes.length === 1 ? 'change' : 'changes'}`
  const push = useMutation({
    mutationFn: async () => {
      const text = 'What they remove cannot be brought back.'
      if (losses.length && !(await confirmAction({ title: `${action}?`, text, action }))) return
      setProgress(undefined)
      return pushDefinitions({ ...folder, secrets, prune, pruneData: prune && pruneData }, setProgress)
    },
    onSuccess: (changes) => changes && onDone(changes),
    onError: onFail,
    // Definitions are what all screens show.
    onSettled: (changes, error) => (changes || error) && queryClient.invalidateQueries(),
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    push.mutate()
  }
  return (
    <form onSubmit={submit}>
      {losses.length > 0 && (
        <Alert color="yellow" title="This removes data or definitions" my="md">
          {losses.map((change) => (
            <div key={`${change.kind} ${change.name}`}>{describeLoss(change)}</div>
          ))}
        </Alert>
      )}
      {plan.missingSecrets.length > 0 && (
        <PanelSection title="Secrets" order={2}>
          <Text size="sm" c="dimmed" mb="xs">
            The files have placeholders for these, and the tenant has no values of them.
          </Text>
          {plan.missingSecrets.map((name) => (
            <PasswordInput
              key={name}
              label={name}
              required
              autoComplete="new-password"
              mb="xs"
              value={secrets[name] ?? ''}
              onChange={(event) => onSecretsChange({ ...secrets, [name]: event.currentTarget.value })}
            />
          ))}
        </PanelSection>
      )}
      {push.isPending && progress && (
        <div>
          <Text role="status" size="sm">
            {progress.done} changes are made, {progress.remaining} remain.
          </Text>
          <Progress
            aria-label="Pushed"
            size="sm"
            my={8}
            value={(100 * progress.done) / (progress.done + progress.remaining || 1)}
          />
        </div>
      )}
      <Group mt="md">
        <Button type="submit" loading={push.isPending}>
          {action}
        </Button>
      </Group>
    </form>
  )
}

function describeLoss(change: DefinitionChange): string {
  const count = countEntities(change)
  const thing = `${change.kind} ${change.name}${count && `, which has ${count}`}`
  if (change.action === 'remove') return `Removes the ${thing}.`
  const removed = (change.details ?? []).filter((detail) => detail.startsWith('removes '))
  return `The ${thing}: ${removed.join('; ')}.`
}
