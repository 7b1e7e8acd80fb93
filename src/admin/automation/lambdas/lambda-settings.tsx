import { Button, Divider, Group, Text } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import { useMemo } from 'react'
import { api, fetchData } from '../../api/client'
import { queryClient } from '../../api/queries'
import { FieldForm, type FormField } from '../../fields/field-form'
import { confirmAction } from '../../ui/confirmation'
import { showNotice, showProblem } from '../../ui/notices'
import { SaveButton } from '../../ui/save-button'
import { createEnvInput } from './env-input'
import { LambdaIntegrations } from './lambda-integrations'
import { changeLambda, type LoadedLambda } from './lambda-queries'

const FORM_ID = 'lambda-settings'

const listSettingFields = (env: readonly string[]): FormField[] => [
  { key: 'name', title: 'Name', type: 'string', required: true },
  { key: 'description', title: 'Description', type: 'text' },
  { key: 'timeoutMs', title: 'Time limit in ms', description: 'From 10 to 30,000.', type: 'integer' },
  { key: 'memoryMb', title: 'Memory limit in MiB', description: 'From 1 to 256.', type: 'integer' },
  {
    key: 'serviceRole',
    title: 'Service role',
    description: 'It acts with the rights of this role. Without one, with those of its caller.',
    type: 'string',
  },
  {
    key: 'env',
    title: 'Environment',
    description: 'Values that only the lambda can read, as atoll.env. They cannot be shown here again.',
    type: 'object',
    isSecret: true,
    Input: createEnvInput(env),
  },
]

/** The limits and rights of a lambda, the integrations that run it, and its deletion. */
export function LambdaSettings({ loaded }: { loaded: LoadedLambda }) {
  const { lambda } = loaded
  const navigate = useNavigate()
  const names = lambda.env.join()
  const fields = useMemo(() => listSettingFields(names ? names.split(',') : []), [names])
  const remove = async () => {
    const isConfirmed = await confirmAction({
      title: `Delete the lambda “${lambda.name}”?`,
      text: 'Its versions, its environment and its log are deleted with it.',
      action: 'Delete lambda',
    })
    if (!isConfirmed) return
    try {
      await fetchData(api.DELETE('/api/lambdas/{id}', { params: { path: { id: lambda._id } } }))
      await navigate({ to: '/automation/lambdas' })
      queryClient.removeQueries({ queryKey: ['lambdas', 'one', lambda._id] })
      await queryClient.invalidateQueries({ queryKey: ['lambdas'] })
    } catch (error) {
      showProblem(error)
    }
  }
  return (
    <>
      <FieldForm
        key={lambda.updated}
        id={FORM_ID}
        fields={fields}
        before={{ ...lambda, serviceRole: lambda.serviceRole ?? undefined, env: undefined }}
        draftKey={`lambda-settings:${lambda._id}`}
        save={(changes) =>
          changeLambda(loaded, {
            ...changes,
            ...('description' in changes && { description: String(changes.description ?? '') }),
          })
        }
        onSaved={() => showNotice('Saved.')}
      />
      <Group mt="md" gap="xs">
        <SaveButton form={FORM_ID} />
      </Group>
      <Divider my="lg" />
      <LambdaIntegrations id={lambda._id} />
      <Divider my="lg" />
      <Text size="xs" c="dimmed" mb="xs">
        A lambda that an integration runs cannot be deleted.
      </Text>
      <Button variant="default" c="var(--mantine-color-error)" onClick={remove}>
        Delete lambda
      </Button>
    </>
  )
}
