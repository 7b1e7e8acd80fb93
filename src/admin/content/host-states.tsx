import { Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { appConfigurationQuery } from '../branding/tenant-brand'
import { HostState } from '../settings/host-state'
import { CodeBlock } from '../ui/code-block'

/** Whether the hosts of the websites lead to this tenant, and what to do where they do not. */
export function HostStates() {
  const { data } = useQuery(appConfigurationQuery())
  if (!data?.hosts?.length) return null
  return (
    <Stack gap="xs" mt="md">
      {data.hosts.map(({ host, state, message, record }) => (
        <div key={host}>
          <Text size="sm">
            {host} <HostState state={state} />
          </Text>
          {message && (
            <Text size="xs" c="dimmed">
              {message}
            </Text>
          )}
          {record && <CodeBlock label="DNS record" code={`${record.name} ${record.type} ${record.value}`} />}
        </div>
      ))}
    </Stack>
  )
}
