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
  /** The values of secrets by their names, which outlive a change of the options. */
  secrets: Record<string, string>
  onSecretsChange: (secrets: Record<string, string>) => void
  onDone: (changes: DefinitionChange[]) => void
  onFail: (error: unknown) => void
}

/** Asks for secrets that are missing, takes others for those that the tenant has, and pushes. */
export function PushForm(props: PushFormProps) {
  const { folder, plan, prune, pruneData, secrets, onSecretsChange, onDone, onFail } = props
  const [progress, setProgress] = useState<PushProgress>()
  const losses = plan.changes.filter(isDestructive)
  const hasChanges = plan.changes.length > 0
  const action = hasChanges
    ? `Push ${plan.changes.length} ${plan.changes.length === 1 ? 'change' : 'changes'}`
    : 'Push the secrets'
  const isEmpty = !hasChanges && plan.keptSecrets.every((name) => !secrets[name])
  const push = useMutation({
    mutationFn: async () => {
      const text = 'Removed data cannot be restored.'
      if (losses.length && !(await confirmAction({ title: `${action}?`, text, action }))) return
      setProgress(undefined)
      const stated = Object.fromEntries(Object.entries(secrets).filter(([, value]) => value))
      return pushDefinitions({ ...folder, secrets: stated, prune, pruneData: prune && pruneData }, setProgress)
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
      <SecretInputs
        title="Secrets"
        text="The files have placeholders for these, and the tenant has no values of them."
        names={plan.missingSecrets}
        required
        {...{ secrets, onSecretsChange }}
      />
      <SecretInputs
        title="Replace secrets"
        text="The tenant already has values for these. Leave one empty to keep its value."
        names={plan.keptSecrets}
        {...{ secrets, onSecretsChange }}
      />
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
        <Button type="submit" loading={push.isPending} disabled={isEmpty}>
          {action}
        </Button>
      </Group>
    </form>
  )
}

type SecretInputsProps = Pick<PushFormProps, 'secrets' | 'onSecretsChange'> & {
  title: string
  text: string
  names: string[]
  required?: boolean
}

const SecretInputs = ({ title, text, names, required = false, secrets, onSecretsChange }: SecretInputsProps) =>
  names.length > 0 && (
    <PanelSection title={title} order={2}>
      <Text size="sm" c="dimmed" mb="xs">
        {text}
      </Text>
      {names.map((name) => (
        <PasswordInput
          key={name}
          label={name}
          required={required}
          autoComplete="new-password"
          mb="xs"
          value={secrets[name] ?? ''}
          onChange={(event) => onSecretsChange({ ...secrets, [name]: event.currentTarget.value })}
        />
      ))}
    </PanelSection>
  )

function describeLoss(change: DefinitionChange): string {
  const count = countEntities(change)
  const thing = `${change.kind} ${change.name}${count && `, which has ${count}`}`
  if (change.action === 'remove') return `Removes the ${thing}.`
  const removed = (change.details ?? []).filter((detail) => detail.startsWith('removes '))
  return `The ${thing}: ${removed.join('; ')}.`
}
