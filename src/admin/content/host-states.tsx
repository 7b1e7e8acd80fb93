import { Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { api, fetchData } from '../api/client'
import { CodeBlock } from '../ui/code-block'
import { StateTag } from '../ui/state-tag'

const TONES = { served: 'good', unproven: 'warning', taken: 'bad' } as const

/** Whether the hosts of the websites lead to this tenant, and what to do where they do not. */
export function HostStates() {
  const { data } = useQuery({
    queryKey: ['configurations', 'hosts'],
    queryFn: () => fetchData(api.GET('/api/configurations/app-configuration')),
  })
  if (!data?.hosts?.length) return null
  return (
    <Stack gap="xs" mt="md">
      {data.hosts.map(({ host, state, message, record }) => (
        <div key={host}>
          <Text size="sm">
            {host} <StateTag label={state} tone={TONES[state]} />
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
