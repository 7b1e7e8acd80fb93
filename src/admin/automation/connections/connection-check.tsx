import { Button, Group, Text } from '@mantine/core'
import { IconPlugConnected } from '@tabler/icons-react'
import { useMutation } from '@tanstack/react-query'
import { api, fetchData } from '../../api/client'
import type { IntegrationSourceStatus } from '../../api/schema'
import { useFormValues } from '../../fields/field-form'
import { ProblemMessage } from '../../ui/problem-message'
import { RelativeTime } from '../../ui/relative-time'
import { StateTag } from '../../ui/state-tag'
import { toConnectionBody } from './connection-values'
import type { ConnectionKindName } from './kinds/connection-kind'

/** A button that asks a server whether it accepts the connection, and its answer. */
function CheckButton({ check }: { check(): Promise<IntegrationSourceStatus> }) {
  const { data, error, isPending, mutate } = useMutation({ mutationFn: check })
  return (
    <div>
      <Group gap="xs">
        <Button
          variant="default"
          leftSection={<IconPlugConnected size={14} />}
          onClick={() => mutate()}
          loading={isPending}
        >
          Check connection
        </Button>
        {data && (
          <Text size="sm" role="status" component="div">
            <Group gap="xs">
              <StateTag
                label={data.status === 'connected' ? 'Connected' : 'Not connected'}
                tone={data.status === 'connected' ? 'good' : 'bad'}
              />
              {data.message}{' '}
              <Text size="xs" c="dimmed" component="span">
                <RelativeTime time={data.checkedAt} />
              </Text>
            </Group>
          </Text>
        )}
      </Group>
      {error && <ProblemMessage error={error} />}
    </div>
  )
}

/** Checks a connection that is stored. */
export const ConnectionCheck = ({ id }: { id: string }) => (
  <CheckButton
    check={() => fetchData(api.POST('/api/integration-sources/{id}/status', { params: { path: { id } } }))}
  />
)

/** Checks the connection that a form describes, before it is stored. */
export function DraftCheck() {
  const values = useFormValues()
  const body = { kind: values.kind as ConnectionKindName, ...toConnectionBody(values) }
  return <CheckButton check={() => fetchData(api.POST('/api/integration-sources/status', { body }))} />
}
